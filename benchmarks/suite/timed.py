"""Time the suite in separate processes, and compute ratios between its results."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from typing import Any, Final, NamedTuple

from benchmarks.report.ratios import Ratio
from benchmarks.suite.answers import check_answer
from kframe.bench import BENCHES
from kframe.bench.run import Bench, outcomes_of
from kframe.bench.run import result as result_of
from kframe.runtime.memory import preallocate

#: With a thousand leaders the controller notifies a thousand brokers a thousand times: minutes a run.
NOT_OVER_A_THOUSAND: Final = ("alter-partition-storm", "reassignment-completion")
#: Benches that fit into a few gigabytes and minutes at ten million partitions. Those with targets are first.
LARGEST: Final = ("controller-failover", "broker-failure", "alter-partition", "batching")
LARGEST_BROKERS: Final = 1_000
#: Benches whose seconds have targets; those of failures have targets of memory too.
FAILURES: Final = ("broker-failure", "controller-failover")
ADMINISTRATION: Final = (
    "topic-creation",
    "topic-deletion",
    "alter-partition-storm",
    "reassignment-start",
    "reassignment-completion",
)
#: Counted runs of each.
LARGEST_RUNS: Final = 3
#: Limits of counted runs and seconds for each bench: preparing a run of a large cluster takes seconds. Targets refer to
#: clusters of a hundred brokers, which get more time.
RUNS: Final = 10
SECONDS, SECONDS_OF_TARGETS, BROKERS_OF_TARGETS = 2, 5, 100
TIERS: Final = ("native", "bulk", "scalar")
HEADINGS: Final = ("partitions", "brokers", "bench", "ready ms", "least", "most", "decide", "choose", "encode")
LEGEND: Final = (
    "kframe: median milliseconds of one event, decided, applied and all bytes ready; least and most of all runs."
)
#: Benches that exist for each selector tier, with the prefix of their ratios' names. One elects for the scattered rows
#: of a broker, the other for all rows in order.
OF_TIERS: Final = {"broker-failure": "", "election-of-all": "all-"}
TIER_HEADINGS: Final = ("partitions", "brokers", "bench", "selector", "choosing", "deciding")
TIER_LEGEND: Final = "How many times as long as with the built-in rule; the fastest run of each."

Result = dict[str, Any]


class Part(NamedTuple):
    """Benches timed together in one process: ``only`` these, or all, at one size."""

    partitions: int
    brokers: int
    only: tuple[str, ...] = ()
    runs: int | None = None
    """Counted runs of each. By default as many as fit into the time limit."""


def parts(
    partitions: Iterable[int],
    brokers: Iterable[int],
    largest: Iterable[int],
    only: Sequence[str] = (),
    runs: int | None = None,
) -> list[Part]:
    """All parts, small sizes first. Each bench of the ``largest`` sizes gets its own process and thus fresh memory."""
    together = [Part(*size, tuple(only), runs) for size in product(partitions, brokers)]
    alone = [name for name in LARGEST if not only or name in only]
    of_largest = runs or LARGEST_RUNS
    return together + [Part(size, LARGEST_BROKERS, (name,), of_largest) for size in largest for name in alone]


def run(part: Part, *, new_answers: bool = False) -> list[Result]:
    """The results of the benches (schema ``kframe.bench/v1``), from a new process. Progress goes to standard error.

    Raises AssertionError if the answer of a bench differs from the known one; with ``new_answers`` saves it instead.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_run, part, new_answers).result()


def _run(part: Part, new_answers: bool) -> list[Result]:
    preallocate()  # as in the process of a controller
    names = [name for name in part.only or BENCHES if part.brokers < 1_000 or name not in NOT_OVER_A_THOUSAND]
    return [_measure(part, name, new_answers) for name in names]


def _measure(part: Part, name: str, new_answers: bool) -> Result:
    """The result of one bench: of ``part.runs`` counted runs, or of as many as fit into the time limit."""
    print(f"{name}, {part.partitions:,} partitions, {part.brokers:,} brokers", file=sys.stderr, flush=True)
    limit = SECONDS_OF_TARGETS if part.brokers == BROKERS_OF_TARGETS else SECONDS
    bench = Bench(name, part.partitions, part.brokers, part.runs or RUNS)
    outcomes, begun = [], 0.0
    for outcome in outcomes_of(bench):
        outcomes.append(outcome)
        if len(outcomes) == 1:  # the warm-up run
            begun = time.monotonic()
        elif part.runs is None and time.monotonic() - begun > limit:
            break
    known = check_answer(bench, outcomes[0].answer, update=new_answers)
    return result_of(replace(bench, runs=len(outcomes) - 1), outcomes) | {"answer_known": known}


def line(result: Result) -> tuple[str, ...]:
    """A result as cells under HEADINGS."""
    seconds = result["seconds"]
    ready = (f"{seconds['ready'][name] * 1000:.3f}" for name in ("median", "min", "max"))
    phases = (
        f"{seconds[phase]['median'] * 1000:.3f}" if phase in seconds else "-"
        for phase in ("decide", "choose", "encode")
    )
    return (f"{result['partitions']:,}", f"{result['brokers']:,}", result["bench"], *ready, *phases)


def tiers(results: Sequence[Result]) -> list[Result]:
    """The cost of selectors of each tier relative to the built-in rule. There is a result for each size and bench with
    tiers."""
    rows = []
    for result in results:
        if result["bench"] not in OF_TIERS:
            continue
        size = {key: result[key] for key in ("partitions", "brokers")}
        for tier in TIERS:
            for other in results:
                if other["bench"] == f"{result['bench']}-{tier}" and size.items() <= other.items():
                    times = {
                        phase: other["seconds"][phase]["min"] / result["seconds"][phase]["min"]
                        for phase in ("choose", "decide")
                    }
                    rows.append({**size, "bench": result["bench"], "tier": tier, **times})
    return rows


def tier_line(row: Result) -> tuple[str, ...]:
    """A row of ``tiers`` as cells under TIER_HEADINGS."""
    size = (f"{row['partitions']:,}", f"{row['brokers']:,}")
    return (*size, row["bench"], row["tier"], f"{row['choose']:.2f}", f"{row['decide']:.2f}")


def ratios(results: Sequence[Result]) -> list[Ratio]:
    """The ratios that records compare, and seconds and memory that have targets."""
    collected: list[Ratio] = []
    for row in tiers(results):
        size = f"{row['partitions']}/{row['brokers']}"
        tier = OF_TIERS[row["bench"]] + row["tier"]
        collected += [Ratio(f"{phase}-{tier}/{size}", row[phase], less=True) for phase in ("choose", "decide")]
    for result in results:
        name = f"{result['bench']}/{result['partitions']}/{result['brokers']}"
        if result["bench"] in (*FAILURES, *ADMINISTRATION):
            collected.append(Ratio(f"{name} seconds", result["seconds"]["ready"]["median"], less=True, absolute=True))
        if result["bench"] not in FAILURES:
            continue
        collected.append(Ratio(f"{name} bytes a partition", result["state_bytes_per_partition"], less=True))
        if "resident_bytes" in result:
            collected.append(Ratio(f"{name} resident", result["resident_bytes"] / 2**30, less=True, absolute=True))
    return collected
