"""Explain the leader of a partition: the record, the state before, the event and the rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import numpy as np

from kframe.plugin.kraft import (
    ChangeCause,
    ClusterMetadata,
    explain_change,
    leader_rule,
    partition_record,
    reasons_not_elected,
    records,
    replay,
)
from kframe.plugin.live import LeaderCause
from kframe_kraft.batches import RecordBatch
from kframe_kraft.errors import LogError
from kframe_kraft.records import decode_record
from kframe_kraft.replay.transactions import ABORT, BEGIN
from kframe_kraft.time_travel.partitions import CHANGE, PARTITION, partition_pattern, partition_rows
from kframe_kraft.time_travel.positions import BatchIndex, time_text
from kframe_kraft.time_travel.summaries import describe
from kframe_kraft.time_travel.timelines import RetainedTimelines

#: Batches to search for the event of a change that is cut into several batches.
_BATCHES_MAX: Final = 256


def leader_cause(timelines: RetainedTimelines, partition: str, end: int) -> LeaderCause:
    """Explain the leader of ``topic-partition`` after all records below ``end``.

    Raises LogError if there is no such partition then.
    """
    match = re.fullmatch(r"(.+)-([0-9]{1,10})", partition)
    if match is None:
        raise LogError("partition", repr(partition), "topic-partition, such as orders-0")
    topic, number = match[1], int(match[2])
    metadata = timelines.at(end).metadata
    row = metadata.row(topic, number)
    if row is None:
        raise LogError("partition", partition, f"a partition that exists at offset {end - 1}")
    state = partition_record(metadata, row)
    leader_record = _last_leader_record(timelines.index, state.topic_id, number, end)
    if leader_record is None:
        snapshot_offset = timelines.history.snapshot_id.offset
        return LeaderCause(partition, state.leader, state.leader_epoch, snapshot_offset=snapshot_offset)
    return _explain_record(timelines, partition, state, leader_record)


@dataclass(slots=True)
class _LeaderRecord:
    """A record that sets a leader, by its number in ``batch``, and the nearest batches before and after it that have
    records other than those of partitions."""

    batch: RecordBatch
    row: int
    previous: RecordBatch | None
    following: RecordBatch | None


def _last_leader_record(index: BatchIndex, topic_id: UUID, number: int, end: int) -> _LeaderRecord | None:
    """The last record below ``end`` that sets the leader of the partition."""
    for position in reversed(index.find(partition_pattern(topic_id, number), end)):
        batch = next(index.batches(position))
        rows = (row for row, record in partition_rows(batch, topic_id, number) if _has_leader(record))
        row = next(rows, None)
        if row is not None:
            before = [*index.batches(max(position - _BATCHES_MAX + 1, 0), position)]
            after = index.batches(position + 1, position + _BATCHES_MAX)
            return _LeaderRecord(batch, row, _nearest_other(reversed(before)), _nearest_other(after))
    return None


def _nearest_other(batches: Iterable[RecordBatch]) -> RecordBatch | None:
    """The first batch with records other than those of partitions; None beyond a batch of control records."""
    for batch in batches:
        if batch.header.is_control:
            return None
        if _other_records(batch):
            return batch
    return None


def _has_leader(record: records.PartitionRecord | records.PartitionChangeRecord) -> bool:
    return isinstance(record, records.PartitionRecord) or record.leader != records.NO_LEADER_CHANGE


def _explain_record(
    timelines: RetainedTimelines, partition: str, state: records.PartitionRecord, leader_record: _LeaderRecord
) -> LeaderCause:
    batch, row = leader_record.batch, leader_record.row
    record = decode_record(batch.value(row), batch.name(row)).record
    assert isinstance(record, records.PartitionRecord | records.PartitionChangeRecord)
    states = _possible_states(timelines, leader_record)
    topics = states[0].topics
    names = {topic_id: topics.names[topic] for topic_id, topic in topics.index_by_id.items()}
    cause = LeaderCause(
        partition,
        record.leader,
        state.leader_epoch,
        None,
        batch.offset(row),
        time_text(batch.header.max_timestamp),
        describe(record, names)[1],
    )
    if isinstance(record, records.PartitionRecord):
        return replace(cause, event="partition created", rule="first active replica in the order of replicas")
    return _explain_change(states, leader_record, record, cause)


def _possible_states(timelines: RetainedTimelines, leader_record: _LeaderRecord) -> list[ClusterMetadata]:
    """The possible states before the request that wrote a record: before the record, its batch, and its decision.

    Kafka decides all changes of a request from the state before it, and no record shows where a request begins.
    """
    batch = leader_record.batch
    offset = batch.header.base_offset
    timeline = timelines.at(timelines.index.start_of_decision(offset))
    earliest = timeline.metadata.copy()
    before_batch = timeline.advance(offset)
    before_record = timeline.with_open_transaction()
    for number in range(leader_record.row):
        if not BEGIN <= int(batch.frames().api_key[number]) <= ABORT:
            replay(before_record, decode_record(batch.value(number), batch.name(number)).record, batch.offset(number))
    return [before_record, before_batch, earliest]


def _explain_change(
    states: list[ClusterMetadata],
    leader_record: _LeaderRecord,
    change: records.PartitionChangeRecord,
    cause: LeaderCause,
) -> LeaderCause:
    metadata = states[0]
    stored = metadata.topics.row_of(metadata.topics.index_by_id[change.topic_id], change.partition_id)
    assert stored is not None
    before = partition_record(metadata, stored)
    events = list(_possible_events(leader_record))
    causes = explain_change(states, change, [record for _, record in events])
    first_cause = causes[0] if causes else None
    event_offset = (
        None if first_cause is None or first_cause.event_index is None else events[first_cause.event_index][0]
    )
    return replace(
        cause,
        before=describe(before, {change.topic_id: ""})[1],
        event=None if first_cause is None else _event_text(first_cause),
        event_offset=event_offset,
        rule=leader_rule(before, change, first_cause),
        not_elected=reasons_not_elected(before, change, first_cause, metadata.brokers.registrations),
        other_events=tuple(_event_text(other) for other in causes[1:]),
    )


def _event_text(cause: ChangeCause) -> str:
    broker = "" if cause.broker is None else f": broker {cause.broker}"
    unclean = ", if unclean.leader.election.enable is on" if cause.assumes_unclean else ""
    return f"{cause.event}{broker}{unclean}"


def _possible_events(leader_record: _LeaderRecord) -> Iterator[tuple[int, records.MetadataRecord]]:
    """The records that may be the event of a change, with offsets: those of its batch, else of adjacent batches.

    A batch with changes only is a part of a decision in several batches. Its event is in the next batch with another
    record, or in the previous one.
    """
    batch, row = leader_record.batch, leader_record.row
    if numbers := _other_records(batch):
        yield from _decoded(batch, [number for number in numbers if number > row])
        yield from _decoded(batch, [number for number in reversed(numbers) if number < row])
        return
    for neighbour, step in ((leader_record.following, 1), (leader_record.previous, -1)):
        if neighbour is not None:
            yield from _decoded(neighbour, _other_records(neighbour)[::step])


def _other_records(batch: RecordBatch) -> list[int]:
    """The numbers of the records other than those of partitions."""
    api_keys = batch.frames().api_key
    numbers: list[int] = np.flatnonzero((api_keys != CHANGE) & (api_keys != PARTITION)).tolist()
    return numbers


def _decoded(batch: RecordBatch, numbers: Iterable[int]) -> Iterator[tuple[int, records.MetadataRecord]]:
    for number in numbers:
        yield batch.offset(number), decode_record(batch.value(number), batch.name(number)).record
