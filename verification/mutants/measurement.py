"""Measures which tests execute each line of an area, and chooses the tests of a mutant."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from verification.mutants.areas import MEASURED, NOT_MEASURED_TESTS, TESTS
from verification.mutants.mutant import Mutant
from verification.mutants.tree import Tree

#: Test files are measured in this number of parts, which an interrupted run keeps.
PARTS: Final = 16
#: Tests of such a file share results: the first one that needs a result executes the lines for all.
_SHARES_RESULTS: Final = re.compile(r"@(functools\.)?(lru_)?cache\b|scope=\"(module|session|class)\"")


@dataclass(frozen=True, slots=True)
class Part:
    """The measured tests of some files: seconds of each, and sets of them, as bits, that execute a file or a line."""

    seconds: Mapping[str, float]
    not_passed: Mapping[str, str]
    files: Mapping[str, str]
    lines: Mapping[str, Mapping[str, str]]
    imported: Mapping[str, list[int]]

    def tests(self, bits: Iterable[str]) -> Iterator[str]:
        """Yield the tests of any of the sets."""
        union = 0
        for number in bits:
            union |= int.from_bytes(bytes.fromhex(number), "little")
        for index, test in enumerate(self.seconds):
            if union >> index & 1:
                yield test


def test_parts(tree: Tree) -> list[list[str]]:
    """Return the paths of the test files of each part."""
    paths = sorted(
        path.relative_to(tree.folder).as_posix()
        for folder in TESTS
        for path in (tree.folder / folder).rglob("test_*.py")
    )
    measured = [path for path in paths if not path.startswith(NOT_MEASURED_TESTS)]
    return [measured[index::PARTS] for index in range(PARTS)]


def measure_part(tree: Tree, files: list[str], path: Path, coverage: Path) -> None:
    """Write what the tests of these files execute, with the coverage.py of a folder of packages, unless it is known."""
    if path.exists():
        return
    unfinished = path.with_suffix(".unfinished")
    options = ["-m", "not real and not extended", "--measure", unfinished, "--measure-with", coverage]
    code = tree.run_tests([*options, *files])
    if not unfinished.exists():
        raise RuntimeError(f"the tests of {files[0]} and others: found exit code {code}, expected a measurement")
    unfinished.rename(path)


@dataclass(frozen=True)
class Measurement:
    """What all parts have measured in a tree, without mutants."""

    tree: Tree
    parts: list[Part]
    #: Tests that failed without a mutant since: they notice none.
    excluded: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, tree: Tree, paths: Iterable[Path]) -> Measurement:
        """Read the files of the parts."""
        return cls(tree, [Part(**json.loads(path.read_text(encoding="utf-8"))) for path in paths])

    @cached_property
    def seconds(self) -> dict[str, float]:
        """The seconds of each test that passes."""
        return {test: seconds for part in self.parts for test, seconds in part.seconds.items()}

    @cached_property
    def tests_by_file(self) -> Counter[str]:
        """The number of tests of each test file."""
        return Counter(test.partition("::")[0] for test in self.seconds)

    def tests(self, mutant: Mutant) -> set[str]:
        """Return the tests that may notice a mutant: those that execute its statement.

        The effect of a statement that runs at import has no such tests: these are then all tests that execute a line of
        the module or of a module that imports it, and those of test files that import it.
        """
        lines = [str(line) for line in range(mutant.first_line, mutant.last_line + 1)]
        by_file = [(part, part.lines.get(mutant.file, {})) for part in self.parts]
        tests = {test for part, sets in by_file for test in part.tests(sets[line] for line in lines if line in sets)}
        if not mutant.is_in_function or any(
            int(line) in part.imported.get(mutant.file, ()) for part in self.parts for line in lines
        ):
            tests |= self._tests_of_module(mutant.file)
        files = {test.partition("::")[0] for test in tests} & self._sharing
        tests |= {test for test in self.seconds if files and test.partition("::")[0] in files}
        return tests - self.excluded

    def _tests_of_module(self, file: str) -> set[str]:
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        files = [file, *self._importers.get(module, ())]
        executing = {
            test for part in self.parts for test in part.tests(part.files[name] for name in files if name in part.files)
        }
        importing = set(files)
        return executing | {test for test in self.seconds if test.partition("::")[0] in importing}

    @cached_property
    def _importers(self) -> dict[str, list[str]]:
        """The files that import a module, by the module."""
        importers: dict[str, list[str]] = defaultdict(list)
        for pattern in (*MEASURED, *TESTS):
            for folder in self.tree.folder.glob(pattern):
                for path in folder.rglob("*.py"):
                    for module in _imports(path):
                        importers[module].append(path.relative_to(self.tree.folder).as_posix())
        return importers

    @cached_property
    def _sharing(self) -> set[str]:
        return {
            file
            for file in self.tests_by_file
            if _SHARES_RESULTS.search((self.tree.folder / file).read_text(encoding="utf-8"))
        }


def _imports(path: Path) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return modules
