"""``docs/defects.md``, made from the table of defects and the catalogue of mutants."""

from __future__ import annotations

from typing import Final

from tests.mutants.table import ROOT, Defect, Mutant, defects, is_real, mutants

PATH: Final = ROOT / "docs" / "defects.md"
_HEAD: Final = """\
# The defects of history

Defects that Kafka's ZooKeeper-mode controller once had and a new implementation can repeat (R01 to R64), and those
that Kafka 3.9 still has (X1 to X11; `safety.md` says what kframe does about them). Each has tests that hold it, and
mutants: the protection taken out by hand, upon which one of its tests fails (`make mutants`; `evidence/mutants.md` has
who noticed which). Needs: U a unit test, D a deterministic simulation, K killed processes, B real brokers. Tests
marked ● start servers or brokers.

This page is made by `python -m tests.mutants --page` from `tests/mutants/defects.toml` and `tests/mutants/catalogue`; a
test holds it to them.
"""


def render() -> str:
    """The page."""
    catalogue = mutants()
    rows = [_row(defect, [one for one in catalogue if defect.number in one.rules]) for defect in defects()]
    return "\n".join([
        _HEAD,
        _sums(rows_of=catalogue),
        "",
        "| | Kafka | must hold | needs | state | held by | mutants |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
    ])  # fmt: skip


def state(defect: Defect, mutated: bool) -> str:
    """Held: by tests that fail under its mutants. Shown: by tests without a mutant. Partly: something is left open."""
    if not defect.tests:
        return "open"
    if defect.open:
        return "partly"
    return "held" if mutated else "shown"


def _row(defect: Defect, found: list[Mutant]) -> str:
    tests = "<br>".join(f"{'● ' if is_real(node) else ''}`{_name(node)}`" for node in defect.tests)
    ids = ", ".join(f"`{one.id}`" for one in found) or "–"
    told = state(defect, bool(found)) + (f": {defect.open}" if defect.open else "")
    return f"| {defect.number} | {defect.issues} | {defect.holds} | {defect.needs} | {told} | {tests or '–'} | {ids} |"


def _sums(rows_of: tuple[Mutant, ...]) -> str:
    numbers = {number for one in rows_of for number in one.rules}
    states = [state(defect, defect.number in numbers) for defect in defects()]
    counts = ", ".join(f"{states.count(name)} {name}" for name in ("held", "shown", "partly", "open"))
    return (
        f"{len(states)} defects: {counts}. *Held* is seen to fail with its protection out, *shown* has tests and no\n"
        "mutant, *partly* says what is left open."
    )


def _name(node: str) -> str:
    file, _, rest = node.partition("::")
    name = file.rpartition("/")[2].removesuffix(".py")
    return f"{name}::{rest}" if rest else name
