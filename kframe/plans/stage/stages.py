"""A plan in stages: its schedule, loads, windows and failures as a manifest, and a plan for each stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from msgspec import UNSET

from kframe.model.arrays import Int32
from kframe.model.texts import counted
from kframe.pages.parts import FactsPart, Heading, Part
from kframe.pages.shown import Shown
from kframe.plans.check.rules import CheckedPlan
from kframe.plans.file.write import plan_document
from kframe.plans.stage.failures import stage_failures
from kframe.plans.stage.manifest import (
    PlanStage,
    StageBroker,
    StagedReassignment,
    StagedSnapshot,
    StageLimits,
    StageManifest,
    UnstagedReassignment,
)
from kframe.plans.stage.page import stage_parts
from kframe.plans.stage.problem import ALONE, UNLIMITED, StageProblem, stage_problem
from kframe.plans.stage.request import StageRequest
from kframe.plans.stage.schedule import StageSchedule, schedule
from kframe.plans.stage.windows import allot_windows

_REASONS = {
    "invalid": "kframe plan check names the error",
    "reassigning": "a reassignment of it is running",
    "no-leader": "it has no leader to copy from",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StagedPlan(Shown):
    """A plan in stages. ``rows`` lists the reassignments of each stage, in the order of the plan."""

    schedule: StageSchedule
    rows: list[Int32]
    manifest: StageManifest

    def heading(self) -> Heading:
        """See ``Shown``."""
        manifest = self.manifest
        facts = (
            ("stages", len(manifest.stages)),
            ("fewest stages within the limits", manifest.bound),
            ("replicas copied", sum(stage.moves for stage in manifest.stages)),
            ("partitions without a stage", len(manifest.unstaged)),
        )
        return Heading(f"stages of {self.schedule.problem.checked.plan.name}", FactsPart(facts))

    def parts(self) -> Sequence[Part]:
        """See ``Shown``."""
        return stage_parts(self.manifest)

    def documents(self) -> Iterator[tuple[str, str]]:
        """File name and text of each stage: Kafka's reassignment JSON, stamped with what it was made for."""
        checked = self.schedule.problem.checked
        for stage, rows in zip(self.manifest.stages, self.rows, strict=True):
            positions = self.schedule.problem.positions[rows]
            plan, origin = checked.plan.take(positions), checked.origin.take(positions)
            stamp = replace(checked, plan=plan, rows=checked.rows[positions], origin=origin).stamp()
            yield file_name(stage.number), plan_document(plan, stamp)


def file_name(number: int) -> str:
    """The file of a stage."""
    return f"stage-{number:03}.json"


def stage_plan(
    checked: CheckedPlan, request: StageRequest, config: Mapping[str, object] | None = None, *, files: bool = False
) -> StagedPlan:
    """Order a plan in stages. ``files``: the manifest names a file for each stage.

    Raises InputError for limits that the snapshot lacks brokers for, SnapshotError for a snapshot without leaders.
    """
    problem = stage_problem(checked, request)
    scheduled = schedule(problem)
    order = np.argsort(scheduled.stage, kind="stable").astype(np.int32)
    bounds = np.searchsorted(scheduled.stage[order], np.arange(scheduled.count + 1))
    rows = [order[first:last] for first, last in pairwise(bounds.tolist())]
    stages = _stages(scheduled, rows, files)
    manifest = StageManifest(
        summary=_summary(scheduled),
        snapshot=StagedSnapshot(checked.snapshot.source.format, checked.snapshot.source.name, len(checked.snapshot)),
        stamp=checked.stamp(),
        limits=_limits(problem),
        bound=scheduled.bound,
        gap=scheduled.gap,
        stages=stages,
        unstaged=list(_unstaged(scheduled)),
        notes=list(_notes(scheduled, stages)),
    )
    for number, failures in stage_failures(scheduled, config).items():
        stages[number].failures = failures
    return StagedPlan(scheduled, rows, manifest)


