"""Clusters in which most rows are as most rows are, so that kernels take many of them at a time."""

from __future__ import annotations

import numpy as np

from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged, UInt8
from kframe.model.ids import ReplicaFlag

BROKERS = 24
#: Partitions of each topic. A block is 64 rows: some have all their rows in one topic, some in two.
SIZES = (70, 64, 66, 130)
#: How many brokers are away: none, so few that they are looked for one by one, and more than that.
OFFLINE_BROKERS = (0, 2, 11)


def even_cluster(seed: int, width: int, away: int, odd: float) -> ClusterState:
    """A cluster whose topics have ``width`` replicas a partition, one topic one more. A part ``odd`` of the partitions
    has an ISR that is short, in another order or names somebody else, a flag, or an offline log directory. So many
    brokers are ``away``."""
    draw = np.random.default_rng(seed)
    cluster = ClusterState()
    cluster.brokers.register([Registration(500 + at, 1 + at) for at in range(BROKERS)])
    widths = np.repeat([width, width, width + 1, width], SIZES)
    replicas = [draw.choice(BROKERS, width, replace=False).tolist() for width in widths]
    in_sync = [_shuffled(draw, some) if draw.random() < odd else some for some in replicas]
    names = [f"t{at}" for at in range(len(SIZES))]
    rows = cluster.add_topics(names, np.array(SIZES), Ragged.of(replicas), Ragged.of(in_sync))
    p = cluster.partitions
    slots = p.slots_of(rows)
    for flag in (ReplicaFlag.OFFLINE_DIR, ReplicaFlag.REMOVING, ReplicaFlag.ADDING):
        p.replica_flags[slots[draw.random(len(slots)) < odd / width / 4]] |= np.uint8(flag)
    for row in rows.tolist():
        start, members = int(p.slot_start[row]), int(p.isr_count[row])
        stop = start + int(p.replica_count[row])
        # What stands behind a short ISR belongs to nobody.
        p.isr[start + members : stop] = p.replica[start + members : stop]
        if members and draw.random() < odd / 4:
            p.isr[start + draw.integers(0, members)] = BROKERS - 1  # mostly no replica
    cluster.brokers.unregister(draw.choice(BROKERS, away, replace=False).astype(np.int32))
    return cluster


def even_rows(seed: int, cluster: ClusterState) -> list[tuple[Int32, UInt8]]:
    """Rows, and whether each may have an unclean leader (none, a few, all from some row on): all rows, fewer than a
    block by one, and runs that do not follow on one another."""
    draw, count = np.random.default_rng(seed), len(cluster.partitions)
    every = np.arange(count, dtype=np.int32)
    gaps = np.concatenate([every[134:198], every[71:135], every[201:], every[:70], every[-65:]])
    few = (draw.random(count) < 0.01).astype(np.uint8)
    tail = (every >= count // 2).astype(np.uint8)
    none = np.zeros(count, np.uint8)
    return [(every, none), (every, few), (every[1:-1].copy(), tail[1:-1].copy()), (every[:63].copy(), none[:63]),
            (gaps, (draw.random(len(gaps)) < 0.01).astype(np.uint8))]  # fmt: skip


def _shuffled(draw: np.random.Generator, some: list[int]) -> list[int]:
    subset = draw.permutation(some).tolist() if draw.random() < 0.5 else list(some)
    return subset[: int(draw.integers(0, len(subset) + 1))] if draw.random() < 0.7 else subset
