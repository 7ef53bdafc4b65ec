"""Renders mutant results as a table and as the evidence page."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from kframe_simulator.mutants import observed_kills
from kframe_simulator.mutants.run import Evaluation, MutantOutcome, MutantResult
from kframe_simulator.mutants.saved_results import ResultFile, SavedResult, commit_now
from kframe_simulator.mutants.table import KRAFT_RULES

#: A mutant's test result and its saved simulator result.
Ran: TypeAlias = tuple[MutantResult, SavedResult]


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
    """The saved page beside ``record``. ``checked`` says whether the tests ran without any mutant first."""
    passed = "All tests pass without a mutant." if checked else "The tests were not run without a mutant."
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
        "[mutants.json](mutants.json) has the outcome of each mutant, and the tests of its defects that failed under",
        "it. Tests with real servers run only under mutants that name them.",
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
    ])  # fmt: skip


def record(results: Sequence[MutantResult], seeds: str | None) -> str:
    """JSON with a line for each mutant: its outcomes, and by defect the tests that failed (``observed_kills``)."""
    entries: dict[str, dict[str, Any]] = {}
    for result in results:
        entries[result.mutant.id] = {"tests": _short(result.tests), "failed": {}}
        if seeds:
            entries[result.mutant.id]["simulator"] = _short(result.simulator)
    for number, failed in observed_kills.failures(results).items():
        for node, mutant in failed:
            entries[mutant]["failed"].setdefault(number, []).append(observed_kills.name(node))
    return _lines(entries)


def simulated_record(results: Sequence[MutantResult], keep: ResultFile) -> str:
    """JSON with a line for each mutant that the simulator killed: the seed and the invariant."""
    return _lines({
        result.mutant.id: saved.evaluation.by
        for result, saved in _simulated(results, keep)
        if saved.evaluation.outcome is MutantOutcome.KILLED
    })  # fmt: skip


def _lines(entries: Mapping[str, Any]) -> str:
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()) + "\n}\n"


def _simulated(results: Sequence[MutantResult], keep: ResultFile) -> list[Ran]:
    return [
        (result, saved)
        for result in results
        if (saved := keep.simulator(result.mutant)) is not None and result.mutant.simulated
    ]


def simulated(results: Sequence[MutantResult], seeds: str | None, keep: ResultFile) -> str:
    """The page of simulator results beside ``simulated_record``: counts, equivalent mutants, and survivors."""
    run = _simulated(results, keep)
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
        "[mutants-simulated.json](mutants-simulated.json) has the seed and the invariant that killed each mutant.",
        "Mutants of code that the simulator replaces (`REPLACED` in `kframe_simulator/mutants/table.py`, or",
        "`elsewhere` in the catalogue) are not counted as run.",
        "",
        *_shares(results, run, killed, equivalent),
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
        *(
            _row(item, " ".join(item.mutant.rules), saved.evaluation.by, item.mutant.survives)
            for item, saved in survived
        ),
        "",
        "## Not run",
        "",
        "The simulator runs this code, but these mutants were not played.",
        "",
        "| mutant | removed protection |",
        "|---|---|",
        *(_row(result) for result in results if result.mutant.simulated and keep.simulator(result.mutant) is None),
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
