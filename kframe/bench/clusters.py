"""The clusters that benches begin with."""

from __future__ import annotations

from typing import Final

from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_LEADER
from kframe.snapshot.generate import PARTITIONS_PER_TOPIC, generate
from kframe.snapshot.snapshot import Snapshot

REPLICATION_FACTOR: Final = 3
RACKS: Final = 5


def whole_snapshot(partitions: int, brokers: int) -> Snapshot:
    """A healthy cluster of whole topics of 100 partitions, leaders and followers spread evenly.

    The Java benchmarks of Kafka's controllers use the same layout (``benchmarks/against_kafka/peerbench``).
    """
    return generate(partitions, brokers, REPLICATION_FACTOR, layout="peerbench")


def whole_cluster(partitions: int, brokers: int) -> ClusterState:
    """``whole_snapshot`` as a controller's columns."""
    return whole_snapshot(partitions, brokers).to_cluster()


def racked_cluster(partitions: int, brokers: int) -> ClusterState:
    """Brokers in five racks. The replicas of a partition are in different racks."""
    return generate(partitions, brokers, REPLICATION_FACTOR, racks=min(RACKS, brokers)).to_cluster()


def led_by_second(partitions: int, brokers: int) -> ClusterState:
    """``whole_cluster`` with every partition led by its second replica."""
    cluster = whole_cluster(partitions, brokers)
    p = cluster.partitions
    p.leader[:] = p.replica[p.slot_start + 1]
    return cluster


def leaderless_cluster(partitions: int, brokers: int) -> ClusterState:
    """``whole_cluster`` with no leaders, although all replicas are in sync."""
    cluster = whole_cluster(partitions, brokers)
    cluster.partitions.leader[:] = NO_LEADER
    return cluster


def single_topic(_partitions: int, brokers: int) -> ClusterState:
    """A cluster with a single topic."""
    return whole_cluster(PARTITIONS_PER_TOPIC, brokers)
