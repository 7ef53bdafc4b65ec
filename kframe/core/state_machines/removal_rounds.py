"""In which rounds partitions lose several replicas at once, one replica of each partition after another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kframe import kernels
from kframe.core.state_machines.scala_hash_order import scala_hash_order
from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.model.lists import distinct_rows


class RemovalRound(NamedTuple):
    """Replicas that leave their ISRs in one write: at most one of each row, which ascend."""

    positions: Int32
    """Where they are among the replicas of all rounds."""
    rows: Int32
    brokers: Int32


def removal_rounds(cluster: ClusterState, rows: Int32, replica_brokers: Int32) -> list[RemovalRound]:
    """The replicas that their rows (ascending) lose first, then those that they lose second, and so on."""
    if not bool((rows[1:] == rows[:-1]).any()):
        return [RemovalRound(np.arange(len(rows), dtype=np.int32), rows, replica_brokers)]
    brokers = cluster.brokers
    ordered = scala_hash_order(brokers.ids[distinct_rows(replica_brokers, len(brokers))].tolist())
    rank = np.zeros(len(brokers), np.int32)
    rank[brokers.look_up(np.array(ordered, np.int32))] = np.arange(len(ordered))
    offsets = np.empty(cluster.partitions.largest_capacity() + 1, np.int32)
    positions, grouped_rows, grouped_brokers = (np.empty_like(rows) for _ in range(3))
    count = kernels.group_by_rank(rows, replica_brokers, rank, offsets, positions, grouped_rows, grouped_brokers)
    parts = (slice(*offsets[number : number + 2].tolist()) for number in range(count))
    return [RemovalRound(positions[part], grouped_rows[part], grouped_brokers[part]) for part in parts]
