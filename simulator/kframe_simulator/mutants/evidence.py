"""Renders mutant results as a table and as the evidence page."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TypeAlias

from kframe_simulator.mutants import observed_kills
from kframe_simulator.mutants.run import Evaluation, Outcome, Result
from kframe_simulator.mutants.saved_results import ResultFile, SavedResult, commit_now

#: A mutant's test result and its saved simulator result.
Ran: TypeAlias = tuple[Result, SavedResult]
_HEADINGS = ("mutant", "protection taken out", "belongs to", "tests", "simulator")


def table(results: Sequence[Result]) -> str:
    """One line for each mutant, and the totals."""
    lines = [f"{result.mutant.id:36} {_short(result.tests):60} {_short(result.simulator)}" for result in results]
    return "\n".join([*lines, "", sums(results)])


def sums(results: Sequence[Result]) -> str:
    """The number of mutants killed by tests, killed by the simulator, and surviving."""
    by_tests = sum(result.tests.outcome is Outcome.KILLED for result in results)
    simulated = [result for result in results if result.simulator.outcome in (Outcome.KILLED, Outcome.SURVIVED)]
    text = f"{len(results)} mutants: {by_tests} killed by tests"
    if simulated:
        by_simulator = sum(result.simulator.outcome is Outcome.KILLED for result in simulated)
        text += f", {by_simulator} of the {len(simulated)} that it runs by the simulator"
    survived = [result.mutant.id for result in results if result.tests.outcome is not Outcome.KILLED]
    text += f"; survived tests: {', '.join(survived) or 'none'}"
    asked = f"tests of their {len(observed_kills.failures(results))} defects that were not seen to fail"
    return f"{text}; {asked}: {', '.join(observed_kills.unseen(results)) or 'none'}"


def page(results: Sequence[Result], seeds: str | None, keep: ResultFile | None = None, checked: bool = True) -> str:
    """The saved page; ``checked`` says whether the tests ran without any mutant first."""
    passed = "All of them pass without any mutant." if checked else "`make test` has them pass without any mutant."
    headings = _HEADINGS if seeds else _HEADINGS[:-1]
    rows = [
        [
            f"`{result.mutant.id}`",
            result.mutant.removes,
            " ".join(result.mutant.rules),
            _cell(result.tests),
            _cell(result.simulator),
        ]
        for result in results
    ]
    return "\n".join([
        "# Mutants: each protection taken out, and who noticed",
        "",
        f"{_made(results, seeds, keep)}, Python {platform.python_version()}. A mutant is one hand-made",
        "change of the engine or a plugin (`simulator/kframe_simulator/mutants/catalogue`).",
        "It is killed by tests when one of those that it names fails, or of the defects that it belongs to",
        f"(`defects.md`). {passed}",
        "It is killed by the simulator when a seed breaks an invariant that breaks none without the mutant",
        "([mutants-simulated.md](mutants-simulated.md)). Mutants of the naive kernels run on these; `tests/kernels`",
        "holds the compiled ones to them.",
        "",
        f"{sums(results)}.",
        "",
        _time(results),
        "",
        f"| {' | '.join(headings)} |",
        f"|{'---|' * len(headings)}",
        *(f"| {' | '.join(row[: len(headings)])} |" for row in rows),
        "",
        "## Each defect seen to fail",
        "",
        "Which tests of the defects of history failed with a protection of theirs out. Tests that need real",
        "servers run only for mutants that name them.",
        "",
        "| defect | test that failed | under the mutant |",
        "|---|---|---|",
        *observed_kills.rows(results),
        "",
    ])  # fmt: skip


def simulated(results: Sequence[Result], seeds: str | None, keep: ResultFile) -> str:
    """The page of simulator results: mutants that it killed, equivalent mutants, and survivors."""
    run = [
        (result, saved)
        for result in results
        if (saved := keep.simulator(result.mutant)) is not None and result.mutant.simulated
    ]
    killed = [(item, saved) for item, saved in run if saved.evaluation.outcome is Outcome.KILLED]
    others = [(item, saved) for item, saved in run if saved.evaluation.outcome is not Outcome.KILLED]
    equivalent = [(item, saved) for item, saved in others if item.mutant.equivalent]
    survived = [(item, saved) for item, saved in others if not item.mutant.equivalent]
    return "\n".join([
        "# Mutants that the simulator notices",
        "",
        f"Made by `make mutants ARGS='--no-tests --seeds {seeds} --keep FILE'`, Python {platform.python_version()}.",
        "The simulator plays one seed after another on a mutant. A mutant is killed by the first seed that breaks an",
        "invariant and breaks none without the mutant; what the simulation itself raises is no kill. The commit is",
        "that at which it was found: other builds draw other worlds from the same seeds. Mutants of the naive",
        "kernels run on these, which takes a sixth more time. Seeds beyond those named have not been played.",
        "Survivors name the seeds that they passed, at each commit where they were played.",
        "Mutants of code that the simulator replaces do not count: `REPLACED` in `kframe_simulator/mutants/table.py`",
        "names the paths, the field `elsewhere` of the catalogue single entries, and the last table each of them.",
        "",
        *_shares(results, run, killed, equivalent),
        "",
        "## Killed",
        "",
        "| mutant | protection taken out | belongs to | seed and invariant | at |",
        "|---|---|---|---|---|",
        *(_simulated_row(item, saved) for item, saved in killed),
        "",
        "## Equivalent to the engine in every simulated history",
        "",
        "Each is killed by tests ([mutants.md](mutants.md)), and survived the seeds that are named.",
        "",
        "| mutant | protection taken out | why no history tells it apart | played | at |",
        "|---|---|---|---|---|",
        *(_row(item, item.mutant.equivalent, saved.evaluation.by, saved.commit) for item, saved in equivalent),
        "",
        "## Not killed",
        "",
        "All of these are killed by tests ([mutants.md](mutants.md)).",
        "",
        "| mutant | protection taken out | belongs to | played | at | why these seeds miss it |",
        "|---|---|---|---|---|---|",
        *(_simulated_row(item, saved, item.mutant.survives) for item, saved in survived),
        "",
        "## Not run",
        "",
        "The simulator runs this code. It has not been run on these mutants yet.",
        "",
        "| mutant | protection taken out |",
        "|---|---|",
        *(_row(result) for result in results if result.mutant.simulated and keep.simulator(result.mutant) is None),
        "",
        "## Not simulated",
        "",
        "The simulator replaces the code that these change. They do not count.",
        "",
        "| mutant | protection taken out | what the simulator has in its place |",
        "|---|---|---|",
        *(_row(result, result.mutant.replaced) for result in results if not result.mutant.simulated),
        "",
    ])  # fmt: skip


def _shares(
    results: Sequence[Result], run: Sequence[Ran], killed: Sequence[Ran], equivalent: Sequence[Ran]
) -> tuple[str, ...]:
    """The killed share of all mutants and of all non-equivalent ones, and the seeds."""
    able = max(len(run) - len(equivalent), 1)
    matches = sorted(int(saved.evaluation.by.split(",")[0].removeprefix("seed ")) for _, saved in killed)
    middle, last = (matches[len(matches) // 2], matches[-1]) if matches else (0, 0)
    not_simulated = sum(not result.mutant.simulated for result in results)
    share, of_others = 100 * len(killed) / max(len(run), 1), 100 * len(killed) / able
    return (
        f"{len(killed)} of {len(run)} killed, {share:.0f} %; without the {len(equivalent)} that are equivalent",
        f"{of_others:.0f} %. Half of them were killed by seed {middle} at the latest, all by seed {last};",
        f"Of the {len(results)} of the catalogue {not_simulated} change code that the simulator replaces, and",
        f"{len(results) - not_simulated - len(run)} others were not run.",
    )


def _row(result: Result, *cells: str) -> str:
    naive = " (naive)" if result.mutant.naive else ""
    return f"| {' | '.join([f'`{result.mutant.id}`{naive}', result.mutant.removes, *cells])} |"


def _simulated_row(result: Result, saved: SavedResult, *more: str) -> str:
    return _row(result, " ".join(result.mutant.rules), saved.evaluation.by, saved.commit, *more)


def _made(results: Sequence[Result], seeds: str | None, keep: ResultFile | None) -> str:
    """The command and the commits of the run."""
    ran = f"Made by `make mutants ARGS='--seeds {seeds}'`" if seeds else "Made by `make mutants`"
    if keep is None:
        return f"{ran} at commit {commit_now()}"
    tests = {saved.commit for result in results if (saved := keep.tests(result.mutant))}
    simulated = {saved.commit for result in results if (saved := keep.simulator(result.mutant))}
    simulator_commits = f", the simulator at {_commits(simulated)}" if seeds else ""
    return f"{ran}, tests on top of {_commits(tests)}{simulator_commits}"


def _time(results: Sequence[Result]) -> str:
    """The wall-clock time of the tests."""
    timed = [result for result in results if result.took_s]
    if not timed:
        return "How long their tests take was not measured."
    slowest = max(timed, key=lambda result: result.took_s)
    return (
        f"The tests of {len(timed)} of them were timed, on this machine as busy as it was: "
        f"{sum(result.took_s for result in timed) / 60:.0f} minutes one after another,\n"
        f"{slowest.took_s:.0f} s for those of `{slowest.mutant.id}`, the longest. Two run at a time (`--jobs`)."
    )


def _commits(result: set[str]) -> str:
    return ("commit " if len(result) == 1 else "commits ") + (", ".join(sorted(result)) or "none")


def _short(evaluation: Evaluation) -> str:
    return f"{evaluation.outcome}: {evaluation.by}" if evaluation.by else evaluation.outcome


def _cell(evaluation: Evaluation) -> str:
    if evaluation.outcome is Outcome.KILLED:
        return f"`{evaluation.by}`"
    return f"{evaluation.outcome}: {evaluation.by}"
