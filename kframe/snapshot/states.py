"""The state znodes of a ZooKeeper dump, joined to the assigned partitions."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from kframe.errors import SnapshotError
from kframe.model.arrays import Int32, Int64
from kframe.model.ids import NO_LEADER, NO_STATE
from kframe.snapshot.assemble import Assembled, GrowingLists, int32
from kframe.snapshot.decode import decode, refuse_repeated_keys
from kframe.snapshot.facts import PartitionFacts
from kframe.snapshot.faults import REFUSE, Faults
from kframe.snapshot.znode_lines import STATE_NUMBERS, ZnodeLines
from kframe.snapshot.znodes import STATE_DECODER, Znode, number_of

#: Fields of a state znode, and the value of a row without a state.
_NUMBERS: Final = {"leader": NO_LEADER, "leader_epoch": -1, "controller_epoch": -1, "leader_recovery_state": 0}
#: The keys of a state that a reader takes.
_STATE_KEYS: Final = ('"isr"', *(f'"{name}"' for name in _NUMBERS))


class DumpedStates:
    """Collects state znodes, which may precede their topics. Within a block, those that the kernel skips come first."""

    def __init__(self, location: Callable[[int], str]) -> None:
        self._location = location
        self._topics: dict[str, int] = {}
        self._topic, self._partition, self._line, self._version = array("i"), array("i"), array("i"), array("i")
        self._numbers = {name: array("i") for name in _NUMBERS}
        self._isr = GrowingLists()
        self._unreadable: set[tuple[str, str]] = set()

    def take(self, topic: str, partition: str, znode: Znode, number: int) -> None:
        """Note one state znode."""
        where = f"{self._location(number)} data of {znode.path}"
        data = znode.data or ""
        state, partition_number = decode(STATE_DECODER, data, where), number_of(partition, where)
        if any(data.count(key) > 1 for key in _STATE_KEYS):
            refuse_repeated_keys(data, where)
        self._topic.append(self._topics.setdefault(topic, len(self._topics)))
        self._partition.append(partition_number)
        self._line.append(number)
        self._version.append(znode.version)
        for name, column in self._numbers.items():
            column.append(getattr(state, name))
        self._isr.append(state.isr)

    def take_lines(self, lines: ZnodeLines, topics: Sequence[tuple[str, int]], number: int) -> None:
        """Note the states that the kernel has read: the count of each topic. ``number`` is that of the first line."""
        if not lines.rows:
            return
        ordinals = [self._topics.setdefault(name, len(self._topics)) for name, _ in topics]
        self._topic.frombytes(np.repeat(np.array(ordinals, np.int32), [count for _, count in topics]).tobytes())
        self._line.frombytes((lines.line[: lines.rows] + np.int32(number)).tobytes())
        columns = (self._partition, self._version, *(self._numbers[name] for name in STATE_NUMBERS))
        for column, entries in zip(columns, lines.numbers, strict=True):
            column.frombytes(entries[: lines.rows].tobytes())
        self._isr.extend(*lines.isrs())

    def take_unreadable(self, topic: str, partition: str) -> None:
        """Note that a partition has a state that cannot be read."""
        self._unreadable.add((topic, partition))

    def state_count(self, topic: str) -> int:
        """The number of partitions of a topic that have a state, readable or not."""
        ordinal = self._topics.get(topic, -1)
        read = int32(self._partition)[int32(self._topic) == ordinal].tolist()
        return len({*map(str, read), *(partition for name, partition in self._unreadable if name == topic)})

    def finish(self, assembled: Assembled, faults: Faults = REFUSE) -> tuple[PartitionFacts, Int32]:
        """The partition table, and the line of each row's state (0 where it has none).

        A state of an unassigned partition is ignored, as by a controller. A state of a topic without a znode cannot
        come from a complete dump.
        """
        rows, positions = self._rows(assembled, faults)
        count = len(assembled.replicas)

        def scattered(column: array[int], absent: int) -> Int32:
            present = int32(column)[positions]
            if len(rows) == count:
                return present
            full = np.full(count, absent, np.int32)
            full[rows] = present
            return full

        numbers = {name: scattered(column, _NUMBERS[name]) for name, column in self._numbers.items()}
        isr = self._isr.take(positions).spread(rows, count)
        versions = scattered(self._version, NO_STATE)
        columns = {"isr": isr, "partition_epoch": versions, **numbers, **assembled.lists}
        facts = PartitionFacts(assembled.replicas, **columns)  # type: ignore[arg-type]
        return facts, scattered(self._line, 0)

    def _rows(self, assembled: Assembled, faults: Faults) -> tuple[Int64, Int64]:
        """The rows that have a state, ascending, and the position of each state in the columns read."""
        index = {name: topic for topic, name in enumerate(assembled.topics.names)}
        line, partition = int32(self._line), int32(self._partition)
        known = np.array([index.get(name, -1) for name in self._topics], np.int32)
        topic = known[int32(self._topic)] if len(known) else np.empty(0, np.int32)
        if (topic < 0).any():
            self._note_unassigned([name for name in self._topics if name not in index], line, faults)
        assigned = np.flatnonzero(topic >= 0)
        assigned = assigned[partition[assigned] < assembled.topics.partition_counts[topic[assigned]]]
        if (np.diff(line[assigned]) < 0).any():  # seldom: a state of another form came before those of its block
            assigned = assigned[np.argsort(line[assigned], kind="stable")]
        rows = assembled.topics.first_rows[topic[assigned]] + partition[assigned]
        order = np.argsort(rows, kind="stable")
        positions = assigned[order]
        rows = rows[order].astype(np.int64)  # NumPy converts indexes of another type each time
        repeated = rows[1:] == rows[:-1]
        for position in np.flatnonzero(repeated).tolist():
            name = assembled.topics.name_of_row(int(rows[position]))
            fault = SnapshotError(
                self._location(int(line[positions[position + 1]])),
                f"a second state of partition {name}",
                "one state a partition",
            )
            faults(fault, name.rpartition("-")[0])
        single = np.r_[True, ~repeated][: len(rows)]
        return rows[single], positions[single]

    def _note_unassigned(self, names: list[str], line: Int32, faults: Faults) -> None:
        """Note one state for each topic without a znode; topics at fault have been noted already."""
        owner = int32(self._topic)
        first_lines = {name: int(line[owner == self._topics[name]].min()) for name in names}
        for name in sorted(names, key=first_lines.__getitem__):
            if name not in faults.topics:
                where, expected = self._location(first_lines[name]), f"a znode /brokers/topics/{name}"
                faults(SnapshotError(where, f"a state of topic {name}", expected), name)
