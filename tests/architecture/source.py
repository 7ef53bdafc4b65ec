"""The source tree, as the architecture tests read it."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
#: Folders of the product. Tests may be longer than the limits.
PRODUCT: Final = ("kframe", "simulator", "plugins", "examples", "benchmarks")
KERNELS: Final = [ROOT / "kframe" / "_core.pyx", *sorted((ROOT / "kframe" / "kernels").glob("_*.pyx"))]
PLUGIN_KERNELS: Final = [
    *(ROOT / "simulator" / "kframe_simulator").glob("_*.pyx"),
    *sorted((ROOT / "plugins").glob("*/*/**/_*.pyx")),
]
DECLARATIONS: Final = sorted((ROOT / "kframe" / "kernels").glob("*.pxd"))

#: The first line of a function: a name, a parenthesis, then the colon or arguments on further lines.
FUNCTION: Final = re.compile(
    r"(?P<indent> *)(?:def|cp?def)\s+(?:[^=()]*\s)?\*?(?P<name>\w+)\((?:.*:|[^)]*)\s*(?:#.*)?$"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A function: its location, and its number of lines."""

    where: str
    lines: int


@dataclass(frozen=True, slots=True)
class Definitions:
    """Functions as (name, first line, number of lines), classes as (name, first line), imported modules and members.
    Nested functions, classes and imports count, as do imports under ``TYPE_CHECKING``."""

    functions: tuple[tuple[str, int, int], ...]
    classes: tuple[tuple[str, int], ...]
    imports: tuple[str, ...]


def module_name(path: Path) -> str:
    """Return the importable name of a module."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@cache
def tree_files() -> tuple[Path, ...]:
    """Return the files of the tree: those that git does not ignore, or all files without git."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, capture_output=True, text=True, check=False, cwd=ROOT).stdout.split("\0")
    paths = [ROOT / name for name in listed if name] or [
        path for path in ROOT.rglob("*") if not {"build", ".venv", ".git"} & set(path.relative_to(ROOT).parts)
    ]
    return tuple(sorted(path for path in paths if path.is_file()))


def tracked_files(*suffixes: str) -> list[Path]:
    """Return the files of the tree with one of ``suffixes``."""
    return [path for path in tree_files() if path.suffix in suffixes]


def product_files(*suffixes: str) -> list[Path]:
    """Return the product's files with one of ``suffixes``, without tests of plugins."""
    paths = (path for folder in PRODUCT for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)
    return sorted(path for path in paths if not {"tests", "build"} & set(path.relative_to(ROOT).parts))


@cache
def definitions(source: str) -> Definitions:
    """Return what a Python source defines and imports. Several tests read all sources, so each is parsed once."""
    functions, classes, imports = [], [], []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1))
        elif isinstance(node, ast.ClassDef):
            classes.append((node.name, node.lineno))
        elif isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "ruff allows no relative imports"
            imports += [f"{node.module}.{alias.name}" for alias in node.names]
    return Definitions(tuple(functions), tuple(classes), tuple(imports))


def python_functions(path: Path) -> Iterator[Block]:
    """Return every function and method of a Python file."""
    for name, line, lines in definitions(path.read_text()).functions:
        yield Block(f"{path.relative_to(ROOT)}:{line} {name}", lines)


def kernel_functions(path: Path) -> Iterator[Block]:
    """Return every ``def``, ``cdef`` and ``cpdef`` function of a Cython file."""
    for number, name, lines in cython_functions(path.read_text()):
        yield Block(f"{path.relative_to(ROOT)}:{number} {name}", lines)


def cython_functions(text: str) -> Iterator[tuple[int, str, int]]:
    """Return line number, name and length of each function in Cython source, which ``ast`` cannot parse.

    A function ends before the next line with the same or a smaller indentation. The line that closes the header's
    parenthesis does not count.
    """
    lines = text.splitlines()
    for first, line in enumerate(lines):
        header = FUNCTION.match(line)
        if header is None:
            continue
        last = first
        for number in range(first + 1, len(lines)):
            body = lines[number].lstrip()
            if body and not body.startswith(")") and len(lines[number]) - len(body) <= len(header["indent"]):
                break
            last = number if body else last
        yield first + 1, header["name"], last - first + 1
