"""Why a partition has its leader: the record that named it, the state before, the event and the rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from kframe.plugin.kraft import (
    ChangeCause,
    ClusterMetadata,
    explain_change,
    leader_rule,
    partition_record,
    passed_over,
    records,
    replay,
)
from kframe_kraft.batches import RecordBatch
from kframe_kraft.disk import LogHistory
from kframe_kraft.disk.transactions import ABORT, BEGIN
from kframe_kraft.errors import LogError
from kframe_kraft.records import decode_record
from kframe_kraft.time_travel.positions import time_text
from kframe_kraft.time_travel.summaries import describe
from kframe_kraft.time_travel.timeline import Timeline

_CHANGE: Final = records.PartitionChangeRecord.api_key
_PARTITION: Final = records.PartitionRecord.api_key
#: Batches to search for the event of a change that is cut into several batches.
_BATCHES_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class LeaderCause:
    """The last record that named the leader. All but ``leader`` are None if the snapshot alone names it."""

    partition: str
    leader: int
    leader_epoch: int
    snapshot_offset: int | None = None
    offset: int | None = None
    time: str | None = None
    record: str | None = None
    before: str | None = None
    event: str | None = None
    event_offset: int | None = None
    rule: str | None = None
    passed_over: dict[int, str] | None = None
    other_events: tuple[str, ...] = ()


def leader_cause(history: LogHistory, partition: str, end: int) -> LeaderCause:
    """Why ``topic-partition`` has its leader after all records below ``end``.

    Raises LogError if there is no such partition then.
    """
    match = re.fullmatch(r"(.+)-(\d+)", partition)
    if match is None:
        raise LogError("partition", repr(partition), "topic-partition, such as orders-0")
    topic, number = match[1], int(match[2])
    timeline = Timeline(history)
    metadata = timeline.advance(end)
    row = metadata.row(topic, number)
    if row is None:
        raise LogError("partition", partition, f"a partition that exists at offset {end - 1}")
    state = partition_record(metadata, row)
    position = _last_naming(history, state.topic_id, number, end)
    if position is None:
        return LeaderCause(partition, state.leader, state.leader_epoch, snapshot_offset=history.snapshot_id.offset)
    return _explained(history, partition, state, *position)


def _last_naming(history: LogHistory, topic_id: Any, number: int, end: int) -> tuple[int, int] | None:
    """The batch and the number in it of the last record that names a leader of the partition."""
    key = np.frombuffer(topic_id.bytes, np.uint8).tobytes()
    for index in range(len(history.log.batches) - 1, -1, -1):
        batch = history.log.batches[index]
        if batch.header.is_control or batch.header.base_offset >= end or key not in batch.payload.tobytes():
            continue
        api_keys = batch.frames().api_key
        rows = np.flatnonzero((api_keys == _CHANGE) | (api_keys == _PARTITION))
        for row in rows[::-1].tolist():
            record = decode_record(batch.value(row), batch.name(row)).record
            assert isinstance(record, records.PartitionRecord | records.PartitionChangeRecord)
            if record.topic_id == topic_id and record.partition_id == number and _names_leader(record):
                return index, row
    return None


def _names_leader(record: records.PartitionRecord | records.PartitionChangeRecord) -> bool:
    return isinstance(record, records.PartitionRecord) or record.leader != records.NO_LEADER_CHANGE


def _explained(
    history: LogHistory, partition: str, state: records.PartitionRecord, index: int, row: int
) -> LeaderCause:
    batch = history.log.batches[index]
    record = decode_record(batch.value(row), batch.name(row)).record
    assert isinstance(record, records.PartitionRecord | records.PartitionChangeRecord)
    metadata = Timeline(history).advance(batch.header.base_offset)
    for number in range(row):
        if not BEGIN <= int(batch.frames().api_key[number]) <= ABORT:
            replay(metadata, decode_record(batch.value(number), batch.name(number)).record, batch.offset(number))
    names = {topic_id: metadata.topics.names[topic] for topic_id, topic in metadata.topics.index_by_id.items()}
    cause = LeaderCause(
        partition, record.leader, state.leader_epoch, None, batch.offset(row), time_text(batch.header.max_timestamp),
        describe(record, names)[1],
    )  # fmt: skip
    if isinstance(record, records.PartitionRecord):
        return replace(cause, event="partition created", rule="first active replica in the order of replicas")
    return _of_change(metadata, history, index, row, record, cause)


def _of_change(
    metadata: ClusterMetadata, history: LogHistory, index: int, row: int, change: records.PartitionChangeRecord,
    cause: LeaderCause,
) -> LeaderCause:  # fmt: skip
    stored = metadata.topics.row_of(metadata.topics.index_by_id[change.topic_id], change.partition_id)
    assert stored is not None
    before = partition_record(metadata, stored)
    events = list(_events_beside(history, index, row))
    causes = explain_change(metadata, change, [record for _, record in events])
    best = causes[0] if causes else None
    event_offset = None if best is None or best.event_index is None else events[best.event_index][0]
    return replace(
        cause,
        before=describe(before, {change.topic_id: ""})[1],
        event=None if best is None else _event_text(best),
        event_offset=event_offset,
        rule=leader_rule(before, change, best),
        passed_over=passed_over(before, change, best, metadata.brokers.registrations),
        other_events=tuple(_event_text(other) for other in causes[1:]),
    )


def _event_text(cause: ChangeCause) -> str:
    broker = "" if cause.broker is None else f": broker {cause.broker}"
    unclean = ", if unclean.leader.election.enable is on" if cause.assumes_unclean else ""
    return f"{cause.event}{broker}{unclean}"


def _events_beside(history: LogHistory, index: int, row: int) -> Iterator[tuple[int, records.MetadataRecord]]:
    """The records that may show the event of a change, with offsets: those of its batch, else those beside it.

    A batch that has changes alone is a part of a decision that is cut into several batches. Its event is in the next
    batch with another record, or in the previous one.
    """
    batches = history.log.batches
    numbers = _other_records(batches[index])
    if numbers:
        yield from _decoded(batches[index], [number for number in numbers if number > row])
        yield from _decoded(batches[index], [number for number in reversed(numbers) if number < row])
        return
    for step in (1, -1):
        for position in range(index + step, index + step * _BATCHES_MAX, step):
            if not 0 <= position < len(batches) or batches[position].header.is_control:
                break
            if numbers := _other_records(batches[position]):
                yield from _decoded(batches[position], numbers[::step])
                break


def _other_records(batch: RecordBatch) -> list[int]:
    """The numbers of the records that are about no partition."""
    numbers: list[int] = np.flatnonzero(~np.isin(batch.frames().api_key, (_CHANGE, _PARTITION))).tolist()
    return numbers


def _decoded(batch: RecordBatch, numbers: Iterable[int]) -> Iterator[tuple[int, records.MetadataRecord]]:
    for number in numbers:
        yield batch.offset(number), decode_record(batch.value(number), batch.name(number)).record
