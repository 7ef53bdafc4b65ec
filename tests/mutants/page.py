"""``docs/defects.md``, made from the table of defects and the catalogue of mutants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.mutants import seen
from tests.mutants.table import ROOT, Defect, Mutant, defects, is_real, mutants

PATH: Final = ROOT / "docs" / "defects.md"
_HEAD: Final = """\
# The defects of history

Defects that Kafka's ZooKeeper-mode controller once had and a new implementation can repeat (R01 to R64), and those
that Kafka 3.9 still has (X1 to X11; `safety.md` says what kframe does about them). Each has tests that hold it, and
mutants: the protection taken out by hand, upon which one of its tests fails (`make mutants`; `evidence/mutants.md` has
who noticed which). Needs: U a unit test, D a deterministic simulation, K killed processes, B real brokers. Tests
marked ● start servers or brokers, and are run only under mutants that name them. Tests marked ○ have not been seen to
fail under a mutant of their row.

This page is made by `python -m tests.mutants --page` from `tests/mutants/defects.toml`, `tests/mutants/catalogue` and
`evidence/mutants.md`; a test holds it to them.
"""


def render() -> str:
    """The page."""
    catalogue, failed = mutants(), seen.recorded()
    rows = [
        _row(defect, [one for one in catalogue if defect.number in one.rules], failed.get(defect.number, frozenset()))
        for defect in defects()
    ]
    return "\n".join([
        _HEAD,
        _sums([state(defect, failed) for defect in defects()]),
        "",
        "| | Kafka | must hold | needs | state | held by | mutants |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
    ])  # fmt: skip


def state(defect: Defect, failed: Mapping[str, frozenset[str]]) -> str:
    """Held: every test of it that needs no real servers was seen to fail under one of its mutants, and some test was.
    Shown: not so. Partly: something is left open."""
    if not defect.tests:
        return "open"
    if defect.open:
        return "partly"
    return "held" if failed.get(defect.number) and not seen.missing(defect, failed) else "shown"


def _row(defect: Defect, found: list[Mutant], failed: frozenset[str]) -> str:
    tests = "<br>".join(_test(node, failed) for node in defect.tests)
    ids = ", ".join(f"`{one.id}`" for one in found) or "–"
    told = state(defect, {defect.number: failed}) + (f": {defect.open}" if defect.open else "")
    return f"| {defect.number} | {defect.issues} | {defect.holds} | {defect.needs} | {told} | {tests or '–'} | {ids} |"


def _test(node: str, failed: frozenset[str]) -> str:
    marks = ("● " if is_real(node) else "") + ("" if seen.name(node) in failed else "○ ")
    return f"{marks}`{seen.name(node)}`"


def _sums(states: list[str]) -> str:
    counts = ", ".join(f"{states.count(one)} {one}" for one in ("held", "shown", "partly", "open"))
    return (
        f"{len(states)} defects: {counts}. *Held*: each test that needs no real servers was seen to fail with a\n"
        "protection of its row out; *shown*: one of them was not; *partly* says what is left open."
    )
