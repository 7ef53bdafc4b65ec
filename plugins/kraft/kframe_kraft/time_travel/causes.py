"""Explain the leader of a partition: the record, the state before, the event and the rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import numpy as np

from kframe.plugin.kraft import (
    RECORDS_MAX,
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
from kframe_kraft.disk import LogHistory
from kframe_kraft.errors import LogError
from kframe_kraft.records import decode_record
from kframe_kraft.replay.image import Timeline
from kframe_kraft.replay.transactions import ABORT, BEGIN
from kframe_kraft.time_travel.positions import time_text
from kframe_kraft.time_travel.summaries import describe

_CHANGE: Final = records.PartitionChangeRecord.api_key
_PARTITION: Final = records.PartitionRecord.api_key
#: Batches to search for the event of a change that is cut into several batches.
_BATCHES_MAX: Final = 256


def leader_cause(history: LogHistory, partition: str, end: int) -> LeaderCause:
    """Explain the leader of ``topic-partition`` after all records below ``end``.

    Raises LogError if there is no such partition then.
    """
    match = re.fullmatch(r"(.+)-([0-9]{1,10})", partition)
    if match is None:
        raise LogError("partition", repr(partition), "topic-partition, such as orders-0")
    topic, number = match[1], int(match[2])
    metadata = Timeline(history).advance(end)
    row = metadata.row(topic, number)
    if row is None:
        raise LogError("partition", partition, f"a partition that exists at offset {end - 1}")
    state = partition_record(metadata, row)
    leader_record = _last_leader_record(history, state.topic_id, number, end)
    if leader_record is None:
        return LeaderCause(partition, state.leader, state.leader_epoch, snapshot_offset=history.snapshot_id.offset)
    return _explain_record(history, partition, state, leader_record)


@dataclass(slots=True)
class _LeaderRecord:
    """A record that sets a leader, by its number in ``batch``, and the nearest batches before and after it that have
    records other than those of partitions."""

    batch: RecordBatch
    row: int
    previous: RecordBatch | None
    following: RecordBatch | None = None


def _last_leader_record(history: LogHistory, topic_id: UUID, number: int, end: int) -> _LeaderRecord | None:
    """The last record below ``end`` that sets the leader of the partition."""
    leader_record: _LeaderRecord | None = None
    previous: RecordBatch | None = None
    since_previous = until_following = 0
    for batch in history.log.batches:
        if batch.header.base_offset >= end and not until_following:
            break
        if batch.header.is_control:
            previous, until_following = None, 0
            continue
        has_others = bool(_other_records(batch))
        if leader_record is not None and until_following:
            leader_record.following = batch if has_others else None
            until_following = 0 if has_others else until_following - 1
        row = _leader_record_row(batch, topic_id, number) if batch.header.base_offset < end else None
        if row is not None:
            leader_record, until_following = _LeaderRecord(batch, row, previous), _BATCHES_MAX - 1
        previous, since_previous = (batch, 0) if has_others else (previous, since_previous + 1)
        if since_previous >= _BATCHES_MAX - 1:
            previous = None
    return leader_record


def _leader_record_row(batch: RecordBatch, topic_id: UUID, number: int) -> int | None:
    """The number of the last record in a batch that sets the leader of the partition."""
    if topic_id.bytes not in batch.payload.tobytes():
        return None
    api_keys = batch.frames().api_key
    rows = np.flatnonzero((api_keys == _CHANGE) | (api_keys == _PARTITION))
    for row in rows[::-1].tolist():
        record = decode_record(batch.value(row), batch.name(row)).record
        assert isinstance(record, records.PartitionRecord | records.PartitionChangeRecord)
        if record.topic_id == topic_id and record.partition_id == number and _has_leader(record):
            return int(row)
    return None


def _has_leader(record: records.PartitionRecord | records.PartitionChangeRecord) -> bool:
    return isinstance(record, records.PartitionRecord) or record.leader != records.NO_LEADER_CHANGE


def _explain_record(
    history: LogHistory, partition: str, state: records.PartitionRecord, leader_record: _LeaderRecord
) -> LeaderCause:
    batch, row = leader_record.batch, leader_record.row
    record = decode_record(batch.value(row), batch.name(row)).record
    assert isinstance(record, records.PartitionRecord | records.PartitionChangeRecord)
    states = _possible_states(history, leader_record)
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


def _possible_states(history: LogHistory, leader_record: _LeaderRecord) -> list[ClusterMetadata]:
    """The possible states before the request that wrote a record: before the record, its batch, and its decision.

    Kafka decides all changes of a request from the state before it, and no record shows where a request begins.
    """
    batch, timeline = leader_record.batch, Timeline(history)
    earliest = timeline.advance(_start_of_decision(history, batch.header.base_offset)).copy()
    before_batch = timeline.advance(batch.header.base_offset)
    before_record = timeline.with_open_transaction()
    for number in range(leader_record.row):
        if not BEGIN <= int(batch.frames().api_key[number]) <= ABORT:
            replay(before_record, decode_record(batch.value(number), batch.name(number)).record, batch.offset(number))
    return [before_record, before_batch, earliest]


def _start_of_decision(history: LogHistory, offset: int) -> int:
    """The base offset of the first of the batches before ``offset`` that are as large as a part of a decision."""
    start = history.snapshot_id.offset
    for header in history.log.batches.headers():
        if header.base_offset >= offset:
            break
        if header.is_control or header.record_count < RECORDS_MAX:
            start = header.next_offset
    return start


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
    numbers: list[int] = np.flatnonzero((api_keys != _CHANGE) & (api_keys != _PARTITION)).tolist()
    return numbers


def _decoded(batch: RecordBatch, numbers: Iterable[int]) -> Iterator[tuple[int, records.MetadataRecord]]:
    for number in numbers:
        yield batch.offset(number), decode_record(batch.value(number), batch.name(number)).record
