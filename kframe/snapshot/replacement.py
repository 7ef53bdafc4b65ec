"""Files and directories that replace others: whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def temporary_sibling(path: Path) -> Iterator[Path]:
    """A new sibling directory of ``path`` with ordinary permissions; removed at the end unless it was renamed."""
    import shutil  # Most commands write no file, and the imports take a hundredth of a what-if's time.
    import tempfile

    building = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        mask = os.umask(0)
        os.umask(mask)
        building.chmod(0o777 & ~mask)
        yield building
    finally:
        shutil.rmtree(building, ignore_errors=True)


def rename_into(new: Path, path: Path) -> None:
    """Rename; restore the previous directory if that fails. A file replaces no directory. Raises OSError."""
    if not (new.is_dir() and path.is_dir()):
        new.replace(path)
        return
    with temporary_sibling(path) as backup:
        old = backup / path.name
        path.rename(old)
        try:
            new.rename(path)
        except OSError:
            old.rename(path)
            raise
