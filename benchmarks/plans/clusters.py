"""The clusters and goals of the comparison: a real snapshot and generated ones, with sizes of partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from benchmarks.records import ROOT
from kframe.model.arrays import Int64, Ragged
from kframe.snapshot import Snapshot, generate, read_snapshot

_REAL: Final = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers" / "healthy.zookeeper.jsonl.gz"


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A cluster and a goal: ``added`` brokers with racks, ``removed`` brokers, or neither. ``bytes`` are balanced where
    ``by_size``, else replicas."""

    cluster: str
    goal: str
    snapshot: Snapshot
    sizes: Int64
    added: Mapping[int, str | None]
    removed: tuple[int, ...]
    by_size: bool

    @property
    def racks(self) -> dict[int, str | None]:
        """The rack of every broker, added ones included."""
        return {broker.broker_id: broker.rack for broker in self.snapshot.brokers} | dict(self.added)


def cases(snapshot: Snapshot, name: str) -> list[Case]:
    """The goals for a cluster: rebalance it, add two brokers, remove one, and balance bytes."""
    ids = [broker.broker_id for broker in snapshot.brokers]
    added = {max(ids) + 1 + index: snapshot.brokers[index].rack for index in range(2)}
    sizes = np.random.default_rng(1).lognormal(20, 1.5, len(snapshot)).astype(np.int64)
    return [
        Case(name, "rebalance", snapshot, sizes, {}, (), by_size=False),
        Case(name, "add 2 brokers", snapshot, sizes, added, (), by_size=False),
        Case(name, "remove a broker", snapshot, sizes, {}, (ids[1],), by_size=False),
        Case(name, "rebalance bytes", snapshot, sizes, {}, (), by_size=True),
    ]


def skewed(snapshot: Snapshot, seed: int = 1) -> Snapshot:
    """The same cluster with random replicas: popular brokers have many more, whatever the racks."""
    count, width = len(snapshot), len(snapshot.brokers)
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, width + 1) ** 0.7
    keys = rng.random((count, width)) ** (1 / popularity)
    lists = np.argsort(-keys, axis=1)
    ids = np.array([broker.broker_id for broker in snapshot.brokers], np.int32)
    factors = snapshot.partitions.replicas.counts
    return _with_replicas(snapshot, [ids[row[:factor]].tolist() for row, factor in zip(lists, factors, strict=True)])


def mixed_factors(snapshot: Snapshot) -> Snapshot:
    """The same cluster whose topics have one to three replicas in turn, in three racks of 5, 4 and 3 brokers."""
    topic = snapshot.topics.topic_of_rows().tolist()
    lists = [snapshot.partitions.replicas[row].tolist()[: 1 + topic[row] % 3] for row in range(len(snapshot))]
    racks = [f"rack-{number}" for number in (0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2)]
    brokers = tuple(replace(broker, rack=rack) for broker, rack in zip(snapshot.brokers, racks, strict=True))
    return _with_replicas(replace(snapshot, brokers=brokers), lists)


def _with_replicas(snapshot: Snapshot, lists: list[list[int]]) -> Snapshot:
    replicas = Ragged.of(lists)
    partitions = replace(
        snapshot.partitions, replicas=replicas, isr=replicas, leader=replicas.values[replicas.offsets[:-1]]
    )
    return replace(snapshot, partitions=partitions)


CLUSTERS: Final[Mapping[str, Callable[[], Snapshot]]] = {
    "small": lambda: skewed(generate(60, 6, 2, racks=3, seed=1, partitions_per_topic=10)),
    "real 6/645": lambda: read_snapshot(_REAL),
    "12/10k": lambda: generate(10_000, 12, 3, racks=3, seed=1),
    "skewed 12/10k": lambda: skewed(generate(10_000, 12, 3, racks=4, seed=1)),
    "mixed 12/10k": lambda: mixed_factors(generate(10_000, 12, 3, racks=3, seed=1)),
    "100/100k": lambda: generate(100_000, 100, 3, racks=5, seed=1),
    "rackless 100/100k": lambda: generate(100_000, 100, 3, seed=1),
    "skewed 100/100k": lambda: skewed(generate(100_000, 100, 3, racks=5, seed=1)),
    "100/1M": lambda: generate(1_000_000, 100, 3, racks=5, seed=1),
}
"""By name: brokers/partitions. Clusters without ``rackless`` have racks."""

EXACT: Final = ("small", "real 6/645")
"""Clusters that the exact solver gets; with sizes it gets only the first, because it does not end on the second."""
