"""The reassignments in progress: original replicas, and whether the target has been in sync."""

from __future__ import annotations

from kframe.model.events import TopicPartition
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.observations import StateWritten, TopicWritten


class LastReassignments:
    """The last reassignment of each partition, in progress or complete."""

    def __init__(self) -> None:
        self.origin: dict[TopicPartition, frozenset[int]] = {}
        """The replicas before the reassignment."""
        self._target: dict[TopicPartition, frozenset[int]] = {}
        self._in_sync: set[TopicPartition] = set()

    def topic_written(self, written: TopicWritten) -> None:
        """A topic was stored: reassignments begin, get another target, or end."""
        for number, after in written.after.items():
            before, key = written.before.get(number), after.key
            if before is not None and before[7:10] != after[7:10] and (after.adding or after.removing):
                if not (before.adding or before.removing):
                    self.origin[key] = frozenset(before.replicas)
                target = frozenset(after.target)
                if self._target.get(key) != target:
                    self._target[key] = target
                    self._in_sync.discard(key)
                self._look(key, after)
        for number in written.before.keys() - written.after.keys():
            self.origin.pop((written.name, number), None)

    def state_written(self, written: StateWritten) -> None:
        """A state was stored."""
        self._look(written.key, written.after)

    def may_stop(self, key: TopicPartition, broker_id: int) -> bool:
        """Whether a replica may be stopped: it was no original replica, or the whole target has been in sync."""
        return broker_id not in self.origin.get(key, ()) or key in self._in_sync

    def _look(self, key: TopicPartition, row: Row) -> None:
        target = self._target.get(key)
        if target is not None and target <= frozenset(row.isr):
            self._in_sync.add(key)
