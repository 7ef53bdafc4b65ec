"""The state znodes of a ZooKeeper dump, joined to the assigned partitions."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final

import numpy as np

from kframe.errors import SnapshotError
from kframe.model.columns import Int32, Ragged
from kframe.model.ids import NO_LEADER, NO_STATE
from kframe.snapshot.assemble import Assembled, GrowingLists, int32
from kframe.snapshot.decode import decode
from kframe.snapshot.facts import PartitionFacts
from kframe.snapshot.znodes import STATE_DECODER, Znode, number_of

#: Fields of a state znode, and what stands in a row that has none.
_NUMBERS: Final = {"leader": NO_LEADER, "leader_epoch": -1, "controller_epoch": -1, "leader_recovery_state": 0}


class StateRows:
    """State znodes in the order of the dump; they may come before their topic's."""

    def __init__(self, place: Callable[[int], str]) -> None:
        self._place = place
        self._topics: dict[str, int] = {}
        self._topic, self._partition, self._line, self._version = array("i"), array("i"), array("i"), array("i")
        self._numbers = {name: array("i") for name in _NUMBERS}
        self._isr = GrowingLists()

    def take(self, topic: str, partition: str, znode: Znode, number: int) -> None:
        """Note one state znode."""
        where = f"{self._place(number)} data of {znode.path}"
        state = decode(STATE_DECODER, znode.data or "", where)
        self._topic.append(self._topics.setdefault(topic, len(self._topics)))
        self._partition.append(number_of(partition, where))
        self._line.append(number)
        self._version.append(znode.version)
        for name, column in self._numbers.items():
            column.append(getattr(state, name))
        self._isr.append(state.isr)

    def finish(self, assembled: Assembled) -> tuple[PartitionFacts, Int32]:
        """The partition table, and the line of each row's state (0 where it has none).

        A state whose partition is not assigned is passed over, as by a controller; one of a topic that has no znode at
        all cannot come from a whole dump.
        """
        rows, chosen = self._rows(assembled)
        count = len(assembled.replicas)

        def scattered(column: array[int], absent: int) -> Int32:
            full = np.full(count, absent, np.int32)
            full[rows] = int32(column)[chosen]
            return full

        numbers = {name: scattered(column, _NUMBERS[name]) for name, column in self._numbers.items()}
        isr = self._isr.ragged().take(chosen)
        offsets = np.zeros(count + 1, np.int32)
        offsets[rows + 1] = isr.counts
        facts = PartitionFacts(
            replicas=assembled.replicas,
            isr=Ragged(np.cumsum(offsets, dtype=np.int32), isr.values),
            zk_version=scattered(self._version, NO_STATE),
            leader=numbers["leader"],
            leader_epoch=numbers["leader_epoch"],
            controller_epoch=numbers["controller_epoch"],
            leader_recovery_state=numbers["leader_recovery_state"],
            adding_replicas=assembled.lists["adding_replicas"],
            removing_replicas=assembled.lists["removing_replicas"],
        )
        return facts, scattered(self._line, 0)

    def _rows(self, assembled: Assembled) -> tuple[Int32, Int32]:
        """Rows that have a state, ascending, and the position here of each one's."""
        index = {name: topic for topic, name in enumerate(assembled.topics.names)}
        line, partition = int32(self._line), int32(self._partition)
        known = np.array([index.get(name, -1) for name in self._topics], np.int32)
        topic = known[int32(self._topic)] if len(known) else np.empty(0, np.int32)
        if (topic < 0).any():
            at = int(np.argmax(topic < 0))
            name = list(self._topics)[self._topic[at]]
            raise SnapshotError(
                self._place(int(line[at])), f"a state of topic {name}", f"a znode /brokers/topics/{name}"
            )
        assigned = np.flatnonzero(partition < assembled.topics.partition_counts[topic])
        rows = assembled.topics.first_rows[topic[assigned]] + partition[assigned]
        order = np.argsort(rows, kind="stable")
        rows, chosen = rows[order], assigned[order].astype(np.int32)
        again = np.flatnonzero(rows[1:] == rows[:-1])
        if len(again):
            at = int(again[0])
            found = f"a second state of partition {assembled.topics.name_of_row(int(rows[at]))}"
            raise SnapshotError(self._place(int(line[chosen[at + 1]])), found, "one state a partition")
        return rows, chosen
