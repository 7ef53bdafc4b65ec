"""The tests of past defects that were observed to fail, and the mutant of each failure.

A test must fail under a mutant of one of its defects. A test that needs real servers runs only with mutants that name
it. ``docs/evidence/mutants.json`` has the results of the last complete run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from kframe_simulator.mutants.run import MutantOutcome, MutantResult
from kframe_simulator.mutants.table import ROOT, Defect, defects, is_real, mutants

#: ``evidence.record`` of the last complete run.
RECORD: Final = ROOT / "docs" / "evidence" / "mutants.json"


def failures(results: Sequence[MutantResult]) -> dict[str, list[tuple[str, str]]]:
    """By defect with mutants in ``results``: each of its tests that failed, and the mutant."""
    return {
        defect.number: [
            (node, own.mutant.id) for own in own_results for node in defect.tests if node in own.tests.failed
        ]
        for defect in defects()
        if (own_results := [result for result in results if defect.number in result.mutant.rules])
    }  # fmt: skip


def unobserved(results: Sequence[MutantResult]) -> list[str]:
    """Tests of ``must_fail`` that did not fail. Each has its defect. Only for defects whose mutants all ran."""
    run = {result.mutant.id for result in results if result.tests.outcome is not MutantOutcome.NOT_RUN}
    not_run = {number for mutant in mutants() if mutant.id not in run for number in mutant.rules}
    failed_tests = failures(results)
    return [
        f"{defect.number} {name(node)}"
        for defect in defects()
        if defect.number in failed_tests and defect.number not in not_run
        for node in must_fail(defect)
        if node not in {failed for failed, _ in failed_tests[defect.number]}
    ]


def recorded() -> dict[str, frozenset[str]]:
    """By defect: the names of its tests that failed in the recorded run, under mutants that still belong to it."""
    belongs = {candidate.id: candidate.rules for candidate in mutants()}
    result: dict[str, set[str]] = {}
    for mutant, entry in json.loads(RECORD.read_text()).items():
        for number, tests in entry["failed"].items():
            if number in belongs.get(mutant, ()):
                result.setdefault(number, set()).update(tests)
    return {number: frozenset(names) for number, names in result.items()}


def missing(defect: Defect, failed_tests: Mapping[str, frozenset[str]]) -> list[str]:
    """The names of a defect's ``must_fail`` tests that are not in ``seen``."""
    return [
        test for node in must_fail(defect) if (test := name(node)) not in failed_tests.get(defect.number, frozenset())
    ]


def must_fail(defect: Defect) -> list[str]:
    """The tests of a defect that run with all its mutants: those without real servers."""
    return [node for node in defect.tests if not is_real(node)]


def name(node: str) -> str:
    """The name of a test on pages: its file name and the function."""
    file, _, rest = node.partition("::")
    stem = file.rpartition("/")[2].removesuffix(".py")
    return f"{stem}::{rest}" if rest else stem
