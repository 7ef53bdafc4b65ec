"""Prepare an execution: stages from a plan or a manifest, checked against the live cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np

from kframe.errors import InputError, SnapshotError
from kframe.model.events import TopicPartition
from kframe.model.plan import Plan
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.check.rules import CheckedPlan
from kframe.plans.execute.entries import VERSION, ExecutedPartition, ExecutionLimits, ExecutionStarted
from kframe.plans.execute.observation import Observation
from kframe.plans.file.read import Stamp, load_plan
from kframe.plans.file.write import read_stamp
from kframe.plans.stage.manifest import MANIFEST_FILE, read_manifest
from kframe.ports.administration import Administration, LogDirReplica, replica_logs
from kframe.snapshot.files import InputFile

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

    @property
    def digest(self) -> str:
        """The SHA-256 of the stages."""
        return hashlib.sha256(msgspec.json.encode(self.stages)).hexdigest()


def read_staged_plan(source: InputFile) -> PreparedPlan:
    """Read the folder or manifest of a staged plan, or a reassignment JSON as a single stage.

    Raises SnapshotError.
    """
    if isinstance(source, Path) and (source.is_dir() or source.name == MANIFEST_FILE):
        manifest = read_manifest(source)
        stages = [
            [
                ((reassignment.topic, reassignment.partition), tuple(reassignment.replicas))
                for reassignment in stage.reassignments
            ]
            for stage in manifest.stages
        ]
        targets = [target for stage in stages for target in stage]
        if any(reassignment.observers for stage in manifest.stages for reassignment in stage.reassignments):
            raise SnapshotError(str(source), "observers", "a plan without: Confluent's tool executes the stages' files")
        if not targets:
            raise SnapshotError(str(source), "no reassignment", "at least one")
        return PreparedPlan(Plan.of(targets, source.name), stages, manifest.stamp)
    plan = load_plan(source)
    if plan.observers is not None:
        # The requests of Kafka's clients have no observers. Without them these would become full replicas.
        position = int(np.argmax(plan.observers.counts > 0))
        raise SnapshotError(
            f"{plan.name} partitions[{position}]",
            f"observers of partition {plan.partition_name(position)}",
            "a plan without observers: execute this one with Confluent's kafka-reassign-partitions",
        )
    # Only the broker itself moves a replica between its log directories (AlterReplicaLogDirs).
    plan.refuse_directories("a plan without: execute this one with kafka-reassign-partitions")
    return PreparedPlan.single_stage(plan, read_stamp(source))


def check_plan(staged: PreparedPlan, admin: Administration) -> CheckedPlan:
    """The plan against the live cluster. Raises StalePlan."""
    checked = resolve_plan(staged.plan, admin.capture())
    reason = None if staged.stamp is None else staged.stamp.stale(checked.stamp())
    if reason is not None:
        raise StalePlan(staged.plan.name, f"a stale plan ({reason})", "a plan for the assignments of this cluster")
    return checked


def start_of(
    staged: PreparedPlan, checked: CheckedPlan, admin: Administration, url: str, limits: ExecutionLimits
) -> ExecutionStarted:
    """The first entry of a journal. Partitions that have their target already are left out."""
    description = admin.describe()
    observation = Observation.of(description)
    sizes = _largest(replica_logs(admin.log_directories(sorted(observation.live))))
    origins = {
        name: tuple(checked.origin[index].tolist()) for index, name in enumerate(staged.plan.targets.partitions())
    }
    stages = tuple(
        tuple(
            ExecutedPartition(*name, origins[name], tuple(target), observation.partitions[name].leader, sizes.get(name))
            for name, target in stage
            if origins[name] != tuple(target) and name in observation.partitions
        )
        for stage in staged.stages
    )
    unhealthy = observation.unhealthy(frozenset())
    return ExecutionStarted(
        VERSION, staged.plan.name, staged.digest, description.cluster_id, url, limits, stages, unhealthy
    )


def _largest(logs: Mapping[int, Mapping[TopicPartition, LogDirReplica]]) -> dict[TopicPartition, int]:
    """The size of the largest replica of each partition."""
    largest: dict[TopicPartition, int] = {}
    for replicas in logs.values():
        for name, log in replicas.items():
            largest[name] = max(log.bytes, largest.get(name, 0))
    return largest
