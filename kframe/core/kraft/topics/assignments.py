"""Checks of manual assignments, and the records of new partitions (Kafka 4.4 ``ReplicationControlManager``)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion, newest_version
from kframe.model.kraft.records import DirectoryIds, PartitionRecord
from kframe.model.kraft.releases import ReleaseRule


def check_assignment(context: KraftContext, replicas: Sequence[int], factor: int | None = None) -> None:
    """Refuse replicas that are unregistered or repeated, or another number than ``factor``.

    With CORDONED_REFUSED also those on cordoned brokers.
    """
    if not replicas:
        raise _refusal("includes an empty replica list.")
    previous = None
    for replica in sorted(replicas):
        registration = context.metadata.brokers.registrations.get(replica)
        if registration is None:
            raise _refusal(f"includes broker {replica}, but no such broker is registered.")
        if not registration.has_uncordoned_directory and context.follows(ReleaseRule.CORDONED_REFUSED):
            raise _refusal(f"includes broker {replica}, but all its log directories are cordoned.")
        if replica == previous:
            raise _refusal(f"includes the broker {replica} more than once.")
        previous = replica
    if factor is not None and len(replicas) != factor:
        raise _refusal(f"includes a partition with {len(replicas)} replica(s), but others have {factor}.")


def _refusal(problem: str) -> RequestRefused:
    return RequestRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {problem}")


def active_replicas(context: KraftContext, replicas: Sequence[int]) -> tuple[int, ...]:
    """The first ISR of a new partition: its active replicas in order."""
    return tuple(replica for replica in replicas if context.metadata.brokers.is_active(replica))


def new_partition(context: KraftContext, topic_id: UUID, partition: int, replicas: Sequence[int]) -> RecordAndVersion:
    """The record of a new partition, led by the first ISR member."""
    metadata, isr = context.metadata, active_replicas(context, replicas)
    directories: DirectoryIds = ()
    if context.level >= MetadataLevel.DIRECTORIES:
        defaults = [metadata.brokers.default_directory(replica) for replica in replicas]
        directories = metadata.directories.ids_of(defaults)
    record = PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=tuple(replicas),
        isr=isr,
        removing_replicas=(),
        adding_replicas=(),
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=directories,
    )
    return RecordAndVersion(record, newest_version(PartitionRecord, context.level))
