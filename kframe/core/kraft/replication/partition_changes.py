"""The decision for partitions: from the targets of an event to changes (Kafka 4.4 ``PartitionChangeBuilder``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RecordAndVersion, partition_version
from kframe.core.kraft.replication.leader_selection import Candidates
from kframe.model.columns import Bool, Int32, Ragged, UInt8, offsets_of, ragged_positions
from kframe.model.ids import NO_LEADER, RecoveryState
from kframe.model.kraft.columns import KraftPartitions
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
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
class PartitionChangeBatch:
    """Changes of rows in columns. A mask says whether a record has the field. Lists have one entry a row."""

    rows: Int32
    leader: Int32
    writes_leader: Bool
    isr: Ragged
    writes_isr: Bool
    elr: Ragged
    writes_elr: Bool
    last_known_elr: Ragged
    writes_last_known_elr: Bool
    replicas: Ragged
    writes_replicas: Bool
    directories: Ragged
    """Empty if the event cannot change any."""
    writes_directories: Bool
    adding: Ragged
    writes_adding: Bool
    removing: Ragged
    writes_removing: Bool
    recovery: UInt8
    writes_recovery: Bool

    @property
    def changed(self) -> Bool:
        """(k,) whether the row has a record."""
        names = ("leader", "isr", "elr", "last_known_elr", "replicas", "directories", "adding", "removing", "recovery")
        changed: Bool = np.logical_or.reduce([getattr(self, f"writes_{name}") for name in names])
        return changed

    def records(self, metadata: ClusterMetadata) -> list[PartitionChangeRecord | None]:
        """The record of each row, or None where nothing changes. ELRs ascend by broker id."""
        changed = np.flatnonzero(self.changed)
        fields: list[dict[str, Any]] = [{} for _ in range(len(changed))]
        ids = np.append(metadata.brokers.ids, np.int32(NO_LEADER))  # index -1 is NO_LEADER
        broker_ids = ids.tolist()
        for name, field_name in RECORD_LISTS.items():
            for position, values in _written_lists(getattr(self, name), getattr(self, f"writes_{name}"), changed):
                if name == "directories":
                    fields[position][field_name] = metadata.directories.ids_of(values)
                else:
                    brokers = [broker_ids[value] for value in values]
                    fields[position][field_name] = tuple(sorted(brokers) if name == "elr" else brokers)
        for position, leader in _written_values(ids[self.leader], self.writes_leader, changed):
            fields[position]["leader"] = leader
        for position, recovery in _written_values(self.recovery, self.writes_recovery, changed):
            fields[position]["leader_recovery_state"] = recovery
        records: list[PartitionChangeRecord | None] = [None] * len(self.rows)
        rows, topic_ids = self.rows[changed], metadata.topics.ids
        topics = metadata.partitions.topic[rows].tolist()
        numbers = metadata.partitions.partition[rows].tolist()
        for index, topic, number, record_fields in zip(changed.tolist(), topics, numbers, fields, strict=True):
            records[index] = PartitionChangeRecord(partition_id=number, topic_id=topic_ids[topic], **record_fields)
        return records


#: The lists of a change and the fields of its record.
RECORD_LISTS: Final = {
    "isr": "isr",
    "elr": "eligible_leader_replicas",
    "last_known_elr": "last_known_elr",
    "replicas": "replicas",
    "directories": "directories",
    "adding": "adding_replicas",
    "removing": "removing_replicas",
}


def _written_lists(lists: Ragged, writes: Bool, changed: NDArray[np.intp]) -> Iterator[tuple[int, list[int]]]:
    """The position among ``changed``, and the list, of each row that writes it."""
    positions = np.flatnonzero(writes[changed])
    written = lists.take(changed[positions])
    offsets, values = written.offsets.tolist(), written.values.tolist()
    for index, position in enumerate(positions.tolist()):
        yield position, values[offsets[index] : offsets[index + 1]]


def _written_values(values: NDArray[Any], writes: Bool, changed: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    positions = np.flatnonzero(writes[changed])
    return zip(positions.tolist(), values[changed[positions]].tolist(), strict=True)


def change_partitions(context: KraftContext, targets: TargetReplicas) -> list[RecordAndVersion | None]:
    """The record of each row of ``targets``. None where nothing changes."""
    version = partition_version(context.level)
    records = plan_changes(context, targets).records(context.metadata)
    return [None if record is None else RecordAndVersion(record, version) for record in records]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedChanges:
    """Changes of partitions as a part of a decision. Only ``records`` creates an object for each partition."""

    metadata: ClusterMetadata
    batch: PartitionChangeBatch
    version: int

    @property
    def count(self) -> int:
        """The number of records."""
        return int(np.count_nonzero(self.batch.changed))

    def records(self) -> list[RecordAndVersion]:
        """The records of the rows that change, in the order of the rows."""
        records = self.batch.records(self.metadata)
        return [RecordAndVersion(record, self.version) for record in records if record is not None]


def planned_changes(context: KraftContext, targets: TargetReplicas) -> PlannedChanges:
    """The changes of ``targets``, in columns."""
    return PlannedChanges(context.metadata, plan_changes(context, targets), partition_version(context.level))


def change_records(context: KraftContext, targets: TargetReplicas) -> list[RecordAndVersion]:
    """The records of the rows that change, in the order of ``targets``."""
    return planned_changes(context, targets).records()


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
            replicas.offsets, replicas.values, isr.offsets, isr.values, adding.offsets, adding.values,
            removing.offsets, removing.values, rule, completed, keeps_replica, keeps_member,
        )  # fmt: skip
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
        rows, p.slot_start, p.isr_count, p.elr_count, p.isr, p.member, isr.offsets, isr.values, context.min_isr(rows),
        unclean_broker, offsets, values,
    )  # fmt: skip
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
