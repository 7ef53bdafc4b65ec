"""Running a bench: trial after trial in the same world, and the result as plain data."""

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
from kframe.bench.work import Outcome, Work, World
from kframe.bench.works import WORKS
from kframe.errors import InputError

SCHEMA: Final = "kframe.bench/v1"

#: Told how many runs of how many are done.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Bench:
    """What to time: ``runs`` times, after one run that is not counted."""

    name: str
    partitions: int
    brokers: int
    runs: int = 5

    def __post_init__(self) -> None:
        if self.name not in BENCHES:
            raise InputError("bench", repr(self.name), "one of " + ", ".join(BENCHES))
        if self.partitions < 1 or self.brokers <= REPLICATION_FACTOR or self.runs < 1:
            found = f"{self.partitions} partitions, {self.brokers} brokers, {self.runs} runs"
            raise InputError("bench", found, f"a partition, a run, and more than {REPLICATION_FACTOR} brokers")


def run(bench: Bench, progress: Progress = lambda done, total: None) -> dict[str, Any]:
    """Run a bench; return its result as plain data (schema ``kframe.bench/v1``), see ``result``."""
    progress(0, bench.runs + 1)
    outcomes = []
    for outcome in trials(bench):
        outcomes.append(outcome)
        progress(len(outcomes), bench.runs + 1)
    return result(bench, outcomes)


def trials(bench: Bench) -> Iterator[Outcome]:
    """One outcome after another: the first has the answer and counts for no time."""
    work = WORKS[bench.name]
    world = work.world(bench.partitions, bench.brokers)
    for number in range(bench.runs + 1):
        yield _once(work, world, whole=number == 0)


def result(bench: Bench, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What came of all trials, the first of them not counted: seconds of one event by phase, and what was counted in
    all events of one trial. Raises AssertionError if not all trials did the same."""
    if len({one.digest for one in outcomes}) != 1:
        raise AssertionError(f"runs of one bench differ: {sorted({one.digest for one in outcomes})}")
    first, *counted = outcomes
    events = WORKS[bench.name].events
    return {
        "schema": SCHEMA,
        "bench": bench.name,
        "partitions": bench.partitions,
        "brokers": bench.brokers,
        "replication_factor": REPLICATION_FACTOR,
        "runs": bench.runs,
        "events": events,
        "seconds": {phase: _spread([one.seconds[phase] / events for one in counted]) for phase in first.seconds},
        **counted[-1].counts,
        "digest": first.answer,
        "kframe": kframe.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _once(work: Work, world: World, whole: bool) -> Outcome:
    trial = work.trial(world, whole)
    gc.collect()
    trial.run()
    return trial.finish()


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}
