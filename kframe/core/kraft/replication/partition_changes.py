"""The decision for partitions: from the targets of an event to changes (Kafka 4.4 ``PartitionChangeBuilder``)."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from kframe import kernels
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.core.kraft.replication.last_known_leaders import elect_inactive, last_known_elrs, last_known_leaders
from kframe.core.kraft.replication.leader_selection import Candidates
from kframe.core.kraft.replication.stored_partitions import StoredPartitions, stored_partitions
from kframe.model.arrays import Bool, Int32, Ragged, UInt8, offsets_of, ragged_positions
from kframe.model.ids import RecoveryState
from kframe.model.kraft.columns import KraftPartitions
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.record_versions import newest_version
from kframe.model.kraft.records import PartitionChangeRecord
from kframe.model.kraft.releases import COMPLETION_CHANGES, CompletionRule, completion_rule

NO_BROKER: Final = -1


class TargetReplicas(Struct, frozen=True, eq=False):
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
    ignores_elr: bool = False
    """Decide as without eligible leader replicas."""


class _Lists(Struct, frozen=True, eq=False):
    isr: Ragged
    replicas: Ragged
    directories: Ragged
    adding: Ragged
    removing: Ragged


def plan_changes(context: KraftContext, targets: TargetReplicas) -> PartitionChangeBatch:
    """Decide the changes of rows. The stored state does not change."""
    metadata, rows = context.metadata, targets.rows
    p, elr_enabled = metadata.partitions, metadata.elr_enabled and not targets.ignores_elr
    stored = stored_partitions(p, rows)
    stored_directories = _stored_directories(p, targets, stored)
    target = _complete_reassignments(context, _target_lists(targets, stored, stored_directories))
    elr = stored.elr
    if elr_enabled:
        elr = _update_elrs(context, rows, target.isr, targets.unclean_broker)
        if context.settings.strict:
            elr = _common(_common(elr, stored.replicas), target.replicas)
    active = metadata.brokers.active if targets.active is None else targets.active
    last_known_leader = last_known_leaders(stored.last_known_elr, enabled=elr_enabled)
    candidates = Candidates(rows, targets.kinds, active, stored, target.replicas, target.isr, elr, last_known_leader)
    chosen = context.selection.choose(metadata, candidates)
    leader, unclean = elect_inactive(context, last_known_leader, target.isr, elr, chosen)

    elected = leader != stored.leader
    is_unclean = elected & (unclean != 0)
    is_elected = elected[elr.owners] & (elr.values == leader[elr.owners])
    is_eligible = elr.any(is_elected)
    isr = _with_single_member(target.isr, is_unclean | is_eligible, leader)
    elr = elr.keep(~is_elected)
    elr = elr.keep(~is_unclean[elr.owners]) if elr_enabled else Ragged.empty(len(rows))
    writes_isr = is_unclean | (_differs(isr, stored.isr) & ((isr.counts > 0) | elr_enabled))
    writes_leader = elected | _has_missing(stored.replicas, target.replicas)
    if context.level < MetadataLevel.NO_EPOCH_BUMP_ON_SHRINK:
        writes_leader |= writes_isr & _has_missing(stored.isr, isr)
    leader = np.where(elected, leader, stored.leader)
    last_known_elr, writes_last_known = last_known_elrs(
        context, stored, leader, writes_leader, writes_isr & (isr.counts == 0) & elr_enabled
    )
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
        writes_elr=_has_missing(elr, stored.elr) | _has_missing(stored.elr, elr),
        last_known_elr=last_known_elr,
        writes_last_known_elr=writes_last_known & elr_enabled,
        replicas=target.replicas,
        writes_replicas=_differs(target.replicas, stored.replicas) & has_replicas,
        directories=target.directories,
        writes_directories=_differs(target.directories, stored_directories) & has_replicas & stores_directories,
        adding=target.adding,
        writes_adding=_differs(target.adding, stored.adding),
        removing=target.removing,
        writes_removing=_differs(target.removing, stored.removing),
        recovery=np.where(reported, recovery, np.uint8(RecoveryState.RECOVERING)).astype(np.uint8),
        writes_recovery=reported | (is_unclean & (stored_recovery != RecoveryState.RECOVERING)),
    )


def _stored_directories(p: KraftPartitions, targets: TargetReplicas, stored: StoredPartitions) -> Ragged:
    """The stored directories of the rows, empty if the event cannot change any."""
    assignments = (targets.directories, targets.adding, targets.removing, stored.adding, stored.removing)
    changeable = any(lists is not None and len(lists.values) for lists in assignments)
    return p.lists("directory", targets.rows) if changeable else Ragged.empty(len(targets.rows))


def _target_lists(targets: TargetReplicas, stored: StoredPartitions, stored_directories: Ragged) -> _Lists:
    """The target lists, before reassignments are completed."""
    isr = stored.isr if targets.isr is None else targets.isr
    if targets.leaving_broker != NO_BROKER:
        isr = _without_broker(isr, targets.leaving_broker)
    return _Lists(
        isr,
        stored.replicas if targets.replicas is None else targets.replicas,
        stored_directories if targets.directories is None else targets.directories,
        stored.adding if targets.adding is None else targets.adding,
        stored.removing if targets.removing is None else targets.removing,
    )


def _without_broker(lists: Ragged, broker: int) -> Ragged:
    offsets, values = np.empty_like(lists.offsets), np.empty_like(lists.values)
    count = kernels.remove_from_lists(lists.offsets, lists.values, broker, offsets, values)
    return Ragged(offsets, values[:count])


def _complete_reassignments(context: KraftContext, target: _Lists) -> _Lists:
    """The target lists, without the removing replicas of complete reassignments."""
    if not len(target.adding.values) and not len(target.removing.values):
        return target
    completions = {rule: _completions(target, rule) for rule in CompletionRule}
    context.consulted |= {
        rule
        for rule, before, since in COMPLETION_CHANGES
        if not np.array_equal(completions[before][0], completions[since][0])
    }
    completed, keeps_replica, keeps_member = completions[completion_rule(context.settings.release)]
    if not completed.any():
        return target
    return _Lists(
        target.isr.keep(keeps_member != 0),
        target.replicas.keep(keeps_replica != 0),
        target.directories.keep(keeps_replica != 0),
        target.adding.keep(completed[target.adding.owners] == 0),
        target.removing.keep(completed[target.removing.owners] == 0),
    )


def _completions(target: _Lists, rule: CompletionRule) -> tuple[UInt8, UInt8, UInt8]:
    """(k,) whether each reassignment is complete, and which replicas and ISR members remain: 1 or 0."""
    completed = np.zeros(len(target.replicas), np.uint8)
    keeps_replica = np.empty(len(target.replicas.values), np.uint8)
    keeps_member = np.empty(len(target.isr.values), np.uint8)
    kernels.mark_completed_reassignments(
        target.replicas.offsets,
        target.replicas.values,
        target.isr.offsets,
        target.isr.values,
        target.adding.offsets,
        target.adding.values,
        target.removing.offsets,
        target.removing.values,
        rule,
        completed,
        keeps_replica,
        keeps_member,
    )
    return completed, keeps_replica, keeps_member


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


def _common(lists: Ragged, others: Ragged) -> Ragged:
    """The values of each list that the other has, too."""
    rows = np.flatnonzero(lists.counts)
    if not len(rows):
        return lists
    these, those = lists.take(rows), others.take(rows)
    span = int(max(these.values.max(), those.values.max(initial=0))) + 1
    pairs, known = (each.owners.astype(np.int64) * span + each.values for each in (these, those))
    return lists.keep(np.isin(pairs, known))


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
