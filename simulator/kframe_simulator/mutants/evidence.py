"""Renders mutant results as a table and as the evidence page."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TypeAlias

from kframe_simulator.mutants import observed_kills
from kframe_simulator.mutants.run import Evaluation, MutantOutcome, MutantResult
from kframe_simulator.mutants.saved_results import ResultFile, SavedResult, commit_now
from kframe_simulator.mutants.table import KRAFT_RULES

#: A mutant's test result and its saved simulator result.
Ran: TypeAlias = tuple[MutantResult, SavedResult]
_HEADINGS = ("mutant", "removed protection", "belongs to", "tests", "simulator")


def table(results: Sequence[MutantResult]) -> str:
    """One line for each mutant, and the totals."""
    lines = [f"{result.mutant.id:36} {_short(result.tests):60} {_short(result.simulator)}" for result in results]
    return "\n".join([*lines, "", sums(results)])


def sums(results: Sequence[MutantResult]) -> str:
    """The number of mutants killed by tests, killed by the simulator, and surviving."""
    by_tests = sum(result.tests.outcome is MutantOutcome.KILLED for result in results)
    simulated = [
        result for result in results if result.simulator.outcome in (MutantOutcome.KILLED, MutantOutcome.SURVIVED)
    ]
    text = f"{len(results)} mutants: {by_tests} killed by tests"
    if simulated:
        by_simulator = sum(result.simulator.outcome is MutantOutcome.KILLED for result in simulated)
        text += f", {by_simulator} of the {len(simulated)} that it runs by the simulator"
    survived = [result.mutant.id for result in results if result.tests.outcome is not MutantOutcome.KILLED]
    text += f"; survived tests: {', '.join(survived) or 'none'}"
    asked = f"tests of their {len(observed_kills.failures(results))} defects that were not seen to fail"
    return f"{text}; {asked}: {', '.join(observed_kills.unobserved(results)) or 'none'}"


def page(
    results: Sequence[MutantResult], seeds: str | None, keep: ResultFile | None = None, checked: bool = True
) -> str:
    """The saved page. ``checked`` says whether the tests ran without any mutant first."""
    passed = "All tests pass without a mutant." if checked else "The tests were not run without a mutant."
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
        "# Mutants and the tests that kill them",
        "",
        f"{_made(results, seeds, keep)}, Python {platform.python_version()}. A mutant removes one protection",
        "of the engine or of a plugin by hand. The catalogue is in `simulator/kframe_simulator/mutants/catalogue`.",
        "",
        "A mutant is killed if one of its tests fails, or a test of its defects ([defects.md](defects.md)).",
        f"{passed} Mutants of kernels run on the reference kernels; `tests/kernels` compares these with the",
        "compiled ones. [mutants-simulated.md](mutants-simulated.md) has the results of the simulator.",
        "",
        f"{sums(results)}.",
        "",
        _time(results),
        "",
        "K1 to K14 are groups of rules of KRaft mode. Their tests are golden traces and oracle cases of Kafka 4.4.0,",
        "and unit tests:",
        "",
        *(f"- {number}: {rules}" for number, rules in KRAFT_RULES.items()),
        "",
        f"| {' | '.join(headings)} |",
        f"|{'---|' * len(headings)}",
        *(f"| {' | '.join(row[: len(headings)])} |" for row in rows),
        "",
        "## Failed tests by defect",
        "",
        "Tests with real servers run only under mutants that name them.",
        "",
        "| defect | failed test | mutant |",
        "|---|---|---|",
        *observed_kills.rows(results),
        "",
    ])  # fmt: skip


def simulated(results: Sequence[MutantResult], seeds: str | None, keep: ResultFile) -> str:
    """The page of simulator results: mutants that it killed, equivalent mutants, and survivors."""
    run = [
        (result, saved)
        for result in results
        if (saved := keep.simulator(result.mutant)) is not None and result.mutant.simulated
    ]
    killed = [(item, saved) for item, saved in run if saved.evaluation.outcome is MutantOutcome.KILLED]
    others = [(item, saved) for item, saved in run if saved.evaluation.outcome is not MutantOutcome.KILLED]
    equivalent = [(item, saved) for item, saved in others if item.mutant.equivalent]
    survived = [(item, saved) for item, saved in others if not item.mutant.equivalent]
    commits = {saved.commit for _, saved in run}
    return "\n".join([
        "# Mutants and the seeds that kill them",
        "",
        f"Made by `make mutants ARGS='--no-tests --seeds {seeds} --keep FILE'` at {_commits(commits)},",
        f"Python {platform.python_version()}. The simulator plays seeds on a mutant until a seed breaks an invariant",
        "that holds without the mutant. An exception in the simulation is not a kill. Other commits draw other",
        "simulations from the same seeds. Mutants of kernels run on the reference kernels.",
        "",
        *_shares(results, run, killed, equivalent),
        "",
        "## Killed",
        "",
        "| mutant | removed protection | belongs to | seed and invariant |",
        "|---|---|---|---|",
        *(_simulated_row(item, saved) for item, saved in killed),
        "",
        "## Equivalent in every simulated history",
        "",
        "Tests kill each of them ([mutants.md](mutants.md)).",
        "",
        "| mutant | removed protection | why no history can detect it | seeds |",
        "|---|---|---|---|",
        *(_row(item, item.mutant.equivalent, saved.evaluation.by) for item, saved in equivalent),
        "",
        "## Not killed",
        "",
        "| mutant | removed protection | belongs to | seeds | why these seeds miss it |",
        "|---|---|---|---|---|",
        *(_simulated_row(item, saved, item.mutant.survives) for item, saved in survived),
        "",
        "## Not run",
        "",
        "The simulator runs this code, but these mutants were not played.",
        "",
        "| mutant | removed protection |",
        "|---|---|",
        *(_row(result) for result in results if result.mutant.simulated and keep.simulator(result.mutant) is None),
        "",
        "## Not simulated",
        "",
        "The simulator replaces this code (`REPLACED` in `kframe_simulator/mutants/table.py`, or `elsewhere` in the",
        "catalogue). These mutants are not counted.",
        "",
        "| mutant | removed protection | replacement in the simulator |",
        "|---|---|---|",
        *(_row(result, result.mutant.replaced) for result in results if not result.mutant.simulated),
        "",
    ])  # fmt: skip


def _shares(
    results: Sequence[MutantResult], run: Sequence[Ran], killed: Sequence[Ran], equivalent: Sequence[Ran]
) -> tuple[str, ...]:
    """The killed share of all mutants and of all non-equivalent ones, and the seeds."""
    able = max(len(run) - len(equivalent), 1)
    matches = sorted(int(saved.evaluation.by.split(",")[0].removeprefix("seed ")) for _, saved in killed)
    middle, last = (matches[len(matches) // 2], matches[-1]) if matches else (0, 0)
    not_simulated = sum(not result.mutant.simulated for result in results)
    share, of_others = 100 * len(killed) / max(len(run), 1), 100 * len(killed) / able
    return (
        "| mutants | count |",
        "|---|---|",
        f"| in the catalogue | {len(results)} |",
        f"| changed code is not simulated | {not_simulated} |",
        f"| not run | {len(results) - not_simulated - len(run)} |",
        f"| run | {len(run)} |",
        f"| killed | {len(killed)} ({share:.0f} %) |",
        f"| equivalent | {len(equivalent)} |",
        f"| killed of those not equivalent | {of_others:.0f} % |",
        f"| seed that has killed half | {middle} |",
        f"| last seed that killed | {last} |",
    )


def _row(result: MutantResult, *cells: str) -> str:
    naive = " (reference kernel)" if result.mutant.naive else ""
    return f"| {' | '.join([f'`{result.mutant.id}`{naive}', result.mutant.removes, *cells])} |"


def _simulated_row(result: MutantResult, saved: SavedResult, *more: str) -> str:
    return _row(result, " ".join(result.mutant.rules), saved.evaluation.by, *more)


def _made(results: Sequence[MutantResult], seeds: str | None, keep: ResultFile | None) -> str:
    """The command and the commits of the run."""
    ran = f"Made by `make mutants ARGS='--seeds {seeds}'`" if seeds else "Made by `make mutants`"
    if keep is None:
        return f"{ran} at commit {commit_now()}"
    tests = {saved.commit for result in results if (saved := keep.tests(result.mutant))}
    simulated = {saved.commit for result in results if (saved := keep.simulator(result.mutant))}
    simulator_commits = f", the simulator at {_commits(simulated)}" if seeds else ""
    return f"{ran}, tests on top of {_commits(tests)}{simulator_commits}"


def _time(results: Sequence[MutantResult]) -> str:
    """The wall-clock time of the tests."""
    timed = [result for result in results if result.took_s]
    if not timed:
        return "The tests were not timed."
    slowest = max(timed, key=lambda result: result.took_s)
    minutes = sum(result.took_s for result in timed) / 60
    return (
        f"The tests of {len(timed)} mutants took {minutes:.0f} minutes in sequence, "
        f"those of `{slowest.mutant.id}` {slowest.took_s:.0f} s."
    )


def _commits(result: set[str]) -> str:
    return ("commit " if len(result) == 1 else "commits ") + (", ".join(sorted(result)) or "none")


def _short(evaluation: Evaluation) -> str:
    return f"{evaluation.outcome}: {evaluation.by}" if evaluation.by else evaluation.outcome


def _cell(evaluation: Evaluation) -> str:
    if evaluation.outcome is MutantOutcome.KILLED:
        return f"`{evaluation.by}`"
    return f"{evaluation.outcome}: {evaluation.by}"
