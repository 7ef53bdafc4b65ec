"""The progress and the report of an execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from kframe.model.events import TopicPartition
from kframe.plans.check.rules import CheckedPlan
from kframe.plans.execute.entries import ExecutedPartition, Goal, RunResult
from kframe.plans.execute.estimate import expected_seconds
from kframe.plans.execute.observation import Observation
from kframe.plans.execute.state import ExecutionState
from kframe.plans.execute.steps import Planner
from kframe.ports.administration import Administration, LogDirReplica, replica_logs
from kframe.whatif import WhatIf
from kframe.whatif.results.outcome import Impact
from kframe.whatif.results.reassignment_result import ReassignmentRecord

SCHEMA: Final = "kframe.plan-execution/v1"
#: Observations between two readings of sizes.
_SIZE_ROUNDS: Final = 5


class ExecutionStage(Struct):
    """A stage of an execution: its partitions, those that have arrived, and what is copied. Null: sizes are unknown."""

    stage: int
    partitions: int
    settled: int
    copies: int
    bytes: int | None


class ExecutedDirectory(Struct):
    """A replica that goes to a certain log directory of its broker.

    ``source`` is null for a replica that the plan adds, ``bytes`` if its size is unknown.
    """

    topic: str
    partition: int
    broker_id: int
    source: str | None
    target: str
    bytes: int | None
    settled: bool


class ExecutionProblem(Struct):
    """A partition that was not moved, and why: Kafka's error, or another client's reassignment.

    The error of a move between log directories has the broker and the directory.
    """

    topic: str
    partition: int
    error: str


class ExecutionEffect(Struct):
    """The expected effect of a plan when all its partitions move at once, as ``kframe whatif reassign`` predicts it."""

    rules: str
    impact: Impact
    reassignment: ReassignmentRecord
    assumptions: list[str]

    @staticmethod
    def of(checked: CheckedPlan) -> ExecutionEffect:
        """The effect on the cluster that the plan was checked against."""
        outcome = WhatIf(checked.snapshot).reassign(checked.plan)
        assert outcome.reassignment is not None
        return ExecutionEffect(outcome.rules, outcome.impact, outcome.reassignment.record(), list(outcome.assumptions))


class ExecutionDocument(Struct):
    """An execution by its journal: ``kframe plan execute``, ``resume``, ``rollback``, ``pause``, ``abort``, ``status``;
    and ``kframe reassign start``.

    ``executed`` is false for a dry run. ``result`` is null until a run has ended. Partitions, bytes and stages are
    those of the direction: ``rolls_back``. ``not_restored`` are configurations that are not restored yet.
    """

    plan: str
    journal: str
    cluster_id: str | None
    executed: bool
    goal: Goal
    rolls_back: bool
    result: RunResult | None
    reason: str
    partitions: int
    started: int
    settled: int
    bytes: int | None
    settled_bytes: int | None
    throttle: int | None
    expected_seconds: float | None
    """What the remaining copies take under the throttle. Null without a throttle, or if sizes are unknown."""
    concurrency: int
    max_under_replicated: int
    offline_before: int
    under_replicated_before: int
    not_restored: list[str]
    stages: list[ExecutionStage]
    directories: list[ExecutedDirectory]
    """The replicas that go to certain log directories, in the order of the plan."""
    problems: list[ExecutionProblem]
    effect: ExecutionEffect | None
    """That of a plan without ``--execute``; null for any other command, and where the journal exists."""


class ExecutionProgress:
    """What a run has moved, and the remaining time at the same rate."""

    def __init__(self, admin: Administration, state: ExecutionState, clock: Callable[[], float]) -> None:
        """``clock`` returns seconds."""
        self._admin = admin
        self._state = state
        self._clock = clock
        self._started_s: float | None = None
        self._work_at_start: float = 0.0
        self._round = 0
        self._logs: Mapping[int, Mapping[TopicPartition, LogDirReplica]] = {}
        self.partitions = self.total = self.in_flight = 0
        self.bytes = self.total_bytes = 0

    def observe(self, planner: Planner) -> None:
        """Take the last observation of the planner."""
        moves = [partition for stage in self._state.stages for partition in stage]
        in_flight = planner.in_flight()
        settled = [partition for partition in moves if partition.name in self._state.settled]
        self.total, self.partitions, self.in_flight = len(moves), len(settled), len(in_flight)
        self.total_bytes = copied_bytes(moves, self._state.rolls_back) or 0
        if self._round % _SIZE_ROUNDS == 0 and self.total_bytes:
            receivers = {broker_id for partition in in_flight for broker_id in partition.added(self._state.rolls_back)}
            self._logs = replica_logs(self._admin.log_directories(sorted(receivers))) if receivers else {}
        self._round += 1
        received = (copied_bytes(settled, self._state.rolls_back) or 0) + sum(map(self._received_bytes, in_flight))
        received += sum(_future_bytes(partition, planner.tracker.observation) for partition in in_flight)
        self.bytes = min(received, self.total_bytes)
        if self._started_s is None:
            self._started_s, self._work_at_start = self._clock(), self._work()

    def remaining_s(self) -> float | None:
        """Seconds until the end: by the throttle at first, then at the rate so far; None if unknown."""
        if self._started_s is None or self._work() <= self._work_at_start:
            return _expected_seconds(self._state)
        rate = (self._work() - self._work_at_start) / max(self._clock() - self._started_s, 1e-3)
        return ((self.total_bytes or self.total) - self._work()) / rate

    def _work(self) -> float:
        return self.bytes if self.total_bytes else self.partitions

    def _received_bytes(self, partition: ExecutedPartition) -> int:
        """Bytes of a partition in flight that have arrived."""
        receivers, size = partition.added(self._state.rolls_back), partition.replica_bytes or 0
        logs = [self._logs.get(broker_id, {}).get(partition.name) for broker_id in receivers]
        return sum(min(log.bytes, size) for log in logs if log is not None)


def _future_bytes(partition: ExecutedPartition, observation: Observation) -> int:
    """Bytes of a partition in flight that have arrived in other log directories of their brokers."""
    logs = [observation.logs.get(move.broker_id, {}).get(partition.name) for move in partition.copied_within]
    return sum(min(log.future_bytes, partition.replica_bytes or 0) for log in logs if log is not None)


def _expected_seconds(state: ExecutionState) -> float | None:
    seconds = expected_seconds(state.stages, state.settled, state.limits.throttle, rolls_back=state.rolls_back)
    return None if seconds is None else round(seconds, 1)


def copied_bytes(partitions: Iterable[ExecutedPartition], rolls_back: bool) -> int | None:
    """The bytes to be copied; None without any size."""
    sizes = [
        partition.replica_bytes * partition.copies(rolls_back)
        for partition in partitions
        if partition.replica_bytes is not None
    ]
    return sum(sizes) if sizes else None


def execution_document(
    state: ExecutionState,
    path: Path,
    unmoved: Mapping[TopicPartition, str],
    *,
    executed: bool,
    effect: ExecutionEffect | None = None,
) -> ExecutionDocument:
    """The document of an execution by its journal. ``unmoved`` are partitions that were not moved, with the reasons.

    ``effect`` is the expected one of a plan that was not executed.
    """
    start, moves = state.start, [partition for stage in state.stages for partition in stage]
    names = {partition.name for partition in moves}
    settled = state.settled & names
    return ExecutionDocument(
        plan=start.plan,
        journal=str(path),
        cluster_id=start.cluster_id,
        executed=executed,
        goal=state.goal,
        rolls_back=state.rolls_back,
        result=state.result,
        reason=state.reason,
        partitions=len(moves),
        started=len(state.started & names),
        settled=len(settled),
        bytes=copied_bytes(moves, state.rolls_back),
        settled_bytes=copied_bytes([partition for partition in moves if partition.name in settled], state.rolls_back),
        throttle=state.limits.throttle,
        expected_seconds=_expected_seconds(state),
        concurrency=state.limits.concurrency,
        max_under_replicated=state.limits.max_under_replicated,
        offline_before=len(state.unhealthy.offline),
        under_replicated_before=len(state.unhealthy.under_replicated),
        not_restored=sorted({f"{key.kind.value} {key.resource} {key.name}" for key in state.originals}),
        stages=[
            ExecutionStage(
                stage=number,
                partitions=len(stage),
                settled=sum(partition.name in settled for partition in stage),
                copies=sum(partition.copies(state.rolls_back) for partition in stage),
                bytes=copied_bytes(stage, state.rolls_back),
            )
            for number, stage in enumerate(state.stages, 1)
        ],
        directories=[
            ExecutedDirectory(
                *partition.name,
                move.broker_id,
                *move.ends(state.rolls_back),
                partition.replica_bytes,
                partition.name in settled,
            )
            for partition in moves
            for move in partition.directory_moves(state.rolls_back)
        ],
        problems=[ExecutionProblem(*name, error) for name, error in sorted(unmoved.items())],
        effect=effect,
    )
