"""Compare the console's vendored scripts with their npm packages: ``python -m verification.console.vendor [--write]``.

Needs npm and its registry. With ``--write`` the files are replaced; ``vendor.toml`` then needs their new hashes, which
are printed.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "plugins" / "console" / "kframe_console" / "static" / "vendor"


def packages() -> list[dict[str, Any]]:
    """The packages of ``vendor.toml``."""
    listed: list[dict[str, Any]] = tomllib.loads((FOLDER / "vendor.toml").read_text())["package"]
    return listed


def package_files(package: dict[str, Any]) -> Iterator[tuple[dict[str, str], bytes]]:
    """The entries of a package's files, each with the content that npm has."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"{package['name']}@{package['version']}"
        subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as members:
            for entry in package["file"]:
                content = members.extractfile(f"package/{entry['source']}")
                assert content is not None, entry["source"]
                yield entry, content.read()


def main(arguments: list[str]) -> int:
    """Compare, or with ``--write`` replace, all files. Returns 1 for a difference."""
    differences = 0
    for package in packages():
        for entry, content in package_files(package):
            digest = hashlib.sha256(content).hexdigest()
            if "--write" in arguments:
                (FOLDER / entry["name"]).write_bytes(content)
            is_same = digest == entry["sha256"] and (FOLDER / entry["name"]).read_bytes() == content
            print(f"{'same' if is_same else 'differs'}  {digest}  {entry['name']}")
            differences += not is_same
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
