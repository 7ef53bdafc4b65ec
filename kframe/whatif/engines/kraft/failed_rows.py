"""The decisions of a KRaft controller about single partitions in many failures at once.

A *case* is a partition and the brokers of it that fail, in order. Cases are played in separate columns, a row for each
case. Each broker is fenced after the others, so the controller may elect a broker that fails next.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.core.kraft.replication.leader_selection import Candidates, acceptable_replicas, choose_from_acceptable
from kframe.core.kraft.replication.partition_changes import TargetReplicas, plan_changes
from kframe.model.arrays import Bool, Int32, Int64, Ragged, UInt8
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.columns import KraftPartitions, PartitionLists
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.topics import NO_ROW

#: No broker: fills the rows of ``FailureCases.failing``.
NO_BROKER: Final = -1
#: Cases that are played at a time.
_CHUNK: Final = 1 << 17

#: Bits of ``CaseResults.flags``.
OFFLINE: Final = 1
UNDER_MIN_ISR: Final = 2
AT_MIN_ISR: Final = 4
UNCLEAN_ELECTED: Final = 8
UNCLEAN_NEEDED: Final = 16
LEADER_MOVED: Final = 32
MAY_LOSE_DATA: Final = 64

_LISTS: Final = PartitionLists.__struct_fields__
_COLUMNS: Final = {"replicas": "replica", "directories": "directory"}


@dataclass(frozen=True, slots=True, eq=False)
class FailureCases:
    """``k`` cases. ``rows`` (k,): partition rows. ``failing`` (k, m): broker indexes in the order in which they fail,
    then NO_BROKER. ``directory`` (k,): the directory index that fails on ``failing``, whose broker stays up; or None.
    """

    rows: Int32
    failing: Int32
    directory: Int32 | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, first: int, last: int) -> FailureCases:
        """The cases ``first`` to ``last``."""
        directory = None if self.directory is None else self.directory[first:last]
        return FailureCases(self.rows[first:last], self.failing[first:last], directory)

    def take(self, positions: NDArray[Any]) -> FailureCases:
        """The cases at ``positions``."""
        directory = None if self.directory is None else self.directory[positions]
        return FailureCases(self.rows[positions], self.failing[positions], directory)


@dataclass(frozen=True, slots=True, eq=False)
class CaseResults:
    """(k,) bits of each case after its failure, and (k,) the leader's broker index, or NO_LEADER."""

    flags: UInt8
    leader: Int32

    def take(self, positions: NDArray[Any]) -> CaseResults:
        """The results at ``positions``."""
        return CaseResults(self.flags[positions], self.leader[positions])


def first_partitions(context: KraftContext) -> Int32:
    """(t,) the row of partition 0 of each topic where a failure may end its reassignment; NO_ROW elsewhere.

    The number of its replicas bounds ``min.insync.replicas`` of the whole topic. A reassignment ends with a change
    whose ISR has the required members (Kafka 4.4 ``PartitionReassignmentReplicas``). A failure only removes members,
    so it ends no reassignment that a change with the present ISR would not end.
    """
    metadata = context.metadata
    p = metadata.partitions
    first = np.full(len(metadata.topics), NO_ROW, np.int32)
    rows = np.flatnonzero((p.partition == 0) & (p.topic >= 0) & ((p.adding_count > 0) | (p.removing_count > 0)))
    if len(rows):
        kinds = np.full(len(rows), KraftElection.ONLINE, np.uint8)
        batch = plan_changes(context, TargetReplicas(rows=rows.astype(np.int32), kinds=kinds))
        ending = rows[batch.writes_replicas]
        first[p.topic[ending]] = ending
    return first


def play_cases(context: KraftContext, cases: FailureCases, first: Int32) -> CaseResults:
    """Play every case from the state of ``context``, which does not change; ``first`` as of ``first_partitions``."""
    flags, leader = np.zeros(len(cases), np.uint8), np.full(len(cases), NO_LEADER, np.int32)
    for start in range(0, len(cases), _CHUNK):
        last = min(start + _CHUNK, len(cases))
        flags[start:last], leader[start:last] = _play(context, cases.part(start, last), first)
    return CaseResults(flags, leader)


