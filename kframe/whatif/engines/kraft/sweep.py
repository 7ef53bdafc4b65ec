"""Every failure of one broker, two brokers, one rack and one log directory of a KRaft cluster, counted in columns.

The failure of a broker affects only the partitions that have it as a replica, ISR or ELR member. The effects of two
failures add up, except on partitions with both brokers: only those are played again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.core.kraft.context import KraftContext
from kframe.errors import ErrorCode, InputError
from kframe.model.columns import Bool, Int32, Int64, offsets_of, positions_within, ragged_positions
from kframe.model.ids import NO_LEADER
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.directories import LOST
from kframe.model.kraft.ids import ELR_VERSION, MetadataLevel
from kframe.model.kraft.topics import NO_ROW
from kframe.model.lists import distinct_values
from kframe.ports.progress import Progress
from kframe.snapshot import Snapshot
from kframe.whatif.engines.kraft import failed_rows
from kframe.whatif.engines.kraft.engine import KraftEngine
from kframe.whatif.engines.kraft.failed_rows import CaseResults, FailureCases, first_partitions, play_cases
from kframe.whatif.engines.requests import FeaturesUpdate
from kframe.whatif.engines.settings import knows_min_insync
from kframe.whatif.results.health import Skew
from kframe.whatif.results.outcome import ControllerResponse
from kframe.whatif.results.sweep import KINDS, METRICS, FailedDirectories, Failure, Sweep

#: What is counted: METRICS, and the partitions that may lose data.
_COUNTED: Final = (*METRICS, "may_lose_data")
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
_BEFORE: Final = ("offline", "under_min_isr", "at_min_isr", "needs_unclean_election", "may_lose_data")


def sweep_kraft(
    snapshot: Snapshot, config: Mapping[str, object] | None, *, depth: int, racks: bool, elr: bool | None,
    progress: Progress,
) -> Sweep:  # fmt: skip
    """See ``kframe.whatif.sweep.sweep``. The numbers are those of ``WhatIf.fail`` and ``fail_directories``.

    ``elr``: turn eligible leader replicas on or off first, as ``WhatIf.update_features`` does; None leaves them
    as they are. Raises InputError if the controller refuses that.
    """
    engine = KraftEngine(snapshot, config)
    if elr is not None and elr != engine.cluster.elr_enabled:
        ((_, update),) = engine.script(FeaturesUpdate({ELR_VERSION: int(elr)}, unsafe=False)).steps
        response = update()
        if isinstance(response, ControllerResponse) and response.error is not ErrorCode.NONE:
            reason = ", ".join(response.named or ()) or response.error.name
            raise InputError(ELR_VERSION, f"level {int(elr)}, which the controller refuses: {reason}", "a valid level")
    context = engine.context
    counter = _Counter.of(context, {facts.broker_id: facts.rack if racks else None for facts in snapshot.brokers})
    parts = [counter.brokers(), *(counter.pairs(progress) if depth > 1 else ())]
    progress(len(context.metadata.partitions), len(context.metadata.partitions))
    parts += [counter.racks(), counter.directories(parts[0])]
    return _assemble(counter, parts, engine, configs_known=knows_min_insync(snapshot.topics, config))


@dataclass(frozen=True, slots=True, eq=False)
class _CountedFailures:
    """``m`` failures of a kind. ``counts`` (m, 10): partitions, in the columns _COUNTED. ``leads`` (m, u): partitions
    led by each broker that is up; those that fail have none. ``failing`` (m, u): which brokers fail."""

    kind: Failure
    first: Int32
    second: Int32
    rack: Int32
    directory: Int32
    counts: Int64
    leaders_max: Int32
    leaders_mean: NDArray[np.float64]
    failed: Int32


@dataclass(frozen=True, slots=True, eq=False)
class _Counter:
    """Counts failures. ``up`` (u,): indexes of the brokers that are not fenced, by ascending id; their position is
    their *rank*. ``rank`` (b + 1,): by broker index, -1 for the others and for NO_LEADER. Members are the brokers whose
    failure may concern a partition and that are up, by partition and rank: ``member`` has their ranks, ``owner`` their
    rows. ``first`` (t,) as of ``first_partitions``.
    """

    context: KraftContext
    first: Int32
    up: Int32
    rank: Int32
    rack_of: Int32
    rack_names: tuple[str, ...]
    owner: Int32
    member: Int32
    offsets: Int32
    before: CaseResults
    single: CaseResults
    """The result of each member's failure for the partition."""
    totals: Int64
    leads: Int64
    broker_counts: Int64
    broker_leads: Int64
    """(u, 10) and (u, u): the changes of counts and leaders by the failure of each broker."""

    @staticmethod
    def of(context: KraftContext, racks: Mapping[int, str | None]) -> _Counter:
        """The counts of single failures."""
        metadata, p = context.metadata, context.metadata.partitions
        registered = sorted(id_ for id_, stored in metadata.brokers.registrations.items() if not stored.fenced)
        up = np.array(metadata.brokers.indexes_of(registered), np.int32)
        rank = np.full(len(metadata.brokers) + 1, -1, np.int32)
        rank[up] = np.arange(len(up), dtype=np.int32)
        named = sorted({name for id_ in registered if (name := racks.get(id_)) is not None})
        rack_of = np.array([-1 if (name := racks.get(id_)) is None else named.index(name) for id_ in registered])
        rows = np.arange(len(p), dtype=np.int32)
        first = first_partitions(context)
        owner, member = _members(context, rows, rank, first)
        before = play_cases(context, FailureCases(rows, np.empty((len(rows), 0), np.int32)), first)
        single = play_cases(context, FailureCases(owner, up[member].reshape(-1, 1)), first)
        of_rows = before.take(owner)
        size = len(up)
        single_failure = np.zeros(len(rows), np.int64)
        return _Counter(
            context, first, up, rank, rack_of.astype(np.int32), tuple(named), owner, member,
            offsets_of(np.bincount(owner, minlength=len(rows))), before, single,
            _count_cases(single_failure, 1, before.flags, before.flags)[0],
            _count_leaders(single_failure, 1, rank, before.leader)[0],
            *_count_changes(member, size, rank, single, of_rows),
        )  # fmt: skip

    def brokers(self) -> _CountedFailures:
        """Each broker alone."""
        size = len(self.up)
        ranks = np.arange(size, dtype=np.int32)
        return self._counted_failures(
            Failure.BROKER, np.eye(size, dtype=np.bool_), self.broker_counts, self.broker_leads, first=ranks
        )

    def pairs(self, progress: Progress) -> Iterator[_CountedFailures]:
        """The pairs of each broker with those of higher rank, which follow it among the members of a partition."""
        size, order = len(self.up), np.argsort(self.member, kind="stable")
        bounds = np.searchsorted(self.member[order], np.arange(size + 1))
        for low in range(size - 1):
            members = order[bounds[low] : bounds[low + 1]]
            later = self.offsets[self.owner[members] + 1] - members - 1
            earlier, other = np.repeat(members, later), ragged_positions(members + 1, later)
            rows, high = self.owner[earlier], self.member[other]
            failing_brokers = np.stack([self.up[self.member[earlier]], self.up[high]], axis=1)
            together = play_cases(self.context, FailureCases(rows, failing_brokers), self.first)
            start = self.before.take(rows)
            counts, leads = self.broker_counts[low] + self.broker_counts, self.broker_leads[low] + self.broker_leads
            for sign, results in ((1, together), (-1, self.single.take(earlier)), (-1, self.single.take(other)),
                                  (1, start)):  # fmt: skip
                counts += sign * _count_cases(high, size, results.flags, start.flags)
                leads += sign * _count_leaders(high, size, self.rank, results.leader)
            partners = np.arange(low + 1, size, dtype=np.int32)
            failing = np.zeros((len(partners), size), np.bool_)
            failing[:, low] = failing[np.arange(len(partners)), partners] = True
            yield self._counted_failures(
                Failure.PAIR, failing, counts[partners], leads[partners],
                first=np.full(len(partners), low, np.int32), second=partners,
            )  # fmt: skip
            progress(int(self.owner[members].max(initial=0)), len(self.before.flags))

    def racks(self) -> _CountedFailures:
        """Each rack: its brokers fail by ascending id."""
        chosen = np.flatnonzero(self.rack_of[self.member] >= 0)
        rack = self.rack_of[self.member[chosen]]
        chosen = chosen[np.lexsort((self.member[chosen], rack, self.owner[chosen]))]
        rack = self.rack_of[self.member[chosen]]
        key = self.owner[chosen].astype(np.int64) * max(len(self.rack_names), 1) + rack
        _, firsts, counts = np.unique(key, return_index=True, return_counts=True)
        failing_brokers = np.full((len(firsts), counts.max(initial=0)), failed_rows.NO_BROKER, np.int32)
        failing_brokers[np.repeat(np.arange(len(firsts)), counts), positions_within(counts)] = self.up[
            self.member[chosen]
        ]
        cases = FailureCases(self.owner[chosen[firsts]], failing_brokers)
        numbers = np.arange(len(self.rack_names), dtype=np.int32)
        failing: Bool = numbers[:, np.newaxis] == self.rack_of[np.newaxis, :]
        return self._counted_failures(
            Failure.RACK, failing, *self._changes(rack[firsts], len(numbers), cases), rack=numbers
        )

    def directories(self, brokers: _CountedFailures) -> _CountedFailures:
        """Each online log directory of a broker that is up. A broker without another one stops."""
        metadata = self.context.metadata
        listed = [
            (rank, index, len(registration.directories) == 1)
            for rank, id_ in enumerate(metadata.brokers.ids[self.up].tolist())
            for registration in (metadata.brokers.registrations[id_],)
            for index in metadata.directories.indexes_of(registration.directories)
            if self.context.level >= MetadataLevel.DIRECTORIES
        ]
        ranks, indexes, stops = np.array(listed, np.int32).reshape(-1, 3).T
        number = np.full(len(metadata.directories), -1, np.int32)
        number[indexes] = np.arange(len(indexes), dtype=np.int32)
        owner, directory = self._directory_slots()
        chosen = np.flatnonzero((directory > LOST) & (number[directory] >= 0))
        key = distinct_values(owner[chosen].astype(np.int64) * max(len(indexes), 1) + number[directory[chosen]])
        rows, numbers = np.divmod(key, max(len(indexes), 1))
        cases = FailureCases(rows.astype(np.int32), self.up[ranks[numbers]].reshape(-1, 1), indexes[numbers])
        counts, leads = self._changes(numbers, len(indexes), cases)
        single = stops != 0
        counts[single], leads[single] = self.broker_counts[ranks[single]], self.broker_leads[ranks[single]]
        failing: Bool = single[:, np.newaxis] & (ranks[:, np.newaxis] == np.arange(len(self.up)))
        return self._counted_failures(Failure.DIRECTORY, failing, counts, leads, first=ranks, directory=indexes)

    def _directory_slots(self) -> tuple[Int32, Int32]:
        """Rows, and the directories whose failure may affect them. Those of a partition in ``first`` affect its whole
        topic."""
        p = self.context.metadata.partitions
        rows = np.arange(len(p), dtype=np.int32)
        bounded = rows[self.first[p.topic] != NO_ROW]
        lists, first_lists = p.lists("directory", rows), p.lists("directory", self.first[p.topic[bounded]])
        owners = np.concatenate([lists.owners, bounded[first_lists.owners]])
        return owners, np.concatenate([lists.values, first_lists.values])

    def _changes(self, failure: NDArray[Any], failures: int, cases: FailureCases) -> tuple[Int64, Int64]:
        """The changes of counts (failures, 10) and of leaders (failures, u) by failures."""
        results = play_cases(self.context, cases, self.first)
        return _count_changes(failure, failures, self.rank, results, self.before.take(cases.rows))

    def _counted_failures(
        self, kind: Failure, failing: Bool, counts: Int64, leads: Int64, *, first: Int32 | None = None,
        second: Int32 | None = None, rack: Int32 | None = None, directory: Int32 | None = None,
    ) -> _CountedFailures:  # fmt: skip
        none = np.full(len(failing), -1, np.int32)
        ids = np.append(self.context.metadata.brokers.ids[self.up], np.int32(-1))
        loads = np.where(failing, 0, self.leads + leads)
        failed = failing.sum(axis=1)
        return _CountedFailures(
            kind,
            none if first is None else ids[first],
            none if second is None else ids[second],
            none if rack is None else rack,
            none if directory is None else directory,
            self.totals + counts,
            loads.max(axis=1, initial=0).astype(np.int32),
            loads.sum(axis=1) / np.maximum(len(self.up) - failed, 1),
            np.maximum(failed, int(kind is Failure.DIRECTORY)).astype(np.int32),
        )


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


