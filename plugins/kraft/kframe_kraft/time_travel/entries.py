"""The records of a log as rows: offset, time, epoch, type, key and summary."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from kframe.plugin import counted
from kframe.plugin.kraft import control, control_to_json, records, to_json
from kframe.plugin.snapshot import topic_pattern
from kframe_kraft.batches import RecordBatch
from kframe_kraft.disk import Checkpoint, CommittedEnd, LogHistory
from kframe_kraft.records import decode_record
from kframe_kraft.replay.transactions import ABORT, BEGIN, END
from kframe_kraft.time_travel.positions import time_text
from kframe_kraft.time_travel.summaries import broker_ids, describe, topic_of

_TOPIC: Final = records.TopicRecord.api_key
_CONTROLS: Final = frozenset(record.__name__ for record in control.CONTROL_TYPES.values())
#: The state of a transaction without a known end.
OPEN: Final = "open"
#: The state of a transaction after a marker follows its beginning.
_STATES: Final = {BEGIN: OPEN, END: "committed", ABORT: "aborted"}
#: The columns of a row.
COLUMNS: Final = (
    "offset",
    "time",
    "epoch",
    "type",
    "key",
    "summary",
    "version",
    "batch",
    "transaction",
    "committed",
    "fields",
)


def type_names() -> list[str]:
    """The names of all types of records and control records, as ``EntryFilter.types`` has them."""
    controls = [record.__name__ for record in control.CONTROL_TYPES.values()]
    return sorted([*map(records.record_name, records.RECORD_TYPES.values()), *controls])


def type_named(text: str) -> str:
    """The type that a text means, in any case, such as ``PartitionChange`` or ``PARTITION_CHANGE_RECORD``.

    Raises ValueError, which names similar types, or all if none is similar.
    """
    names = {name.lower(): name for name in type_names()}
    normalized = text.lower().replace("_", "")
    for key in (normalized, normalized.removesuffix("record")):
        if key in names:
            return names[key]
    similar = difflib.get_close_matches(normalized.removesuffix("record"), names, n=3)
    expected = " or ".join(names[key] for key in similar) or f"one of {', '.join(names.values())}"
    raise ValueError(f"found {text!r}, expected {expected}")


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which rows to list. ``types`` are names as ``records.record_name`` gives them, ``topics`` names or patterns of
    topics; empty collections select all."""

    types: Collection[str] = ()
    topics: Collection[str] = ()
    brokers: Collection[int] = ()
    start: int = 0
    end: int | None = None
    control_records: bool = False
    boundaries: bool = False


class _TransactionSpan(NamedTuple):
    """The offsets of a transaction and how it ended: ``committed``, ``aborted`` or ``open``."""

    begin: int
    end: int | None
    state: str


def entries(history: LogHistory, selection: EntryFilter) -> Iterator[dict[str, Any]]:
    """Yield a row for each selected record of the log, in its order; with ``boundaries`` for each batch too.

    Records of the snapshot have no offsets of the log, and are left out. Raises RecordError for a malformed record.
    """
    lister = EntryLister(selection, transactions_of(history.log.batches))
    lister.add_snapshot_names(history.snapshot)
    for batch in history.log.batches:
        if selection.end is not None and batch.header.base_offset >= selection.end:
            break
        yield from lister.rows(batch, history.committed)


