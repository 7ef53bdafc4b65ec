"""Explain changes of partitions whose event leaves no record: AlterPartition in bulk, else each partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kframe.core.kraft.causes.request_causes import (
    ALTERED,
    UNCLEAN,
    alter_partition_changes,
    isr_proposal,
    replicas_in_offline_directories,
    request_changes,
)
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.replication.alter_partition import KraftIsrProposal
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import MetadataRecord, PartitionChangeRecord
from kframe.ports.committed_log import CommittedRecord
from kframe.whatif.shadow.kraft.differences import (
    RECORD,
    VERSION,
    WRITTEN,
    Identity,
    RecordDifference,
    differences,
    identity,
    key_of,
)

UNEXPLAINED = "no event"


@dataclass(frozen=True, slots=True)
class ExplainedChange:
    """A change, its event, and how it differs from what the rules write for it."""

    committed: CommittedRecord
    event: str
    differences: tuple[RecordDifference, ...] = ()
    assumes_unclean: bool = False


def explain_changes(
    context: KraftContext, assumed: KraftContext | None, committed: Sequence[CommittedRecord]
) -> Iterator[ExplainedChange]:
    """Explain each change. The caller replays it before it takes the next one.

    The changes of one request are explained by the state before it. That is the state before ``committed``, before a
    section, or before the next change. Within a section only the replicas of partition 0, which limit the minimum ISR,
    make a difference. ``assumed`` is the context in which unclean elections are on, where that is unknown.
    """
    sections = list(_sections(committed))
    before = replace(context, metadata=context.metadata.copy()) if len(sections) > 1 else None
    assumed_before = None if before is None or assumed is None else replace(assumed, metadata=before.metadata)
    for index, section in enumerate(sections):
        offline = [_offline_replicas(context, change) for change in section]
        explained = [*_explained_section(context, assumed, section, offline)]
        earlier = []
        if before is not None and index:
            earlier = [*_explained_section(before, assumed_before, section, offline)]
        for number, change in enumerate(explained):
            possible = [change, *earlier[number : number + 1]]
            if number and change.differences:
                possible.append(_explained(context, assumed, change.committed, offline[number]))
            yield min(possible, key=lambda each: len(each.differences))


def _explained_section(
    context: KraftContext,
    assumed: KraftContext | None,
    section: Sequence[CommittedRecord],
    offline: Sequence[list[int]],
) -> Iterator[ExplainedChange]:
    """Explain each change by the state of ``context``. ``offline`` has the replicas in offline directories."""
    altered = _altered(context, section)
    for change, replicas in zip(section, offline, strict=True):
        if altered.get(identity(change.record)) == (change.record, change.version):
            yield ExplainedChange(change, ALTERED)
        else:
            yield _explained(context, assumed, change, replicas)


def _offline_replicas(context: KraftContext, change: CommittedRecord) -> list[int]:
    """The replicas in offline directories after the records before the section."""
    assert isinstance(change.record, PartitionChangeRecord)
    row = context.metadata.topics.row_by_id(change.record.topic_id, change.record.partition_id)
    return [] if row is None else replicas_in_offline_directories(context.metadata, row)


def _sections(committed: Sequence[CommittedRecord]) -> Iterator[list[CommittedRecord]]:
    """The changes in sections that name each partition once."""
    section: dict[Identity, CommittedRecord] = {}
    for change in committed:
        if identity(change.record) in section:
            yield list(section.values())
            section = {}
        section[identity(change.record)] = change
    yield list(section.values())


def _altered(context: KraftContext, section: Sequence[CommittedRecord]) -> dict[Identity, RecordAndVersion]:
    """What the rules write if the leaders have proposed the ISRs of all changes."""
    proposals: dict[int, list[KraftIsrProposal]] = {}
    for change in section:
        assert isinstance(change.record, PartitionChangeRecord)
        row = context.metadata.topics.row_by_id(change.record.topic_id, change.record.partition_id)
        if row is not None and change.record.isr is not None:
            leader = int(context.metadata.partitions.leader[row])
            proposals.setdefault(leader, []).append(isr_proposal(context, row, change.record))
    decided = [item for of_leader in proposals.values() for item in alter_partition_changes(context, of_leader).records]
    return {identity(record): RecordAndVersion(record, version) for record, version in decided}


def _explained(
    context: KraftContext, assumed: KraftContext | None, change: CommittedRecord, offline: list[int]
) -> ExplainedChange:
    closest = _closest(context, change, offline)
    if closest.differences and assumed is not None:
        unclean = _closest(assumed, change, offline)
        if not unclean.differences:
            return ExplainedChange(change, unclean.event, assumes_unclean=True)
    return closest


def _closest(context: KraftContext, change: CommittedRecord, offline: list[int]) -> ExplainedChange:
    """The event whose decision is equal, else the one whose decision differs in the fewest fields.

    Of several, the change of the most fields that ``change`` changes, with any values. Of several such, the
    first in the order of ``request_changes``, with UNCLEAN last, because it is rare. UNEXPLAINED competes as a decision
    that changes nothing.
    """
    record, metadata = change.record, context.metadata
    assert isinstance(record, PartitionChangeRecord)
    key = key_of(metadata, record)
    unwritten = RecordDifference(UNEXPLAINED, "PartitionChange", key, change.offset, RECORD, None, WRITTEN)
    closest = ExplainedChange(change, UNEXPLAINED, (unwritten,))
    row = context.metadata.topics.row_by_id(record.topic_id, record.partition_id)
    if row is None:
        return closest
    unchanged = PartitionChangeRecord(partition_id=record.partition_id, topic_id=record.topic_id)
    changed = _unequal_fields(unchanged, record)
    smallest = len(changed), 0, False
    for event, decided in request_changes(context, row, record, offline):
        for predicted in decided.records:
            unequal = tuple(differences(metadata, event, [predicted], [change]))
            if not unequal:
                return ExplainedChange(change, event)
            fields = {difference.field for difference in unequal} - {VERSION}
            shared = changed & _unequal_fields(unchanged, predicted.record)
            distance = len(fields), -len(shared), event == UNCLEAN
            if distance < smallest:
                smallest, closest = distance, ExplainedChange(change, event, unequal)
    return closest


def _unequal_fields(first: MetadataRecord, second: MetadataRecord) -> set[str]:
    return {name for name in first.__struct_fields__ if getattr(first, name) != getattr(second, name)}