def _count_changes(
    failure: NDArray[Any], failures: int, rank: Int32, results: CaseResults, before: CaseResults
) -> tuple[Int64, Int64]:
    """The changes of ``_count_cases`` (failures, 10) and ``_count_leaders`` (failures, u) by failures."""
    return (
        _count_cases(failure, failures, results.flags, before.flags)
        - _count_cases(failure, failures, before.flags, before.flags),
        _count_leaders(failure, failures, rank, results.leader)
        - _count_leaders(failure, failures, rank, before.leader),
    )


def _count_cases(failure: NDArray[Any], failures: int, flags: NDArray[Any], before: NDArray[Any]) -> Int64:
    """(failures, 10) cases of each failure in the columns _COUNTED.

    ``newly_may_lose_data`` counts every case with an unclean election.
    """
    columns = []
    for name in _COUNTED:
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


def _assemble(counter: _Counter, parts: list[_CountedFailures], engine: KraftEngine, *, configs_known: bool) -> Sweep:
    metadata, names = engine.cluster, counter.rack_names
    ids = metadata.brokers.ids[counter.up]
    directory = np.concatenate([part.directory for part in parts])
    failing = np.flatnonzero(directory >= 0)
    listed = tuple(map(uuid_text, metadata.directories.ids_of(directory[failing].tolist())))
    directory[failing] = np.arange(len(failing), dtype=np.int32)
    counts = np.concatenate([part.counts for part in parts]).astype(np.int32)
    known = dict(zip(_COUNTED, counter.totals.tolist(), strict=True))
    return Sweep(
        kind=np.repeat(
            np.array([KINDS.index(part.kind) for part in parts], np.uint8), [len(part.first) for part in parts]
        ),
        first=np.concatenate([part.first for part in parts]),
        second=np.concatenate([part.second for part in parts]),
        rack=np.concatenate([part.rack for part in parts]),
        failed=np.concatenate([part.failed for part in parts]),
        counts=counts[:, : len(METRICS)],
        leaders_max=np.concatenate([part.leaders_max for part in parts]),
        leaders_mean=np.concatenate([part.leaders_mean for part in parts]),
        before={
            name: None if name.endswith("min_isr") and not configs_known else known[name] for name in _BEFORE
        },
        before_skew=Skew.of(counter.leads.astype(np.int32)),
        rack_names=names,
        rack_brokers=tuple(tuple(ids[counter.rack_of == number].tolist()) for number in range(len(names))),
        brokers=tuple(ids.tolist()),
        configs_known=configs_known,
        rules=engine.rules,
        assumptions=engine.assumptions,
        directories=FailedDirectories(directory, listed, counts[:, _COUNTED.index("may_lose_data")]),
    )  # fmt: skip
