"""What the failure of each broker harms during and after each stage, compared with the same failure before the plan.

A stage changes only its own partitions, so only these are examined: each once as it is before the plan, once while it
is copied and once afterwards. While it is copied a partition has its old and its new replicas, the new ones outside of
the ISR. Afterwards it has the new list, all in sync: Kafka completes a reassignment no earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from kframe.model.arrays import Int32, Ragged, offsets_of
from kframe.model.lists import members
from kframe.plans.check.rules import Phase, StagedChange
from kframe.plans.stage.manifest import StageFailure
from kframe.plans.stage.schedule import StageSchedule
from kframe.snapshot import PartitionFacts
from kframe.whatif.engines.settings import knows_min_insync

PHASES: Final[tuple[Phase, ...]] = ("during", "after")


def stage_failures(
    schedule: StageSchedule, config: Mapping[str, object] | None = None
) -> dict[int, list[StageFailure]]:
    """The findings by stage, from 0; stages without any are missing. Cost O(k · r²) for any number of stages."""
    checked, snapshot = schedule.problem.checked, schedule.problem.checked.snapshot
    known = knows_min_insync(snapshot.topics, config)
    positions, rows = _scheduled(schedule)
    stage, added = np.sort(schedule.stage[schedule.stage >= 0]), checked.adding.take(positions).counts
    involved = _joined(checked.plan.targets.replicas.take(positions), checked.removing.take(positions))
    findings: dict[int, list[StageFailure]] = {}
    for phase in PHASES:
        after = replace(snapshot, partitions=staged_partitions(schedule, phase))
        change = StagedChange(snapshot, after, phase, rows, stage, added, involved, config)
        for number, broker_id, (offline, under, unclean) in checked.rules.harm(change):
            if offline or unclean or (known and under):
                failure = StageFailure(broker_id, phase, offline, under if known else None, unclean)
                findings.setdefault(number, []).append(failure)
    return findings


def staged_partitions(schedule: StageSchedule, phase: Phase) -> PartitionFacts:
    """The partitions of the snapshot with every scheduled reassignment in this phase."""
    checked, facts = schedule.problem.checked, schedule.problem.checked.snapshot.partitions
    assert facts.leader is not None
    assert facts.isr is not None
    positions, rows = _scheduled(schedule)
    adding, removing = checked.adding.take(positions), checked.removing.take(positions)
    targets, before = checked.plan.targets.replicas.take(positions), checked.origin.take(positions)
    leader = facts.leader.copy()
    if phase == "during":
        replicas, isr = _joined(targets, before.keep(~members(before, targets))), facts.isr.take(rows)
    else:
        replicas = isr = targets
        adding = removing = Ragged.empty(len(rows))
        stays = targets.any(targets.values == leader[rows][targets.owners])
        leader[rows] = np.where(stays, leader[rows], targets.values[targets.offsets[:-1]])
    changed = {"replicas": replicas, "isr": isr, "adding_replicas": adding, "removing_replicas": removing}
    lists = {
        name: _with_rows(getattr(facts, name) or Ragged.empty(len(facts)), rows, values)
        for name, values in changed.items()
    }
    empty = Ragged.empty(len(rows))
    elr = {
        name: _with_rows(column, rows, empty)
        for name in ("elr", "last_known_elr")
        if phase == "after" and (column := getattr(facts, name)) is not None
    }
    return replace(facts, leader=leader, directories=None, **lists, **elr)  # type: ignore[arg-type]


def _scheduled(schedule: StageSchedule) -> tuple[Int32, Int32]:
    """Positions in the plan and rows of the scheduled reassignments, by stage."""
    order = np.argsort(schedule.stage, kind="stable")
    positions = schedule.problem.positions[order[schedule.stage[order] >= 0]]
    return positions, schedule.problem.checked.rows[positions]


def _joined(left: Ragged, right: Ragged) -> Ragged:
    """List ``i`` of ``left``, then list ``i`` of ``right``."""
    owners = np.concatenate([left.owners, right.owners])
    order = np.argsort(owners, kind="stable")
    return Ragged(offsets_of(left.counts + right.counts), np.concatenate([left.values, right.values])[order])


def _with_rows(lists: Ragged, rows: Int32, values: Ragged) -> Ragged:
    """The lists, with those of ``rows`` replaced."""
    source = np.arange(len(lists), dtype=np.int64)
    source[rows] = len(lists) + np.arange(len(rows))
    return Ragged.chain([lists, values]).take(source)
