"""What became of mutants, as a table for people and as the page that is kept."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence

from tests.mutants.run import Outcome, Result, Verdict
from tests.mutants.table import ROOT, defects

_HEADINGS = ("mutant", "protection taken out", "belongs to", "tests", "simulator")


def table(results: Sequence[Result]) -> str:
    """One line a mutant, and the sums."""
    lines = [f"{one.mutant.id:36} {_short(one.tests):60} {_short(one.simulator)}" for one in results]
    return "\n".join([*lines, "", sums(results)])


def sums(results: Sequence[Result]) -> str:
    """How many were killed by tests, by the simulator, by neither."""
    by_tests = sum(one.tests.outcome is Outcome.KILLED for one in results)
    simulated = [one for one in results if one.simulator.outcome in (Outcome.KILLED, Outcome.SURVIVED)]
    text = f"{len(results)} mutants: {by_tests} killed by tests"
    if simulated:
        by_simulator = sum(one.simulator.outcome is Outcome.KILLED for one in simulated)
        text += f", {by_simulator} of the {len(simulated)} that it runs by the simulator"
    survived = [one.mutant.id for one in results if one.tests.outcome is not Outcome.KILLED]
    text += f"; survived tests: {', '.join(survived) or 'none'}"
    return f"{text}; {len(seen(results))} defects, not seen to fail: {', '.join(unseen(results)) or 'none'}"


def seen(results: Sequence[Result]) -> dict[str, list[tuple[str, str]]]:
    """By defect: each of its tests that failed, and under which mutant."""
    found: dict[str, list[tuple[str, str]]] = {}
    for defect in defects():
        for one in results:
            if defect.number in one.mutant.rules:
                named = {node.partition("[")[0] for node in defect.tests}
                found.setdefault(defect.number, []).extend(
                    (node, one.mutant.id) for node in sorted({*one.tests.failed} & named)
                )
    return found


def unseen(results: Sequence[Result]) -> list[str]:
    """Defects with mutants among these of which no test has failed."""
    return [number for number, failures in seen(results).items() if not failures]


def page(results: Sequence[Result], seeds: str | None) -> str:
    """The page that is kept."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    ran = f"`make mutants ARGS='--seeds {seeds}'`" if seeds else "`make mutants`"
    rows = [
        f"| `{one.mutant.id}` | {one.mutant.removes} | {' '.join(one.mutant.rules)} | {_cell(one.tests)} "
        f"| {_cell(one.simulator)} |"
        for one in results
    ]
    return "\n".join([
        "# Mutants: each protection taken out, and who noticed",
        "",
        f"Made by {ran} at commit {commit}, Python {platform.python_version()}. A mutant is one hand-made",
        "change of the engine or a plugin (`tests/mutants/catalogue`). It is killed when one of the tests that it",
        "names fails, or of the defects that it belongs to (`../defects.md`). All of them pass without any mutant.",
        "Mutants of the naive kernels run on these; `tests/kernels` holds the compiled ones to them.",
        "",
        f"{sums(results)}.",
        "",
        f"| {' | '.join(_HEADINGS)} |",
        f"|{'---|' * len(_HEADINGS)}",
        *rows,
        "",
        "## Each defect seen to fail",
        "",
        "Which tests of the defects of history failed with a protection of theirs out. Tests that need real",
        "servers run only for mutants that name them.",
        "",
        "| defect | test that failed | under the mutant |",
        "|---|---|---|",
        *(
            f"| {number} | `{node.partition('::')[2]}` | `{mutant}` |"
            for number, failures in seen(results).items()
            for node, mutant in failures
        ),
        "",
    ])  # fmt: skip


def _short(verdict: Verdict) -> str:
    return f"{verdict.outcome}: {verdict.by}" if verdict.by else verdict.outcome


def _cell(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.KILLED:
        return f"`{verdict.by}`"
    return f"{verdict.outcome}: {verdict.by}"
