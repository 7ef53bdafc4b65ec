"""What the failure of each broker harms during and after each stage, compared with the same failure before the plan.

A stage changes only its own partitions, so only these are examined: each once as it is before the plan, once while it
is copied and once afterwards. While it is copied a partition has its old and its new replicas, the new ones outside of
the ISR. Afterwards it has the new list, all in sync: Kafka completes a reassignment no earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from kframe import kernels
from kframe.core.kraft.context import KraftContext
from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.lists import members
from kframe.model.topics import UNSET
from kframe.plans.stage.manifest import StageFailure
from kframe.plans.stage.schedule import StageSchedule
from kframe.snapshot import PartitionFacts
from kframe.whatif.engines.kraft import failed_rows
from kframe.whatif.engines.kraft.engine import KraftEngine
from kframe.whatif.engines.kraft.failed_rows import FailureCases, first_partitions, play_cases
from kframe.whatif.engines.settings import config_of, knows_min_insync

Phase: TypeAlias = Literal["during", "after"]
PHASES: Final[tuple[Phase, ...]] = ("during", "after")
#: Stage, broker index or -1, and partitions that are offline, under min ISR, and led uncleanly.
Harm: TypeAlias = tuple[int, int, tuple[int, int, int]]

_KRAFT_BITS: Final = (failed_rows.OFFLINE, failed_rows.UNDER_MIN_ISR, failed_rows.UNCLEAN_ELECTED)
#: The most counters of stages and brokers that are held at a time.
_COUNTERS: Final = 1 << 22


def stage_failures(
    schedule: StageSchedule, config: Mapping[str, object] | None = None
) -> dict[int, list[StageFailure]]:
    """The findings by stage, from 0; stages without any are missing. Cost O(k · r²) for any number of stages."""
    snapshot = schedule.problem.checked.snapshot
    known = knows_min_insync(snapshot.topics, config)
    harm_of = _kraft_harm if snapshot.is_kraft else _zookeeper_harm
    findings: dict[int, list[StageFailure]] = {}
    for phase in PHASES:
        for number, broker, (offline, under, unclean) in harm_of(schedule, phase, config):
            if offline or unclean or (known and under):
                broker_id = None if broker < 0 else int(schedule.problem.brokers[broker])
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


def _stages(schedule: StageSchedule) -> Int32:
    """The stages of the scheduled reassignments, ascending."""
    return np.sort(schedule.stage[schedule.stage >= 0])


def _joined(left: Ragged, right: Ragged) -> Ragged:
    """List ``i`` of ``left``, then list ``i`` of ``right``."""
    owners = np.concatenate([left.owners, right.owners])
    order = np.argsort(owners, kind="stable")
    counts = left.counts + right.counts
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    return Ragged(offsets, np.concatenate([left.values, right.values])[order])


def _with_rows(lists: Ragged, rows: Int32, values: Ragged) -> Ragged:
    """The lists, with those of ``rows`` replaced."""
    source = np.arange(len(lists), dtype=np.int64)
    source[rows] = len(lists) + np.arange(len(rows))
    return Ragged.chain([lists, values]).take(source)


def _zookeeper_harm(schedule: StageSchedule, phase: Phase, config: Mapping[str, object] | None) -> Iterator[Harm]:
    """The harm by ZooKeeper rules.

    Replicas that are being added do not count for the effective ``min.insync.replicas`` (Kafka 3.9
    ``OngoingReassignmentState.replicationFactor``).
    """
    snapshot = schedule.problem.checked.snapshot
    settings = config_of(snapshot, config)
    positions, rows = _scheduled(schedule)
    before = snapshot.to_cluster()
    after = replace(snapshot, partitions=staged_partitions(schedule, phase)).to_cluster()
    topics, topic = before.topics, before.partitions.topic[rows]
    min_isr = np.where(topics.min_insync == UNSET, settings["min.insync.replicas"], topics.min_insync)[topic]
    unclean = np.where(topics.unclean == UNSET, settings.unclean_by_default, topics.unclean == 1)[topic]
    registered = before.brokers.registered
    columns: list[Any] = []
    for cluster in (before, after):
        p = cluster.partitions
        effective_replicas = p.replica_count[rows].astype(np.int32)
        if cluster is after and phase == "during":
            effective_replicas -= schedule.problem.checked.adding.take(positions).counts
        columns += [
            p.leader[rows],
            p.slot_start[rows],
            p.replica_count[rows],
            p.isr_count[rows],
            p.replica,
            p.isr,
            np.minimum(min_isr, effective_replicas).astype(np.int32),
        ]
    count_harmed: Any = kernels.count_harmed
    stages, rack = _stages(schedule), np.full(len(registered), -1, np.int32)
    step = max(_COUNTERS // (len(registered) + 1), 1)
    for first in range(0, schedule.count, step):
        part = slice(*np.searchsorted(stages, [first, first + step]))
        harm = np.zeros((min(step, schedule.count - first), len(registered) + 1, 3), np.int32)
        sliced = [column if name in (4, 5, 11, 12) else column[part] for name, column in enumerate(columns)]
        count_harmed(stages[part] - np.int32(first), *sliced, unclean[part].astype(np.uint8), registered, rack, harm)
        for number, broker in zip(*np.nonzero(harm.any(axis=2)), strict=True):
            offline, under, elected = harm[number, broker].tolist()
            line = -1 if broker == len(registered) else int(broker)
            yield first + int(number), line, (offline, under, elected)


@dataclass(slots=True)
class _DuringContext(KraftContext):
    """A context in which replicas that are being added do not count for the effective ``min.insync.replicas``."""

    minimum: Int32 = field(default_factory=lambda: np.empty(0, np.int32))

    def min_isr(self, rows: Int32) -> Int32:
        """See ``KraftContext``."""
        return self.minimum[rows]


def _kraft_harm(schedule: StageSchedule, phase: Phase, config: Mapping[str, object] | None) -> Iterator[Harm]:
    """The harm by KRaft rules; the settings of a topic are those of its partitions in the same phase."""
    checked = schedule.problem.checked
    snapshot, (positions, rows), stages = checked.snapshot, _scheduled(schedule), _stages(schedule)
    without_directories = replace(snapshot, partitions=replace(snapshot.partitions, directories=None))
    before = KraftEngine(without_directories, config).context
    changed = replace(snapshot, partitions=staged_partitions(schedule, phase))
    after = KraftEngine(changed, config).context
    if phase == "during":
        values = {item.name: getattr(after, item.name) for item in fields(KraftContext)}
        minimum = before.min_isr(np.arange(len(snapshot), dtype=np.int32))
        after = _DuringContext(**values, minimum=minimum)
    registered = [id_ for id_, stored in before.metadata.brokers.registrations.items() if not stored.fenced]
    named = _joined(checked.plan.targets.replicas.take(positions), checked.removing.take(positions))
    named = named.keep(np.isin(named.values, registered))
    owners = named.owners
    none = _new_bits(before, after, rows, [np.empty((len(rows), 0), np.int32)] * 2)
    leaving = [
        np.array(context.metadata.brokers.indexes_of(named.values.tolist()), np.int32).reshape(-1, 1)
        for context in (before, after)
    ]
    bits = _new_bits(before, after, rows[owners], leaving) & ~none[owners]
    broker = np.searchsorted(schedule.problem.brokers, named.values).astype(np.int64)
    size = len(schedule.problem.brokers) + 1
    stage = np.concatenate([stages, stages[owners]]).astype(np.int64)
    lines = np.concatenate([np.zeros(len(rows), np.int64), broker + 1])
    keys, inverse = np.unique(stage * size + lines, return_inverse=True)
    all_bits = np.concatenate([none, bits])
    counts = [np.bincount(inverse[(all_bits & bit) != 0], minlength=len(keys)).tolist() for bit in _KRAFT_BITS]
    for key, offline, under, elected in zip(keys.tolist(), *counts, strict=True):
        yield key // size, key % size - 1, (offline, under, elected)


def _new_bits(before: KraftContext, after: KraftContext, rows: Int32, leaving: list[Int32]) -> UInt8:
    """The bits of each case that it has after, but not before."""
    flags = [
        play_cases(context, FailureCases(rows, brokers), first_partitions(context)).flags
        for context, brokers in zip((before, after), leaving, strict=True)
    ]
    new: UInt8 = flags[1] & ~flags[0]
    return new
