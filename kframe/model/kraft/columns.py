"""The partition columns of a KRaft cluster, with ELRs, directories and reassignments.

Rows and slots work as in ``kframe.model.columns``. A row has three lists in its slots: ``replica`` with the directory
of each replica beside it, ``isr``, and ``member``. The last one has the eligible leader replicas, then the last-known
ones, then the adding and the removing replicas: most partitions have none of them. At RF 3 a partition takes 67 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from kframe.errors import ShapeError
from kframe.model.arrays import Bool, Int16, Int32, Ragged, UInt8, offsets_of, ragged_positions
from kframe.model.ids import NO_LEADER
from kframe.model.slot_columns import REPLICAS_MAX, Column, SlotColumns

#: Every partition column of a KRaft cluster.
KRAFT_COLUMNS: Final[tuple[Column, ...]] = (
    Column("topic", np.int32, "row", -1, "topic index; -1 in a row whose topic was removed"),
    Column("partition", np.int32, "row", -1, "partition number within the topic"),
    Column("leader", np.int16, "row", NO_LEADER, "broker index of the leader, or NO_LEADER"),
    Column("leader_epoch", np.int32, "row", 0, "raised by every record that names a leader"),
    Column("partition_epoch", np.int32, "row", 0, "raised by every change of the partition"),
    Column("recovery", np.uint8, "row", 0, "RecoveryState"),
    Column("slot_start", np.int32, "row", 0, "first slot of the row"),
    Column("slot_capacity", np.int16, "row", 0, "slots that the row owns"),
    Column("replica_count", np.int16, "row", 0, "replicas"),
    Column("isr_count", np.int16, "row", 0, "in-sync replicas"),
    Column("elr_count", np.int16, "row", 0, "eligible leader replicas"),
    Column("last_known_elr_count", np.int16, "row", 0, "last-known eligible leader replicas"),
    Column("adding_count", np.int16, "row", 0, "adding replicas"),
    Column("removing_count", np.int16, "row", 0, "removing replicas"),
    Column("replica", np.int16, "slot", -1, "broker index of the replica"),
    Column("isr", np.int16, "slot", -1, "broker index of the in-sync replica"),
    Column("member", np.int16, "slot", 0, "broker index of an ELR, last-known ELR, adding or removing member"),
    Column("directory", np.int32, "slot", 0, "directory index of the replica"),
)
#: The lists in ``member``, in that order.
MEMBER_LISTS: Final = ("elr", "last_known_elr", "adding", "removing")


class PartitionLists(Struct, frozen=True, eq=False):
    """The lists of some partitions, one list a partition: broker indexes, and directory indexes."""

    replicas: Ragged
    isr: Ragged
    directories: Ragged
    elr: Ragged
    last_known_elr: Ragged
    adding: Ragged
    removing: Ragged

    @staticmethod
    def of(lists: Mapping[str, Sequence[Sequence[int]]]) -> PartitionLists:
        """Pack Python lists by field name; absent fields are empty lists. ``replicas`` must be there."""
        count = len(lists["replicas"])
        packed = {
            name: Ragged.of([list(row) for row in lists.get(name, [()] * count)])
            for name in PartitionLists.__struct_fields__
        }
        return PartitionLists(**packed)


class KraftPartitions(SlotColumns):
    """The partition columns of a KRaft cluster. Keep the object, not a view, across a change of size."""

    table = KRAFT_COLUMNS
    topic: Int32
    partition: Int32
    leader: Int16
    leader_epoch: Int32
    partition_epoch: Int32
    recovery: UInt8
    replica_count: Int16
    isr_count: Int16
    elr_count: Int16
    last_known_elr_count: Int16
    adding_count: Int16
    removing_count: Int16
    replica: Int16
    isr: Int16
    member: Int16
    directory: Int32

    def append(self, lists: PartitionLists, values: Mapping[str, NDArray[Any]]) -> Int32:
        """Add rows with these lists and row columns; return their numbers.

        ``values`` has ``topic``, ``partition`` and further row columns by name. Raises ShapeError if lengths differ
        or a row is too wide.
        """
        count = len(lists.replicas)
        packed = astuple(lists)
        lengths = [len(ragged) for ragged in packed] + [len(column) for column in values.values()]
        if set(lengths) != {count} or not np.array_equal(lists.directories.counts, lists.replicas.counts):
            raise ShapeError(f"lists and columns of {count} partitions have lengths {lengths}")
        members = [ragged for name in MEMBER_LISTS if len((ragged := getattr(lists, name)).values)]
        capacity = np.maximum(lists.replicas.counts, lists.isr.counts)
        if members:
            capacity = np.maximum(capacity, sum(ragged.counts for ragged in members))
        _check_width(int(capacity.max(initial=0)))
        named = {"replica": lists.replicas, "isr": lists.isr, "directory": lists.directories}
        named |= {name: getattr(lists, name) for name in MEMBER_LISTS}
        columns = {
            f"{name}_count": ragged.counts
            for name, ragged in named.items()
            if name != "directory" and len(ragged.values)
        }
        columns |= {**values, "slot_capacity": capacity}
        # The lists that fill their rows, one after another.
        filling = [name for name, ragged in named.items() if np.array_equal(ragged.counts, capacity)]
        filled = ("member" if name in MEMBER_LISTS else name for name in filling)
        first_row, first_slot = self.grow(count, int(capacity.sum()), {*columns, "slot_start", *filled})
        rows = np.arange(first_row, first_row + count, dtype=np.int32)
        for name, column in columns.items():
            getattr(self, name)[first_row:] = column
        self.slot_start[first_row:] = first_slot + np.cumsum(capacity) - capacity
        for name, ragged in named.items():
            if name in filling:
                self._slots_of(name)[first_slot:] = ragged.values
            elif len(ragged.values):
                starts, counts = self._starts(name, rows), self._counts(name)[rows].astype(np.int32)
                self._slots_of(name)[ragged_positions(starts, counts)] = ragged.values
        return rows

    def append_row(self, lists: Mapping[str, Sequence[int]]) -> int:
        """Add a row with these lists, as ``replace_lists`` takes them. Return its number."""
        members = sum(len(lists.get(name, ())) for name in MEMBER_LISTS)
        capacity = max(len(lists["replica"]), len(lists.get("isr", ())), members)
        _check_width(capacity)
        row, start = self.grow(1, capacity)
        self.slot_start[row], self.slot_capacity[row] = start, capacity
        self.replace_lists(row, lists)
        return row

    def lists(self, name: str, rows: NDArray[Any]) -> Ragged:
        """One list of each of ``rows`` as a copy. Its name is ``replica``, ``isr``, ``directory`` or one of
        MEMBER_LISTS."""
        counts = self._counts(name)[rows].astype(np.int32)
        if not counts.any():
            return Ragged.empty(len(rows))
        starts = self._starts(name, rows)
        offsets, slots = offsets_of(counts), self._slots_of(name)
        if np.array_equal(offsets[:-1], starts - starts[0]):  # one list after another, as in all rows of a new table
            return Ragged(offsets, slots[starts[0] : starts[0] + offsets[-1]].astype(np.int32))
        return Ragged(offsets, slots[ragged_positions(starts, counts)].astype(np.int32))

    def list_of(self, name: str, row: int) -> list[int]:
        """One list of one row."""
        start = int(self.slot_start[row])
        if name in MEMBER_LISTS:
            for other in MEMBER_LISTS[: MEMBER_LISTS.index(name)]:
                start += int(self._counts(other)[row])
        count = int(self._counts(name)[row])
        values: list[int] = self._slots_of(name)[start : start + count].tolist()
        return values

    def replace_lists(self, row: int, lists: Mapping[str, Sequence[int]]) -> None:
        """Store new lists of one row by name, as in ``lists``. Other lists stay. Raises ShapeError.

        Replicas and directories must have the same length.
        """
        columns: dict[str, Sequence[int]] = {}
        if "replica" in lists or "directory" in lists:
            columns["replica"] = lists["replica"] if "replica" in lists else self.list_of("replica", row)
            columns["directory"] = lists["directory"] if "directory" in lists else self.list_of("directory", row)
            if len(columns["directory"]) != len(columns["replica"]):
                counts = len(columns["replica"]), len(columns["directory"])
                raise ShapeError(f"{counts[0]} replicas have {counts[1]} directories")
        if "isr" in lists:
            columns["isr"] = lists["isr"]
        members: list[Sequence[int]] = []
        if not lists.keys().isdisjoint(MEMBER_LISTS):
            members = [lists[name] if name in lists else self.list_of(name, row) for name in MEMBER_LISTS]
            columns["member"] = [value for values in members for value in values]
        self._store_lists(row, columns)
        for name, values in zip(MEMBER_LISTS, members, strict=False):
            getattr(self, f"{name}_count")[row] = len(values)

    def replace_many(self, rows: NDArray[Any], changes: Mapping[str, tuple[Bool, Ragged]]) -> None:
        """Store new lists of unique ``rows``, by name as in ``lists``; rows outside the mask of a list keep theirs.

        Raises ShapeError if a row is too wide, or its replicas and directories differ in length.
        """
        merged = {
            name: ragged if mask.all() else _merge(mask, ragged, self.lists(name, rows))
            for name, (mask, ragged) in changes.items()
            if mask.any()
        }
        if not merged:
            return
        if not {"replica", "directory"}.isdisjoint(merged):
            for name in {"replica", "directory"} - merged.keys():
                merged[name] = self.lists(name, rows)
            if not np.array_equal(merged["replica"].counts, merged["directory"].counts):
                raise ShapeError(f"directories of {len(rows)} partitions differ in number from their replicas")
        if not merged.keys().isdisjoint(MEMBER_LISTS):
            for name in MEMBER_LISTS:
                merged.setdefault(name, self.lists(name, rows))
        members = sum((merged[name].counts for name in MEMBER_LISTS if name in merged), np.zeros(len(rows), np.int32))
        capacity = np.max([members, *(ragged.counts for ragged in merged.values())], axis=0)
        _check_width(int(capacity.max(initial=0)))
        self.ensure_capacity(rows, capacity)
        for name, ragged in merged.items():
            if name != "directory":
                getattr(self, f"{name}_count")[rows] = ragged.counts
        for name, ragged in merged.items():
            self._slots_of(name)[ragged_positions(self._starts(name, rows), ragged.counts)] = ragged.values

    def _store_lists(self, row: int, columns: Mapping[str, Sequence[int]]) -> None:
        """Write values into the slots of a row, which gets more of them if they are too few."""
        capacity = max(map(len, columns.values()), default=0)
        if capacity > self.slot_capacity[row]:
            _check_width(capacity)
            self.ensure_capacity(np.array([row]), np.array([capacity]))
        start = int(self.slot_start[row])
        for name, values in columns.items():
            getattr(self, name)[start : start + len(values)] = values
            if name in ("replica", "isr"):
                getattr(self, f"{name}_count")[row] = len(values)

    def clear(self, rows: NDArray[Any]) -> None:
        """Empty the rows of a removed topic. They are never reused."""
        self.topic[rows] = self.partition[rows] = -1
        self.leader[rows] = NO_LEADER
        for name in ("replica", "isr", *MEMBER_LISTS):
            getattr(self, f"{name}_count")[rows] = 0

    def rows_led_by(self, broker: int) -> Int32:
        """The rows whose leader is a broker index. With NO_LEADER the leaderless partitions."""
        return np.flatnonzero((self.leader == broker) & (self.topic >= 0)).astype(np.int32)

    def _slots_of(self, name: str) -> NDArray[Any]:
        column: NDArray[Any] = self.member if name in MEMBER_LISTS else getattr(self, name)
        return column

    def _counts(self, name: str) -> NDArray[Any]:
        """Lengths of a list in all rows."""
        counts: NDArray[Any] = getattr(self, "replica_count" if name == "directory" else f"{name}_count")
        return counts

    def _starts(self, name: str, rows: NDArray[Any]) -> Int32:
        """First slot of a list in each of ``rows``."""
        starts: Int32 = self.slot_start[rows].astype(np.int32)
        if name in MEMBER_LISTS:
            for earlier in MEMBER_LISTS[: MEMBER_LISTS.index(name)]:
                starts += self._counts(earlier)[rows]
        return starts


def _check_width(slots: int) -> None:
    if slots > REPLICAS_MAX:
        raise ShapeError(f"a row of {slots} slots; the most is {REPLICAS_MAX}")


def _merge(mask: Bool, new: Ragged, old: Ragged) -> Ragged:
    """The lists of ``new`` where ``mask`` is set, else those of ``old``."""
    count = len(new)
    return Ragged.chain([new, old]).take(np.where(mask, np.arange(count), np.arange(count, 2 * count)))
