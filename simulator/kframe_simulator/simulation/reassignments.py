"""The reassignments in progress: original replicas, whether the target has been in sync, added replicas that no
election has considered, and removed replicas of brokers that were not registered."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from kframe.model.events import Event, TopicPartition
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.observations import StateWritten, TopicWritten


@dataclass(slots=True)
class ObservedReassignment:
    """A reassignment of one partition to one target, in progress or complete."""

    origin: frozenset[int]
    """The replicas before the reassignment, and before those that it overrides."""
    target: frozenset[int]
    in_sync: bool = False
    """Whether the whole target has been in sync."""

    def state_read(self, row: Row) -> None:
        """Compare the target with a stored ISR."""
        self.in_sync |= self.target <= frozenset(row.isr)


class LastReassignments:
    """The last reassignment of each partition, in progress or complete."""

    def __init__(self) -> None:
        self._last: dict[TopicPartition, ObservedReassignment] = {}
        self._at_end_of_term: dict[int, dict[TopicPartition, ObservedReassignment]] = {}
        """The last reassignments, by controller epoch, when the next controller claimed the role."""
        self._awaiting: dict[tuple[TopicPartition, int], Event | None] = {}
        """Replicas (partition, broker) that were added to a partition without a leader since the last event that elects
        leaders of all partitions without one, and the event that added them."""

    def role_claimed(self, controller_epoch: int) -> None:
        """A controller has claimed the role. From now on, controllers of earlier terms cannot store a reassignment, and
        do not read those of this term."""
        self._at_end_of_term[controller_epoch - 1] = self._last.copy()

    def topic_written(self, written: TopicWritten) -> None:
        """A topic was stored: reassignments begin, get another target, or end."""
        for number, after in written.after.items():
            before, key = written.before.get(number), after.key
            if before is not None and after.leader < 0 and written.process is not None:
                for replica in set(after.adding).difference(before.replicas):
                    self._awaiting[key, replica] = written.process.event
            if before is not None and before[7:10] != after[7:10] and (after.adding or after.removing):
                self._reassigned(before, after)
        for number in written.before.keys() - written.after.keys():
            self._last.pop((written.name, number), None)
        if not written.after:
            self._awaiting = {key: event for key, event in self._awaiting.items() if key[0][0] != written.name}

    def _reassigned(self, before: Row, after: Row) -> None:
        """A reassignment was stored. It begins, or continues, perhaps to another target."""
        target, last = frozenset(after.target), self._last.get(after.key)
        if last is None or not (before.adding or before.removing):
            self._last[after.key] = ObservedReassignment(frozenset(before.origin), target)
        elif last.target != target:
            self._last[after.key] = ObservedReassignment(last.origin, target)
        self._last[after.key].state_read(after)

    def state_written(self, written: StateWritten) -> None:
        """A state was stored."""
        if written.key in self._last:
            self._last[written.key].state_read(written.after)

    def leaders_elected(self, event: Event) -> None:
        """An event has elected leaders of partitions without one, before it stored assignments."""
        self._awaiting = {key: adding for key, adding in self._awaiting.items() if adding is event}

    def awaiting_election(self, key: TopicPartition) -> set[int]:
        """Replicas that no election of this partition has considered."""
        return {replica for partition, replica in self._awaiting if partition == key}

    def may_stop(self, key: TopicPartition, broker_id: int, controller_epoch: int) -> bool:
        """Whether a controller may stop a replica: it was no original replica, or the whole target has been in sync.
        This concerns the last reassignment of the controller's own term."""
        last = self._at_end_of_term.get(controller_epoch, self._last).get(key)
        return last is None or broker_id not in last.origin or last.in_sync


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
