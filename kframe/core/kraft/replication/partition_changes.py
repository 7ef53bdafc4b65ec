"""The decision for partitions: from the targets of an event to changes (Kafka 4.4 ``PartitionChangeBuilder``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe import kernels
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.core.kraft.replication.leader_selection import Candidates
from kframe.model.arrays import Bool, Int32, Ragged, UInt8, offsets_of, ragged_positions
from kframe.model.ids import NO_LEADER, RecoveryState
from kframe.model.kraft.columns import KraftPartitions
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.record_versions import newest_version
from kframe.model.kraft.records import PartitionChangeRecord
from kframe.model.kraft.releases import CompletionRule, completion_rule

NO_BROKER: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class TargetReplicas:
    """The target state of rows; None keeps the stored value. Brokers and directories are indexes."""

    rows: Int32
    kinds: UInt8
    """(k,) KraftElection."""
    isr: Ragged | None = None
    leaving_broker: int = NO_BROKER
    """A broker that is removed from the ISRs."""
    replicas: Ragged | None = None
    directories: Ragged | None = None
    """The directories of ``replicas``."""
    adding: Ragged | None = None
    removing: Ragged | None = None
    recovery: UInt8 | None = None
    active: UInt8 | None = None
    """(b,) 1 for brokers that may lead. None for the active brokers."""
    unclean_broker: int = NO_BROKER
    """A broker that restarted after an unclean shutdown."""


@dataclass(frozen=True, slots=True, eq=False)
class _Lists:
    isr: Ragged
    replicas: Ragged
    directories: Ragged
    adding: Ragged
    removing: Ragged


def plan_changes(context: KraftContext, targets: TargetReplicas) -> PartitionChangeBatch:
    """Decide the changes of rows. The stored state does not change."""
    metadata, rows = context.metadata, targets.rows
    p = metadata.partitions
    stored = _stored_lists(p, targets)
    stored_elr, stored_last_known = p.lists("elr", rows), p.lists("last_known_elr", rows)
    stored_leader = p.leaders_of(rows)
    target = _complete_reassignments(targets, stored, completion_rule(context.settings.release))
    elr = stored_elr
    if metadata.elr_enabled:
        elr = _update_elrs(context, rows, target.isr, targets.unclean_broker)
    active = metadata.brokers.active if targets.active is None else targets.active
    last_known_leader = _last_known_leaders(stored_last_known, enabled=metadata.elr_enabled)
    candidates = Candidates(
        rows, targets.kinds, active, stored.replicas, target.replicas, target.isr, elr, last_known_leader
    )
    leader, unclean = context.selection.choose(metadata, candidates)

    elected = leader != stored_leader
    is_unclean = elected & (unclean != 0)
    is_eligible = elected & elr.any(elr.values == leader[elr.owners])
    isr = _with_single_member(target.isr, is_unclean | is_eligible, leader)
    elr = elr.keep(~(is_eligible[elr.owners] & (elr.values == leader[elr.owners])))
    elr = elr.keep(~is_unclean[elr.owners]) if metadata.elr_enabled else Ragged.empty(len(rows))
    writes_isr = is_unclean | (_differs(isr, stored.isr) & ((isr.counts > 0) | metadata.elr_enabled))
    writes_leader = elected | _has_missing(stored.replicas, target.replicas)
    if context.level < MetadataLevel.NO_EPOCH_BUMP_ON_SHRINK:
        writes_leader |= writes_isr & _has_missing(stored.isr, isr)
    leader = np.where(elected, leader, stored_leader)
    last_known_elr, writes_last_known = _last_known_elrs(stored_leader, leader, writes_leader, stored_last_known.counts)
    stored_recovery = p.recovery[rows]
    recovery = stored_recovery if targets.recovery is None else targets.recovery
    reported = recovery != stored_recovery
    has_replicas = target.replicas.counts > 0
    stores_directories = context.level >= MetadataLevel.DIRECTORIES
    return PartitionChangeBatch(
        metadata=metadata,
        version=newest_version(PartitionChangeRecord, context.level),
        rows=rows,
        leader=leader,
        writes_leader=writes_leader,
        isr=isr,
        writes_isr=writes_isr,
        elr=elr,
        writes_elr=_has_missing(elr, stored_elr) | _has_missing(stored_elr, elr),
        last_known_elr=last_known_elr,
        writes_last_known_elr=writes_last_known & metadata.elr_enabled,
        replicas=target.replicas,
        writes_replicas=_differs(target.replicas, stored.replicas) & has_replicas,
        directories=target.directories,
        writes_directories=_differs(target.directories, stored.directories) & has_replicas & stores_directories,
        adding=target.adding,
        writes_adding=_differs(target.adding, stored.adding),
        removing=target.removing,
        writes_removing=_differs(target.removing, stored.removing),
        recovery=np.where(reported, recovery, np.uint8(RecoveryState.RECOVERING)).astype(np.uint8),
        writes_recovery=reported | (is_unclean & (stored_recovery != RecoveryState.RECOVERING)),
    )


def _stored_lists(p: KraftPartitions, targets: TargetReplicas) -> _Lists:
    """The stored lists of the rows. Those of directories are empty if the event cannot change any."""
    rows = targets.rows
    isr, replicas, adding, removing = (p.lists(name, rows) for name in ("isr", "replica", "adding", "removing"))
    assignments = (targets.directories, targets.adding, targets.removing, adding, removing)
    changeable = any(lists is not None and len(lists.values) for lists in assignments)
    directories = p.lists("directory", rows) if changeable else Ragged.empty(len(rows))
    return _Lists(isr, replicas, directories, adding, removing)


def _complete_reassignments(targets: TargetReplicas, stored: _Lists, rule: CompletionRule) -> _Lists:
    """The target lists, without the removing replicas of complete reassignments."""
    isr = stored.isr if targets.isr is None else targets.isr
    if targets.leaving_broker != NO_BROKER:
        isr = isr.keep(isr.values != targets.leaving_broker)
    replicas = stored.replicas if targets.replicas is None else targets.replicas
    directories = stored.directories if targets.directories is None else targets.directories
    adding = stored.adding if targets.adding is None else targets.adding
    removing = stored.removing if targets.removing is None else targets.removing
    completed = np.zeros(len(replicas), np.uint8)
    keeps_replica, keeps_member = np.empty(len(replicas.values), np.uint8), np.empty(len(isr.values), np.uint8)
    if len(adding.values) or len(removing.values):
        kernels.mark_completed_reassignments(
            replicas.offsets,
            replicas.values,
            isr.offsets,
            isr.values,
            adding.offsets,
            adding.values,
            removing.offsets,
            removing.values,
            rule,
            completed,
            keeps_replica,
            keeps_member,
        )
    if not completed.any():
        return _Lists(isr, replicas, directories, adding, removing)
    return _Lists(
        isr.keep(keeps_member != 0),
        replicas.keep(keeps_replica != 0),
        directories.keep(keeps_replica != 0),
        adding.keep(completed[adding.owners] == 0),
        removing.keep(completed[removing.owners] == 0),
    )


def _last_known_leaders(last_known: Ragged, *, enabled: bool) -> Int32:
    """(k,) the last-known leader where there is exactly one. NO_BROKER elsewhere."""
    leaders = np.full(len(last_known), NO_BROKER, np.int32)
    if enabled and len(last_known.values):
        single = last_known.counts == 1
        leaders[single] = last_known.values[last_known.offsets[:-1][single]]
    return leaders


def _update_elrs(context: KraftContext, rows: Int32, isr: Ragged, unclean_broker: int) -> Ragged:
    p = context.metadata.partitions
    offsets = np.empty(len(rows) + 1, np.int32)
    values = np.empty(int(p.elr_count[rows].sum() + p.isr_count[rows].sum()), np.int32)
    count = kernels.update_elrs(
        rows,
        p.slot_start,
        p.isr_count,
        p.elr_count,
        p.isr,
        p.member,
        isr.offsets,
        isr.values,
        context.min_isr(rows),
        unclean_broker,
        offsets,
        values,
    )
    return Ragged(offsets, values[:count])


def _last_known_elrs(
    stored_leader: Int32, leader: Int32, writes_leader: Bool, stored_counts: Int32
) -> tuple[Ragged, Bool]:
    """The last leader of each partition that becomes leaderless; empty where it has a leader again."""
    begins = writes_leader & (leader == NO_LEADER) & (stored_counts == 0)
    ends = writes_leader & (leader != NO_LEADER) & (stored_counts > 0)
    return Ragged(offsets_of(begins.astype(np.int32)), stored_leader[begins]), begins | ends


def _with_single_member(lists: Ragged, selected: Bool, members: Int32) -> Ragged:
    """The lists; in the rows of ``selected`` only ``members[i]``."""
    if not selected.any():
        return lists
    counts = np.where(selected, 1, lists.counts)
    offsets = offsets_of(counts)
    values = np.empty(int(offsets[-1]), np.int32)
    values[offsets[:-1][selected]] = members[selected]
    unselected = np.flatnonzero(~selected)
    values[ragged_positions(offsets[:-1][unselected], counts[unselected])] = lists.take(unselected).values
    return Ragged(offsets, values)


def _differs(lists: Ragged, others: Ragged) -> Bool:
    """(k,) whether two lists differ in values or order."""
    differs = np.zeros(len(lists), np.uint8)
    if lists is not others:
        kernels.mark_list_changes(lists.offsets, lists.values, others.offsets, others.values, differs)
    return differs.view(np.bool_)


def _has_missing(lists: Ragged, others: Ragged) -> Bool:
    """(k,) whether a list has a value that the other lacks."""
    missing = np.zeros(len(lists), np.uint8)
    if lists is not others:
        kernels.mark_missing_members(lists.offsets, lists.values, others.offsets, others.values, missing)
    return missing.view(np.bool_)
