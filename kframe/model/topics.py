"""The topic columns. They have the name, the id, the rows of the partitions, and the settings that a controller
uses."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from contextlib import suppress
from itertools import repeat
from operator import itemgetter
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kframe.errors import ShapeError
from kframe.model.arrays import Int8, Int32, Int64, UInt8, offsets_of, ragged_positions

ZERO_TOPIC_ID: Final = bytes(16)
#: In ``unclean``: the topic has no setting of its own, so the broker default applies.
UNSET: Final = -1

#: Per-topic columns besides the ids, and their values for a new topic.
_INITIAL: Final = {
    "first_row": 0,
    "block_length": 0,
    "partition_count": 0,
    "unclean": UNSET,
    "min_insync": UNSET,
    "deleting": 0,
    "deletion_started": 0,
    "deletion_halted": 0,
}
#: Characters of the longest topic name.
NAME_MAX: Final = 249
_NAME: Final = re.compile(rf"[a-zA-Z0-9._-]{{1,{NAME_MAX}}}", re.ASCII)
_ALL_VALID: Final = re.compile(r"[a-zA-Z0-9._-]*", re.ASCII).fullmatch


def topic_name_problem(name: str) -> str | None:
    """What Kafka requires of a topic name, if ``name`` is invalid. None if it is valid (3.9 ``Topic.validate``)."""
    if _NAME.fullmatch(name) and name not in (".", ".."):
        return None
    return "a topic name: 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', other than '.' and '..'"


def are_topic_names(names: Sequence[str]) -> bool:
    """Whether Kafka accepts all these topic names: ``topic_name_problem`` has none for any of them."""
    lengths = [len(name) for name in names]
    if min(lengths, default=1) == 0 or max(lengths, default=1) > NAME_MAX or "." in names or ".." in names:
        return False
    return _ALL_VALID("".join(names)) is not None


def metric_name(name: str) -> str:
    """The name of a topic in metrics. Dots and underscores are the same there."""
    return name.replace(".", "_")


class Scattered(Struct, frozen=True, eq=False):
    """Partitions of topics of which this process has only some. ``keys`` are topic << 32 | partition, ascending;
    ``rows`` are parallel to them."""

    keys: Int64
    rows: Int32

    def locate(self, topic: NDArray[Any], partition: NDArray[Any]) -> Int32:
        """Rows of many partitions. -1 where there is none."""
        keys = topic.astype(np.int64) << 32 | partition
        positions = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[positions] == keys, self.rows[positions], np.int32(-1))

    def of(self, topic: int) -> Int32:
        """Rows of one topic, in partition order."""
        first, end = np.searchsorted(self.keys, (topic << 32, (topic + 1) << 32))
        return self.rows[first:end]

    def without(self, topics: Int32) -> Scattered | None:
        """The entries of the other topics. None if there are none."""
        retained = ~np.isin(self.keys >> 32, topics)
        return Scattered(self.keys[retained], self.rows[retained]) if retained.any() else None


class Topics:
    """Topics by index. Per-topic arrays are replaced when topics are added. A dropped topic keeps its index."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ids: UInt8 = np.empty((0, 16), np.uint8)
        """Topic ids, big-endian, one row a topic. Zeros where the topic has none."""
        self.first_row: Int32 = np.empty(0, np.int32)
        """Row of partition 0."""
        self.block_length: Int32 = np.empty(0, np.int32)
        """Number of partitions in consecutive rows from ``first_row``."""
        self.partition_count: Int32 = np.empty(0, np.int32)
        self.unclean: Int8 = np.empty(0, np.int8)
        """``unclean.leader.election.enable`` of the topic: 0, 1 or UNSET."""
        self.min_insync: Int32 = np.empty(0, np.int32)
        """``min.insync.replicas`` of the topic, or UNSET."""
        self.deleting: UInt8 = np.empty(0, np.uint8)
        """1 while the topic is queued for deletion."""
        self.deletion_started: UInt8 = np.empty(0, np.uint8)
        """1 once the partitions of a topic that is queued for deletion are NonExistent."""
        self.deletion_halted: UInt8 = np.empty(0, np.uint8)
        """1 while the deletion must wait ("ineligible for deletion")."""
        self._index: dict[str, int] = {}
        self._index_by_id: dict[bytes, int] = {}
        self._mapped_names: set[str] = set()
        self._later: dict[int, list[tuple[int, int, int]]] = {}
        self._scattered: Scattered | None = None
        self._wire_names: tuple[Int32, bytes] | None = None
        self._all_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    @property
    def known_count(self) -> int:
        """Number of topics that exist, without dropped topics."""
        return len(self._index)

    def find(self, name: str) -> int | None:
        """Index of a topic, or None."""
        return self._index.get(name)

    def collides(self, name: str) -> bool:
        """Whether a topic has the same name in metrics, where dots and underscores are the same."""
        return metric_name(name) in self._mapped_names

    def has_none_of(self, names: Sequence[str], metric_names: Set[str]) -> bool:
        """Whether no topic has one of these names, or one of these names in metrics."""
        return self._index.keys().isdisjoint(names) and self._mapped_names.isdisjoint(metric_names)

    def find_id(self, topic_id: bytes) -> int | None:
        """Index of the topic that has this id, or None."""
        return self._index_by_id.get(topic_id)

    def find_all(self, names: Sequence[str] | Sequence[bytes]) -> Int32:
        """Index of each topic, all by name or all by id; -1 for unknown topics."""
        index: dict[Any, int] = self._index_by_id if names and isinstance(names[0], bytes) else self._index
        if len(names) > 1:  # itemgetter returns no tuple for one name
            with suppress(KeyError):  # Usually all are known; then this takes a fifth less.
                return np.fromiter(itemgetter(*names)(index), np.int32, len(names))
        return np.fromiter(map(index.get, names, repeat(-1)), np.int32, len(names))

    def add(self, names: Sequence[str], ids: Sequence[bytes | None] | None = None) -> Int32:
        """Add new topics without partitions. Return their indexes."""
        first, count = len(self.names), len(names)
        self._index.update(zip(names, range(first, first + count), strict=True))
        self._mapped_names.update(map(metric_name, names))
        self.names += names
        topic_ids = ids if ids is not None else [None] * count
        self._index_by_id.update(
            (topic_id, first + offset)
            for offset, topic_id in enumerate(topic_ids)
            if topic_id and topic_id != ZERO_TOPIC_ID
        )
        raw = b"".join(topic_id or ZERO_TOPIC_ID for topic_id in topic_ids)
        self.ids = np.concatenate([self.ids, np.frombuffer(raw, np.uint8).reshape(count, 16)])
        for name, fill in _INITIAL.items():
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.full(count, fill, column.dtype)]))
        self._wire_names = None
        return np.arange(first, first + count, dtype=np.int32)

    def set_id(self, topic: int, topic_id: bytes) -> None:
        """Set the id of a topic that has none."""
        self.ids[topic] = np.frombuffer(topic_id, np.uint8)
        self._index_by_id[topic_id] = topic

    def clear_id(self, topic: int) -> None:
        """Remove the id of a topic, so that lookups by the id no longer return it."""
        known = self.ids[topic].tobytes()
        self._index_by_id.pop(known, None)
        self.ids[topic] = 0

    def note_rows(self, topic: int, first_partition: int, first_row: int, count: int) -> None:
        """Record that partitions ``first_partition ..`` of ``topic`` are in ``count`` rows from ``first_row``."""
        self._require_whole(topic)
        if self.partition_count[topic] == 0:
            self.first_row[topic] = first_row
            self.block_length[topic] = count
        elif first_row == self.first_row[topic] + self.block_length[topic] and topic not in self._later:
            self.block_length[topic] += count
        else:
            self._later.setdefault(topic, []).append((first_partition, first_row, count))
        self.partition_count[topic] += count

    def note_blocks(self, topics: Int32, first_rows: Int32, counts: Int32) -> None:
        """``note_rows`` for many topics without partitions."""
        self.first_row[topics] = first_rows
        self.block_length[topics] = counts
        self.partition_count[topics] = counts

    def note_scattered(self, topics: Int32, counts: Int32, partitions: Int32, rows: Int32) -> None:
        """Record the rows of topics of which this process has only ``counts[i]`` partitions.

        The topics ascend, are new, and come after all topics of earlier calls. ``partitions`` and ``rows`` are ordered
        by topic, then by partition. Such a topic can neither grow nor shrink, since its size is unknown.
        """
        keys = np.repeat(topics, counts).astype(np.int64) << 32 | partitions
        known = self._scattered
        if known is not None:
            keys, rows = np.concatenate([known.keys, keys]), np.concatenate([known.rows, rows])
        self._scattered = Scattered(keys, rows) if len(keys) else None
        self.partition_count[topics] = counts

    def _require_whole(self, topic: int) -> None:
        if self._scattered is not None and len(self._scattered.of(topic)):
            raise ShapeError(f"topic {self.names[topic]} is known only in part: it can neither grow nor shrink")

    def cut_rows(self, topic: int, count: int) -> None:
        """Remove the partitions of ``topic`` from number ``count`` on."""
        self._require_whole(topic)
        self.block_length[topic] = min(int(self.block_length[topic]), count)
        remaining = [
            (first, row, min(length, count - first))
            for first, row, length in self._later.pop(topic, ())
            if first < count
        ]
        if remaining:
            self._later[topic] = remaining
        self.partition_count[topic] = count

    def row_of(self, topic: int, partition: int) -> int | None:
        """Row of a partition. None if it is unknown."""
        if 0 <= partition < self.block_length[topic]:
            return int(self.first_row[topic]) + partition
        for first_partition, first_row, count in self._later.get(topic, ()):
            if first_partition <= partition < first_partition + count:
                return first_row + partition - first_partition
        if self._scattered is not None:
            row = int(self._scattered.locate(np.array([topic]), np.array([partition]))[0])
            return None if row < 0 else row
        return None

    def rows_of(self, topic: int) -> Int32:
        """Rows of all partitions of a topic, in partition order."""
        first = int(self.first_row[topic])
        blocks = [np.arange(first, first + int(self.block_length[topic]), dtype=np.int32)]
        blocks += [np.arange(row, row + count, dtype=np.int32) for _, row, count in self._later.get(topic, ())]
        if self._scattered is not None:
            blocks.append(self._scattered.of(topic))
        return np.concatenate(blocks)

    def rows_of_all(self, topics: NDArray[Any]) -> Int32:
        """Rows of all partitions of these topics, by topic and partition."""
        if len(topics) and (self._scattered is not None or not self._later.keys().isdisjoint(topics.tolist())):
            return np.concatenate([self.rows_of(topic) for topic in topics.tolist()])
        starts, lengths = self.first_row[topics], self.block_length[topics]
        if len(topics) and bool((starts[1:] == starts[:-1] + lengths[:-1]).all()):  # adjacent blocks
            return np.arange(starts[0], starts[-1] + lengths[-1], dtype=np.int32)
        return ragged_positions(starts, lengths).astype(np.int32)

    def locate(self, topic: NDArray[Any], partition: NDArray[Any]) -> Int32:
        """Rows of many partitions. -1 where there is none."""
        rows: Int32 = (self.first_row[topic] + partition).astype(np.int32, copy=False)
        outside = np.flatnonzero((partition < 0) | (partition >= self.block_length[topic]))
        rows[outside] = -1
        if self._later and len(outside):
            for grown in self._later.keys() & set(topic[outside].tolist()):
                pending = outside[topic[outside] == grown]
                for first_partition, first_row, count in self._later[grown]:
                    within = partition[pending] - first_partition
                    matches = (within >= 0) & (within < count)
                    rows[pending[matches]] = first_row + within[matches]
        if self._scattered is not None and len(outside):
            pending = outside[rows[outside] < 0]
            rows[pending] = self._scattered.locate(topic[pending], partition[pending])
        return rows

    def drop(self, topics: Int32) -> None:
        """Remove the names and rows of topics. Their indexes are not reused."""
        names = [self.names[topic] for topic in topics.tolist()]
        self._mapped_names.difference_update(map(metric_name, names))
        ids: list[bytes] = self.ids[topics].view("V16").ravel().tolist()
        for topic, name, topic_id in zip(topics.tolist(), names, ids, strict=True):
            del self._index[name]
            self._index_by_id.pop(topic_id, None)
            self._later.pop(topic, None)
        if self._scattered is not None:
            self._scattered = self._scattered.without(topics)
        self.block_length[topics] = self.partition_count[topics] = 0
        self.deleting[topics] = self.deletion_started[topics] = self.deletion_halted[topics] = 0

    def wire_names(self) -> tuple[Int32, bytes]:
        """All names in UTF-8, concatenated, and their offsets. Cached until a topic is added."""
        if self._wire_names is None:
            encoded = [name.encode() for name in self.names]
            self._wire_names = offsets_of([len(name) for name in encoded]), b"".join(encoded)
        return self._wire_names

    def all_names(self) -> tuple[str, ...]:
        """``names`` as a tuple. Cached until a topic is added, since a name never changes."""
        if len(self._all_names) != len(self.names):
            self._all_names = tuple(self.names)
        return self._all_names

    def copy(self) -> Topics:
        """An independent copy."""
        copied = Topics()
        copied.names, copied._index = list(self.names), dict(self._index)
        copied._index_by_id = dict(self._index_by_id)
        copied._mapped_names = set(self._mapped_names)
        copied._later = {topic: list(blocks) for topic, blocks in self._later.items()}
        copied._scattered = self._scattered
        for name in ("ids", *_INITIAL):
            setattr(copied, name, getattr(self, name).copy())
        return copied
