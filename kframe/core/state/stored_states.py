"""Copy stored states into the columns."""

from __future__ import annotations

import numpy as np

from kframe import kernels
from kframe.model.arrays import Bool, Int32, Ragged, UInt8, UInt16
from kframe.model.changes import StateChange, StoredStates
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_STATE
from kframe.model.row_views import values_at


def apply(cluster: ClusterState, change: StateChange, partition_epoch: Int32) -> Bool:
    """Apply a change that storage has accepted. Each row is now at ``partition_epoch``.

    Returns a mask (rows of the change,) of the rows whose gauges it may affect.
    """
    (number,) = cluster.partitions.number_epochs(np.array([change.controller_epoch], np.int32))
    return _store(
        cluster,
        change.rows,
        change.leader,
        change.leader_epoch,
        change.recovery,
        change.isr,
        partition_epoch,
        np.full(len(change), number, np.uint16),
    )


def reload(cluster: ClusterState, stored: StoredStates) -> None:
    """Replace the states of these rows by the stored ones. A row without a stored state loses its state."""
    exists = stored.exists
    if not exists.all():
        missing = stored.rows[~exists]
        cluster.partitions.partition_epoch[missing] = NO_STATE
        cluster.partitions.isr_count[missing] = 0
        stored = stored.take(exists)
    _store(
        cluster,
        stored.rows,
        stored.leader,
        stored.leader_epoch,
        stored.recovery,
        stored.isr,
        stored.partition_epoch,
        cluster.partitions.number_epochs(stored.controller_epoch),
    )


def _store(
    cluster: ClusterState,
    rows: Int32,
    leader: Int32,
    leader_epoch: Int32,
    recovery: UInt8,
    isr: Ragged,
    partition_epoch: Int32,
    epoch_number: UInt16,
) -> Bool:
    p, counted = cluster.partitions, np.empty(len(rows), np.uint8)
    if not (isr.counts <= values_at(p.isr_count, rows)).all():
        p.ensure_capacity(rows, isr.counts)
    kernels.store_states(
        rows,
        leader,
        leader_epoch,
        recovery,
        partition_epoch,
        epoch_number,
        isr.offsets,
        isr.values,
        p.slot_start,
        p.leader,
        p.leader_epoch,
        p.status,
        p.partition_epoch,
        p.epoch_number,
        p.isr_count,
        p.isr,
        counted,
    )
    return counted.view(np.bool_)
