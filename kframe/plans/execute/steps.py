"""Decide the next step of an execution from its journal and an observation of the cluster. No I/O, no clock.

Requests are idempotent and the cluster is the truth, so a step is valid after any crash. The journal adds only what a
cluster cannot show: the goal, the original configurations, and which partitions were started.
``docs/explanation/execution.md`` has the state machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kframe.model.events import TopicPartition
from kframe.model.texts import counted, ids_text
from kframe.plans.execute.entries import (
    AssignmentRequest,
    ChangeAssignments,
    ChangeDirectories,
    DirectoryRequest,
    ElectPreferred,
    ExecutedPartition,
    Goal,
    GoalChanged,
    RunResult,
)
from kframe.plans.execute.health import HealthWatch
from kframe.plans.execute.located import LocatedPartition, PartitionTracker
from kframe.plans.execute.observation import Observation, Position
from kframe.plans.execute.state import ExecutionState
from kframe.plans.execute.step_types import Step, Wait
from kframe.plans.execute.throttles import ThrottlePlanner

#: Observations before the first decision after a crash, because a request may still be on its way.
CRASH_ROUNDS: Final = 3
_WAIT: Final = Wait()


class Planner:
    """Gives the next step after each observation. It counts observations of a problem, for one process."""

    def __init__(self, state: ExecutionState) -> None:
        """``state`` receives the entries that steps lead to, from the caller."""
        self.state = state
        self._wait_rounds = CRASH_ROUNDS if state.unanswered else 0
        self.tracker = PartitionTracker(state, self._wait_rounds)
        """Is notified of requests that were not refused."""
        self.throttles = ThrottlePlanner(state)
        """Is notified of configurations that were set or restored."""
        self._health = HealthWatch(state.limits)
        self._elected = False

    def observe(self, observation: Observation) -> None:
        """Take the next observation."""
        self._wait_rounds = max(self._wait_rounds - 1, 0)
        tracker = self.tracker
        tracker.observe(observation)
        needed = {
            broker
            for partition in tracker.partitions
            if tracker.needs_failed_broker(partition)
            for broker in partition.receivers
        }
        self._health.observe(self.state.unhealthy, observation.unhealthy(tracker.moved()), needed - observation.live)

    def settled(self) -> list[TopicPartition]:
        """Partitions that have arrived in the present direction and are not recorded as settled yet."""
        return [
            partition.name
            for partition in self.tracker.partitions
            if partition.position is Position.AT_END and partition.name not in self.state.settled
        ]

    def in_flight(self) -> list[ExecutedPartition]:
        """Partitions that are being moved."""
        return [partition.planned for partition in self.tracker.partitions if self.tracker.is_in_flight(partition)]

    def unmoved(self) -> dict[TopicPartition, str]:
        """Partitions that the goal cannot move, with the reason."""
        problems = dict(self.state.refused)
        for partition in self.tracker.partitions:
            if partition.position is Position.AT_END:
                problems.pop(partition.name, None)
            elif self.tracker.is_foreign(partition):
                directories = ", ".join(log.text for log in partition.logs)
                problems[partition.name] = (
                    f"log directory of {directories}" if directories else "reassigned by another client"
                )
        return problems

    def next_step(self) -> Step:
        """The next step after the last observation. The caller reports its effects as entries and calls."""
        if self._wait_rounds or not self.tracker.is_observed:
            return _WAIT
        match self.state.goal:
            case Goal.EXECUTE | Goal.ROLLBACK:
                return self._advance()
            case Goal.PAUSE:
                return self._drain(self.tracker.is_blocked, RunResult.PAUSED)
            case Goal.ABORT:
                return self._drain(self.tracker.is_in_flight, RunResult.ABORTED)

    def _advance(self) -> Step:
        """Move the partitions of the first stage that is not settled."""
        if not self.state.rolls_back and self._health.problem is not None:
            return GoalChanged(Goal.PAUSE, self._health.problem)
        for stage in self.state.stages:
            remaining = [
                partition for partition in self.tracker.located(stage) if not self.tracker.is_settled(partition)
            ]
            if remaining and self._waits_for_failed_brokers(remaining):
                brokers = ids_text(sorted(self._health.failed_brokers))
                return self._finish(
                    RunResult.INCOMPLETE,
                    f"{counted(len(remaining), 'partition')} waiting for failed brokers: {brokers}",
                )
            if remaining:
                return self.throttles.throttle(stage, self.tracker.observation) or self._move(remaining)
        if self.state.rolls_back and not self._elected:
            leaders = [partition for partition in self.tracker.partitions if self.tracker.has_other_leader(partition)]
            if leaders:
                self._elected = True
                return ElectPreferred(tuple(partition.name for partition in leaders))
        if unmoved := self.unmoved():
            return self._finish(RunResult.INCOMPLETE, f"not moved: {counted(len(unmoved), 'partition')}")
        return self._finish(RunResult.ROLLED_BACK if self.state.rolls_back else RunResult.COMPLETED, "")

    def _move(self, remaining: Sequence[LocatedPartition]) -> Step:
        """Redirect reassignments in the opposite direction, and start as many as the limit allows."""
        tracker = self.tracker
        redirected = [
            partition
            for partition in remaining
            if partition.position is Position.TO_START
            and not tracker.is_requested(partition)
            and not tracker.is_refused(partition)
        ]
        if redirected:
            return _change(partition.request(None) for partition in redirected)
        if self._health.pauses_starts and not self.state.rolls_back:
            return _WAIT
        pending = [
            partition
            for partition in remaining
            if partition.position in (Position.AT_START, Position.REORDERED)
            and not tracker.is_requested(partition)
            and not tracker.needs_failed_broker(partition)
        ]
        in_flight = sum(map(tracker.is_in_flight, remaining))
        chosen = pending[: max(self._health.limit - in_flight, 0)]
        if chosen:
            return _change(partition.request(partition.end) for partition in chosen)
        return _WAIT

    def _waits_for_failed_brokers(self, remaining: Sequence[LocatedPartition]) -> bool:
        """Whether a rollback cannot move any further partition at present."""
        return (
            self.state.rolls_back
            and bool(self._health.failed_brokers)
            and all(map(self.tracker.needs_failed_broker, remaining))
        )

    def _drain(self, is_cancelled: Callable[[LocatedPartition], bool], result: RunResult) -> Step:
        """Cancel some of the reassignments in flight, wait for the others, and finish."""
        tracker = self.tracker
        in_flight = [partition for partition in tracker.partitions if tracker.is_in_flight(partition)]
        cancelled = [
            partition
            for partition in in_flight
            if partition.position is not Position.TO_START
            and is_cancelled(partition)
            and not tracker.is_cancelled(partition)
            and not tracker.is_refused(partition)
        ]
        if cancelled:
            return _change(partition.request(None) for partition in cancelled)
        reordered = [partition for partition in tracker.partitions if tracker.needs_reorder(partition)]
        requests = [
            partition.request(partition.start)
            for partition in reordered
            if tracker.request(partition) != partition.request(partition.start)
        ]
        if requests:
            return _change(requests)
        if reordered or any(not tracker.is_blocked(partition) for partition in in_flight):
            return _WAIT
        return self._finish(result, "; ".join(filter(None, (self.state.reason, self._unlisted_moves()))))

    def _unlisted_moves(self) -> str:
        """Which brokers may still move logs between their directories, because they cannot be asked."""
        brokers = {
            log.broker_id
            for partition in self.tracker.partitions
            if partition.name in self.state.started
            for log in partition.logs
            if log.position is Position.UNKNOWN
        }
        if not brokers:
            return ""
        return (
            f"moves in progress between log directories of brokers that are down continue: {ids_text(sorted(brokers))}"
        )

    def _finish(self, result: RunResult, reason: str) -> Step:
        return self.throttles.finish(result, reason, self.tracker.observation)


def _change(requests: Iterable[AssignmentRequest | DirectoryRequest]) -> Step:
    """The action that sends requests of a kind. Those of the other kind are due after the next observation."""
    due = list(requests)
    assignments = tuple(request for request in due if isinstance(request, AssignmentRequest))
    if assignments:
        return ChangeAssignments(assignments)
    return ChangeDirectories(tuple(request for request in due if isinstance(request, DirectoryRequest)))
