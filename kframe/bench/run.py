"""The benches: one controller's life on a generated cluster, the same as the peers' (``benchmarks/peers``)."""

from __future__ import annotations

import gc
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import kframe
from kframe.bench.phases import EncodingTransport, Phases, Stopwatch, TimedStore
from kframe.core.context import Context
from kframe.core.controller import Controller
from kframe.core.selection import Selection
from kframe.embedded import MemoryEnsemble, VirtualClock
from kframe.errors import InputError
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.runtime.loop import ControllerLoop
from kframe.snapshot.generate import generate
from kframe.wire.encode import Encoder
from kframe.wire.versions import ControlVersions

SCHEMA: Final = "kframe.bench/v1"
REPLICATION_FACTOR: Final = 3
CONTROLLER_ID: Final = 1_000_000
BENCHES: Final = ("broker-failure", "controller-failover")

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
    """Run a bench; return its result as plain data (schema ``kframe.bench/v1``), seconds by phase."""
    cluster = generate(
        partitions=bench.partitions, brokers=bench.brokers, replication_factor=REPLICATION_FACTOR, layout="peerbench"
    ).to_cluster()
    lives = []
    for done in range(bench.runs + 1):
        progress(done, bench.runs + 1)
        lives.append(_live(bench, cluster))
    progress(bench.runs + 1, bench.runs + 1)
    digests = {life.digest for life in lives}
    if len(digests) != 1:
        raise AssertionError(f"runs of one bench differ: {sorted(digests)}")
    return {
        "schema": SCHEMA,
        "bench": bench.name,
        "partitions": bench.partitions,
        "brokers": bench.brokers,
        "replication_factor": REPLICATION_FACTOR,
        "runs": bench.runs,
        **_summary([life.phases for life in lives[1:]]),
        "state_bytes_per_partition": lives[-1].state_bytes / bench.partitions,
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
class _Life:
    """One controller's event, what it sent, and what it held."""

    phases: Phases
    digest: str
    state_bytes: int


def _live(bench: Bench, cluster: ClusterState) -> _Life:
    """A controller takes over; for a broker failure it then loses the broker in the middle."""
    watch = Stopwatch()
    ensemble = MemoryEnsemble.from_cluster(cluster)
    config = ControllerConfig({"auto.leader.rebalance.enable": False})
    transport = EncodingTransport(Encoder(ControlVersions.of(config.protocol)), watch)
    controller = Controller(CONTROLLER_ID, config, Selection({}))
    loop = ControllerLoop(controller, TimedStore(ensemble.connect(), watch), transport, VirtualClock())
    loop.open()
    gc.collect()
    with watch.event() as phases:
        loop.run_until_idle()
    if bench.name == "broker-failure":
        ensemble.unregister_brokers([bench.brokers // 2])
        gc.collect()
        with watch.event() as phases:
            loop.run_until_idle()
    _check(loop, bench)
    return _Life(phases, transport.digest.hexdigest(), state_bytes(controller.context))


def _check(loop: ControllerLoop, bench: Bench) -> None:
    """Every partition has a live leader; else something other than the work was timed."""
    p, live = loop.controller.cluster.partitions, loop.controller.cluster.brokers.live
    led = int(np.count_nonzero(live[p.leader] & (p.leader >= 0)))
    if led != bench.partitions:
        raise AssertionError(f"{bench.partitions - led} partitions have no live leader")


def _summary(runs: Sequence[Phases]) -> dict[str, Any]:
    seconds = {
        name: _spread([getattr(phases, f"{name}_seconds") for phases in runs])
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
