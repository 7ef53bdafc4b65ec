"""Running a bench: one controller's life after another on the same cluster, and the result as plain data."""

from __future__ import annotations

import gc
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import kframe
from kframe.bench import BENCHES
from kframe.bench.life import Life
from kframe.bench.phases import Phases
from kframe.bench.works import REPLICATION_FACTOR, WORKS
from kframe.core.context import Context
from kframe.errors import InputError
from kframe.model.cluster import ClusterState

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
    """Run a bench; return its result as plain data (schema ``kframe.bench/v1``), seconds of one event by phase."""
    work = WORKS[bench.name]
    cluster = work.cluster(bench.partitions, bench.brokers)
    runs = []
    for done in range(bench.runs + 1):
        progress(done, bench.runs + 1)
        runs.append(_run(bench, cluster))
    progress(bench.runs + 1, bench.runs + 1)
    digests = {one.digest for one in runs}
    if len(digests) != 1:
        raise AssertionError(f"runs of one bench differ: {sorted(digests)}")
    return {
        "schema": SCHEMA,
        "bench": bench.name,
        "partitions": bench.partitions,
        "brokers": bench.brokers,
        "replication_factor": REPLICATION_FACTOR,
        "runs": bench.runs,
        "events": work.events,
        **_summary([one.phases for one in runs[1:]], work.events),
        "state_bytes_per_partition": runs[-1].bytes_per_row,
        "digest": digests.pop(),
        "kframe": kframe.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def state_bytes(context: Context) -> int:
    """Bytes that a controller holds for a cluster: partition columns, topic columns and names, and what it keeps
    beside them (who hosts what, what each row counts for)."""
    cluster, topics = context.cluster, context.cluster.topics
    columns = (topics.ids, topics.first_row, topics.block_length, topics.partition_count, topics.unclean,
               topics.min_insync, topics.deleting)  # fmt: skip
    names = sum(len(name) + 49 for name in topics.names)
    kept = context.hosts.nbytes + context.gauges.nbytes
    return cluster.partitions.nbytes + sum(column.nbytes for column in columns) + names + kept


@dataclass(frozen=True, slots=True)
class _Run:
    """One controller's event, what it sent, and what the controller held for each row."""

    phases: Phases
    digest: str
    bytes_per_row: float


def _run(bench: Bench, cluster: ClusterState) -> _Run:
    """One life up to the end of the timed event."""
    work, life = WORKS[bench.name], Life(cluster)
    timed = work.prepare(life, bench.partitions)
    gc.collect()
    with life.watch.event() as phases:
        timed()
    work.check(life, bench.partitions)
    return _Run(phases, life.transport.digest.hexdigest(), state_bytes(life.context) / len(life.cluster))


def _summary(runs: Sequence[Phases], events: int) -> dict[str, Any]:
    """Seconds of one event; requests and bytes of all that one run timed."""
    seconds = {
        name: _spread([getattr(phases, f"{name}_seconds") / events for phases in runs])
        for name in ("decide", "store", "encode", "ready")
    }
    last = runs[-1]
    return {
        "seconds": seconds,
        "requests": last.requests,
        "sent_bytes": last.sent_bytes,
        "made_bytes": last.made_bytes,
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}