def _stages(scheduled: StageSchedule, rows: list[Int32], files: bool) -> list[PlanStage]:
    problem = scheduled.problem
    sized = problem.request.weights is not None
    capacity = problem.free + problem.used
    used = problem.used.copy()
    stages: list[PlanStage] = []
    for number, members in enumerate(rows):
        part = problem.take(members)
        load = part.loads()
        peak = used + load[2]
        used = peak.copy()
        np.subtract.at(used, part.removing.values, np.repeat(part.size, part.removing.counts))
        brokers = [
            StageBroker(
                int(problem.brokers[broker]),
                int(load[0, broker]),
                int(load[1, broker]),
                int(load[2, broker]) if sized else None,
                int(load[3, broker]) if sized else None,
                int(peak[broker]) if capacity[broker] < UNLIMITED else None,
            )
            for broker in np.flatnonzero(load[:2].any(axis=0)).tolist()
        ]
        rate = problem.request.rate
        stages.append(
            PlanStage(
                number=number + 1,
                file=file_name(number + 1) if files else None,
                moves=int(part.moves.sum()),
                bytes=int((part.moves * part.size).sum()) if sized else None,
                alone=bool((part.rank == ALONE).any()),
                seconds=None if rate is None else int(load[2:].max(initial=0)) / rate,
                window=None,
                brokers=brokers,
                failures=[],
                reassignments=_reassignments(problem, members, sized),
            )
        )
    if problem.request.windows:
        seconds = [stage.seconds or 0.0 for stage in stages]
        for stage, window in zip(stages, allot_windows(seconds, problem.request.windows), strict=True):
            stage.window = window
    return stages


def _reassignments(problem: StageProblem, rows: Int32, sized: bool) -> list[StagedReassignment]:
    checked, positions = problem.checked, problem.positions[rows]
    plan, before, sizes = checked.plan.take(positions), checked.origin.take(positions), problem.size[rows]
    targets = plan.targets
    return [
        StagedReassignment(
            topic,
            partition,
            before[i].tolist(),
            targets.replicas[i].tolist(),
            size if sized else None,
            UNSET if plan.observers is None else plan.observers[i].tolist() or UNSET,
        )
        for i, ((topic, partition), size) in enumerate(zip(targets.partitions(), sizes.tolist(), strict=True))
    ]


def _limits(problem: StageProblem) -> StageLimits:
    request = problem.request
    capacity = problem.free + problem.used
    known = {
        str(broker_id): bytes_
        for broker_id, bytes_ in zip(problem.brokers.tolist(), capacity.tolist(), strict=True)
        if bytes_ < UNLIMITED
    }
    return StageLimits(
        request.moves_per_broker,
        request.moves,
        request.bytes_in_flight,
        request.stage_bytes_per_broker,
        known if request.disk_capacity else None,
        request.rate,
        [str(window) for window in request.windows],
    )


def _summary(scheduled: StageSchedule) -> str:
    staged = scheduled.stage >= 0
    moves, count = int(scheduled.problem.moves[staged].sum()), scheduled.count
    text = f"{counted(moves, 'move')} in {counted(count, 'stage')}"
    gap = "" if count == scheduled.bound else f" (gap {scheduled.gap:.2%})"
    return f"{text}; the limits need at least {scheduled.bound:,}{gap}"


def _unstaged(scheduled: StageSchedule) -> Iterator[UnstagedReassignment]:
    problem = scheduled.problem
    targets = problem.checked.plan.targets
    reasons = {position: (name, _REASONS[name]) for position, name in problem.refused.items()}
    for row in np.flatnonzero(scheduled.stage < 0).tolist():
        lacking = ", ".join(f"broker {id_} lacks {counted(size, 'byte')}" for id_, size in scheduled.lacking(row))
        reasons[int(problem.positions[row])] = ("disk", lacking)
    for position, (reason, detail) in sorted(reasons.items()):
        topic, partition = targets.names[targets.topic[position]], int(targets.partition[position])
        yield UnstagedReassignment(topic, partition, reason, detail)  # type: ignore[arg-type]


def _notes(scheduled: StageSchedule, stages: list[PlanStage]) -> Iterator[str]:
    problem = scheduled.problem
    if problem.request.weights is None:
        yield "no sizes: a move is a replica, whatever its size (--weights FILE gives sizes)"
    alone = sum(stage.alone for stage in stages)
    if alone:
        verb = "exceeds a limit by itself" if alone == 1 else "exceed a limit by themselves"
        yield f"{counted(alone, 'reassignment')} {verb}; each has a stage of its own"
    too_long = [stage.number for stage in stages if problem.request.windows and stage.window is None]
    if too_long:
        verb = "is" if len(too_long) == 1 else "are"
        longer = f"{counted(len(too_long), 'stage')} {verb} longer than the longest window"
        yield f"{longer}; the first is stage {too_long[0]}"
    for broker_id, size in scheduled.overfull():
        yield f"no order exists: after the plan broker {broker_id} needs {counted(size, 'byte')} more than its capacity"
    if (scheduled.stage < 0).any() and not scheduled.overfull():
        yield "no order was found in which each new replica fits its disk"
