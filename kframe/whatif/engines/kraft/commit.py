"""Commits decisions to the metadata of a what-if, and records their events, and records by type and bytes."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, DecisionPart
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.model.arrays import Int32, Int64
from kframe.model.kraft.record_sizes import FRAME_BYTES, record_size, varint_sizes
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
    record_name,
)
from kframe.model.lists import distinct_values
from kframe.whatif.engines.kraft.changes import RowStates, elr_changed, partition_states_written, unclean_rows
from kframe.whatif.results.outcome import RecordCount
from kframe.whatif.results.saved_rows import SavedRows
from kframe.whatif.results.timeline import RecordsWritten, TimelineEvent, TopicAction, TopicsWritten

_UUID_BYTES: Final = 16
_INT32_BYTES: Final = 4
#: The lists of a change, with the first version of its record that has them.
_LISTS: Final = {
    "isr": 0,
    "replicas": 0,
    "adding": 0,
    "removing": 0,
    "directories": 1,
    "elr": 2,
    "last_known_elr": 2,
}


class Committer:
    """Applies decisions in order. ``offset`` is that of the next record of the log."""

    def __init__(self, context: KraftContext, offset: int) -> None:
        self._context = context
        self.offset = offset
        self.begin()

    def begin(self) -> None:
        """Forget what was observed: an operation begins."""
        self.saved_rows = SavedRows(self._context.metadata.partitions)
        self.unclean: list[Int32] = []
        """Rows that got a leader from outside ISR and ELR."""
        self._events: list[TimelineEvent] = []
        self._counts, self._nbytes = Counter[str](), Counter[str]()

    def take_events(self) -> tuple[TimelineEvent, ...]:
        """Return and clear the events since the last call."""
        events, self._events = tuple(self._events), []
        return events

    def record_counts(self) -> tuple[RecordCount, ...]:
        """The records since an operation began, by type."""
        return tuple(RecordCount(name, count, self._nbytes[name]) for name, count in sorted(self._counts.items()))

    def commit(self, decided: ControllerResult[object], *, in_sync: bool = False) -> None:
        """Apply a decision to the metadata, and record its events.

        ``in_sync``: a leader proposed the ISR, so that a new leader from outside the former ISR is in sync.
        """
        metadata, events = self._context.metadata, self._events
        rows = self._changed_rows(decided)
        before, existing = RowStates.of(metadata.partitions, rows), len(metadata.partitions)
        counts, nbytes = Counter[str](), Counter[str]()
        self.saved_rows.save(rows)
        self.saved_rows.save(self._removed_rows(decided))
        for item in decided.parts:
            self._apply(item, counts, nbytes)
        if not counts:
            return
        created = len(metadata.partitions) - existing
        after = RowStates.of(metadata.partitions, rows)
        if not in_sync:
            self.unclean.append(unclean_rows(before, after))
        events += _topics_written(decided)
        if len(rows) or created:
            events.append(partition_states_written(before, after, created))
        elr = elr_changed(before, after)
        events += [] if elr is None else [elr]
        events.append(RecordsWritten(dict(sorted(counts.items())), nbytes.total()))
        self._counts += counts
        self._nbytes += nbytes

    def _apply(self, item: DecisionPart, counts: Counter[str], nbytes: Counter[str]) -> None:
        if isinstance(item, PartitionChangeBatch):
            name, count = record_name(PartitionChangeRecord), item.count
            if count:
                counts[name] += count
                nbytes[name] += changes_size(item, item.version)
        else:
            name = record_name(type(item.record))
            counts[name] += 1
            nbytes[name] += record_size(item.record, item.version)
        self.offset += self._context.apply(item, self.offset)

    def _changed_rows(self, decided: ControllerResult[object]) -> Int32:
        """The existing rows that a decision changes, ascending."""
        metadata = self._context.metadata
        rows: list[Int32] = [np.empty(0, np.int32)]
        named: list[int | None] = []
        for item in decided.parts:
            if isinstance(item, PartitionChangeBatch):
                rows.append(item.rows[item.changed])
            else:
                record = item.record
                if isinstance(record, PartitionChangeRecord):
                    topic = metadata.topics.index_by_id[record.topic_id]
                    named.append(metadata.topics.row_of(topic, record.partition_id))
                elif isinstance(record, ClearElrRecord):
                    rows.append(self._rows_with_elr())
        rows.append(np.array([row for row in named if row is not None], np.int32))
        return distinct_values(np.concatenate(rows)).astype(np.int32)

    def _removed_rows(self, decided: ControllerResult[object]) -> Int32:
        """The rows of the topics that a decision removes."""
        topics = self._context.metadata.topics
        removed = [
            topics.index_by_id[item.record.topic_id]
            for item in decided.parts
            if isinstance(item, RecordAndVersion) and isinstance(item.record, RemoveTopicRecord)
        ]
        return np.flatnonzero(np.isin(self._context.metadata.partitions.topic, removed)).astype(np.int32)

    def _rows_with_elr(self) -> Int32:
        p = self._context.metadata.partitions
        return np.flatnonzero((p.elr_count > 0) | (p.last_known_elr_count > 0)).astype(np.int32)


def changes_size(batch: PartitionChangeBatch, version: int) -> int:
    """Bytes of the values of the PartitionChange records of a batch; as ``record_size`` of each of them."""
    changed = batch.changed
    fixed = FRAME_BYTES + _INT32_BYTES + _UUID_BYTES + 1  # partition, topic id, number of tagged fields
    total = fixed * int(np.count_nonzero(changed))
    for name, since in _LISTS.items():
        if version >= since:
            counts = getattr(batch, name).counts[getattr(batch, f"writes_{name}")]
            total += _lists_size(counts, _UUID_BYTES if name == "directories" else _INT32_BYTES)
    total += (2 + _INT32_BYTES) * int(np.count_nonzero(batch.writes_leader))
    return total + 3 * int(np.count_nonzero(batch.writes_recovery))


def _lists_size(counts: Int32, item_bytes: int) -> int:
    """Bytes of tagged arrays of these lengths: tag, size, length and items."""
    bodies: Int64 = varint_sizes(counts + 1) + counts.astype(np.int64) * item_bytes
    return int((1 + varint_sizes(bodies.astype(np.int32)) + bodies).sum())


def _topics_written(decided: ControllerResult[object]) -> list[TimelineEvent]:
    written = []
    for record_type, action in ((TopicRecord, TopicAction.CREATED), (RemoveTopicRecord, TopicAction.DELETED)):
        records = [item for item in decided.parts if isinstance(item, RecordAndVersion)]
        count = sum(isinstance(item.record, record_type) for item in records)
        if count:
            written.append(TopicsWritten(action, count))
    return [*written]