@dataclass(slots=True)
class _CaseContext(KraftContext):
    """A context whose rows are cases. The settings of their topics are those of the whole cluster.

    ``minimum``: the effective ``min.insync.replicas``. ``companion``: the row that plays partition 0 of the topic in
    the same failure, or NO_ROW; the replicas of this row bound ``configured``, the setting of the topic.
    """

    minimum: Int32 = field(default_factory=lambda: np.empty(0, np.int32))
    configured: Int32 = field(default_factory=lambda: np.empty(0, np.int32))
    companion: Int32 = field(default_factory=lambda: np.empty(0, np.int32))
    unclean: UInt8 = field(default_factory=lambda: np.empty(0, np.uint8))

    def min_isr(self, rows: Int32) -> Int32:
        """See ``KraftContext``."""
        minimum, companion = self.minimum[rows], self.companion[rows]
        bounded = companion != NO_ROW
        replicas = self.metadata.partitions.replica_count[companion[bounded]]
        minimum[bounded] = np.minimum(self.configured[rows[bounded]], replicas)
        return minimum

    def unclean_enabled(self, rows: Int32) -> UInt8:
        """See ``KraftContext``."""
        return self.unclean[rows]


@dataclass(slots=True)
class _LiveBrokerSelection:
    """Chooses by the built-in rule among brokers that have not failed, which differ from case to case."""

    failing: Int32
    failed: int = 0
    """The number of columns of ``failing`` that have failed."""

    def choose(self, metadata: ClusterMetadata, candidates: Candidates) -> tuple[Int32, UInt8]:
        """See ``LeaderSelection``."""
        stored = candidates.stored
        acceptable = acceptable_replicas(metadata, stored.starts, stored.replicas, candidates.active)
        failed = self.failing[candidates.rows, : self.failed]
        acceptable[_in_brokers(stored.replicas, failed)] = 0
        return choose_from_acceptable(candidates, acceptable)


def _with_first_partitions(context: KraftContext, cases: FailureCases, first: Int32) -> tuple[FailureCases, Int32]:
    """The cases, then for each case of a topic in ``first`` its partition 0 in the same failure; ``companion``."""
    first_row = first[context.metadata.partitions.topic[cases.rows]]
    bounded = np.flatnonzero(first_row != NO_ROW)
    companion = np.full(len(cases) + len(bounded), NO_ROW, np.int32)
    companion[bounded] = companion[len(cases) :] = np.arange(len(cases), len(companion), dtype=np.int32)
    directory = cases.directory
    return FailureCases(
        np.concatenate([cases.rows, first_row[bounded]]),
        np.concatenate([cases.failing, cases.failing[bounded]]),
        None if directory is None else np.concatenate([directory, directory[bounded]]),
    ), companion


def _play(context: KraftContext, cases: FailureCases, first: Int32) -> tuple[UInt8, Int32]:
    count = len(cases)
    cases, companion = _with_first_partitions(context, cases, first)
    rows, failing = cases.rows, cases.failing
    selection = _LiveBrokerSelection(failing)
    case_context = _CaseContext(
        copy.copy(context.metadata),
        context.heartbeats,
        context.settings,
        context.random,
        selection=selection,
        minimum=context.min_isr(rows),
        companion=companion,
        unclean=context.unclean_enabled(rows),
        configured=context.configured_min_isr(context.metadata.partitions.topic[rows]),
        consulted=context.consulted,
    )
    before = context.metadata.partitions
    case_context.metadata.partitions = _copy_rows(before, rows)
    unclean = np.zeros(len(rows), np.bool_)
    for step in range(failing.shape[1]):
        selection.failed = step + 1
        p = case_context.metadata.partitions
        changed_cases = np.flatnonzero(failing[:, step] != NO_BROKER).astype(np.int32)
        changed_cases = changed_cases[_affected(p, changed_cases, failing[changed_cases, step], cases.directory)]
        if not len(changed_cases):
            continue
        isr = p.lists("isr", changed_cases)
        is_failing = isr.values == failing[changed_cases, step][isr.owners]
        kinds = case_context.unclean_enabled(changed_cases) * np.uint8(KraftElection.UNCLEAN)
        batch = plan_changes(case_context, TargetReplicas(rows=changed_cases, kinds=kinds, isr=isr.keep(~is_failing)))
        unclean[changed_cases] |= _elected_unclean(p, batch)
        case_context.metadata.partitions = _apply(p, batch)
    flags = _flags(case_context, cases, unclean, before.leaders_of(rows))
    return flags[:count], case_context.metadata.partitions.leaders_of(_all_rows(cases))[:count]


def _affected(p: KraftPartitions, rows: Int32, failing: Int32, directory: Int32 | None) -> Bool:
    """(k,) whether the failure of the broker ``failing``, or of its directory, changes a row."""
    if directory is None:
        isr = p.lists("isr", rows)
        return isr.any(isr.values == failing[isr.owners])
    directories = p.lists("directory", rows)
    return directories.any(directories.values == directory[rows][directories.owners])


