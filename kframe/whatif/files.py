"""Files that commands write beside what they print: whole or not at all, tables as well as pictures."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kframe.errors import EXISTS, InputError, pip_command
from kframe.snapshot.replacement import rename_into, temporary_sibling

#: Suffixes of picture files.
PICTURES: Final = (".svg", ".png")


def check_file(path: Path, endings: Collection[str] = (), *, force: bool = False) -> None:
    """Raise InputError unless a file of one of these endings may be written there, over another one by ``force``."""
    if endings and path.suffix not in endings:
        actual = f"a name that ends in {path.suffix!r}" if path.suffix else "a name without an ending"
        raise InputError(str(path), actual, " or ".join(endings))
    if not path.parent.is_dir():
        raise InputError(str(path.parent), "no such directory", "one to write the file in")
    if path.is_dir() or (path.exists() and not force):
        raise InputError(str(path), EXISTS, "--force to replace it")
    if path.exists() and not path.is_file():
        raise InputError(str(path), "a device or a pipe, which would be replaced", "a regular file")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The name of a file or directory that the caller makes. Then it takes the place of ``path``, unless an error is
    raised. A device or a pipe is not replaced: it is ``path``. Raises InputError if the place cannot be written."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            yield path
            return
        with temporary_sibling(path) as building:
            new = building / "new"
            yield new
            rename_into(new, path)
    except OSError as problem:
        raise InputError(str(path), problem.strerror or str(problem), "a place that can be written") from problem


def parquet_module() -> Any:
    """``pyarrow.parquet``. Raises InputError if pyarrow is missing."""
    try:
        from pyarrow import parquet
    except ImportError as problem:
        raise InputError("pyarrow", "no such module", f"the package: {pip_command('arrow')}") from problem
    return parquet


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure as SVG or PNG by the name of the file; the same figure gives the same bytes. Raises InputError."""
    import matplotlib as mpl

    kind = path.suffix.removeprefix(".")
    with mpl.rc_context({"svg.hashsalt": "kframe"}), replacing(path) as new:
        figure.savefig(new, format=kind, metadata={"Date": None} if kind == "svg" else None)