class EntryLister:
    """Lists the selected records of a log, batch by batch."""

    def __init__(self, selection: EntryFilter, transactions: Iterable[_TransactionSpan] = ()) -> None:
        """``transactions`` are those of the log from its start on. Others are open until their end is listed."""
        self._selection = selection
        self._topics = topic_pattern(selection.topics) if selection.topics else None
        self._names: dict[UUID, str] = {}
        self._transactions = iter(transactions)
        self._transaction: _TransactionSpan | None = None

    def add_snapshot_names(self, snapshot: Checkpoint | None) -> None:
        """Add the names of the topics in a snapshot."""
        for batch in () if snapshot is None else snapshot.batches:
            self._add_topic_names(batch)

    def rows(self, batch: RecordBatch, committed: CommittedEnd) -> Iterator[dict[str, Any]]:
        """Yield the rows of the next batch."""
        selection, header = self._selection, batch.header
        is_selected = header.next_offset > selection.start
        if is_selected and selection.boundaries:
            yield _boundary_row(committed, batch)
        if header.is_control:
            lists_control = selection.control_records or set(selection.types) & _CONTROLS
            if is_selected and lists_control and not (selection.topics or selection.brokers):
                yield from _control_rows(committed, batch, selection)
            return
        self._add_topic_names(batch)
        api_keys = batch.frames().api_key
        markers = np.flatnonzero((api_keys >= BEGIN) & (api_keys <= ABORT)).tolist()
        for number in range(len(api_keys)) if is_selected else markers:
            api_key = int(api_keys[number])
            if BEGIN <= api_key <= ABORT:
                self._mark(batch.offset(number), api_key)
            if is_selected and (row := self._row(batch, number, api_key, committed)) is not None:
                yield row

    def _mark(self, offset: int, api_key: int) -> None:
        """Update the transaction at a marker."""
        if api_key == BEGIN:
            self._transaction = next(self._transactions, None) or _TransactionSpan(offset, None, OPEN)
        elif self._transaction is not None and self._transaction.end is None:
            self._transaction = _TransactionSpan(self._transaction.begin, offset, _STATES[api_key])

    def _row(self, batch: RecordBatch, number: int, api_key: int, committed: CommittedEnd) -> dict[str, Any] | None:
        """The row of a data record. None if it is not selected."""
        selection, offset = self._selection, batch.offset(number)
        if api_key not in records.RECORD_TYPES:
            decode_record(batch.value(number), batch.name(number))  # it raises the error
        kind = records.record_name(records.RECORD_TYPES[api_key])
        if selection.types and kind not in selection.types:
            return None
        if BEGIN <= api_key <= ABORT and not selection.boundaries and not selection.types:
            return None
        versioned = decode_record(batch.value(number), batch.name(number))
        record = versioned.record
        if self._topics is not None and not self._topics.match(topic_of(record, self._names) or ""):
            return None
        if selection.brokers and not broker_ids(record) & set(selection.brokers):
            return None
        key, summary = describe(record, self._names)
        transaction = self._transaction
        is_inside = transaction is not None and (transaction.end is None or offset <= transaction.end)
        return _row(committed, batch, offset, kind, key, summary) | {
            "version": versioned.version,
            "transaction": transaction.state if transaction is not None and is_inside else None,
            "fields": to_json(record, versioned.version)["data"],
        }

    def _add_topic_names(self, batch: RecordBatch) -> None:
        """Add the topic names of a data batch by id. Names of deleted topics remain."""
        for number in np.flatnonzero(batch.frames().api_key == _TOPIC).tolist():
            record = decode_record(batch.value(number), batch.name(number)).record
            assert isinstance(record, records.TopicRecord)
            self._names[record.topic_id] = record.name


def transactions_of(batches: Iterable[RecordBatch]) -> Iterator[_TransactionSpan]:
    """Yield the transactions of a log. It is read only as far as the end of the transaction that is requested."""
    begin: int | None = None
    for batch in batches:
        if batch.header.is_control:
            continue
        api_keys = batch.frames().api_key
        for number in np.flatnonzero((api_keys >= BEGIN) & (api_keys <= ABORT)).tolist():
            offset, api_key = batch.offset(number), int(api_keys[number])
            if begin is not None:
                yield _TransactionSpan(begin, None if api_key == BEGIN else offset, _STATES[api_key])
            begin = offset if api_key == BEGIN else None
    if begin is not None:
        yield _TransactionSpan(begin, None, OPEN)


def _control_rows(committed: CommittedEnd, batch: RecordBatch, selection: EntryFilter) -> Iterator[dict[str, Any]]:
    for number, record in enumerate(batch.control_records()):
        kind = type(record).__name__
        if selection.types and kind not in selection.types:
            continue
        key, summary = _describe_control(record)
        yield _row(committed, batch, batch.offset(number), kind, key, summary) | {
            "version": record.version,
            "fields": control_to_json(record),
        }


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


def _boundary_row(committed: CommittedEnd, batch: RecordBatch) -> dict[str, Any]:
    header = batch.header
    kind = f"{'control ' if header.is_control else ''}record{'' if header.record_count == 1 else 's'}"
    summary = f"{header.record_count} {kind}, {counted(header.size, 'byte')}"
    return _row(committed, batch, header.base_offset, "Batch", str(header.next_offset - 1), summary)


def _row(committed: CommittedEnd, batch: RecordBatch, offset: int, kind: str, key: str, summary: str) -> dict[str, Any]:
    is_committed = True if offset < committed.offset else False if committed.exact else None
    return {
        "offset": offset,
        "time": time_text(batch.header.max_timestamp),
        "epoch": batch.header.leader_epoch,
        "type": kind,
        "key": key,
        "summary": summary,
        "version": None,
        "batch": batch.header.base_offset,
        "transaction": None,
        "committed": is_committed,
        "fields": {},
    }
