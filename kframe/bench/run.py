"""Run a bench repeatedly on the same fixture and summarize the result as plain data."""

from __future__ import annotations

import gc
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import kframe
from kframe.bench import BENCHES
from kframe.bench.clusters import REPLICATION_FACTOR
from kframe.bench.workload import Fixture, Measurement, Workload
from kframe.bench.workloads import WORKLOADS
from kframe.errors import InputError
from kframe.model.texts import counted

SCHEMA: Final = "kframe.bench/v1"

#: Receives the number of completed runs and of all runs.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Bench:
    """What to time: ``runs`` times, after one warm-up run."""

    name: str
    partitions: int
    brokers: int
    runs: int = 5

    def __post_init__(self) -> None:
        if self.name not in BENCHES:
            raise InputError("bench", repr(self.name), "one of " + ", ".join(BENCHES))
        if self.partitions < 1 or self.brokers <= REPLICATION_FACTOR or self.runs < 1:
            cluster = f"{counted(self.partitions, 'partition')} on {counted(self.brokers, 'broker')}"
            size = f"{cluster}, {counted(self.runs, 'run')}"
            raise InputError("bench", size, f"a partition, a run, and more than {REPLICATION_FACTOR} brokers")


def run(bench: Bench, progress: Progress = lambda done, total: None) -> dict[str, Any]:
    """Run a bench; return its result as plain data (schema ``kframe.bench/v1``), see ``result``."""
    progress(0, bench.runs + 1)
    outcomes = []
    for outcome in outcomes_of(bench):
        outcomes.append(outcome)
        progress(len(outcomes), bench.runs + 1)
    return result(bench, outcomes)


def outcomes_of(bench: Bench) -> Iterator[Measurement]:
    """One outcome per run. The first has the answer; its time does not count."""
    workload = WORKLOADS[bench.name]
    fixture = workload.fixture(bench.partitions, bench.brokers)
    for number in range(bench.runs + 1):
        yield _run_once(workload, fixture, with_answer=number == 0)


def result(bench: Bench, outcomes: Sequence[Measurement]) -> dict[str, Any]:
    """Summarize all runs but the first: seconds of one event by phase, and counts of all events of one run.

    Raises AssertionError if the digests of the runs differ.
    """
    if len({outcome.digest for outcome in outcomes}) != 1:
        raise AssertionError(f"runs of one bench differ: {sorted({outcome.digest for outcome in outcomes})}")
    first, *counted = outcomes
    events = WORKLOADS[bench.name].events
    return {
        "schema": SCHEMA,
        "bench": bench.name,
        "partitions": bench.partitions,
        "brokers": bench.brokers,
        "replication_factor": REPLICATION_FACTOR,
        "runs": bench.runs,
        "events": events,
        "seconds": {
            phase: _spread([outcome.seconds[phase] / events for outcome in counted]) for phase in first.seconds
        },
        **counted[-1].counts,
        "digest": first.answer,
        "kframe": kframe.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _run_once(workload: Workload, fixture: Fixture, with_answer: bool) -> Measurement:
    run = workload.new_run(fixture, with_answer)
    gc.collect()
    run.run()
    return run.finish()


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}
