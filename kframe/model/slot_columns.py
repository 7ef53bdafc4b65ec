"""Arrays that grow together: columns with a value for each row, and columns with several.

Row columns hold one value per row. Slot columns hold several (replicas, in-sync replicas). Row ``r`` owns the slots
``slot_start[r] .. slot_start[r] + slot_capacity[r]``, of which the first ``replica_count[r]`` hold its assigned
replicas. New slots are allocated at the end, so a row with three replicas uses three slots, however wide others are.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kframe.errors import ShapeError
from kframe.model.arrays import Int16, Int32, Ragged, ragged_positions
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


def slots_of_lists(replicas: Ragged, isr: Ragged | None) -> Int32:
    """(n,) the slots that rows with these lists need. Raises ShapeError if a row has more than REPLICAS_MAX."""
    capacity = replicas.counts if isr is None else np.maximum(replicas.counts, isr.counts)
    if (largest := int(capacity.max(initial=0))) > REPLICAS_MAX:
        raise ShapeError(f"a row of {largest} replicas; the maximum is {REPLICAS_MAX}")
    return capacity


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
    slot_capacity: NDArray[Any]

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
        owned = self.capacity_of(rows)
        short = owned < capacity
        if not short.any():
            return
        rows, capacity = rows[short], capacity[short].astype(np.int64)
        old_starts, old_capacity = self.slot_start[rows], owned[short]
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
        self.own("slot_start")
        self.slot_start[rows] = starts
        self.set_capacity(rows, capacity)
        self.relocations += 1

    def adopt_tables(self, source: Self) -> None:
        """Have the tables that values of ``source`` refer to, before rows of it are copied. Here there are none."""

    def capacity_of(self, rows: NDArray[Any]) -> NDArray[Any]:
        """How many slots each of ``rows`` owns."""
        return values_at(self.slot_capacity, rows)

    def set_capacity(self, rows: NDArray[Any], capacity: NDArray[Any]) -> None:
        """Set how many slots each of ``rows`` owns."""
        self.slot_capacity[rows] = capacity

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
