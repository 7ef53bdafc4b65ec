"""Replay of changes of partitions (Kafka 4.4 ``ReplicationControlManager.replay``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kframe import kernels
from kframe.core.kraft.replication.change_batch import RECORD_LISTS, PartitionChangeBatch
from kframe.core.kraft.topics.replay import directory_indexes, topic_index
from kframe.errors import InputError
from kframe.model.arrays import Int32, Ragged
from kframe.model.kraft.directories import MIGRATING
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, Ids, PartitionChangeRecord


def replay_partition_change(metadata: ClusterMetadata, record: PartitionChangeRecord, offset: int) -> None:
    """Change a partition. Its epoch rises, and its leader epoch if the record names a leader."""
    partitions = metadata.partitions
    row = metadata.topics.row_of(topic_index(metadata, record.topic_id), record.partition_id)
    if row is None:
        raise InputError("PartitionChangeRecord", f"partition {record.partition_id}", "a partition of the topic")
    fields: dict[str, Ids | None] = {
        "replica": record.replicas,
        "isr": record.isr,
        "elr": record.eligible_leader_replicas,
        "last_known_elr": record.last_known_elr,
        "adding": record.adding_replicas,
        "removing": record.removing_replicas,
    }
    lists: dict[str, Sequence[int]] = {
        name: metadata.brokers.indexes_of(ids) for name, ids in fields.items() if ids is not None
    }
    count = int(partitions.replica_count[row]) if record.replicas is None else len(record.replicas)
    if record.directories is not None:
        lists["directory"] = directory_indexes(metadata, record.directories, count)
    elif count != partitions.replica_count[row]:
        # Below metadata.version 17 no record has directories. Kafka keeps the former number of directories and fails.
        stored = dict(zip(partitions.list_of("replica", row), partitions.list_of("directory", row), strict=True))
        lists["directory"] = [stored.get(replica, MIGRATING) for replica in lists["replica"]]
    if lists:
        partitions.replace_lists(row, lists)
    if record.leader != NO_LEADER_CHANGE:
        partitions.leader[row] = metadata.brokers.index_of(record.leader)
        partitions.leader_epoch[row] += 1
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        partitions.recovery[row] = record.leader_recovery_state
    partitions.partition_epoch[row] += 1


def replay_change_batch(batch: PartitionChangeBatch) -> None:
    """Change the partitions of unique rows as ``replay_partition_change`` does for each record of the batch."""
    metadata, rows = batch.metadata, batch.rows
    partitions = metadata.partitions
    lists = {name: (getattr(batch, f"writes_{name}"), getattr(batch, name)) for name in RECORD_LISTS}
    isrs = {"isr": lists.pop("isr")}
    lists["elr"] = batch.writes_elr, _sorted_by_id(batch.elr, metadata.brokers.ids)
    lists["replica"] = lists.pop("replicas")
    # Below metadata.version 17 no record has directories, but those of removed replicas are removed.
    lists["directory"] = batch.writes_directories | batch.writes_replicas, lists.pop("directories")[1]
    partitions.replace_many(rows, lists)
    if _store_isrs(batch):
        partitions.replace_many(rows, isrs)
    kernels.store_changes(
        rows,
        batch.changed.view(np.uint8),
        batch.writes_leader.view(np.uint8),
        batch.leader,
        batch.writes_recovery.view(np.uint8),
        batch.recovery,
        partitions.leader,
        partitions.leader_epoch,
        partitions.recovery,
        partitions.partition_epoch,
    )


def _store_isrs(batch: PartitionChangeBatch) -> int:
    """Store the ISRs that fit into the slots of their rows. Returns how many do not."""
    p, isr = batch.metadata.partitions, batch.isr
    writes = batch.writes_isr.view(np.uint8)
    return kernels.store_isrs(
        batch.rows, writes, isr.offsets, isr.values, p.slot_start, p.slot_capacity, p.isr_count, p.isr
    )


def _sorted_by_id(lists: Ragged, ids: Int32) -> Ragged:
    """The lists with their brokers ascending by id, as records have ELRs."""
    if not len(lists.values):
        return lists
    return Ragged(lists.offsets, lists.values[np.lexsort((ids[lists.values], lists.owners))])