def _all_rows(cases: FailureCases) -> Int32:
    return np.arange(len(cases), dtype=np.int32)


def _in_brokers(lists: Ragged, brokers: Int32) -> Bool:
    """For each value of a list: whether the row of ``brokers`` (k, m) has it."""
    matches = np.zeros(len(lists.values), np.bool_)
    owners = lists.owners
    for column in range(brokers.shape[1]):
        matches |= lists.values == brokers[owners, column]
    return matches


def _elected_unclean(p: KraftPartitions, batch: PartitionChangeBatch) -> Bool:
    """(k,) whether a row gets a leader that is neither in the ISR nor in the ELR."""
    elected: Bool = batch.writes_leader & (batch.leader != p.leaders_of(batch.rows)) & (batch.leader != NO_LEADER)
    for name in ("isr", "elr"):
        members = p.lists(name, batch.rows)
        elected &= ~members.any(members.values == batch.leader[members.owners])
    return elected


def _flags(context: _CaseContext, cases: FailureCases, unclean: Bool, leader_before: Int32) -> UInt8:
    """The conditions of ``kframe.whatif.engines.kraft.health`` after the failures."""
    metadata, rows = context.metadata, _all_rows(cases)
    p = metadata.partitions
    leader = p.leaders_of(rows)
    offline, minimum = leader == NO_LEADER, context.min_isr(rows)
    active, replicas = metadata.brokers.active, p.lists("replica", rows)
    acceptable = acceptable_replicas(metadata, p.slot_start[rows], replicas, active)
    failed = cases.failing if cases.directory is None else np.empty((len(cases), 0), np.int32)
    if cases.directory is None:
        acceptable[_in_brokers(replicas, failed)] = 0
    else:
        in_directory = p.lists("directory", rows).values == cases.directory[replicas.owners]
        acceptable[in_directory & _in_brokers(replicas, cases.failing)] = 0
    clean = np.zeros(len(rows), np.bool_)
    for name in ("isr", "elr"):
        members = p.lists(name, rows)
        clean |= members.any((active[members.values] != 0) & ~_in_brokers(members, failed))
    needed = offline & ~clean & replicas.any(acceptable != 0)
    without_members = offline & (p.isr_count == 0) & (p.elr_count == 0)
    bits = (
        (OFFLINE, offline),
        (UNDER_MIN_ISR, offline | (p.isr_count < minimum)),
        (AT_MIN_ISR, ~offline & (p.isr_count == minimum)),
        (UNCLEAN_ELECTED, unclean),
        (UNCLEAN_NEEDED, needed),
        (LEADER_MOVED, ~offline & (leader_before != NO_LEADER) & (leader != leader_before)),
        (MAY_LOSE_DATA, unclean | needed | without_members),
    )
    flags = np.zeros(len(rows), np.uint8)
    for bit, mask in bits:
        flags |= mask.astype(np.uint8) * np.uint8(bit)
    return flags


def _copy_rows(p: KraftPartitions, rows: Int32) -> KraftPartitions:
    lists = PartitionLists(**{name: p.lists(_COLUMNS.get(name, name), rows) for name in _LISTS})
    names = ("topic", "partition", "leader", "recovery")
    copies = KraftPartitions()
    copies.append(lists, {name: getattr(p, name)[rows] for name in names})
    return copies


def _apply(p: KraftPartitions, batch: PartitionChangeBatch) -> KraftPartitions:
    """The columns after the changes of a batch, whose rows differ from one another."""
    rows = np.arange(len(p), dtype=np.int32)
    lists = {}
    for name in _LISTS:
        old, new = p.lists(_COLUMNS.get(name, name), rows), getattr(batch, name)
        written = np.flatnonzero(getattr(batch, f"writes_{'replicas' if name == 'directories' else name}"))
        lists[name] = old
        if len(written):
            source: Int64 = rows.astype(np.int64)
            source[batch.rows[written]] = len(p) + written
            lists[name] = Ragged.chain([old, new]).take(source)
    leader, recovery = p.leader.copy(), p.recovery.copy()
    leader[batch.rows[batch.writes_leader]] = batch.leader[batch.writes_leader]
    recovery[batch.rows[batch.writes_recovery]] = batch.recovery[batch.writes_recovery]
    changed = KraftPartitions()
    columns: dict[str, NDArray[Any]] = {
        "topic": p.topic,
        "partition": p.partition,
        "leader": leader,
        "recovery": recovery,
    }
    changed.append(PartitionLists(**lists), columns)
    return changed
