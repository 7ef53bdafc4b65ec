"""Random elections for tests of selectors: small clusters with everything in them that a selector may meet."""

from __future__ import annotations

import numpy as np

from kframe.core.selectors.lazy_view import election_batch
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged, UInt8
from kframe.model.elections import ElectionBatch
from kframe.model.ids import ElectionKind, ReplicaFlag


def random_cluster(seed: int, partitions: int = 200, brokers: int = 12, racks: int = 3) -> ClusterState:
    """A cluster of one topic ``t``, the same for the same arguments.

    Some brokers are gone, some shut down, one names no rack; partitions have 1 to 5 replicas in any order, some of them
    with an offline log directory or under removal, and an ISR, possibly empty, in an order of its own.
    """
    draw = np.random.default_rng(seed)
    cluster = ClusterState()
    ids = draw.choice(1_000, brokers, replace=False)
    cluster.brokers.register(
        [
            Registration(int(one), 100 + at, rack=f"rack-{at % racks}" if racks and at else None)
            for at, one in enumerate(ids)
        ]
    )
    fate = draw.random(brokers)
    cluster.brokers.shutting_down[fate < 0.15] = 1
    cluster.brokers.unregister(np.flatnonzero(fate > 0.75).astype(np.int32))
    sizes = draw.integers(1, min(5, brokers) + 1, partitions)
    replicas = [draw.choice(brokers, size, replace=False).tolist() for size in sizes]
    in_sync = [[one for one in draw.permutation(some).tolist() if draw.random() < 0.6] for some in replicas]
    rows = cluster.add_topics(["t"], np.array([partitions]), Ragged.of(replicas), Ragged.of(in_sync))
    columns = cluster.partitions
    columns.leader[rows] = [members[0] if members else -1 for members in in_sync]
    columns.leader_epoch[rows] = draw.integers(0, 100, partitions)
    slots = columns.slots_of(rows)
    columns.replica_flags[slots[draw.random(len(slots)) < 0.1]] |= np.uint8(ReplicaFlag.OFFLINE_DIR)
    columns.replica_flags[slots[draw.random(len(slots)) < 0.2]] |= np.uint8(ReplicaFlag.REMOVING)
    return cluster


def random_election(seed: int, kind: ElectionKind, partitions: int = 200, brokers: int = 12) -> ElectionBatch:
    """An election of some kind in all partitions of a ``random_cluster``; unclean leaders are allowed in a third."""
    cluster = random_cluster(seed, partitions, brokers)
    rows: Int32 = np.arange(partitions, dtype=np.int32)
    unclean_allowed: UInt8 = (np.random.default_rng(seed).random(partitions) < 1 / 3).astype(np.uint8)
    return election_batch(cluster, kind, rows, unclean_allowed)
