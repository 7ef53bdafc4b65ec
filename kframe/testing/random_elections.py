"""Random elections for tests of selectors, in small clusters with every state of brokers and replicas."""

from __future__ import annotations

import numpy as np

from kframe.core.selectors.lazy_view import election_batch
from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.elections import ElectionBatch
from kframe.model.ids import ElectionKind, ReplicaFlag


def random_cluster(seed: int, partitions: int = 200, brokers: int = 12, racks: int = 3) -> ClusterState:
    """A cluster with a topic ``t``; equal arguments give equal clusters.

    Some brokers are unregistered, some shut down, one has no rack. Partitions have 1 to 5 replicas in any order, some
    with an offline log directory or being removed, and an ISR in any order, possibly empty.
    """
    draw = np.random.default_rng(seed)
    cluster = ClusterState()
    ids = draw.choice(1_000, brokers, replace=False)
    cluster.brokers.register(
        [
            Registration(int(broker_id), 100 + index, rack=f"rack-{index % racks}" if racks and index else None)
            for index, broker_id in enumerate(ids)
        ]
    )
    liveness = draw.random(brokers)
    cluster.brokers.shutting_down[liveness < 0.15] = 1
    cluster.brokers.unregister(np.flatnonzero(liveness > 0.75).astype(np.int32))
    sizes = draw.integers(1, min(5, brokers) + 1, partitions)
    replicas = [draw.choice(brokers, size, replace=False).tolist() for size in sizes]
    in_sync = [
        [broker for broker in draw.permutation(brokers_of).tolist() if draw.random() < 0.6] for brokers_of in replicas
    ]
    rows = cluster.add_topics(["t"], np.array([partitions]), Ragged.of(replicas), Ragged.of(in_sync))
    columns = cluster.partitions
    columns.leader[rows] = [members[0] if members else -1 for members in in_sync]
    columns.leader_epoch[rows] = draw.integers(0, 100, partitions)
    slots = columns.slots_of(rows)
    columns.replica_status[slots[draw.random(len(slots)) < 0.1]] |= np.uint8(ReplicaFlag.OFFLINE_DIR)
    columns.replica_status[slots[draw.random(len(slots)) < 0.2]] |= np.uint8(ReplicaFlag.REMOVING)
    return cluster


def random_election(seed: int, kind: ElectionKind, partitions: int = 200, brokers: int = 12) -> ElectionBatch:
    """An election in all partitions of a ``random_cluster``; unclean election is enabled in a third."""
    cluster = random_cluster(seed, partitions, brokers)
    rows: Int32 = np.arange(partitions, dtype=np.int32)
    unclean_allowed: UInt8 = (np.random.default_rng(seed).random(partitions) < 1 / 3).astype(np.uint8)
    return election_batch(cluster, kind, rows, unclean_allowed)
