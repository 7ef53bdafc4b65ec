"""Decide the next step of an execution from its journal and from what the cluster shows. No I/O, no clock.

Requests are idempotent and the cluster is the truth, so a step is right whatever a crash has interrupted: the journal
adds only what a cluster cannot show, which is the goal, the original configurations, and which partitions were started.
``docs/explanation/execution.md`` has the state machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kframe.execution.entries import (
    AssignmentRequest,
    ChangeAssignments,
    ChangeConfigs,
    ConfigEntry,
    ConfigKey,
    ElectPreferred,
    ExecutedPartition,
    Goal,
    PartitionRef,
    ResourceKind,
    RunResult,
)
from kframe.execution.health import HealthWatch
from kframe.execution.observation import Observation, Position
from kframe.execution.state import ExecutionState
from kframe.execution.step_types import End, Perform, SaveOriginals, SetGoal, Step, Wait
from kframe.execution.throttles import throttle_keys, throttle_values
from kframe.model.events import TopicPartition

#: Observations after which a request is sent again, or a partition that is elsewhere belongs to another client:
#: brokers describe a change later than the controller.
LAG_ROUNDS: Final = 15
#: Observations before the first decision after a crash, because a request may still be on its way.
CRASH_ROUNDS: Final = 3
#: Observations in which restoring or setting configurations is tried.
CONFIG_ROUNDS: Final = 5


_WAIT: Final = Wait()


@dataclass(frozen=True, slots=True)
class _Located:
    """A partition of the plan and where it is."""

    planned: ExecutedPartition
    start: tuple[int, ...]
    end: tuple[int, ...]
    position: Position

    @property
    def name(self) -> TopicPartition:
        return self.planned.topic, self.planned.partition

    def to_end(self) -> AssignmentRequest:
        return AssignmentRequest(*self.name, self.end)

    def to_start(self) -> AssignmentRequest:
        return AssignmentRequest(*self.name, self.start)

    def cancellation(self) -> AssignmentRequest:
        """The way back of a reassignment in flight.

        In KRaft mode a request for the old list keeps the adding replicas, and waits for them
        (``ReplicationControlManager.changePartitionReassignment``).
        """
        return AssignmentRequest(*self.name, None)


class Planner:
    """Gives the next step after each observation. It remembers how often it has seen what, for one process."""

    def __init__(self, state: ExecutionState) -> None:
        """``state`` receives the entries that steps lead to, from the caller."""
        self.state = state
        self._round = CRASH_ROUNDS if state.unanswered else 0
        self._wait_rounds = self._round
        self._health = HealthWatch(state.limits)
        self._requested: dict[TopicPartition, tuple[int, AssignmentRequest]] = {}
        self._elsewhere: Counter[TopicPartition] = Counter()
        self._configured: dict[ConfigKey, str] = {}
        self._set_failures = self._restore_failures = 0
        self._elected = False
        self._seen: Observation | None = None

    @property
    def limit(self) -> int:
        """Partitions that may be in flight at present."""
        return self._health.limit

    def observe(self, seen: Observation) -> None:
        """Take the next observation."""
        self._seen = seen
        self._round += 1
        self._wait_rounds = max(self._wait_rounds - 1, 0)
        located = [self._locate(partition, seen) for partition in self.state.partitions]
        moved = {each.name for each in located if each.position not in (Position.AT_START, Position.AT_END)}
        moved |= {each.name for each in located if self._is_requested(each)}
        self._elsewhere = Counter(
            {each.name: self._elsewhere[each.name] + 1 for each in located if each.position is Position.ELSEWHERE}
        )
        needed = [each for each in located if self._needs_failed_broker(each, seen)]
        self._health.observe(
            self.state.unhealthy, seen.unhealthy(moved), {broker for each in needed for broker in _added(each)}
            - set(seen.live),
        )  # fmt: skip

    def requested(self, assignments: Iterable[AssignmentRequest]) -> None:
        """Note that these were requested and not refused: brokers may describe them later."""
        self._requested |= {(each.topic, each.partition): (self._round, each) for each in assignments}

    def configured(self, changes: Iterable[ConfigEntry], *, restores: bool, failed: bool) -> None:
        """Note the configurations that were set or restored, and whether others could not be."""
        for change in changes:
            if restores or change.value is None:
                self._configured.pop(change.key, None)
            else:
                self._configured[change.key] = change.value
        if restores:
            self._restore_failures += failed
        else:
            self._set_failures = self._set_failures + 1 if failed else 0

    def settled(self) -> list[TopicPartition]:
        """Partitions in the present direction that have arrived, and were not known to."""
        return [
            each.name
            for each in self._all_located()
            if each.position is Position.AT_END and each.name not in self.state.settled
        ]

    def in_flight(self) -> list[ExecutedPartition]:
        """Partitions that are being moved."""
        return [each.planned for each in self._all_located() if self._is_in_flight(each)]

    def lost(self) -> dict[TopicPartition, str]:
        """Partitions that the goal cannot move, with the reason."""
        problems = dict(self.state.refused)
        for each in self._all_located():
            if each.position is Position.AT_END:
                problems.pop(each.name, None)
            elif self._is_foreign(each):
                problems[each.name] = "reassigned by another client"
        return problems

    def next_step(self) -> Step:
        """The next step by the last observation. Its effects are entries, and notes to this object."""
        if self._wait_rounds or self._seen is None:
            return _WAIT
        match self.state.goal:
            case Goal.EXECUTE | Goal.ROLLBACK:
                return self._advance()
            case Goal.PAUSE:
                return self._drain(self._is_blocked, RunResult.PAUSED)
            case Goal.ABORT:
                return self._drain(self._is_in_flight, RunResult.ABORTED)

    # -- goals

    def _advance(self) -> Step:
        """Move the partitions of the first stage that is not settled."""
        if not self.state.rolls_back and self._health.problem is not None:
            return SetGoal(Goal.PAUSE, self._health.problem)
        for stage in self.state.stages:
            located = [self._locate(partition, self._observation) for partition in stage]
            remaining = [each for each in located if not self._is_settled(each)]
            if remaining:
                return self._throttle(stage) or self._move(remaining)
        if self.state.rolls_back:
            partitions = self._leaders_to_elect()
            if partitions and not self._elected:
                self._elected = True
                return Perform(ElectPreferred(tuple(partitions)))
        if self.lost():
            return self._finish(RunResult.INCOMPLETE, f"{len(self.lost()):,} partitions were not moved")
        return self._finish(RunResult.ROLLED_BACK if self.state.rolls_back else RunResult.COMPLETED, "")

    def _move(self, remaining: Sequence[_Located]) -> Step:
        """Redirect what moves the other way, and start as many as the limit allows."""
        redirected = [each for each in remaining if each.position is Position.TO_START and not self._is_requested(each)]
        if redirected:
            return Perform(ChangeAssignments(tuple(each.cancellation() for each in redirected)))
        if self._health.holds and not self.state.rolls_back:
            return _WAIT
        flying = sum(map(self._is_in_flight, remaining))
        pending = [
            each
            for each in remaining
            if each.position in (Position.AT_START, Position.REORDERED)
            and not self._is_requested(each)
            and not self._needs_failed_broker(each, self._observation)
        ]
        chosen = pending[: max(self._health.limit - flying, 0)]
        if chosen:
            return Perform(ChangeAssignments(tuple(each.to_end() for each in chosen)))
        waits_for = [each for each in remaining if self._needs_failed_broker(each, self._observation)]
        if self.state.rolls_back and not pending and len(waits_for) == len(remaining) and self._health.failed_brokers:
            brokers = ", ".join(map(str, sorted(self._health.failed_brokers)))
            return self._finish(
                RunResult.INCOMPLETE, f"{len(remaining):,} partitions wait for brokers that are down: {brokers}"
            )
        return _WAIT

    def _drain(self, is_cancelled: Callable[[_Located], bool], result: RunResult) -> Step:
        """Cancel some of what is in flight, wait for the others, and finish."""
        flying = [each for each in self._all_located() if self._is_in_flight(each)]
        cancelled = [
            each for each in flying if each.position is not Position.TO_START and is_cancelled(each)
            and not self._is_cancelled(each)
        ]  # fmt: skip
        if cancelled:
            return Perform(ChangeAssignments(tuple(each.cancellation() for each in cancelled)))
        reordered = [each for each in self._all_located() if self._is_to_reorder(each)]
        if requests := [each.to_start() for each in reordered if self._request(each) != each.to_start()]:
            return Perform(ChangeAssignments(tuple(requests)))
        if reordered or any(not self._is_blocked(each) for each in flying):
            return _WAIT
        return self._finish(result, self.state.reason)

    def _finish(self, result: RunResult, reason: str) -> Step:
        """Restore configurations as far as brokers are live, then end."""
        remaining = [ConfigEntry(key, value) for key, value in sorted(self.state.originals.items())]
        reachable = [change for change in remaining if self._is_reachable(change.key)]
        if self._restore_failures < CONFIG_ROUNDS:
            if reachable:
                return Perform(ChangeConfigs(tuple(reachable), restores=True))
            if remaining:
                self._restore_failures += 1
                return _WAIT
        if remaining:
            resources = sorted({f"{change.key.kind} {change.key.resource}" for change in remaining})
            text = f"throttles of {', '.join(resources)} are not restored yet"
            reason = f"{reason}; {text}" if reason else text
        return End(result, reason)

    # -- throttles

    def _throttle(self, stage: Sequence[ExecutedPartition]) -> Step | None:
        """The next change of configurations for a stage; None if it is throttled."""
        rate = self.state.limits.throttle
        if rate is None:
            return self._restore_except(())
        keys = throttle_keys(stage, self.state.rolls_back)
        topics = {topic for topic, _ in self._observation.partitions}
        usable = {
            key
            for key in keys
            if self._is_reachable(key) and (key.kind is ResourceKind.BROKER or key.resource in topics)
        }
        unsaved = tuple(sorted(usable - self.state.originals.keys()))
        if self._set_failures >= CONFIG_ROUNDS:
            return SetGoal(Goal.PAUSE, "the throttle cannot be set")
        if unsaved:
            return SaveOriginals(unsaved)
        values = throttle_values(stage, self.state.rolls_back, rate, self.state.originals)
        changes = [
            ConfigEntry(key, value)
            for key, value in sorted(values.items())
            if key in usable and self._configured.get(key) != value
        ]
        if changes:
            return Perform(ChangeConfigs(tuple(changes), restores=False))
        return self._restore_except(keys)

    def _restore_except(self, keys: Collection[ConfigKey]) -> Step | None:
        """Restore the throttles that the stage does not need; None if there are none, or the cluster refuses that."""
        if self._restore_failures >= CONFIG_ROUNDS:
            return None
        former = [
            ConfigEntry(key, value)
            for key, value in sorted(self.state.originals.items())
            if key not in keys and self._is_reachable(key)
        ]
        return Perform(ChangeConfigs(tuple(former), restores=True)) if former else None

    def _is_reachable(self, key: ConfigKey) -> bool:
        """Only a broker itself changes its configurations."""
        return key.kind is ResourceKind.TOPIC or int(key.resource) in self._observation.live

    # -- partitions

    @property
    def _observation(self) -> Observation:
        assert self._seen is not None, "observe comes first"
        return self._seen

    def _locate(self, partition: ExecutedPartition, seen: Observation) -> _Located:
        start, end = partition.origin, partition.target
        if self.state.rolls_back:
            start, end = end, start
        return _Located(partition, start, end, seen.position(partition, start, end))

    def _all_located(self) -> Iterator[_Located]:
        for partition in self.state.partitions:
            if self._seen is not None:
                yield self._locate(partition, self._seen)

    def _request(self, each: _Located) -> AssignmentRequest | None:
        """The last request, if it was sent so recently that brokers may not describe its effect."""
        sent, assignment = self._requested.get(each.name, (self._round - LAG_ROUNDS, None))
        return assignment if self._round - sent < LAG_ROUNDS else None

    def _is_requested(self, each: _Located) -> bool:
        request = self._request(each)
        return request is not None and request.replicas == each.end

    def _is_cancelled(self, each: _Located) -> bool:
        request = self._request(each)
        return request is not None and request.replicas != each.end

    def _is_to_reorder(self, each: _Located) -> bool:
        """Whether a started partition has the replicas of its start in the order that a cancellation has left."""
        described = self._observation.partitions.get(each.name)
        return (
            each.position is Position.REORDERED
            and described is not None
            and set(described.replicas) == set(each.start)
            and each.name in self.state.started
            and each.name not in self.state.refused
        )

    def _is_in_flight(self, each: _Located) -> bool:
        if each.position in (Position.TO_END, Position.TO_START):
            return True
        return self._is_requested(each) and each.position in (Position.AT_START, Position.REORDERED, Position.ELSEWHERE)

    def _is_foreign(self, each: _Located) -> bool:
        return self._elsewhere[each.name] > LAG_ROUNDS

    def _is_settled(self, each: _Located) -> bool:
        """Whether the goal has nothing left to do for a partition."""
        if each.position in (Position.AT_END, Position.DELETED) or self._is_foreign(each):
            return True
        return each.name in self.state.refused and each.position not in (Position.TO_END, Position.TO_START)

    def _needs_failed_broker(self, each: _Located, seen: Observation) -> bool:
        """Whether a replica that is still to be added is on a broker that is not live."""
        if each.position not in (Position.AT_START, Position.TO_END, Position.REORDERED):
            return False
        return not _added(each) <= set(seen.live)

    def _is_blocked(self, each: _Located) -> bool:
        """Whether a reassignment in flight cannot complete at present.

        In ZooKeeper mode all target replicas must be in sync, those that are not added, too
        (``KafkaController.isReassignmentComplete``).
        """
        if not self._observation.has_leader(each.name):
            return True
        return not set(each.end) <= set(self._observation.live)

    def _leaders_to_elect(self) -> list[PartitionRef]:
        """Partitions whose leader was the preferred replica before the plan, and is not, though it is in sync."""
        partitions = []
        for each in self._all_located():
            described = self._observation.partitions.get(each.name)
            preferred = each.planned.origin[0]
            if (
                described is not None
                and each.name in self.state.started
                and each.position is Position.AT_END
                and described.leader != preferred == each.planned.leader
                and preferred in described.isr
            ):
                partitions.append(PartitionRef(*each.name))
        return partitions


def _added(each: _Located) -> set[int]:
    return set(each.end) - set(each.start)
