"""The dtype table of the partition columns, and the struct of arrays that it describes.

A partition is a *row* (``slot_columns.py``). The first ``isr_count[r]`` slots of row ``r`` hold its in-sync replicas;
they and the assigned replicas are in Kafka's list order. At RF 3 a partition takes 45 bytes.

The columns refer to brokers and topics by dense indexes (``Brokers.index_of``). Broker indexes are int16 in the
columns, which halves most of the memory of a partition. Code that computes with them uses int32 (``lists``,
``leaders_of``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from kframe.errors import ShapeError
from kframe.model.arrays import Bool, Int16, Int32, Int64, Ragged, UInt8, UInt16, offsets_of, ragged_positions
from kframe.model.epoch_table import EpochTable
from kframe.model.ids import (
    FLAGS_MASK,
    NO_LEADER,
    NO_STATE,
    STATE_SHIFT,
    PartitionFlag,
    PartitionState,
    ReplicaFlag,
    ReplicaState,
)
from kframe.model.row_views import block_of, values_at
from kframe.model.slot_columns import Column, SlotColumns, slots_of_lists

#: A row of so many slots or more has their number in a table of its own: nearly all partitions have few replicas.
WIDE: Final = 255

#: Every partition column. Kernels, checks, tests and the documentation read this table.
COLUMNS: Final[tuple[Column, ...]] = (
    Column("topic", np.int32, "row", -1, "topic index; -1 in a row whose topic was deleted"),
    Column("partition", np.int32, "row", -1, "partition number within the topic"),
    Column("leader", np.int16, "row", NO_LEADER, "broker index of the leader, or NO_LEADER"),
    Column("leader_epoch", np.int32, "row", -1, "raised by every change of leadership that a controller makes"),
    Column("epoch_number", np.uint16, "row", 0, "number of the controller epoch of the last stored change"),
    Column("partition_epoch", np.int32, "row", NO_STATE, "version of the stored state; NO_STATE where none is stored"),
    Column(
        "status",
        np.uint8,
        "row",
        PartitionState.NON_EXISTENT << STATE_SHIFT,
        "PartitionFlag bits and, from bit STATE_SHIFT on, the PartitionState",
    ),
    Column("slot_start", np.int32, "row", 0, "first slot of the row"),
    Column("slot_capacity", np.uint8, "row", 0, "slots that the row owns; WIDE for that many or more"),
    Column("replica_count", np.int16, "row", 0, "assigned replicas"),
    Column("isr_count", np.int16, "row", 0, "in-sync replicas"),
    Column("replica", np.int16, "slot", -1, "broker index of the assigned replica"),
    Column("isr", np.int16, "slot", -1, "broker index of the in-sync replica"),
    Column(
        "replica_status",
        np.uint8,
        "slot",
        ReplicaState.NON_EXISTENT << STATE_SHIFT,
        "ReplicaFlag bits and, from bit STATE_SHIFT on, the ReplicaState of the assigned replica",
    ),
)


#: Row columns that ``Partitions.append`` always writes.
_APPENDED: Final = ("topic", "partition", "slot_start", "slot_capacity", "replica_count", "isr_count")


class Partitions(SlotColumns):
    """The partition columns. Attributes are arrays of exactly ``len(self)`` rows or ``slot_count`` slots.

    Keep the object, not a view, across an ``append``.
    """

    topic: Int32
    partition: Int32
    leader: Int16
    leader_epoch: Int32
    epoch_number: UInt16
    partition_epoch: Int32
    status: UInt8
    replica_count: Int16
    isr_count: Int16
    replica: Int16
    isr: Int16
    replica_status: UInt8

    table = COLUMNS
    shared = frozenset({"topic", "partition", "slot_start", "slot_capacity", "replica_count", "replica"})

    def __init__(self) -> None:
        super().__init__()
        self.in_topic_order = True
        """Whether rows are sorted by (topic, partition). Batches then need no sort."""
        self.epoch_table = EpochTable.empty()
        """The controller epochs that ``epoch_number`` names."""
        self._wide: dict[int, int] = {}
        """The slots of WIDE rows."""

    def copy(self) -> Partitions:
        """An independent copy without spare capacity."""
        copy = super().copy()
        copy.in_topic_order = self.in_topic_order
        copy.epoch_table, copy._wide = self.epoch_table, dict(self._wide)
        return copy

    def capacity_of(self, rows: NDArray[Any]) -> Int32:
        """(k,) how many slots each of ``rows`` owns."""
        capacity = values_at(self.slot_capacity, rows).astype(np.int32)
        if self._wide:
            for position in np.flatnonzero(capacity == WIDE).tolist():
                capacity[position] = self._wide[int(rows[position])]
        return capacity

    def set_capacity(self, rows: NDArray[Any], capacity: NDArray[Any]) -> None:
        """Set how many slots each of ``rows`` owns."""
        self.own("slot_capacity")
        self.slot_capacity[block_of(rows)] = np.minimum(capacity, WIDE)
        for position in np.flatnonzero(capacity >= WIDE).tolist():
            self._wide[int(rows[position])] = int(capacity[position])

    def largest_capacity(self) -> int:
        """The slots of the widest row."""
        return max(int(self.slot_capacity.max(initial=0)), *self._wide.values(), 0)

    def append(
        self,
        topic: Int32,
        partition: Int32,
        replicas: Ragged,
        isr: Ragged | None = None,
        values: Mapping[str, NDArray[Any]] | None = None,
    ) -> Int32:
        """Add rows and return their numbers.

        ``replicas`` and ``isr`` hold broker indexes, one list per row. ``values`` gives further row columns by name,
        ``recovery`` (RecoveryState) and ``controller_epoch``; other columns get their initial values. Raises ShapeError
        if lengths differ or a limit is exceeded.
        """
        count = len(topic)
        if not len(partition) == len(replicas) == (count if isr is None else len(isr)) == count:
            lengths = f"{len(replicas)} replica lists, {count if isr is None else len(isr)} ISRs"
            raise ShapeError(f"{count} topics, {len(partition)} partitions, {lengths}")
        replica_counts = replicas.counts
        capacity = slots_of_lists(replicas, isr)
        values, slot_count = self._columns_of(values or {}), int(capacity.sum())
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
            "replica_count": replica_counts,
            "isr_count": 0 if isr is None else isr.counts,
        }
        for name, column in {**values, **fixed}.items():
            getattr(self, name)[first_row:] = column
        self.set_capacity(rows, capacity)
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

    def states_of(self, rows: NDArray[Any]) -> UInt8:
        """PartitionState of each of ``rows``."""
        return values_at(self.status, rows) >> np.uint8(STATE_SHIFT)

    def set_states(self, rows: NDArray[Any], states: PartitionState | NDArray[Any]) -> None:
        """Set the states of ``rows``. Their flags stay."""
        block, shifted = block_of(rows), np.left_shift(states, STATE_SHIFT).astype(np.uint8)
        self.status[block] = self.status[block] & np.uint8(FLAGS_MASK) | shifted

    def recovery_of(self, rows: NDArray[Any]) -> UInt8:
        """RecoveryState of each of ``rows``."""
        return values_at(self.status, rows) & np.uint8(PartitionFlag.RECOVERING)

    def reassigning(self, rows: NDArray[Any]) -> Bool:
        """Whether a reassignment of each of ``rows`` is in progress."""
        are: Bool = (values_at(self.status, rows) & np.uint8(PartitionFlag.REASSIGNING)) != 0
        return are

    def reassigning_rows(self) -> Int32:
        """All rows with a reassignment in progress."""
        return np.flatnonzero(self.status & np.uint8(PartitionFlag.REASSIGNING)).astype(np.int32)

    def set_reassigning(self, rows: NDArray[Any], is_reassigning: bool) -> None:
        """Set whether a reassignment of ``rows`` is in progress."""
        flag, block = np.uint8(PartitionFlag.REASSIGNING), block_of(rows)
        if is_reassigning:
            self.status[block] |= flag
        else:
            self.status[block] &= ~flag

    def replica_states(self, slots: NDArray[Any] | slice) -> UInt8:
        """ReplicaState of the assigned replica in each of ``slots``."""
        return self.replica_status[slots] >> np.uint8(STATE_SHIFT)

    def replica_flags(self, slots: NDArray[Any] | slice) -> UInt8:
        """ReplicaFlag bits of the assigned replica in each of ``slots``."""
        return self.replica_status[slots] & np.uint8(FLAGS_MASK)

    def are_flagged(self, slots: NDArray[Any] | slice, flags: int | np.uint8) -> Bool:
        """Whether the assigned replica in each of ``slots`` has one of these flags (ReplicaFlag bits)."""
        are: Bool = (self.replica_status[slots] & np.uint8(flags)) != 0
        return are

    def set_replica_states(self, slots: NDArray[Any] | slice, states: ReplicaState | UInt8) -> None:
        """Set the states of the replicas in ``slots``. Their flags stay."""
        shifted = np.left_shift(states, STATE_SHIFT).astype(np.uint8)
        self.replica_status[slots] = self.replica_flags(slots) | shifted

    def flagged_replicas(self, row: int, flag: ReplicaFlag) -> Int32:
        """Broker indexes of the row's replicas with ``flag``, in assignment order."""
        start = self.slot_start[row]
        slots = slice(start, start + self.replica_count[row])
        return self.replica[slots][self.are_flagged(slots, flag)].astype(np.int32)

    def lists(self, name: Literal["replica", "isr"], rows: NDArray[Any]) -> Ragged:
        """Replica or ISR lists of ``rows`` as a copy."""
        counts = values_at(self.replica_count if name == "replica" else self.isr_count, rows).astype(np.int32)
        offsets = offsets_of(counts)
        column: Int16 = getattr(self, name)
        return Ragged(offsets, column[ragged_positions(values_at(self.slot_start, rows), counts)].astype(np.int32))

    def slots_of(self, rows: NDArray[Any]) -> Int64:
        """Slots of the assigned replicas of ``rows``, row by row."""
        return ragged_positions(values_at(self.slot_start, rows), values_at(self.replica_count, rows))

    def controller_epochs_of(self, rows: NDArray[Any]) -> Int32:
        """Controller epoch of the last stored change of each of ``rows``."""
        return self.epoch_table.epochs[values_at(self.epoch_number, rows)]

    def number_epochs(self, epochs: Int32) -> UInt16:
        """(k,) ``epoch_number`` of rows with these controller epochs, which enter the table. Raises ShapeError if a
        cluster has more than EPOCHS_MAX."""
        self.epoch_table = self.epoch_table.extended(epochs)
        return self.epoch_table.numbers(epochs)

    def adopt_tables(self, source: Partitions) -> None:
        """Have the tables that values of ``source`` refer to, before rows of it are copied."""
        self.epoch_table = source.epoch_table

    def _columns_of(self, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Values of new rows by column: ``recovery`` is in the status, ``controller_epoch`` has a number."""
        columns = dict(values)
        if (recovery := columns.pop("recovery", None)) is not None:
            is_recovering = (recovery == PartitionFlag.RECOVERING).astype(np.uint8)
            columns["status"] = is_recovering | np.uint8(PartitionState.NON_EXISTENT << STATE_SHIFT)
        if (epochs := columns.pop("controller_epoch", None)) is not None:
            columns["epoch_number"] = self.number_epochs(epochs)
        return columns
