"""The tests of past defects that were observed to fail, and the mutant of each failure.

A test must fail under a mutant of one of its defects. A test that needs real servers runs only with mutants that name
it. ``docs/evidence/mutants.md`` has the results of the last complete run; this module parses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kframe_simulator.mutants.run import MutantOutcome, MutantResult
from kframe_simulator.mutants.table import ROOT, Defect, defects, is_real, mutants

EVIDENCE: Final = ROOT / "docs" / "evidence" / "mutants.md"
#: A defect, one of its tests that failed, and the mutant, as ``rows`` writes them.
_ROW: Final = re.compile(r"^\| ([RX]\d+) \| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)


def failures(results: Sequence[MutantResult]) -> dict[str, list[tuple[str, str]]]:
    """By defect with mutants in ``results``: each of its tests that failed, and the mutant."""
    return {
        defect.number: [
            (node, own.mutant.id) for own in own_results for node in defect.tests if node in own.tests.failed
        ]
        for defect in defects()
        if (own_results := [result for result in results if defect.number in result.mutant.rules])
    }  # fmt: skip


def rows(results: Sequence[MutantResult]) -> list[str]:
    """The table rows of the failures."""
    return [
        f"| {number} | `{name(node)}` | `{mutant}` |"
        for number, failed in failures(results).items()
        for node, mutant in failed
    ]


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
    for number, test, mutant in _ROW.findall(EVIDENCE.read_text()):
        if number in belongs.get(mutant, ()):
            result.setdefault(number, set()).add(test)
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
