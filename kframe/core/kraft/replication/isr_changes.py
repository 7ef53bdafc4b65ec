"""The rows of a broker, and their changes when the broker is removed from or added to ISRs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.core.kraft.replication.partition_changes import NO_BROKER, TargetReplicas, plan_changes
from kframe.model.arrays import Int16, Int32
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.metadata import ClusterMetadata


def rows_with_isr_member(metadata: ClusterMetadata, broker_id: int) -> Int32:
    """The rows with a broker in the ISR, ascending."""
    p = metadata.partitions
    return _rows_with_member(metadata, broker_id, p.isr_count, p.isr)


def rows_with_elr_member(metadata: ClusterMetadata, broker_id: int) -> Int32:
    """The rows with a broker in the ELR, ascending."""
    p = metadata.partitions
    return _rows_with_member(metadata, broker_id, p.elr_count, p.member)


def _rows_with_member(metadata: ClusterMetadata, broker_id: int, counts: Int16, slots: Int16) -> Int32:
    broker = metadata.brokers.find(broker_id)
    if broker is None:
        return np.empty(0, np.int32)
    rows = np.empty(len(counts), np.int32)
    return rows[: kernels.list_rows_with_broker(metadata.partitions.slot_start, counts, slots, broker, rows)]


def rows_in_directory(metadata: ClusterMetadata, directory: int) -> Int32:
    """The rows with a replica in a directory index, ascending."""
    p, rows = metadata.partitions, np.empty(len(metadata.partitions), np.int32)
    return rows[: kernels.list_rows_in_directory(p.slot_start, p.replica_count, p.directory, directory, rows)]


def has_leaderships(metadata: ClusterMetadata, broker_id: int) -> bool:
    """Whether a broker leads any partition."""
    broker = metadata.brokers.find(broker_id)
    return broker is not None and len(metadata.partitions.rows_led_by(broker)) > 0


def leaderless_rows(metadata: ClusterMetadata) -> Int32:
    """The rows of partitions without a leader, ascending."""
    return metadata.partitions.rows_led_by(NO_LEADER)


def configured_kinds(context: KraftContext, rows: Int32) -> NDArray[np.uint8]:
    """(k,) UNCLEAN where the configuration allows it, else ONLINE."""
    return context.unclean_enabled(rows) * np.uint8(KraftElection.UNCLEAN)


def remove_broker(context: KraftContext, broker_id: int, rows: Int32) -> PartitionChangeBatch:
    """The changes of ``rows`` when a broker is removed from their ISRs and leaderships."""
    broker = context.metadata.brokers.index_of(broker_id)
    return _change(context, rows, leaving=broker)


def remove_unclean_broker(context: KraftContext, broker_id: int, rows: Int32) -> PartitionChangeBatch:
    """The changes of ``rows`` when a broker may have lost records: it is also removed from ELRs."""
    broker = context.metadata.brokers.index_of(broker_id)
    return _change(context, rows, leaving=broker, unclean=broker)


def add_broker(context: KraftContext, broker_id: int, rows: Int32) -> PartitionChangeBatch:
    """The changes of ``rows`` when a broker becomes eligible to lead."""
    return _change(context, rows, joining=context.metadata.brokers.index_of(broker_id))


def _change(
    context: KraftContext, rows: Int32, *, leaving: int = NO_BROKER, joining: int = NO_BROKER, unclean: int = NO_BROKER
) -> PartitionChangeBatch:
    """Kafka 4.4 ``ReplicationControlManager.generateLeaderAndIsrUpdates``."""
    active = context.metadata.brokers.active.copy()
    if joining != NO_BROKER:
        active[joining] = 1
    if leaving != NO_BROKER:
        active[leaving] = 0
    targets = TargetReplicas(
        rows=rows,
        kinds=configured_kinds(context, rows),
        leaving_broker=leaving,
        active=active,
        unclean_broker=unclean,
    )
    return plan_changes(context, targets)
