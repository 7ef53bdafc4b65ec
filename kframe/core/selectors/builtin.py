"""Kafka's election rules on the columns: the default selector, and the fallback of every other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int32, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.ids import ElectionKind

#: Chooses leaders from the columns; arguments and result are those of ``elect_builtin``.
ElectionRule: TypeAlias = Callable[[ClusterState, ElectionKind, Int32, UInt8], Int32]


def elect_builtin(cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
    """The leader (k,) of each of ``rows`` (k,) by Kafka's rule: a broker index, or NO_LEADER.

    ``unclean_allowed`` (k,) is 1 where an out-of-sync leader is permitted. Source: Kafka 3.9
    ``PartitionLeaderElectionAlgorithms``.
    """
    p = cluster.partitions
    leader = np.empty(len(rows), np.int32)
    kernels.choose_leaders(
        int(kind),
        rows,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.replica,
        p.isr,
        p.replica_status,
        cluster.brokers.live,
        unclean_allowed,
        leader,
    )
    return leader
