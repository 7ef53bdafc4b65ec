"""The replicas that a reassignment adds and removes."""

from __future__ import annotations

import numpy as np

from kframe import kernels
from kframe.core.context import Context
from kframe.core.state_machines.replica_state_machine import PartitionReplicas
from kframe.model.arrays import Int32, ragged_positions
from kframe.model.ids import ReplicaFlag, ReplicaState
from kframe.model.row_views import values_at


def removed_replicas(context: Context, rows: Int32, counts: Int32) -> PartitionReplicas:
    """The replicas (``counts`` for each of ``rows``) that have just left the lists. Their slots follow the list."""
    p = context.cluster.partitions
    return PartitionReplicas(np.repeat(rows, counts), ragged_positions(p.replica_count[rows], counts).astype(np.int32))


def new_replicas(context: Context, rows: Int32) -> PartitionReplicas:
    """Added replicas that do not exist yet. In a resumed reassignment they do; Kafka logs an illegal transition."""
    p, adding = context.cluster.partitions, flagged_replicas(context, rows, ReplicaFlag.ADDING)
    return adding.where(p.replica_states(adding.slots(p)) == ReplicaState.NON_EXISTENT)


def flagged_replicas(context: Context, rows: Int32, flag: ReplicaFlag) -> PartitionReplicas:
    """The replicas of ``rows`` with a flag."""
    p = context.cluster.partitions
    capacity = int(values_at(p.replica_count, rows).sum())
    owners, positions = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    count = kernels.list_flagged(rows, int(flag), p.slot_start, p.replica_count, p.replica_status, owners, positions)
    return PartitionReplicas(owners[:count], positions[:count])
