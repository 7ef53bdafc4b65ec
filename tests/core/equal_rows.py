"""Clusters in which most rows have the same shape, so that kernels process them in blocks."""

from __future__ import annotations

import numpy as np

from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.ids import ReplicaFlag

BROKERS = 24
#: Partitions of each topic. A block is 64 rows: some blocks lie within one topic, some span two.
SIZES = (70, 64, 66, 130)
#: Numbers of offline brokers: none, few enough to search one by one, and more than that.
OFFLINE_BROKERS = (0, 2, 11)


def even_cluster(seed: int, width: int, unregistered: int, fault_rate: float) -> ClusterState:
    """Return a cluster whose topics have ``width`` replicas a partition; one topic has one replica more.

    ``unregistered`` brokers are not registered. A fraction ``fault_rate`` of the partitions differs: a short or
    reordered ISR, an unassigned ISR member, a replica flag or an offline log directory.
    """
    draw = np.random.default_rng(seed)
    cluster = ClusterState()
    cluster.brokers.register([Registration(500 + index, 1 + index) for index in range(BROKERS)])
    widths = np.repeat([width, width, width + 1, width], SIZES)
    replicas = [draw.choice(BROKERS, width, replace=False).tolist() for width in widths]
    in_sync = [_shuffled(draw, broker_ids) if draw.random() < fault_rate else broker_ids for broker_ids in replicas]
    names = [f"t{index}" for index in range(len(SIZES))]
    rows = cluster.add_topics(names, np.array(SIZES), Ragged.of(replicas), Ragged.of(in_sync))
    p = cluster.partitions
    slots = p.slots_of(rows)
    for flag in (ReplicaFlag.OFFLINE_DIR, ReplicaFlag.REMOVING, ReplicaFlag.ADDING):
        p.replica_status[slots[draw.random(len(slots)) < fault_rate / width / 4]] |= np.uint8(flag)
    for row in rows.tolist():
        start, members = int(p.slot_start[row]), int(p.isr_count[row])
        stop = start + int(p.replica_count[row])
        # Slots behind a short ISR contain no valid member.
        p.isr[start + members : stop] = p.replica[start + members : stop]
        if members and draw.random() < fault_rate / 4:
            p.isr[start + draw.integers(0, members)] = BROKERS - 1  # mostly an unassigned broker
    cluster.brokers.unregister(draw.choice(BROKERS, unregistered, replace=False).astype(np.int32))
    return cluster


def even_rows(seed: int, cluster: ClusterState) -> list[tuple[Int32, UInt8]]:
    """Return rows, and whether unclean election is allowed for each: for none, a few, or the second half. The rows are
    all, one fewer than a block, or separate runs."""
    draw, count = np.random.default_rng(seed), len(cluster.partitions)
    every = np.arange(count, dtype=np.int32)
    gaps = np.concatenate([every[134:198], every[71:135], every[201:], every[:70], every[-65:]])
    few_flags = (draw.random(count) < 0.01).astype(np.uint8)
    tail = (every >= count // 2).astype(np.uint8)
    none = np.zeros(count, np.uint8)
    return [
        (every, none),
        (every, few_flags),
        (every[1:-1].copy(), tail[1:-1].copy()),
        (every[:63].copy(), none[:63]),
        (gaps, (draw.random(len(gaps)) < 0.01).astype(np.uint8)),
    ]


def _shuffled(draw: np.random.Generator, broker_ids: list[int]) -> list[int]:
    subset = draw.permutation(broker_ids).tolist() if draw.random() < 0.5 else list(broker_ids)
    return subset[: int(draw.integers(0, len(subset) + 1))] if draw.random() < 0.7 else subset
