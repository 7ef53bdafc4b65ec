"""Replays records of the log into the metadata of a cluster, partition records in bulk.

The result is that of ``kframe.plugin.kraft.replay`` for each record in the order of the log. Between two records that
remove something, the order of records matters only among records of the same partition and among all other records.
So each section between them is replayed in four steps: other records, topics, new partitions, changes of partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kframe.plugin import counted
from kframe.plugin.columns import Bool, Int32, Ragged
from kframe.plugin.kraft import (
    NO_ROW,
    PARTITIONS_MAX,
    ClusterMetadata,
    InputError,
    LogError,
    PartitionLists,
    ShapeError,
    directories,
    records,
    replay,
    uuid_text,
)
from kframe_kraft.columns.id_index import IdIndex
from kframe_kraft.columns.partitions import IdLists, PartitionColumns, decode_rows
from kframe_kraft.records import decode_record
from kframe_kraft.replay.transactions import Rows

TOPIC_RESOURCE: Final = 2
TOPIC: Final = records.TopicRecord.api_key
PARTITION: Final = records.PartitionRecord.api_key
PARTITION_CHANGE: Final = records.PartitionChangeRecord.api_key
NO_OP: Final = records.NoOpRecord.api_key
#: Types whose order matters to topics, partitions and their configurations.
REMOVALS: Final = (records.RemoveTopicRecord.api_key, records.ClearElrRecord.api_key)
#: Fewer records are replayed one by one, because a step in bulk costs as much as some of them.
_BULK_MIN: Final = 32
#: Records of a step, so that its arrays stay in the cache.
_CHUNK: Final = 1 << 15
#: Broker ids below this number are looked up in an array.
_BROKER_IDS_MAX: Final = 1 << 20
#: Changes of the same partition in a section; each is a step.
_CHANGES_MAX: Final = 16
_MEMBERS: Final = {
    "elr": "eligible_leader_replicas",
    "last_known_elr": "last_known_elr",
    "adding": "adding_replicas",
    "removing": "removing_replicas",
}


class Replay:
    """The replay of a log into ``metadata``, block by block."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self.metadata = metadata
        self._broker_index: Int32 = np.full(0, -1, np.int32)
        self._topics: IdIndex | None = None
        self._directories = IdIndex()
        self._known_directories = 0

    def apply(self, rows: Rows, offset: int | None = None) -> None:
        """Apply committed records. ``offset`` replaces their own, for records of a snapshot.

        Raises LogError for the first record that is malformed or contradicts the metadata.
        """
        types = rows.frames.api_key[rows.rows]
        first = 0
        for removal in [*np.flatnonzero(np.isin(types, REMOVALS)).tolist(), len(types)]:
            self._apply_section(rows, rows.rows[first:removal], types[first:removal], offset)
            if removal < len(types):
                self._apply_each(rows, rows.rows[removal : removal + 1], offset)
                self._topics = None
            first = removal + 1

    def _apply_section(self, rows: Rows, section: NDArray[Any], types: Int32, offset: int | None) -> None:
        if len(section) < _BULK_MIN:
            self._apply_each(rows, section, offset)
            return
        is_topic, is_partition, is_change = types == TOPIC, types == PARTITION, types == PARTITION_CHANGE
        self._apply_each(rows, section[~(is_topic | is_partition | is_change | (types == NO_OP))], offset)
        self._create_topics(rows, section[is_topic], offset)
        self._reserve(int(is_partition.sum()))
        for chunk in _chunks(section[is_partition]):
            if not self._create_partitions(rows, chunk):
                # A record replaces a partition that exists, so the order among records of partitions matters.
                remaining = section[(is_partition | is_change) & (section >= chunk[0])]
                earlier = section[is_change & (section < chunk[0])]
                self._apply_each(rows, np.concatenate([earlier, remaining]), offset)
                return
        for chunk in _chunks(section[is_change]):
            self._change_partitions(rows, chunk, offset)

    def _apply_each(self, rows: Rows, numbers: NDArray[Any], offset: int | None) -> None:
        batch = rows.batch
        for number in numbers.tolist():
            record = decode_record(batch.value(number), batch.name(number)).record
            self._replay(rows, number, record, offset)
            if isinstance(record, records.TopicRecord) and self._topics is not None:
                self._topics.add([(record.topic_id, self.metadata.topics.index_by_id[record.topic_id])])

    def _replay(self, rows: Rows, number: int, record: records.MetadataRecord, offset: int | None) -> None:
        try:
            replay(self.metadata, record, rows.batch.offset(number) if offset is None else offset)
        except InputError as error:
            raise LogError(**vars(error) | {"where": f"{rows.batch.name(number)}, {error.where}"}) from error
        except ShapeError as error:
            raise LogError(rows.batch.name(number), str(error), "lists that fit the partition") from error

    def _create_topics(self, rows: Rows, numbers: NDArray[Any], offset: int | None) -> None:
        topics, payload = self.metadata.topics, rows.batch.payload.data
        configured = {name for kind, name in self.metadata.configs if kind == TOPIC_RESOURCE}
        first = len(topics)
        spans = zip(
            numbers.tolist(),
            rows.frames.body_start[numbers].tolist(),
            rows.frames.body_end[numbers].tolist(),
            strict=True,
        )
        for number, start, end in spans:
            topic = _plain_topic(payload[start:end])
            if (
                topic is None
                or topic[0] in configured
                or topic[0] in topics.index_by_name
                or topic[1] in topics.index_by_id
            ):
                self._apply_each(rows, numbers[numbers == number], offset)
            else:
                topics.add(*topic)
        if self._topics is not None:
            self._topics.add(zip(topics.ids[first:], range(first, len(topics)), strict=True))

    def _create_partitions(self, rows: Rows, numbers: NDArray[Any]) -> bool:
        """Add new partitions. Return false, without a change, if one of them exists."""
        metadata, columns = self.metadata, decode_rows(rows.batch, rows.frames, numbers)
        wrong = (columns.partition_id < 0) | (columns.partition_id >= PARTITIONS_MAX)
        if wrong.any():
            self._apply_each(rows, numbers[np.flatnonzero(wrong)[:1]], None)  # it raises the error
        topic = self._topic_indexes(rows, numbers, columns)
        if not metadata.topics.extend_rows(topic, columns.partition_id, len(metadata.partitions)):
            return False
        lists = PartitionLists(
            self._ids(columns, "replicas"),
            self._ids(columns, "isr"),
            self._directory_lists(rows, numbers, columns),
            **{name: self._ids(columns, field) for name, field in _MEMBERS.items()},
        )
        values = {
            "topic": topic,
            "partition": columns.partition_id,
            "leader": self._broker_indexes(columns.leader),
            "leader_epoch": columns.leader_epoch,
            "partition_epoch": columns.partition_epoch,
            "recovery": columns.leader_recovery_state,
        }
        try:
            metadata.partitions.append(lists, values)  # type: ignore[arg-type]
        except ShapeError as error:
            raise LogError(rows.batch.name(int(numbers[0])), str(error), "lists that fit a partition") from error
        return True

    def _reserve(self, count: int) -> None:
        """Allocate rows, and slots for as many replicas as other partitions have, 3 without any."""
        partitions = self.metadata.partitions
        replicas = partitions.slot_count / len(partitions) if len(partitions) else 3
        if count > _CHUNK:
            partitions.reserve(count, int(count * replicas))

    def _change_partitions(self, rows: Rows, numbers: NDArray[Any], offset: int | None) -> None:
        columns = decode_rows(rows.batch, rows.frames, numbers)
        topic = self._topic_indexes(rows, numbers, columns)
        changed = self.metadata.topics.rows_at(topic, columns.partition_id)
        order = np.argsort(changed, kind="stable")
        starts = np.flatnonzero(np.diff(changed[order], prepend=NO_ROW - 1))
        repetition = np.empty(len(numbers), np.int64)
        repetition[order] = np.arange(len(numbers)) - np.repeat(starts, np.diff(np.append(starts, len(numbers))))
        replaces_replicas = columns.ids["replicas"].present
        if (changed == NO_ROW).any() or repetition.max() >= _CHANGES_MAX or replaces_replicas.any():
            self._apply_each(rows, numbers, offset)
            return
        for step in range(int(repetition.max()) + 1):
            self._change_step(rows, numbers, columns, changed, np.flatnonzero(repetition == step))

    def _change_step(
        self, rows: Rows, numbers: NDArray[Any], columns: PartitionColumns, changed: Int32, members: NDArray[Any]
    ) -> None:
        """Apply the changes ``members``: at most one for each partition, none of them replaces replicas."""
        partitions, targets = self.metadata.partitions, changed[members]
        names = {"isr": "isr", **_MEMBERS}
        changes: dict[str, tuple[Bool, Ragged]] = {
            name: (columns.ids[field].present[members], self._ids(columns, field).take(members))
            for name, field in names.items()
            if columns.ids[field].present.any()
        }
        present = columns.directories.present
        if present.any():
            counts = partitions.replica_count[changed].astype(np.int32)
            lists = self._directory_lists(rows, numbers, columns, np.where(present, counts, 0))
            changes["directory"] = present[members], lists.take(members)
        try:
            partitions.replace_many(targets, changes)
        except ShapeError as error:
            raise LogError(rows.batch.name(int(numbers[0])), str(error), "lists that fit the partition") from error
        leader = columns.leader[members]
        led = leader != records.NO_LEADER_CHANGE
        partitions.leader[targets[led]] = self._broker_indexes(leader[led])
        partitions.leader_epoch[targets[led]] += 1
        recovery = columns.leader_recovery_state[members]
        recovering = recovery != records.NO_RECOVERY_CHANGE
        partitions.recovery[targets[recovering]] = recovery[recovering]
        partitions.partition_epoch[targets] += 1

    def _topic_indexes(self, rows: Rows, numbers: NDArray[Any], columns: PartitionColumns) -> Int32:
        if self._topics is None:
            self._topics = IdIndex(self.metadata.topics.index_by_id.items())
        topic, missing = self._topics.find(columns.topic_id)
        if missing:
            first = int(np.argmax(topic < 0))
            topic_id = UUID(bytes=columns.topic_id[first].tobytes())
            raise LogError(
                rows.batch.name(int(numbers[first])), f"topic id {uuid_text(topic_id)}", "a topic that exists"
            )
        return topic

    def _ids(self, columns: PartitionColumns, field: str) -> Ragged:
        """A list of each record as broker indexes."""
        ids: IdLists = columns.ids[field]
        return Ragged(ids.lists.offsets, self._broker_indexes(ids.lists.values))

    def _broker_indexes(self, ids: Int32) -> Int32:
        """Indexes of broker ids; -1 stays."""
        if not len(ids):
            return ids
        lowest, highest = int(ids.min()), int(ids.max())
        brokers = self.metadata.brokers
        if lowest < -1 or highest >= _BROKER_IDS_MAX:
            distinct, inverse = np.unique(ids, return_inverse=True)
            return np.array(brokers.indexes_of(distinct.tolist()), np.int32)[inverse]
        if highest + 2 > len(self._broker_index):
            # The last entry is that of -1, no broker.
            self._broker_index = np.full(highest + 2, -1, np.int32)
        indexes: Int32 = self._broker_index[ids]
        unknown = (indexes < 0) & (ids >= 0)
        if unknown.any():
            for broker_id in np.unique(ids[unknown]).tolist():
                self._broker_index[broker_id] = brokers.index_of(broker_id)
            indexes = self._broker_index[ids]
        return indexes

    def _directory_lists(
        self, rows: Rows, numbers: NDArray[Any], columns: PartitionColumns, expected: Int32 | None = None
    ) -> Ragged:
        """Directory indexes of each record. An empty list means MIGRATING for all ``expected`` replicas."""
        lists = columns.directories
        counts = lists.offsets[1:] - lists.offsets[:-1]
        replicas = columns.ids["replicas"].lists.counts if expected is None else expected
        wrong = (counts != replicas) & (counts != 0)
        if wrong.any():
            first = int(np.argmax(wrong))
            raise LogError(
                rows.batch.name(int(numbers[first])),
                counted(counts[first], "directory", "directories"),
                f"{replicas[first]} as replicas",
            )
        stored = Ragged(lists.offsets, self._directory_indexes(lists.values))
        if np.array_equal(counts, replicas):
            return stored
        offsets = np.zeros(len(replicas) + 1, np.int32)
        np.cumsum(replicas, out=offsets[1:])
        complete = Ragged(offsets, np.full(int(offsets[-1]), directories.MIGRATING, np.int32))
        complete.values[np.repeat(counts != 0, replicas)] = stored.values
        return complete

    def _directory_indexes(self, ids: NDArray[np.uint8]) -> Int32:
        known = self.metadata.directories
        self._index_directories()
        indexes, missing = self._directories.find(ids)
        while missing:
            for row in np.unique(ids[indexes < 0], axis=0):
                known.index_of(UUID(bytes=row.tobytes()))
            self._index_directories()
            indexes, missing = self._directories.find(ids)
        return indexes

    def _index_directories(self) -> None:
        ids = self.metadata.directories.ids
        first, self._known_directories = self._known_directories, len(ids)
        self._directories.add(zip(ids[first:], range(first, len(ids)), strict=True))


def _plain_topic(body: memoryview) -> tuple[str, UUID] | None:
    """Name and id of version 0 with a name below 127 bytes and no tagged field. None for another body."""
    length = body[0] - 1 if len(body) else -1
    if not 0 <= length < 127 or len(body) != length + 18 or body[length + 17]:
        return None
    try:
        return str(body[1 : length + 1], "utf-8"), UUID(bytes=bytes(body[length + 1 : length + 17]))
    except UnicodeDecodeError:
        return None


def _chunks(numbers: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for first in range(0, len(numbers), _CHUNK):
        yield numbers[first : first + _CHUNK]
