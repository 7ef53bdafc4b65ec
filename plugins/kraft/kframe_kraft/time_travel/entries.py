"""The records of a log as rows: offset, time, epoch, type, key, and what a record says in short."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import numpy as np

from kframe.plugin.kraft import control, control_to_json, records, to_json
from kframe_kraft.batches import RecordBatch
from kframe_kraft.disk import LogHistory
from kframe_kraft.disk.transactions import ABORT, BEGIN, END
from kframe_kraft.records import decode_record
from kframe_kraft.time_travel.positions import time_text
from kframe_kraft.time_travel.summaries import broker_ids, describe, record_name, topic_of

_TOPIC: Final = records.TopicRecord.api_key
_CONTROLS: Final = frozenset(record.__name__ for record in control.CONTROL_TYPES.values())
#: The columns of a row.
COLUMNS: Final = (
    "offset", "time", "epoch", "type", "key", "summary", "version", "batch", "transaction", "committed", "fields",
)  # fmt: skip


def type_names() -> list[str]:
    """The names of all types of records and control records, as ``EntryFilter.types`` has them."""
    controls = [record.__name__ for record in control.CONTROL_TYPES.values()]
    return sorted([*map(record_name, records.RECORD_TYPES.values()), *controls])


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which rows to list. ``types`` are names as ``record_name`` gives them; empty collections select all."""

    types: Collection[str] = ()
    topics: Collection[str] = ()
    brokers: Collection[int] = ()
    start: int = 0
    end: int | None = None
    control_records: bool = False
    boundaries: bool = False


@dataclass(slots=True)
class _Transactions:
    """The transactions of a log: begin and end offsets, ascending, and how each ended."""

    begins: list[int] = field(default_factory=list)
    ends: list[int | None] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    def state(self, offset: int) -> str | None:
        """``committed``, ``aborted`` or ``open`` for an offset in a transaction, else None."""
        index = bisect.bisect_right(self.begins, offset) - 1
        if index < 0:
            return None
        end = self.ends[index]
        return self.states[index] if end is None or offset <= end else None


def entries(history: LogHistory, chosen: EntryFilter) -> Iterator[dict[str, Any]]:
    """Yield a row for each selected record of the log, in its order; with ``boundaries`` for each batch too.

    Records of the snapshot have no offsets of the log, and are left out. Raises RecordError for a malformed record.
    """
    names = _snapshot_names(history)
    transactions = _transactions_of(history)
    for batch in history.log.batches:
        header = batch.header
        is_selected = header.next_offset > chosen.start and (chosen.end is None or header.base_offset < chosen.end)
        if is_selected and chosen.boundaries:
            yield _boundary_row(history, batch)
        if header.is_control:
            wanted = chosen.control_records or set(chosen.types) & _CONTROLS
            if is_selected and wanted and not (chosen.topics or chosen.brokers):
                yield from _control_rows(history, batch, chosen)
            continue
        _note_names(batch, names)
        if is_selected:
            yield from _data_rows(history, batch, chosen, names, transactions)


def _data_rows(
    history: LogHistory, batch: RecordBatch, chosen: EntryFilter, names: dict[UUID, str], transactions: _Transactions
) -> Iterator[dict[str, Any]]:
    api_keys = batch.frames().api_key
    for number in range(len(api_keys)):
        offset, api_key = batch.offset(number), int(api_keys[number])
        kind = record_name(records.RECORD_TYPES[api_key])
        if chosen.types and kind not in chosen.types:
            continue
        if BEGIN <= api_key <= ABORT and not chosen.boundaries and not chosen.types:
            continue
        versioned = decode_record(batch.value(number), batch.name(number))
        record = versioned.record
        if chosen.topics and topic_of(record, names) not in chosen.topics:
            continue
        if chosen.brokers and not broker_ids(record) & set(chosen.brokers):
            continue
        key, summary = describe(record, names)
        yield _row(history, batch, offset, kind, key, summary) | {
            "version": versioned.version,
            "transaction": transactions.state(offset),
            "fields": to_json(record, versioned.version)["data"],
        }


def _control_rows(history: LogHistory, batch: RecordBatch, chosen: EntryFilter) -> Iterator[dict[str, Any]]:
    for number, record in enumerate(batch.control_records()):
        kind = type(record).__name__
        if chosen.types and kind not in chosen.types:
            continue
        key, summary = _describe_control(record)
        yield _row(history, batch, batch.offset(number), kind, key, summary) | {
            "version": record.version, "transaction": None, "fields": control_to_json(record)
        }  # fmt: skip


def _describe_control(record: control.ControlRecord) -> tuple[str, str]:
    match record:
        case control.LeaderChangeMessage():
            voters = ",".join(str(voter.voter_id) for voter in record.voters)
            return str(record.leader_id), f"leads with voters {voters}"
        case control.VotersRecord():
            return "quorum", "voters " + ",".join(str(voter.voter_id) for voter in record.voters)
        case control.KRaftVersionRecord():
            return "kraft.version", str(record.k_raft_version)
        case _:
            return "snapshot", type(record).__name__


def _boundary_row(history: LogHistory, batch: RecordBatch) -> dict[str, Any]:
    header = batch.header
    kind = "control records" if header.is_control else "records"
    summary = f"{header.record_count} {kind}, {header.size} bytes"
    return _row(history, batch, header.base_offset, "Batch", str(header.next_offset - 1), summary) | {
        "version": None, "transaction": None, "fields": {}
    }  # fmt: skip


def _row(history: LogHistory, batch: RecordBatch, offset: int, kind: str, key: str, summary: str) -> dict[str, Any]:
    committed = history.committed
    is_committed = True if offset < committed.offset else False if committed.exact else None
    return {
        "offset": offset, "time": time_text(batch.header.max_timestamp), "epoch": batch.header.leader_epoch,
        "type": kind, "key": key, "summary": summary, "version": None, "batch": batch.header.base_offset,
        "transaction": None, "committed": is_committed, "fields": {},
    }  # fmt: skip


def _snapshot_names(history: LogHistory) -> dict[UUID, str]:
    names: dict[UUID, str] = {}
    for batch in history.snapshot.batches if history.snapshot else ():
        _note_names(batch, names)
    return names


def _note_names(batch: RecordBatch, names: dict[UUID, str]) -> None:
    """Note the topics of a data batch by id. The name of a deleted topic remains known."""
    for number in np.flatnonzero(batch.frames().api_key == _TOPIC).tolist():
        record = decode_record(batch.value(number), batch.name(number)).record
        assert isinstance(record, records.TopicRecord)
        names[record.topic_id] = record.name


def _transactions_of(history: LogHistory) -> _Transactions:
    transactions = _Transactions()
    for batch in history.log.batches:
        if batch.header.is_control:
            continue
        api_keys = batch.frames().api_key
        for number in np.flatnonzero((api_keys >= BEGIN) & (api_keys <= ABORT)).tolist():
            if api_keys[number] == BEGIN:
                transactions.begins.append(batch.offset(number))
                transactions.ends.append(None)
                transactions.states.append("open")
            elif transactions.begins:
                transactions.ends[-1] = batch.offset(number)
                transactions.states[-1] = "committed" if api_keys[number] == END else "aborted"
    return transactions
