"""The reassignments in progress: original replicas, whether the target has been in sync, added replicas that no
election has considered, and removed replicas of brokers that were not registered."""

from __future__ import annotations

from collections.abc import Mapping, Set

from kframe.model.events import Event, TopicPartition
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.observations import StateWritten, TopicWritten


class LastReassignments:
    """The last reassignment of each partition, in progress or complete."""

    def __init__(self) -> None:
        self.origin: dict[TopicPartition, frozenset[int]] = {}
        """The replicas before the reassignment."""
        self._target: dict[TopicPartition, frozenset[int]] = {}
        self._in_sync: set[TopicPartition] = set()
        self._awaiting: dict[tuple[TopicPartition, int], Event | None] = {}
        """Replicas (partition, broker) that were added to a partition without a leader since the last event that elects
        leaders of all partitions without one, and the event that added them."""

    def topic_written(self, written: TopicWritten) -> None:
        """A topic was stored: reassignments begin, get another target, or end."""
        for number, after in written.after.items():
            before, key = written.before.get(number), after.key
            if before is not None and after.leader < 0 and written.process is not None:
                for replica in set(after.adding).difference(before.replicas):
                    self._awaiting[key, replica] = written.process.event
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
        if not written.after:
            self._awaiting = {key: event for key, event in self._awaiting.items() if key[0][0] != written.name}

    def state_written(self, written: StateWritten) -> None:
        """A state was stored."""
        self._look(written.key, written.after)

    def leaders_elected(self, event: Event) -> None:
        """An event has elected leaders of partitions without one, before it stored assignments."""
        self._awaiting = {key: adding for key, adding in self._awaiting.items() if adding is event}

    def awaiting_election(self, key: TopicPartition) -> set[int]:
        """Replicas that no election of this partition has considered."""
        return {replica for partition, replica in self._awaiting if partition == key}

    def may_stop(self, key: TopicPartition, broker_id: int) -> bool:
        """Whether a replica may be stopped: it was no original replica, or the whole target has been in sync."""
        return broker_id not in self.origin.get(key, ()) or key in self._in_sync

    def _look(self, key: TopicPartition, row: Row) -> None:
        target = self._target.get(key)
        if target is not None and target <= frozenset(row.isr):
            self._in_sync.add(key)


class SentReplicas:
    """The replicas in the LeaderAndIsr and UpdateMetadata requests of one term."""

    def __init__(self) -> None:
        self._last: dict[TopicPartition, tuple[int, ...]] = {}
        self.absent_at_removal: set[tuple[TopicPartition, int]] = set()
        """Replicas (partition, broker) whose broker was not registered when requests first left it out."""

    def queued(
        self,
        replicas: Mapping[TopicPartition, tuple[int, ...]],
        stored: Mapping[TopicPartition, Row],
        registered: Set[int],
    ) -> None:
        """A request was queued. The first request of a partition is compared with its stored replicas."""
        for key, after in replicas.items():
            before = self._last.get(key)
            if before is None:
                before = stored[key].replicas if key in stored else ()
            if before != after:
                absent = set(before).difference(after, registered)
                self.absent_at_removal.update((key, broker) for broker in absent)
                self.absent_at_removal.difference_update((key, broker) for broker in after)
            self._last[key] = after

    def partition_deleted(self, key: TopicPartition) -> None:
        """The topic of a partition was deleted."""
        self._last.pop(key, None)
        self.absent_at_removal = {entry for entry in self.absent_at_removal if entry[0] != key}
