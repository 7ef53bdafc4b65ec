"""The dtype table of the partition columns, and the struct of arrays that it describes.

A partition is a *row*. Row columns hold one value per partition (leader, epochs, states). Slot columns hold several
(replicas, in-sync replicas, replica states). Row ``r`` owns the slots ``slot_start[r] .. slot_start[r] +
slot_capacity[r]``. The first ``replica_count[r]`` of them hold its assigned replicas; the first ``isr_count[r]`` hold
its in-sync replicas, each in Kafka's list order. New slots are allocated at the end, so a row with three replicas uses
three slots, however wide other rows are. At RF 3 a partition takes 53 bytes.

The columns refer to brokers and topics by dense indexes (``Brokers.index_of``). Broker indexes are int16 in the
columns, which halves most of the memory of a partition. Code that computes with them uses int32 (``lists``,
``leaders_of``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kframe.errors import ShapeError
from kframe.model.arrays import Bool, Int16, Int32, Int64, Ragged, UInt8, offsets_of, ragged_positions
from kframe.model.ids import NO_LEADER, NO_STATE, PartitionState, ReplicaFlag, ReplicaState
from kframe.model.row_views import adjacent_blocks, values_at

#: Largest number of replicas or in-sync replicas of a row (Kafka's replication factor is an int16 on the wire).
REPLICAS_MAX: Final = 32_767
#: Largest number of brokers of a cluster, registered or not: columns store their indexes as int16.
BROKERS_MAX: Final = 32_767
#: Slot numbers are int32.
SLOTS_MAX: Final = 2**31 - 1


class Column(Struct, frozen=True):
    """One column: its dtype, whether it has an entry per row or per slot, the initial value, and the meaning."""

    name: str
    dtype: Any
    per: Literal["row", "slot"]
    fresh: int
    meaning: str


#: Every partition column. Kernels, checks, tests and the documentation read this table.
COLUMNS: Final[tuple[Column, ...]] = (
    Column("topic", np.int32, "row", -1, "topic index; -1 in a row whose topic was deleted"),
    Column("partition", np.int32, "row", -1, "partition number within the topic"),
    Column("leader", np.int16, "row", NO_LEADER, "broker index of the leader, or NO_LEADER"),
    Column("leader_epoch", np.int32, "row", -1, "raised by every change of leadership that a controller makes"),
    Column("controller_epoch", np.int32, "row", -1, "controller epoch of the last stored change"),
    Column("partition_epoch", np.int32, "row", NO_STATE, "version of the stored state; NO_STATE where none is stored"),
    Column("state", np.uint8, "row", PartitionState.NON_EXISTENT, "PartitionState"),
    Column("recovery", np.uint8, "row", 0, "RecoveryState"),
    Column("reassigning", np.uint8, "row", 0, "1 while a reassignment of the partition is in progress"),
    Column("slot_start", np.int32, "row", 0, "first slot of the row"),
    Column("slot_capacity", np.int16, "row", 0, "slots that the row owns"),
    Column("replica_count", np.int16, "row", 0, "assigned replicas"),
    Column("isr_count", np.int16, "row", 0, "in-sync replicas"),
    Column("replica", np.int16, "slot", -1, "broker index of the assigned replica"),
    Column("isr", np.int16, "slot", -1, "broker index of the in-sync replica"),
    Column("replica_state", np.uint8, "slot", ReplicaState.NON_EXISTENT, "ReplicaState of the assigned replica"),
    Column("replica_flags", np.uint8, "slot", 0, "ReplicaFlag bits of the assigned replica"),
)


def slots_of_lists(replicas: Ragged, isr: Ragged | None) -> Int32:
    """(n,) the slots that rows with these lists need. Raises ShapeError if a row has more than REPLICAS_MAX."""
    capacity = replicas.counts if isr is None else np.maximum(replicas.counts, isr.counts)
    if (largest := int(capacity.max(initial=0))) > REPLICAS_MAX:
        raise ShapeError(f"a row of {largest} replicas; the maximum is {REPLICAS_MAX}")
    return capacity


#: Row columns that ``Partitions.append`` always writes.
_APPENDED: Final = ("topic", "partition", "slot_start", "slot_capacity", "replica_count", "isr_count")


class SlotColumns:
    """Arrays that grow together: the columns of ``table``, as attributes by name.

    Row columns have ``len(self)`` elements, slot columns ``slot_count``. A table has at least the columns that are
    named here. The attributes are views of buffers that grow by doubling: keep the object, not a view, across a
    change of size.
    """

    table: ClassVar[tuple[Column, ...]]
    shared: ClassVar[frozenset[str]] = frozenset()
    """Columns that few changes write. A table and its copies share them, read-only, until one of these changes."""
    leader: Int16
    replica_count: Int16
    replica: Int16
    slot_start: Int32
    slot_capacity: Int16

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[Any]] = {column.name: np.empty(0, column.dtype) for column in self.table}
        self._rows = 0
        self._slots = 0
        self.relocations = 0
        """How many times rows have moved to other slots."""
        self._assign_views()

    def __len__(self) -> int:
        return self._rows

    @property
    def slot_count(self) -> int:
        """Number of allocated slots, including abandoned slots of rows that were relocated."""
        return self._slots

    @property
    def nbytes(self) -> int:
        """Bytes of all columns, including spare capacity."""
        return sum(buffer.nbytes for buffer in self._buffers.values())

    def copy(self) -> Self:
        """An independent copy without spare capacity."""
        copy = type(self)()
        for column in self.table:
            values = self._buffers[column.name][: self._size(column)]
            if column.name in self.shared:
                values.flags.writeable = False
                self._buffers[column.name] = values
            copy._buffers[column.name] = values if column.name in self.shared else values.copy()
        self._assign_views()
        copy._rows, copy._slots = self._rows, self._slots
        copy._assign_views()
        return copy

    def own(self, *names: str) -> None:
        """Prepare columns for a change: replace those that another table shares by copies."""
        for name in names:
            if not self._buffers[name].flags.writeable:
                self._buffers[name] = self._buffers[name].copy()
                setattr(self, name, self._buffers[name])

    def reserve(self, rows: int, slots: int) -> None:
        """Allocate buffers for this many further rows and slots, so that they are not copy as they grow."""
        for column in self.table:
            size = self._size(column)
            needed = size + (rows if column.per == "row" else slots)
            buffer = self._buffers[column.name]
            if needed > len(buffer):
                grown = _buffer(column, needed)
                grown[:size] = buffer[:size]
                self._buffers[column.name] = grown
        self._assign_views()

    def trim(self) -> None:
        """Release the spare capacity, one column after another."""
        for column in self.table:
            size = self._size(column)
            if size < len(self._buffers[column.name]):
                self._buffers[column.name] = self._buffers[column.name][:size].copy()
                setattr(self, column.name, self._buffers[column.name])

    def leaders_of(self, rows: NDArray[Any]) -> Int32:
        """Broker index of the leader of each of ``rows``, or NO_LEADER."""
        return np.asarray(self.leader[rows], np.int32)

    def preferred_of(self, rows: NDArray[Any]) -> Int32:
        """Broker index of the first assigned replica of each of ``rows``. -1 where there are no replicas."""
        has_replicas = self.replica_count[rows] > 0
        preferred = np.full(len(rows), -1, np.int32)
        preferred[has_replicas] = self.replica[self.slot_start[rows[has_replicas]]]
        return preferred

    def ensure_capacity(self, rows: NDArray[Any], capacity: NDArray[Any]) -> None:
        """Move each of ``rows`` (unique) that owns fewer than ``capacity`` slots, with its contents, to the end."""
        short = values_at(self.slot_capacity, rows) < capacity
        if not short.any():
            return
        rows, capacity = rows[short], capacity[short].astype(np.int64)
        old_starts, old_capacity = self.slot_start[rows], self.slot_capacity[rows]
        _, first_slot = self.grow(0, int(capacity.sum()))
        starts = first_slot + np.cumsum(capacity) - capacity
        slots = [getattr(self, column.name) for column in self.table if column.per == "slot"]
        width, count, first = int(old_capacity[0]), len(rows), int(old_starts[0])
        if adjacent_blocks(old_starts, old_capacity) and bool((capacity == capacity[0]).all()):
            for values in slots:
                moved = values[first_slot:].reshape(count, -1)
                moved[:, :width] = values[first : first + count * width].reshape(count, width)
        else:
            source, target = ragged_positions(old_starts, old_capacity), ragged_positions(starts, old_capacity)
            for values in slots:
                values[target] = values[source]
        self.own("slot_start", "slot_capacity")
        self.slot_start[rows] = starts
        self.slot_capacity[rows] = capacity
        self.relocations += 1

    def _size(self, column: Column) -> int:
        return self._rows if column.per == "row" else self._slots

    def grow(self, rows: int, slots: int, written: Collection[str] = ()) -> tuple[int, int]:
        """Allocate rows and slots. Return the first new row and slot.

        Columns in ``written`` get no initial values: the caller writes all of them.
        """
        first_row, first_slot = self._rows, self._slots
        if self._slots + slots > SLOTS_MAX:
            raise ShapeError(f"{self._slots + slots} replica slots; the maximum is {SLOTS_MAX}")
        self._rows += rows
        self._slots += slots
        for column in self.table:
            used, size = (first_row, self._rows) if column.per == "row" else (first_slot, self._slots)
            if used == size:
                continue
            buffer = self._buffers[column.name]
            if size > len(buffer):
                grown = _buffer(column, size if used == 0 else max(size, used + used // 2))
                grown[:used] = buffer[:used]
                self._buffers[column.name] = buffer = grown
            if column.fresh != 0 and column.name not in written:
                buffer[used:size] = column.fresh
        self._assign_views()
        return first_row, first_slot

    def _assign_views(self) -> None:
        for column in self.table:
            setattr(self, column.name, self._buffers[column.name][: self._size(column)])


def _buffer(column: Column, size: int) -> NDArray[Any]:
    """A new buffer. Where the initial value is 0, it is 0 everywhere, and pages take no memory until they are written:
    most clusters have nothing in some columns."""
    return np.zeros(size, column.dtype) if column.fresh == 0 else np.empty(size, column.dtype)


class Partitions(SlotColumns):
    """The partition columns. Attributes are arrays of exactly ``len(self)`` rows or ``slot_count`` slots.

    Keep the object, not a view, across an ``append``.
    """

    topic: Int32
    partition: Int32
    leader: Int16
    leader_epoch: Int32
    controller_epoch: Int32
    partition_epoch: Int32
    state: UInt8
    recovery: UInt8
    reassigning: UInt8
    replica_count: Int16
    isr_count: Int16
    replica: Int16
    isr: Int16
    replica_state: UInt8
    replica_flags: UInt8

    table = COLUMNS
    shared = frozenset({"topic", "partition", "slot_start", "slot_capacity", "replica_count", "replica"})

    def __init__(self) -> None:
        super().__init__()
        self.in_topic_order = True
        """Whether rows are sorted by (topic, partition). Batches then need no sort."""

    def copy(self) -> Partitions:
        """An independent copy without spare capacity."""
        copy = super().copy()
        copy.in_topic_order = self.in_topic_order
        return copy

    def append(
        self,
        topic: Int32,
        partition: Int32,
        replicas: Ragged,
        isr: Ragged | None = None,
        values: Mapping[str, NDArray[Any]] | None = None,
    ) -> Int32:
        """Add rows and return their numbers.

        ``replicas`` and ``isr`` hold broker indexes, one list per row. ``values`` gives further row columns by name;
        other columns get their initial values. Raises ShapeError if lengths differ or a limit is exceeded.
        """
        count = len(topic)
        if not len(partition) == len(replicas) == (count if isr is None else len(isr)) == count:
            lengths = f"{len(replicas)} replica lists, {count if isr is None else len(isr)} ISRs"
            raise ShapeError(f"{count} topics, {len(partition)} partitions, {lengths}")
        replica_counts = replicas.counts
        capacity = slots_of_lists(replicas, isr)
        values, slot_count = values or {}, int(capacity.sum())
        has_spare_slots = len(replicas.values) < slot_count
        written = {*values, *_APPENDED, *(() if has_spare_slots else ("replica",))}
        first_row, first_slot = self.grow(count, slot_count, written)
        rows = np.arange(first_row, first_row + count, dtype=np.int32)
        if not count:
            return rows
        self.own("replica")  # Rows without replicas need no new slots.
        follows = not first_row or int(topic[0]) > int(self.topic[first_row - 1])
        if not follows or bool(np.any(topic[1:] < topic[:-1])):
            self.in_topic_order = False
        fixed = {
            "topic": topic,
            "partition": partition,
            "slot_capacity": capacity,
            "replica_count": replica_counts,
            "isr_count": 0 if isr is None else isr.counts,
        }
        for name, column in {**values, **fixed}.items():
            getattr(self, name)[first_row:] = column
        starts = self.slot_start[first_row:]
        starts[:] = (offsets_of(capacity) if has_spare_slots else replicas.offsets)[:-1]
        starts += np.int32(first_slot)
        for slots, lists in ((self.replica, replicas), (self.isr, isr)):
            if lists is None:
                continue
            if len(lists.values) == slot_count:  # no row has spare slots
                slots[first_slot:] = lists.values
            elif len(lists.values):
                slots[ragged_positions(starts, lists.counts)] = lists.values
        return rows

    def replicas_of(self, row: int) -> Int32:
        """Broker indexes of the row's assigned replicas. The first is the preferred replica."""
        start = self.slot_start[row]
        return self.replica[start : start + self.replica_count[row]].astype(np.int32)

    def brokers_of(self, slots: NDArray[Any]) -> Int32:
        """Broker index of the assigned replica in each of ``slots``."""
        return np.asarray(values_at(self.replica, slots), np.int32)

    def isr_of(self, row: int) -> Int32:
        """Broker indexes of the row's in-sync replicas in stored order."""
        start = self.slot_start[row]
        return self.isr[start : start + self.isr_count[row]].astype(np.int32)

    def flagged_replicas(self, row: int, flag: ReplicaFlag) -> Int32:
        """Broker indexes of the row's replicas with ``flag``, in assignment order."""
        start = self.slot_start[row]
        stop = start + self.replica_count[row]
        has_flag: Bool = (self.replica_flags[start:stop] & np.uint8(flag)) != 0
        return self.replica[start:stop][has_flag].astype(np.int32)

    def lists(self, name: Literal["replica", "isr"], rows: NDArray[Any]) -> Ragged:
        """Replica or ISR lists of ``rows`` as a copy."""
        counts = values_at(self.replica_count if name == "replica" else self.isr_count, rows).astype(np.int32)
        offsets = offsets_of(counts)
        column: Int16 = getattr(self, name)
        return Ragged(offsets, column[ragged_positions(values_at(self.slot_start, rows), counts)].astype(np.int32))

    def slots_of(self, rows: NDArray[Any]) -> Int64:
        """Slots of the assigned replicas of ``rows``, row by row."""
        return ragged_positions(values_at(self.slot_start, rows), values_at(self.replica_count, rows))
