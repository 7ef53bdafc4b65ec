"""A drawn mutant, and the outcome of its tests."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

#: Identifies a mutant of a commit: file, operator and its occurrence in the file.
Key: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed line of a file, from 1, as ``draw.py`` prints it.

    One of the lines from ``first_line`` to ``last_line`` executes if the changed expression does, in a function or when
    the module is imported. ``source`` is the whole changed module.
    """

    file: str
    line: int
    function: str
    operator: str
    occurrence: int
    before: str
    after: str
    first_line: int
    last_line: int
    is_in_function: bool
    source: str

    @property
    def key(self) -> Key:
        """The identity of the mutant in its commit."""
        return self.file, self.operator, self.occurrence


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a mutant: ``killed``, ``timeout``, ``survived``, ``not run``, or ``killed since``.

    ``test`` is the test that failed, or how the run ended. ``tests`` counts the tests of the mutant, ``left_out`` those
    of them beyond the limit of ``limit_s`` seconds. ``killed since``: the mutant survived, and a newer test notices it.
    """

    outcome: str
    test: str = ""
    tests: int = 0
    left_out: int = 0
    limit_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ResultLog:
    """A file to which each result is appended, so that nothing is lost by an interruption."""

    path: Path

    def append(self, mutant: Mutant, result: Result) -> None:
        """Add a result, which replaces an earlier one of the mutant."""
        with self.path.open("a", encoding="utf-8") as log:
            log.write(json.dumps({"mutant": mutant.key, "result": asdict(result)}) + "\n")

    def read(self) -> dict[Key, Result]:
        """Return the last result of each mutant."""
        if not self.path.exists():
            return {}
        rows = map(json.loads, self.path.read_text(encoding="utf-8").splitlines())
        return {tuple(row["mutant"]): Result(**row["result"]) for row in rows}
