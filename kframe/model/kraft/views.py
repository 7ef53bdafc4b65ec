"""Single partitions of a KRaft cluster as records, for display, snapshots and tests; bulk code reads columns."""

from __future__ import annotations

from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import PartitionRecord


def partition_record(metadata: ClusterMetadata, row: int) -> PartitionRecord:
    """The whole state of the partition in a row. ELRs are lists even if they are empty."""
    partitions, ids_of = metadata.partitions, metadata.brokers.ids_of
    return PartitionRecord(
        partition_id=int(partitions.partition[row]),
        topic_id=metadata.topics.ids[int(partitions.topic[row])],
        replicas=ids_of(partitions.list_of("replica", row)),
        isr=ids_of(partitions.list_of("isr", row)),
        removing_replicas=ids_of(partitions.list_of("removing", row)),
        adding_replicas=ids_of(partitions.list_of("adding", row)),
        leader=ids_of([int(partitions.leader[row])])[0],
        leader_recovery_state=int(partitions.recovery[row]),
        leader_epoch=int(partitions.leader_epoch[row]),
        partition_epoch=int(partitions.partition_epoch[row]),
        directories=metadata.directories.ids_of(partitions.list_of("directory", row)),
        eligible_leader_replicas=ids_of(partitions.list_of("elr", row)),
        last_known_elr=ids_of(partitions.list_of("last_known_elr", row)),
    )
