"""Renders ``docs/evidence/defects.md`` from the table of defects and the mutation catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe_simulator.mutants import observed_kills
from kframe_simulator.mutants.table import ROOT, Defect, Mutant, defects, is_real, mutants

PATH: Final = ROOT / "docs" / "evidence" / "defects.md"
_HEAD: Final = """\
# Past defects of Kafka's controller

R01 to R64 are defects that Kafka's ZooKeeper-mode controller once had and that a new implementation can repeat. X1 to
X11 are defects that Kafka 3.9 still has; [safety.md](../explanation/safety.md) describes how kframe handles them.

Each defect has regression tests and mutants. A mutant removes one protection by hand, and a test of the defect must
fail under it (`make mutants`). [mutants.json](mutants.json) records which test failed under which mutant.

The column *needs* gives the kind of test: U unit test, D deterministic simulation, K killed processes, B real brokers.
Tests marked ● start servers or brokers; they run only under mutants that name them. Tests marked ○ have not been seen
to fail under a mutant of their row.

`python -m kframe_simulator.mutants --page` generates this page from `defects.toml` and `catalogue` in
`simulator/kframe_simulator/mutants`, and from [mutants.json](mutants.json). A test compares it with them.
"""


def render() -> str:
    """The page."""
    catalogue, failed = mutants(), observed_kills.recorded()
    rows = [
        _row(
            defect,
            [mutant for mutant in catalogue if defect.number in mutant.rules],
            failed.get(defect.number, frozenset()),
        )
        for defect in defects()
    ]
    return "\n".join([
        _HEAD,
        _sums([state(defect, failed) for defect in defects()]),
        "",
        "| | Kafka | required behaviour | needs | state | tests | mutants |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
    ])  # fmt: skip


def state(defect: Defect, failed: Mapping[str, frozenset[str]]) -> str:
    """The state of a defect. Held: it has tests, and each one without real servers failed under one of its mutants.
    Shown: not all did. Partly: a part of the defect is open."""
    if not defect.tests:
        return "open"
    if defect.open:
        return "partly"
    return "held" if failed.get(defect.number) and not observed_kills.missing(defect, failed) else "shown"


def _row(defect: Defect, result: list[Mutant], failed: frozenset[str]) -> str:
    tests = "<br>".join(_test(node, failed) for node in defect.tests)
    ids = ", ".join(f"`{match.id}`" for match in result) or "–"
    text = state(defect, {defect.number: failed}) + (f": {defect.open}" if defect.open else "")
    return f"| {defect.number} | {defect.issues} | {defect.holds} | {defect.needs} | {text} | {tests or '–'} | {ids} |"


def _test(node: str, failed: frozenset[str]) -> str:
    marks = ("● " if is_real(node) else "") + ("" if observed_kills.name(node) in failed else "○ ")
    return f"{marks}`{observed_kills.name(node)}`"


def _sums(states: list[str]) -> str:
    counts = ", ".join(f"{states.count(name)} {name}" for name in ("held", "shown", "partly", "open"))
    return (
        f"{len(states)} defects: {counts}. *Held*: each test that needs no real servers failed under a mutant of its\n"
        "row. *Shown*: at least one of them has not failed under a mutant. *Partly*: the row names what is still open."
    )
