"""The topics of a KRaft cluster: names, ids, rows of partitions, and the settings that elections read."""

from __future__ import annotations

from array import array
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Int8, Int32, UInt8
from kframe.model.topics import metric_name
from kframe.model.whole_numbers import INT32_MAX

#: The topic has no setting of its own.
UNSET: Final = -1
NO_ROW: Final = -1
#: Partition numbers are below it, because a topic has an array up to its highest one.
PARTITIONS_MAX: Final = 1 << 22
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"


def parse_min_isr(value: str | None) -> int:
    """The number of replicas, or UNSET. Brokers have settings that no controller checks."""
    try:
        number = UNSET if value is None else int(value)
    except ValueError:
        return UNSET
    return number if abs(number) <= INT32_MAX else UNSET


def parse_unclean(value: str) -> bool:
    """A Boolean as Java parses it."""
    return value.lower() == "true"


class KraftTopics:
    """Topics by index. A removed topic keeps its index, which is not reused."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ids: list[UUID] = []
        self._id_bytes = bytearray()
        self.index_by_name: dict[str, int] = {}
        self.index_by_id: dict[UUID, int] = {}
        self._rows: list[array[int]] = []
        # Built on first use, because only the creation of a topic needs it.
        self._normalized: dict[str, set[str]] | None = None
        self._min_isr = np.full(8, UNSET, np.int32)
        self._unclean = np.full(8, UNSET, np.int8)

    def __contains__(self, name: object) -> bool:
        return name in self.index_by_name

    def __len__(self) -> int:
        return len(self.names)

    @property
    def id_bytes(self) -> UInt8:
        """(t, 16) the ids of all topics as bytes, as a copy."""
        return np.frombuffer(bytes(self._id_bytes), np.uint8).reshape(-1, 16)

    @property
    def min_isr(self) -> Int32:
        """(t,) ``min.insync.replicas`` of each topic, or UNSET."""
        return self._min_isr[: len(self)]

    @property
    def unclean(self) -> Int8:
        """(t,) ``unclean.leader.election.enable`` of each topic. 0, 1 or UNSET."""
        return self._unclean[: len(self)]

    def add(self, name: str, topic_id: UUID) -> int:
        """Add a topic without partitions. Return its index."""
        index = len(self.names)
        self.names.append(name)
        self.ids.append(topic_id)
        self._id_bytes += topic_id.bytes
        self._rows.append(array("i"))
        self.index_by_name[name] = self.index_by_id[topic_id] = index
        if self._normalized is not None:
            self._normalized.setdefault(metric_name(name), set()).add(name)
        if index == len(self._min_isr):
            self._min_isr = np.concatenate([self._min_isr, np.full(index, UNSET, np.int32)])
            self._unclean = np.concatenate([self._unclean, np.full(index, UNSET, np.int8)])
        return index

    def remove(self, index: int) -> None:
        """Remove a topic."""
        name = self.names[index]
        del self.index_by_name[name], self.index_by_id[self.ids[index]]
        self._rows[index] = array("i")
        if self._normalized is not None:
            self._normalized[metric_name(name)].discard(name)

    def colliding_name(self, name: str) -> str | None:
        """A topic with the same name in metrics, where dots and underscores are the same. None if there is none."""
        if self._normalized is None:
            self._normalized = {}
            for existing in self.index_by_name:
                self._normalized.setdefault(metric_name(existing), set()).add(existing)
        return min(self._normalized.get(metric_name(name), ()), default=None)

    def store_setting(self, index: int, key: str, value: str | None) -> None:
        """Store a configuration of a topic, or None, in its column. Configurations without a column are ignored.

        A ``min.insync.replicas`` that is no number counts as unset.
        """
        if key == MIN_INSYNC_REPLICAS:
            self._min_isr[index] = parse_min_isr(value)
        elif key == UNCLEAN_ELECTION:
            self._unclean[index] = UNSET if value is None else parse_unclean(value)

    def set_row(self, index: int, partition: int, row: int) -> None:
        """Record the row of a partition."""
        rows = self._rows[index]
        if partition >= len(rows):
            rows.extend([NO_ROW] * (partition + 1 - len(rows)))
        rows[partition] = row

    def set_rows(self, index: int, rows: NDArray[np.int32]) -> None:
        """Record the rows of all partitions of a topic, in partition order; NO_ROW where there is no partition."""
        self._rows[index] = array("i", rows.astype(np.int32).tobytes())

    def extend_rows(self, topic: Int32, partition: Int32, first_row: int) -> bool:
        """Record the rows of new partitions, which are numbered from ``first_row`` on.

        Partition numbers are not negative. Return false, without a change, if a partition exists or occurs twice.
        """
        rows: Int32 = np.arange(first_row, first_row + len(topic), dtype=np.int32)
        order, starts = _group(topic, partition)
        topic, partition, rows = topic[order], partition[order], rows[order]
        within = topic[1:] == topic[:-1]
        steps = np.diff(partition)
        if (steps[within] == 0).any():
            return False
        groups = list(zip(topic[starts].tolist(), starts.tolist(), [*starts[1:].tolist(), len(topic)], strict=True))
        consecutive = bool((steps[within] == 1).all())
        for (index, first, last), number in zip(groups, partition[starts].tolist(), strict=True):
            appends = number == len(self._rows[index])
            if not (appends or (self._stored(index, partition[first:last]) == NO_ROW).all()):
                return False
        raw = rows.tobytes()
        for (index, first, last), number in zip(groups, partition[starts].tolist(), strict=True):
            stored = self._rows[index]
            if consecutive and number == len(stored):
                stored.frombytes(raw[4 * first : 4 * last])
                continue
            missing = int(partition[last - 1]) + 1 - len(stored)
            if missing > 0:
                stored.frombytes(np.full(missing, NO_ROW, np.int32).tobytes())
            np.frombuffer(stored, np.int32)[partition[first:last]] = rows[first:last]
        return True

    def rows_at(self, topic: Int32, partition: Int32) -> Int32:
        """Row of each partition; NO_ROW where there is none."""
        order, starts = _group(topic, partition)
        rows = np.empty(len(topic), np.int32)
        for first, last in zip(starts.tolist(), [*starts[1:].tolist(), len(topic)], strict=True):
            members = order[first:last]
            rows[members] = self._stored(int(topic[members[0]]), partition[members])
        return rows

    def _stored(self, index: int, partition: Int32) -> Int32:
        stored = np.frombuffer(self._rows[index], np.int32)
        rows = np.full(len(partition), NO_ROW, np.int32)
        known = (partition >= 0) & (partition < len(stored))
        rows[known] = stored[partition[known]]
        return rows

    def row_of(self, index: int, partition: int) -> int | None:
        """Row of a partition, or None."""
        rows = self._rows[index]
        if not 0 <= partition < len(rows) or rows[partition] == NO_ROW:
            return None
        return rows[partition]

    def row_by_id(self, topic_id: UUID, partition: int) -> int | None:
        """Row of a partition, or None."""
        index = self.index_by_id.get(topic_id)
        return None if index is None else self.row_of(index, partition)

    def rows_of(self, index: int) -> Int32:
        """Rows of a topic's partitions, in partition order."""
        rows: Int32 = np.array([row for row in self._rows[index] if row != NO_ROW], np.int32)
        return rows

    def first_rows(self, indexes: NDArray[np.int32]) -> Int32:
        """Row of partition 0 of each topic. NO_ROW where there is none."""
        rows = [self._rows[index] for index in indexes.tolist()]
        return np.array([partitions[0] if partitions else NO_ROW for partitions in rows], np.int32)

    def copy(self) -> KraftTopics:
        """An independent copy."""
        clone = KraftTopics()
        clone.names, clone.ids, clone._id_bytes = list(self.names), list(self.ids), self._id_bytes[:]
        clone.index_by_name, clone.index_by_id = dict(self.index_by_name), dict(self.index_by_id)
        clone._rows = [rows[:] for rows in self._rows]
        clone._min_isr, clone._unclean = self._min_isr.copy(), self._unclean.copy()
        return clone


def _group(topic: Int32, partition: Int32) -> tuple[NDArray[Any], NDArray[Any]]:
    """The order by topic and partition, and where each topic begins in it."""
    same = topic[1:] == topic[:-1]
    if ((topic[1:] > topic[:-1]) | (same & (partition[1:] > partition[:-1]))).all():
        order: NDArray[Any] = np.arange(len(topic))
    else:
        order = np.lexsort((partition, topic))
        ordered = topic[order]
        same = ordered[1:] == ordered[:-1]
    return order, np.flatnonzero(np.concatenate([[len(topic) > 0], ~same])[: len(topic)])
