"""Checks of manual assignments, and the records of new partitions (Kafka 4.4 ``ReplicationControlManager``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from uuid import UUID

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion, newest_version
from kframe.model.kraft.records import PartitionRecord
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


def require_active(context: KraftContext, assignments: Iterable[Sequence[int]], error: ErrorCode) -> None:
    """Refuse replicas of which none is active."""
    is_active = context.metadata.brokers.is_active
    for replicas in assignments:
        if not any(map(is_active, replicas)):
            message = f"All brokers of {list(replicas)} are fenced or in controlled shutdown."
            raise RequestRefused(error, message)


def new_partitions(
    context: KraftContext, topic_id: UUID, assignments: Sequence[tuple[int, tuple[int, ...]]]
) -> list[RecordAndVersion]:
    """The records of new partitions, by number and replicas. The first ISR are the active replicas in order, and the
    first of them leads."""
    brokers, all_directories = context.metadata.brokers, context.metadata.directories.ids
    named = dict.fromkeys(chain.from_iterable(replicas for _, replicas in assignments))
    active = {broker_id for broker_id in named if brokers.is_active(broker_id)}
    stores_directories = context.level >= MetadataLevel.DIRECTORIES
    defaults = {each: all_directories[brokers.default_directory(each)] for each in named if stores_directories}
    version, result = newest_version(PartitionRecord, context.level), []
    for partition, replicas in assignments:
        isr = replicas if active.issuperset(replicas) else tuple([each for each in replicas if each in active])
        record = PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=replicas,
            isr=isr,
            removing_replicas=(),
            adding_replicas=(),
            leader=isr[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple([defaults[each] for each in replicas]) if stores_directories else (),
        )
        result.append(RecordAndVersion(record, version))
    return result
