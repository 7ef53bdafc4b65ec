"""Which tests of the defects of history were seen to fail, and under which mutant.

A test is asked of every mutant that belongs to one of its defects, unless it needs real servers: then only of those
that name it. What the last whole run has seen stands in ``docs/evidence/mutants.md``, and is read back from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kframe_simulator.mutants.run import Outcome, Result
from kframe_simulator.mutants.table import ROOT, Defect, defects, is_real, mutants

EVIDENCE: Final = ROOT / "docs" / "evidence" / "mutants.md"
#: A defect, a test of its own that failed, and the mutant, as ``rows`` writes them.
_ROW: Final = re.compile(r"^\| ([RX]\d+) \| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)


def failures(results: Sequence[Result]) -> dict[str, list[tuple[str, str]]]:
    """By defect with mutants among these: each of its tests that failed, and under which mutant."""
    return {
        defect.number: [
            (node, item.mutant.id) for item in theirs for node in defect.tests if node in item.tests.failed
        ]
        for defect in defects()
        if (theirs := [result for result in results if defect.number in result.mutant.rules])
    }  # fmt: skip


def rows(results: Sequence[Result]) -> list[str]:
    """The lines of a table of them."""
    return [
        f"| {number} | `{name(node)}` | `{mutant}` |"
        for number, failed in failures(results).items()
        for node, mutant in failed
    ]


def unseen(results: Sequence[Result]) -> list[str]:
    """Each with its defect: tests that ``must_fail`` and did not; of defects whose mutants were all tried here."""
    tried = {result.mutant.id for result in results if result.tests.outcome is not Outcome.NOT_RUN}
    untried = {number for mutant in mutants() if mutant.id not in tried for number in mutant.rules}
    seen = failures(results)
    return [
        f"{defect.number} {name(node)}"
        for defect in defects()
        if defect.number in seen and defect.number not in untried
        for node in must_fail(defect)
        if node not in {failed for failed, _ in seen[defect.number]}
    ]


def recorded() -> dict[str, frozenset[str]]:
    """By defect: names of its tests that failed in the run on record, under mutants that still belong to it."""
    belongs = {candidate.id: candidate.rules for candidate in mutants()}
    result: dict[str, set[str]] = {}
    for number, test, mutant in _ROW.findall(EVIDENCE.read_text()):
        if number in belongs.get(mutant, ()):
            result.setdefault(number, set()).add(test)
    return {number: frozenset(names) for number, names in result.items()}


def missing(defect: Defect, seen: Mapping[str, frozenset[str]]) -> list[str]:
    """Names of those tests of a defect that ``must_fail`` and are not among those ``seen``."""
    return [test for node in must_fail(defect) if (test := name(node)) not in seen.get(defect.number, frozenset())]


def must_fail(defect: Defect) -> list[str]:
    """Tests of a defect that are asked of all of its mutants: those that need no real servers."""
    return [node for node in defect.tests if not is_real(node)]


def name(node: str) -> str:
    """A test as pages name it: its file without the folders, and the function."""
    file, _, rest = node.partition("::")
    stem = file.rpartition("/")[2].removesuffix(".py")
    return f"{stem}::{rest}" if rest else stem
