"""Saved mutant results in JSON lines, so that a long run can continue after an interruption.

A result is valid until the mutant or its tests change. Test results and simulator results come from separate runs; the
last one of each counts.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kframe_simulator.mutants.run import Evaluation, MutantOutcome, MutantResult
from kframe_simulator.mutants.seeds import span
from kframe_simulator.mutants.table import ROOT, Mutant


@dataclass(frozen=True, slots=True)
class SavedResult:
    """An evaluation and its commit. A simulator result has the requested seeds, a test result the duration."""

    evaluation: Evaluation
    commit: str
    seeds: str | None = None
    took_s: float = 0.0


class ResultFile:
    """A result file. It is read completely at the start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._commit = commit_now()  # The commit at the start of the run, when it copies the tree.
        self._saved: dict[tuple[str, str], SavedResult] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            entry = json.loads(line)
            evaluation = entry["evaluation"]
            self._saved[entry["digest"], entry["by"]] = SavedResult(
                Evaluation(MutantOutcome(evaluation["outcome"]), evaluation["by"], tuple(evaluation["failed"])),
                entry["commit"], entry["seeds"], entry.get("took_s", 0.0),
            )  # fmt: skip

    def tests(self, mutant: Mutant) -> SavedResult | None:
        """The saved test result."""
        return self._saved.get((_digest(mutant), "tests"))

    def simulator(self, mutant: Mutant) -> SavedResult | None:
        """The saved simulator result."""
        return self._saved.get((_digest(mutant), "simulator"))

    def pending_seeds(self, mutant: Mutant, seeds: str | None) -> str | None:
        """The seeds that the simulator has yet to play. A killed mutant has none, others those after the last survived
        seed."""
        known = self.simulator(mutant)
        if seeds is None or known is None or known.seeds is None:
            return seeds
        first, last = span(seeds)
        played_first, played_last = span(known.seeds)
        if known.evaluation.outcome is MutantOutcome.KILLED or (played_first <= first and last <= played_last):
            return None
        survived = known.evaluation.outcome is MutantOutcome.SURVIVED
        return f"{played_last + 1}..{last}" if survived and played_first <= first <= played_last else seeds

    def add(self, result: MutantResult, seeds: str | None) -> None:
        """Append a result. ``seeds`` are all requested seeds, those of earlier runs included."""
        with self._path.open("a") as file:
            for by, matches in _run(result):
                survived = by == "simulator" and matches.outcome is MutantOutcome.SURVIVED
                evaluation = Evaluation(MutantOutcome.SURVIVED, f"{seeds} passed") if survived else matches
                simulated = by == "simulator"
                took_s = 0.0 if simulated else round(result.took_s, 1)
                saved = SavedResult(evaluation, self._commit, seeds if simulated else None, took_s)
                self._saved[_digest(result.mutant), by] = saved
                line: Mapping[str, Any] = {
                    "id": result.mutant.id, "digest": _digest(result.mutant), "by": by, **asdict(saved),
                }  # fmt: skip
                file.write(json.dumps(line) + "\n")

    def result(self, mutant: Mutant) -> MutantResult:
        """The saved results of a mutant."""
        not_run = Evaluation(MutantOutcome.NOT_RUN, "not asked for")
        tests, simulator = self.tests(mutant), self.simulator(mutant)
        if not mutant.simulated:
            not_simulated = Evaluation(MutantOutcome.NOT_RUN, "the simulator does not run this code")
        else:
            not_simulated = not_run
        return MutantResult(
            mutant, tests.evaluation if tests else not_run, simulator.evaluation if simulator else not_simulated,
            tests.took_s if tests else 0.0,
        )  # fmt: skip


def commit_now() -> str:
    """The short hash of the current commit. Also whether the tree has uncommitted changes."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def _run(result: MutantResult) -> Iterator[tuple[str, Evaluation]]:
    for by, evaluation in (("tests", result.tests), ("simulator", result.simulator)):
        if evaluation.outcome is not MutantOutcome.NOT_RUN or evaluation.by == "all its tests were skipped":
            yield by, evaluation


def _digest(mutant: Mutant) -> str:
    """A hash of a mutant's definition."""
    return hashlib.blake2b(
        repr((mutant.file, mutant.old, mutant.new, mutant.tests)).encode(), digest_size=8
    ).hexdigest()
