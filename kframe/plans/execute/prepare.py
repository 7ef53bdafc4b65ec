"""Prepare an execution: stages from a plan or a manifest, checked against the live cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np

from kframe.errors import InputError, SnapshotError
from kframe.model.events import TopicPartition
from kframe.model.plan import ANY_DIRECTORY, Plan
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.check.rules import CheckedPlan
from kframe.plans.execute.entries import VERSION, ExecutedPartition, ExecutionLimits, ExecutionStarted, LogMove
from kframe.plans.execute.observation import Observation
from kframe.plans.file.read import Stamp, load_plan
from kframe.plans.file.write import read_stamp
from kframe.plans.stage.manifest import MANIFEST_FILE, StageManifest, read_manifest
from kframe.ports.administration import Administration, LogDirectory, LogDirReplica, replica_logs
from kframe.snapshot.files import InputFile
from kframe.snapshot.metadata import ClusterDescription

StageTargets: TypeAlias = Sequence[tuple[TopicPartition, Sequence[int]]]
"""Partitions of a stage and their replicas."""


class StalePlan(InputError):
    """A plan was made for another cluster, or for other assignments."""


@dataclass(frozen=True, slots=True)
class PreparedPlan:
    """A plan, its stages, and its stamp if it has one."""

    plan: Plan
    stages: Sequence[StageTargets]
    stamp: Stamp | None

    @classmethod
    def single_stage(cls, plan: Plan, stamp: Stamp | None = None) -> PreparedPlan:
        """All partitions of a plan in one stage."""
        replicas = plan.targets.replicas
        stage = [(name, tuple(replicas[index].tolist())) for index, name in enumerate(plan.targets.partitions())]
        return cls(plan, [stage], stamp)

    @classmethod
    def of_manifest(cls, manifest: StageManifest, name: str) -> PreparedPlan:
        """The stages of a manifest called ``name``. Raises SnapshotError for observers, and for no reassignment."""
        reassignments = [list(stage.reassignments) for stage in manifest.stages]
        if any(reassignment.observers for stage in reassignments for reassignment in stage):
            raise SnapshotError(name, "observers", "a plan without: Confluent's tool executes the stages' files")
        stages = [[((row.topic, row.partition), tuple(row.replicas)) for row in stage] for stage in reassignments]
        targets = [target for stage in stages for target in stage]
        if not targets:
            raise SnapshotError(name, "no reassignment", "at least one")
        return cls(Plan.of(targets, Path(name).name), stages, manifest.stamp)

    @property
    def digest(self) -> str:
        """The SHA-256 of the stages, and of the log directories if the plan names any."""
        named = self.stages if self.plan.log_dirs is None else [self.stages, self.plan.log_dirs]
        return hashlib.sha256(msgspec.json.encode(named)).hexdigest()


def read_staged_plan(source: InputFile) -> PreparedPlan:
    """Read the folder or manifest of a staged plan, or a reassignment JSON as a single stage.

    Raises SnapshotError.
    """
    if isinstance(source, Path) and (source.is_dir() or source.name == MANIFEST_FILE):
        return PreparedPlan.of_manifest(read_manifest(source), str(source))
    plan = load_plan(source)
    if plan.observers is not None:
        # The requests of Kafka's clients have no observers. Without them these would become full replicas.
        position = int(np.argmax(plan.observers.counts > 0))
        raise SnapshotError(
            f"{plan.name} partitions[{position}]",
            f"observers of partition {plan.partition_name(position)}",
            "a plan without observers: execute this one with Confluent's kafka-reassign-partitions",
        )
    return PreparedPlan.single_stage(plan, read_stamp(source))


@dataclass(frozen=True, slots=True)
class CheckedExecution:
    """A plan that was checked against the live cluster. ``problems`` say why it cannot be executed: then ``start`` may
    be None. Else that is the first entry of its journal."""

    checked: CheckedPlan
    problems: Sequence[str]
    start: ExecutionStarted | None


def check_execution(staged: PreparedPlan, admin: Administration, url: str, limits: ExecutionLimits) -> CheckedExecution:
    """Check a plan against the live cluster at ``url``. Raises StalePlan, and StoreError without a controller."""
    checked = check_plan(staged, admin)
    report = PlanReport.of(staged.plan, checked)
    if not report.valid:
        errors = (row for row in report.rows() if row.severity == "error")
        return CheckedExecution(checked, [f"{row.topic}-{row.partition}: {row.detail}" for row in errors], None)
    description = admin.describe()
    listed = admin.log_directories(sorted(description.brokers.keys() - set(description.controllers)))
    start = start_of(staged, checked, description, listed, url, limits)
    return CheckedExecution(checked, list(directory_problems(start, listed)), start)


def check_plan(staged: PreparedPlan, admin: Administration) -> CheckedPlan:
    """The plan against the live cluster. Raises StalePlan."""
    checked = resolve_plan(staged.plan, admin.capture())
    reason = None if staged.stamp is None else staged.stamp.stale(checked.stamp())
    if reason is not None:
        raise StalePlan(staged.plan.name, f"a stale plan ({reason})", "a plan for the assignments of this cluster")
    return checked


def start_of(
    staged: PreparedPlan,
    checked: CheckedPlan,
    description: ClusterDescription,
    listed: Mapping[int, Sequence[LogDirectory]],
    url: str,
    limits: ExecutionLimits,
) -> ExecutionStarted:
    """The first entry of a journal. Partitions that have their target already are left out.

    ``listed`` are the log directories of brokers.
    """
    observation = Observation.of(description, listed)
    sizes = _largest(replica_logs(listed))
    names = staged.plan.targets.partitions()
    origins = {name: tuple(checked.origin[index].tolist()) for index, name in enumerate(names)}
    paths = dict(zip(names, staged.plan.log_dirs or (), strict=False))

    def planned(name: TopicPartition, target: Sequence[int]) -> ExecutedPartition:
        moves = _directory_moves(name, target, paths.get(name, ()), observation)
        leader = observation.partitions[name].leader
        return ExecutedPartition(*name, origins[name], tuple(target), leader, sizes.get(name), moves)

    stages = tuple(
        tuple(
            partition
            for name, target in stage
            if name in observation.partitions
            and ((partition := planned(name, target)).directories or partition.origin != partition.target)
        )
        for stage in staged.stages
    )
    unhealthy = observation.unhealthy(frozenset())
    return ExecutionStarted(
        VERSION, staged.plan.name, staged.digest, description.cluster_id, url, limits, stages, unhealthy
    )


def _directory_moves(
    name: TopicPartition, target: Sequence[int], paths: Sequence[str], observation: Observation
) -> tuple[LogMove, ...]:
    """The replicas of a partition that are to go to certain log directories, and are not there."""
    moves = []
    for broker_id, path in zip(target, paths, strict=False):
        log = observation.logs.get(broker_id, {}).get(name)
        current = None if log is None else log.current
        is_there = log is not None and log.future is None and current == path
        if path != ANY_DIRECTORY and not is_there:
            moves.append(LogMove(broker_id, current, path))
    return tuple(moves)


def directory_problems(start: ExecutionStarted, listed: Mapping[int, Sequence[LogDirectory]]) -> Iterator[str]:
    """Why brokers would refuse moves between log directories, a line for each move."""
    for partition in chain.from_iterable(start.stages):
        for move in partition.directories:
            problem = _move_problem(move, listed.get(move.broker_id), is_added=move.broker_id not in partition.origin)
            if problem is not None:
                yield f"{partition.topic}-{partition.partition}: {problem}"


def _move_problem(move: LogMove, directories: Sequence[LogDirectory] | None, *, is_added: bool) -> str | None:
    """Kafka ``ReplicaManager.alterReplicaLogDirs`` and ``LogManager.getOrCreateLog``."""
    if directories is None:
        return f"broker {move.broker_id} lists no log directories, which needs DESCRIBE on the cluster"
    online = [directory.path for directory in directories if directory.error is None]
    usable = [directory.path for directory in directories if directory.error is None and not directory.is_cordoned]
    if move.target not in usable:
        kind = "cordoned log directory" if move.target in online else "log directory"
        return f"found {kind} {move.target} of broker {move.broker_id}, expected one of {', '.join(usable) or 'none'}"
    if is_added:
        return None
    if move.origin is None:
        return f"found no log on broker {move.broker_id}, expected one in {', '.join(online)}"
    offline = [directory.path for directory in directories if directory.error is not None]
    if offline:
        return f"log directory {offline[0]} of broker {move.broker_id} is offline, and a broker with one starts no move"
    return None


def _largest(logs: Mapping[int, Mapping[TopicPartition, LogDirReplica]]) -> dict[TopicPartition, int]:
    """The size of the largest replica of each partition."""
    largest: dict[TopicPartition, int] = {}
    for replicas in logs.values():
        for name, log in replicas.items():
            largest[name] = max(log.bytes, largest.get(name, 0))
    return largest
