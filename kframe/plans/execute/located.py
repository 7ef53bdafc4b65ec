"""Where each partition of a plan is, and whether it can still move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from kframe.model.events import TopicPartition
from kframe.plans.execute.entries import AssignmentRequest, ExecutedPartition
from kframe.plans.execute.observation import Observation, Position
from kframe.plans.execute.state import ExecutionState
from kframe.snapshot.metadata import DescribedPartition

#: Observations after which a request is sent again, or a partition that is elsewhere belongs to another client:
#: brokers describe a change later than the controller.
LAG_ROUNDS: Final = 15


@dataclass(frozen=True, slots=True)
class LocatedPartition:
    """A partition of the plan and where it is."""

    planned: ExecutedPartition
    start: tuple[int, ...]
    end: tuple[int, ...]
    position: Position
    described: DescribedPartition | None
    """None if it does not exist."""

    @property
    def name(self) -> TopicPartition:
        """Topic and number."""
        return self.planned.name

    @property
    def added(self) -> set[int]:
        """The brokers that the partition is copied to."""
        return set(self.end) - set(self.start)

    def request(self, replicas: tuple[int, ...] | None) -> AssignmentRequest:
        """The reassignment to ``replicas``, or the cancellation of the one in flight.

        In KRaft mode a request for the old list keeps the adding replicas, and waits for them
        (``ReplicationControlManager.changePartitionReassignment``).
        """
        return AssignmentRequest(*self.name, replicas)


class PartitionTracker:
    """Locates each partition once for an observation, and remembers requests that brokers may not describe yet."""

    def __init__(self, state: ExecutionState, first_round: int) -> None:
        """``first_round`` counts observations that are yet to come before the first decision."""
        self._state = state
        self._round = first_round
        self._requested: dict[TopicPartition, tuple[int, AssignmentRequest]] = {}
        self._elsewhere: Counter[TopicPartition] = Counter()
        self._by_name: dict[TopicPartition, LocatedPartition] = {}
        self._observation: Observation | None = None

    @property
    def observation(self) -> Observation:
        """The last observation."""
        assert self._observation is not None, "observe comes first"
        return self._observation

    @property
    def is_observed(self) -> bool:
        """Whether there was an observation."""
        return self._observation is not None

    @property
    def partitions(self) -> Collection[LocatedPartition]:
        """All partitions of the plan, in its order."""
        return self._by_name.values()

    def located(self, stage: Iterable[ExecutedPartition]) -> list[LocatedPartition]:
        """The partitions of a stage."""
        return [self._by_name[partition.name] for partition in stage]

    def observe(self, observation: Observation) -> None:
        """Take the next observation."""
        self._observation = observation
        self._round += 1
        self._by_name = {}
        for partition in self._state.partitions:
            start, end = partition.ends(self._state.rolls_back)
            position, described = (
                observation.position(partition, start, end),
                observation.partitions.get(partition.name),
            )
            self._by_name[partition.name] = LocatedPartition(partition, start, end, position, described)
        self._elsewhere = Counter(
            {
                located.name: self._elsewhere[located.name] + 1
                for located in self.partitions
                if located.position is Position.ELSEWHERE
            }
        )

    def requested(self, assignments: Iterable[AssignmentRequest]) -> None:
        """Note that these were requested and not refused."""
        self._requested |= {assignment.name: (self._round, assignment) for assignment in assignments}

    def request(self, partition: LocatedPartition) -> AssignmentRequest | None:
        """The last request, if it was sent so recently that brokers may not describe its effect."""
        sent, assignment = self._requested.get(partition.name, (self._round - LAG_ROUNDS, None))
        return assignment if self._round - sent < LAG_ROUNDS else None

    def moved(self) -> set[TopicPartition]:
        """Partitions that are being moved or may be, whose replicas need not all be in sync."""
        return {
            partition.name
            for partition in self.partitions
            if partition.position not in (Position.AT_START, Position.AT_END) or self.is_requested(partition)
        }

    def is_requested(self, partition: LocatedPartition) -> bool:
        """Whether the end was requested lately."""
        request = self.request(partition)
        return request is not None and request.replicas == partition.end

    def is_cancelled(self, partition: LocatedPartition) -> bool:
        """Whether something other than the end was requested lately."""
        request = self.request(partition)
        return request is not None and request.replicas != partition.end

    def is_in_flight(self, partition: LocatedPartition) -> bool:
        """Whether a reassignment is in progress, or was requested lately."""
        if partition.position in (Position.TO_END, Position.TO_START):
            return True
        return self.is_requested(partition) and partition.position not in (Position.AT_END, Position.DELETED)

    def is_foreign(self, partition: LocatedPartition) -> bool:
        """Whether another client has reassigned a partition."""
        return self._elsewhere[partition.name] > LAG_ROUNDS

    def is_settled(self, partition: LocatedPartition) -> bool:
        """Whether the goal has nothing left to do for a partition."""
        if partition.position in (Position.AT_END, Position.DELETED) or self.is_foreign(partition):
            return True
        return partition.name in self._state.refused and partition.position not in (Position.TO_END, Position.TO_START)

    def needs_reorder(self, partition: LocatedPartition) -> bool:
        """Whether a started partition has the replicas of its start in the order that a cancellation has left."""
        described = partition.described
        return (
            partition.position is Position.REORDERED
            and described is not None
            and set(described.replicas) == set(partition.start)
            and partition.name in self._state.started
            and partition.name not in self._state.refused
        )

    def is_blocked(self, partition: LocatedPartition) -> bool:
        """Whether a reassignment in flight cannot complete at present.

        In ZooKeeper mode all target replicas must be in sync, those that are not added, too
        (``KafkaController.isReassignmentComplete``).
        """
        is_led = partition.described is not None and partition.described.leader >= 0
        return not (is_led and set(partition.end) <= self.observation.live)

    def needs_failed_broker(self, partition: LocatedPartition) -> bool:
        """Whether a replica that is still to be added is on a broker that is not live."""
        if partition.position not in (Position.AT_START, Position.TO_END, Position.REORDERED):
            return False
        return not partition.added <= self.observation.live

    def has_other_leader(self, partition: LocatedPartition) -> bool:
        """Whether a started partition was led by its preferred replica before the plan, and is not, though that is in
        sync."""
        described, preferred = partition.described, partition.planned.origin[0]
        return (
            described is not None
            and partition.name in self._state.started
            and partition.position is Position.AT_END
            and described.leader != preferred == partition.planned.leader
            and preferred in described.isr
        )
