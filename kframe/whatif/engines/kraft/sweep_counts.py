"""How failures of brokers, racks and log directories change the partitions of a KRaft cluster, summed over partitions.

The failure of a broker affects only the partitions that have it as a replica, ISR or ELR member. The effects of two
failures add up, except on partitions with both brokers: only those are played again. The sums of some partitions can be
counted apart from those of others, and added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kframe.core.kraft.context import KraftContext
from kframe.model.arrays import Bool, Int32, Int64, offsets_of, positions_within, ragged_positions
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.directories import LOST
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.topics import NO_ROW
from kframe.model.lists import distinct_values, sum_by_key
from kframe.ports.progress import Progress
from kframe.whatif.engines.kraft import failed_rows
from kframe.whatif.engines.kraft.failed_rows import CaseResults, FailureCases, first_partitions
from kframe.whatif.engines.kraft.partition_forms import PartitionForms
from kframe.whatif.results.sweep import METRICS

#: What is counted: METRICS, and the partitions that may lose data.
COUNTED: Final = (*METRICS, "may_lose_data")
_FLAGS: Final = {
    "offline": failed_rows.OFFLINE,
    "under_min_isr": failed_rows.UNDER_MIN_ISR,
    "at_min_isr": failed_rows.AT_MIN_ISR,
    "unclean_elections": failed_rows.UNCLEAN_ELECTED,
    "needs_unclean_election": failed_rows.UNCLEAN_NEEDED,
    "leaders_moved": failed_rows.LEADER_MOVED,
    "may_lose_data": failed_rows.MAY_LOSE_DATA,
}
_NEWLY: Final = "newly_"


@dataclass(frozen=True, slots=True, eq=False)
class FailureTargets:
    """What can fail. ``brokers`` (u,): ids of the brokers that are not fenced, ascending; the position of a broker is
    its *rank*. ``rack_of`` (u,): index in ``rack_names``, or -1. ``directories`` are the online log directories of
    these brokers; ``owners`` (d,): the rank of the broker of each; ``stops`` (d,): it has no other one, so it stops.
    """

    brokers: Int32
    rack_of: Int32
    rack_names: tuple[str, ...]
    directories: tuple[UUID, ...]
    owners: Int32
    stops: Bool

    @staticmethod
    def of(context: KraftContext, racks: Mapping[int, str | None]) -> FailureTargets:
        """The targets of a cluster; ``racks`` by broker id."""
        registrations = context.metadata.brokers.registrations
        ids = sorted(id_ for id_, stored in registrations.items() if not stored.fenced)
        names = sorted({name for id_ in ids if (name := racks.get(id_)) is not None})
        listed = [
            (rank, directory, len(registrations[id_].directories) == 1)
            for rank, id_ in enumerate(ids)
            for directory in registrations[id_].directories
            if context.level >= MetadataLevel.DIRECTORIES
        ]
        return FailureTargets(
            np.array(ids, np.int32),
            np.array([-1 if (name := racks.get(id_)) is None else names.index(name) for id_ in ids], np.int32),
            tuple(names),
            tuple(directory for _, directory, _ in listed),
            np.array([rank for rank, _, _ in listed], np.int32),
            np.array([stops for _, _, stops in listed], np.bool_),
        )


@dataclass(frozen=True, slots=True, eq=False)
class FailureChanges:
    """Sums over partitions, in the columns COUNTED, and of the partitions that each broker leads, by rank.

    ``totals`` (10,) and ``leads`` (u,) are without a failure. The others are the changes by each failure: ``brokers``
    (u, 10), ``racks`` (g, 10), ``directories`` (d, 10), and of the same failures ``broker_leads`` (u, u) and so on.
    ``pairs`` (u·(u−1)/2, 10), in the order (0, 1), (0, 2) …: the changes by two failures beyond those of each; no row
    if they are not counted. ``pair_lead_keys`` ascend: pair · u + rank, each beside ``pair_lead_changes``.
    """

    totals: Int64
    leads: Int64
    brokers: Int64
    broker_leads: Int64
    racks: Int64
    rack_leads: Int64
    directories: Int64
    directory_leads: Int64
    pairs: Int64
    pair_lead_keys: Int64
    pair_lead_changes: Int32

    @staticmethod
    def sum(parts: Sequence[FailureChanges]) -> FailureChanges:
        """The changes of all partitions from those of some each."""
        columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(FailureChanges)}
        keys, changes = sum_by_key(*(np.concatenate(columns.pop(f"pair_lead_{name}")) for name in ("keys", "changes")))
        sums = {name: np.sum(values, axis=0) for name, values in columns.items()}
        return FailureChanges(**sums, pair_lead_keys=keys, pair_lead_changes=changes)


def count_changes(
    context: KraftContext, targets: FailureTargets, rows: Int32, *, depth: int, progress: Progress
) -> FailureChanges:
    """The changes of the partitions in ``rows``, which are consecutive. Pairs of brokers are counted if ``depth`` is 2.
    If it is 0, the changes by brokers and log directories are 0."""
    counter = _Counter.of(context, targets, rows, plays_single=depth > 0)
    none = np.zeros(len(rows), np.int64)
    brokers, directories = counter.none(len(targets.brokers)), counter.none(len(targets.directories))
    if depth:
        before = counter.before_of(counter.owner)
        brokers = counter.changes(counter.member, len(targets.brokers), counter.single, before)
        directories = counter.directories(brokers)
    racks = counter.racks()
    corrections = list(counter.pairs(progress)) if depth > 1 else []
    progress(len(rows), len(rows))
    size = len(targets.brokers)
    keys, lead_changes = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    first = 0
    for _, leads in corrections:
        positions = np.flatnonzero(leads)
        keys.append(first * size + positions)
        lead_changes.append(leads.reshape(-1)[positions].astype(np.int32))
        first += len(leads)
    return FailureChanges(
        _count_cases(none, 1, counter.before.flags, counter.before.flags)[0],
        _count_leaders(none, 1, counter.rank, counter.before.leader)[0],
        *brokers,
        *racks,
        *directories,
        np.concatenate([np.empty((0, len(COUNTED)), np.int64), *(counts for counts, _ in corrections)]),
        np.concatenate(keys),
        np.concatenate(lead_changes),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Counter:
    """Counts failures in the ``rows``, which have these ``forms``. ``up`` (u,): broker indexes by rank. ``rank``
    (b + 1,): by broker index, -1 for brokers that are not up and for NO_LEADER. Members are the brokers whose failure
    may concern a partition and that are up, by partition and rank: ``member`` has their ranks, ``owner`` their rows.
    """

    targets: FailureTargets
    rows: Int32
    up: Int32
    rank: Int32
    owner: Int32
    member: Int32
    forms: PartitionForms
    before: CaseResults
    single: CaseResults
    """The result of each member's failure for the partition; of none if single failures are not played."""

    @staticmethod
    def of(context: KraftContext, targets: FailureTargets, rows: Int32, *, plays_single: bool) -> _Counter:
        """The results without a failure, and with ``plays_single`` those of single failures."""
        brokers = context.metadata.brokers
        up = np.array(brokers.indexes_of(targets.brokers.tolist()), np.int32)
        rank = np.full(len(brokers) + 1, -1, np.int32)
        rank[up] = np.arange(len(up), dtype=np.int32)
        first = first_partitions(context)
        owner, member = _members(context, rows, rank, first)
        played = slice(None) if plays_single else slice(0)
        forms = PartitionForms.of(context, rows, first)
        return _Counter(
            targets,
            rows,
            up,
            rank,
            owner,
            member,
            forms,
            forms.play(FailureCases(rows, np.empty((len(rows), 0), np.int32))),
            forms.play(FailureCases(owner[played], up[member[played]].reshape(-1, 1))),
        )

    def none(self, failures: int) -> tuple[Int64, Int64]:
        """No ``changes`` by failures."""
        return np.zeros((failures, len(COUNTED)), np.int64), np.zeros((failures, len(self.up)), np.int64)

    def before_of(self, rows: Int32) -> CaseResults:
        """The states of these rows without a failure."""
        return self.before.take(rows - self.forms.start)

    def changes(
        self, failure: NDArray[Any], failures: int, results: CaseResults, before: CaseResults
    ) -> tuple[Int64, Int64]:
        """The changes of ``_count_cases`` (failures, 10) and ``_count_leaders`` (failures, u) by failures."""
        return (
            _count_cases(failure, failures, results.flags, before.flags)
            - _count_cases(failure, failures, before.flags, before.flags),
            _count_leaders(failure, failures, self.rank, results.leader)
            - _count_leaders(failure, failures, self.rank, before.leader),
        )

    def pairs(self, progress: Progress) -> Iterator[tuple[Int64, Int64]]:
        """What the pairs of each broker with those of higher rank change beyond the failure of each: (m, 10) and
        (m, u). The latter follow the former among the members of a partition."""
        size, order = len(self.up), np.argsort(self.member, kind="stable")
        bounds = np.searchsorted(self.member[order], np.arange(size + 1))
        offsets = offsets_of(np.bincount(self.owner - self.forms.start, minlength=len(self.rows)))
        for low in range(size - 1):
            members = order[bounds[low] : bounds[low + 1]]
            later = offsets[self.owner[members] - self.forms.start + 1] - members - 1
            earlier, other = np.repeat(members, later), ragged_positions(members + 1, later)
            rows, high = self.owner[earlier], self.member[other]
            failing_brokers = np.stack([self.up[self.member[earlier]], self.up[high]], axis=1)
            together = self.forms.play(FailureCases(rows, failing_brokers))
            start = self.before_of(rows)
            counts, leads = np.zeros((size, len(COUNTED)), np.int64), np.zeros((size, size), np.int64)
            for sign, results in (
                (1, together),
                (-1, self.single.take(earlier)),
                (-1, self.single.take(other)),
                (1, start),
            ):
                counts += sign * _count_cases(high, size, results.flags, start.flags)
                leads += sign * _count_leaders(high, size, self.rank, results.leader)
            yield counts[low + 1 :], leads[low + 1 :]
            progress(len(self.rows) * (low + 1) // size, len(self.rows))

    def racks(self) -> tuple[Int64, Int64]:
        """The changes by each rack: its brokers fail by ascending id."""
        rack_of, racks = self.targets.rack_of, len(self.targets.rack_names)
        chosen = np.flatnonzero(rack_of[self.member] >= 0)
        rack = rack_of[self.member[chosen]]
        chosen = chosen[np.lexsort((self.member[chosen], rack, self.owner[chosen]))]
        rack = rack_of[self.member[chosen]]
        key = self.owner[chosen].astype(np.int64) * max(racks, 1) + rack
        _, firsts, counts = np.unique(key, return_index=True, return_counts=True)
        failing_brokers = np.full((len(firsts), counts.max(initial=0)), failed_rows.NO_BROKER, np.int32)
        failing_brokers[np.repeat(np.arange(len(firsts)), counts), positions_within(counts)] = self.up[
            self.member[chosen]
        ]
        return self._played(rack[firsts], racks, FailureCases(self.owner[chosen[firsts]], failing_brokers))

    def directories(self, brokers: tuple[Int64, Int64]) -> tuple[Int64, Int64]:
        """The changes by each log directory. A broker without another one stops: the changes of ``brokers``."""
        metadata, owners, stops = self.forms.context.metadata, self.targets.owners, self.targets.stops
        indexes = np.array(metadata.directories.indexes_of(self.targets.directories), np.int32)
        number = np.full(len(metadata.directories), -1, np.int32)
        number[indexes] = np.arange(len(indexes), dtype=np.int32)
        owner, directory = self._directory_slots()
        chosen = np.flatnonzero((directory > LOST) & (number[directory] >= 0))
        key = distinct_values(owner[chosen].astype(np.int64) * max(len(indexes), 1) + number[directory[chosen]])
        rows, numbers = np.divmod(key, max(len(indexes), 1))
        cases = FailureCases(rows.astype(np.int32), self.up[owners[numbers]].reshape(-1, 1), indexes[numbers])
        changes = self._played(numbers, len(indexes), cases)
        for of_directories, of_brokers in zip(changes, brokers, strict=True):
            of_directories[stops] = of_brokers[owners[stops]]
        return changes

    def _directory_slots(self) -> tuple[Int32, Int32]:
        """Rows, and the directories whose failure may affect them. Those of a partition in ``first`` affect its whole
        topic."""
        p, first = self.forms.context.metadata.partitions, self.forms.first
        bounded = self.rows[first[p.topic[self.rows]] != NO_ROW]
        lists, first_lists = p.lists("directory", self.rows), p.lists("directory", first[p.topic[bounded]])
        owners = np.concatenate([self.rows[lists.owners], bounded[first_lists.owners]])
        return owners, np.concatenate([lists.values, first_lists.values])

    def _played(self, failure: NDArray[Any], failures: int, cases: FailureCases) -> tuple[Int64, Int64]:
        """The ``changes`` by failures whose cases are played now."""
        results = self.forms.play(cases)
        return self.changes(failure, failures, results, self.before_of(cases.rows))


def _members(context: KraftContext, rows: Int32, rank: Int32, first: Int32) -> tuple[Int32, Int32]:
    """Rows and ranks of the brokers that are up and a replica, ISR or ELR member, each once a row, in order.

    ISR members of a partition in ``first`` are those of its whole topic.
    """
    p = context.metadata.partitions
    keys = []
    bounded = rows[first[p.topic[rows]] != NO_ROW]
    sources = [(name, rows, rows) for name in ("replica", "isr", "elr")]
    sources.append(("isr", bounded, first[p.topic[bounded]]))
    for name, owners, source in sources:
        lists = p.lists(name, source)
        ranks = rank[lists.values]
        keys.append((owners[lists.owners].astype(np.int64) << 32 | ranks)[ranks >= 0])
    key = distinct_values(np.concatenate(keys))
    return (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32)


def _count_cases(failure: NDArray[Any], failures: int, flags: NDArray[Any], before: NDArray[Any]) -> Int64:
    """(failures, 10) cases of each failure in the columns COUNTED.

    ``newly_may_lose_data`` counts every case with an unclean election.
    """
    columns = []
    for name in COUNTED:
        bit = _FLAGS[name.removeprefix(_NEWLY)]
        mask = (flags & bit) != 0
        if name.startswith(_NEWLY):
            mask &= (before & bit) == 0
        if name == "newly_may_lose_data":
            mask |= (flags & failed_rows.UNCLEAN_ELECTED) != 0
        columns.append(np.bincount(failure[mask], minlength=failures))
    return np.stack(columns, axis=1).astype(np.int64)


def _count_leaders(failure: NDArray[Any], failures: int, rank: Int32, leader: Int32) -> Int64:
    """(failures, u) cases of each failure that each broker leads, by rank."""
    size = int(rank.max(initial=-1)) + 1
    ranks = np.where(leader == NO_LEADER, -1, rank[leader])
    led = ranks >= 0
    key = failure[led].astype(np.int64) * size + ranks[led]
    return np.bincount(key, minlength=failures * size).reshape(failures, size).astype(np.int64)
