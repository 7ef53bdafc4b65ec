"""Verdicts kept in a file of JSON lines as they come, so that a run of hours can be broken off and taken up again.

An evaluation is of a mutant as it stands: one whose text or tests have changed is judged anew. Verdicts of tests and of
the simulator come from runs of their own; the last one of each counts.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kframe_simulator.mutants.run import Evaluation, Outcome, Result
from kframe_simulator.mutants.seeds import span
from kframe_simulator.mutants.table import ROOT, Mutant


@dataclass(frozen=True, slots=True)
class SavedResult:
    """An evaluation, the commit that it was found on top of, for one of the simulator which seeds were asked for, and
    for one of tests how long they took."""

    evaluation: Evaluation
    commit: str
    seeds: str | None = None
    took_s: float = 0.0


class ResultFile:
    """The file; all evaluations that were kept there before are read at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._commit = commit_now()  # that of the run: its copies of the tree are made at once
        self._found: dict[tuple[str, str], SavedResult] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            entry = json.loads(line)
            evaluation = entry["evaluation"]
            self._found[entry["digest"], entry["by"]] = SavedResult(
                Evaluation(Outcome(evaluation["outcome"]), evaluation["by"], tuple(evaluation["failed"])),
                entry["commit"], entry["seeds"], entry.get("took_s", 0.0),
            )  # fmt: skip

    def tests(self, mutant: Mutant) -> SavedResult | None:
        """What its tests have said."""
        return self._found.get((_digest(mutant), "tests"))

    def simulator(self, mutant: Mutant) -> SavedResult | None:
        """What the simulator has said."""
        return self._found.get((_digest(mutant), "simulator"))

    def seeds_left(self, mutant: Mutant, seeds: str | None) -> str | None:
        """Which of these seeds the simulator still has to play: none if it has killed the mutant, and only those after
        the ones that it has survived."""
        known = self.simulator(mutant)
        if seeds is None or known is None or known.seeds is None:
            return seeds
        first, last = span(seeds)
        played_first, played_last = span(known.seeds)
        if known.evaluation.outcome is Outcome.KILLED or (played_first <= first and last <= played_last):
            return None
        survived = known.evaluation.outcome is Outcome.SURVIVED
        return f"{played_last + 1}..{last}" if survived and played_first <= first <= played_last else seeds

    def add(self, result: Result, seeds: str | None) -> None:
        """ResultFile what was run; ``seeds`` are all that were asked for, those that were played before too."""
        with self._path.open("a") as file:
            for by, matches in _run(result):
                survived = by == "simulator" and matches.outcome is Outcome.SURVIVED
                evaluation = Evaluation(Outcome.SURVIVED, f"{seeds} passed") if survived else matches
                simulated = by == "simulator"
                took_s = 0.0 if simulated else round(result.took_s, 1)
                saved = SavedResult(evaluation, self._commit, seeds if simulated else None, took_s)
                self._found[_digest(result.mutant), by] = saved
                line: Mapping[str, Any] = {
                    "id": result.mutant.id, "digest": _digest(result.mutant), "by": by, **asdict(saved),
                }  # fmt: skip
                file.write(json.dumps(line) + "\n")

    def result(self, mutant: Mutant) -> Result:
        """All that is known of a mutant."""
        nothing = Evaluation(Outcome.NOT_RUN, "not asked for")
        tests, simulator = self.tests(mutant), self.simulator(mutant)
        if not mutant.simulated:
            nothing_simulated = Evaluation(Outcome.NOT_RUN, "the simulator does not run this code")
        else:
            nothing_simulated = nothing
        return Result(
            mutant, tests.evaluation if tests else nothing, simulator.evaluation if simulator else nothing_simulated,
            tests.took_s if tests else 0.0,
        )  # fmt: skip


def commit_now() -> str:
    """The commit that the tree stands on, short, and whether anything in it is not committed."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def _run(result: Result) -> Iterator[tuple[str, Evaluation]]:
    for by, evaluation in (("tests", result.tests), ("simulator", result.simulator)):
        if evaluation.outcome is not Outcome.NOT_RUN or evaluation.by == "all its tests were skipped":
            yield by, evaluation


def _digest(mutant: Mutant) -> str:
    """Tells a mutant from what it was before an edit."""
    return hashlib.blake2b(
        repr((mutant.file, mutant.old, mutant.new, mutant.tests)).encode(), digest_size=8
    ).hexdigest()
