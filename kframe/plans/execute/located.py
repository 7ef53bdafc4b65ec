"""Where each partition of a plan is, and whether it can still move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from kframe.model.events import TopicPartition
from kframe.plans.execute.directories import LocatedLog, directory_request, located_logs, position_of
from kframe.plans.execute.entries import AssignmentRequest, DirectoryRequest, ExecutedPartition
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
    logs: tuple[LocatedLog, ...] = ()
    """Those that are yet to arrive in their log directory, once the replicas are those of the end."""

    @property
    def name(self) -> TopicPartition:
        """Topic and number."""
        return self.planned.name

    @property
    def receivers(self) -> set[int]:
        """The brokers that copy logs."""
        return {log.broker_id for log in self.logs} if self.logs else set(self.end) - set(self.start)

    def request(self, replicas: tuple[int, ...] | None) -> AssignmentRequest | DirectoryRequest:
        """The reassignment to ``replicas``, or the cancellation of what is in flight. If logs have not arrived, these
        are moves between log directories.

        In KRaft mode a request for the old list keeps the adding replicas, and waits for them
        (``ReplicationControlManager.changePartitionReassignment``).
        """
        if self.logs:
            return directory_request(self.planned, self.logs, cancels=replicas is None)
        return AssignmentRequest(*self.name, replicas)

    def is_end(self, request: AssignmentRequest | DirectoryRequest) -> bool:
        """Whether a request is for the end, so far as it is not reached."""
        if isinstance(request, DirectoryRequest):
            return {(log.broker_id, log.end) for log in self.logs} <= set(request.paths)
        return request.replicas == self.end


class PartitionTracker:
    """Locates each partition once for an observation, and remembers requests that brokers may not describe yet."""

    def __init__(self, state: ExecutionState, first_round: int) -> None:
        """``first_round`` counts observations that are yet to come before the first decision."""
        self._state = state
        self._round = first_round
        self._requested: dict[TopicPartition, tuple[int, AssignmentRequest | DirectoryRequest]] = {}
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
            logs: tuple[LocatedLog, ...] = ()
            # A partition whose replicas stay is moved within its brokers alone, in whichever order its replicas are.
            if position is Position.AT_END or (start == end and position is not Position.DELETED):
                logs = located_logs(partition, observation, self._state.rolls_back)
                position = position_of(logs)
            self._by_name[partition.name] = LocatedPartition(partition, start, end, position, described, logs)
        self._elsewhere = Counter(
            {
                located.name: self._elsewhere[located.name] + 1
                for located in self.partitions
                if located.position is Position.ELSEWHERE
                or (located.position is Position.UNKNOWN and not self.needs_failed_broker(located))
            }
        )

    def requested(self, assignments: Iterable[AssignmentRequest | DirectoryRequest]) -> None:
        """Note that these were requested and not refused."""
        self._requested |= {assignment.name: (self._round, assignment) for assignment in assignments}

    def request(self, partition: LocatedPartition) -> AssignmentRequest | DirectoryRequest | None:
        """The last request of the kind that is due, if it was sent so recently that brokers may not describe its
        effect."""
        sent, assignment = self._requested.get(partition.name, (self._round - LAG_ROUNDS, None))
        is_due = isinstance(assignment, DirectoryRequest) == bool(partition.logs)
        return assignment if is_due and self._round - sent < LAG_ROUNDS else None

    def moved(self) -> set[TopicPartition]:
        """Partitions that are being reassigned or may be, whose replicas need not all be in sync."""
        return {
            partition.name
            for partition in self.partitions
            if not partition.logs
            and (partition.position not in (Position.AT_START, Position.AT_END) or self.is_requested(partition))
        }

    def is_requested(self, partition: LocatedPartition) -> bool:
        """Whether the end was requested lately."""
        request = self.request(partition)
        return request is not None and partition.is_end(request)

    def is_cancelled(self, partition: LocatedPartition) -> bool:
        """Whether something other than the end was requested lately."""
        request = self.request(partition)
        return request is not None and not partition.is_end(request)

    def is_refused(self, partition: LocatedPartition) -> bool:
        """Whether a broker has refused to move logs since the goal was set: a move in progress cannot be cancelled.

        Kafka from 4.3 on refuses a cordoned directory, also that of the present log.
        """
        return bool(partition.logs) and partition.name in self._state.refused

    def is_in_flight(self, partition: LocatedPartition) -> bool:
        """Whether a reassignment is in progress, or was requested lately."""
        if partition.position in (Position.TO_END, Position.TO_START):
            return True
        ended = (Position.AT_END, Position.DELETED, Position.UNKNOWN)
        return self.is_requested(partition) and partition.position not in ended

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
        if partition.logs:
            return not partition.receivers <= self.observation.live
        is_led = partition.described is not None and partition.described.leader >= 0
        return not (is_led and set(partition.end) <= self.observation.live)

    def needs_failed_broker(self, partition: LocatedPartition) -> bool:
        """Whether a log that is still to be copied is on a broker that is not live."""
        if partition.position not in (Position.AT_START, Position.TO_END, Position.REORDERED, Position.UNKNOWN):
            return False
        return not partition.receivers <= self.observation.live

    def has_other_leader(self, partition: LocatedPartition) -> bool:
        """Whether a started partition was led by its preferred replica before the plan, and is not, though that is in
        sync."""
        described, preferred = partition.described, partition.planned.origin[0]
        return (
            described is not None
            and partition.name in self._state.started
            and partition.start != partition.end
            and partition.position is Position.AT_END
            and described.leader != preferred == partition.planned.leader
            and preferred in described.isr
        )
