"""Every failure of one broker, of two and of one rack: what ``WhatIf.fail`` says of each, counted instead of played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import InputError, SnapshotError
from kframe.model.columns import Bool, Int32, Int64, UInt8
from kframe.snapshot import Snapshot
from kframe.snapshot.files import Progress, ignore_progress
from kframe.whatif.health import Skew
from kframe.whatif.outcome import FailOn
from kframe.whatif.settings import config_of, knows_min_insync
from kframe.whatif.sweep_counts import METRICS, FailureCounts, count_failures

Float64 = NDArray[np.float64]

#: Records made at a time.
_CHUNK: Final = 4096


class Failure(StrEnum):
    """What fails: one broker, two together, all registered brokers of a rack together, or in KRaft mode a log
    directory."""

    BROKER = "broker"
    PAIR = "pair"
    RACK = "rack"
    DIRECTORY = "directory"


class SortBy(StrEnum):
    """What the worst is judged by first; ties are broken by the others, in this order. ``UNCLEAN``: partitions for
    which an unclean election was held or would be needed."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    UNCLEAN = "unclean"
    SKEW = "skew"


#: Columns of min.insync.replicas, which a snapshot may not know.
_OF_SETTINGS: Final = frozenset({"under_min_isr", "newly_under_min_isr", "at_min_isr"})
KINDS: Final = tuple(Failure)


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """``s`` failures in columns: brokers in the order of their ids, then pairs, then racks by name.

    ``kind`` (s,): place in KINDS. ``first`` and ``second`` (s,): ids of the brokers that fail, -1 where a rack does or
    none. ``rack`` (s,): place in ``rack_names``, or -1. ``failed`` (s,): how many brokers fail. ``counts`` (s, 8):
    partitions afterwards, in the columns METRICS. ``leaders_most`` (s,) and ``leaders_mean`` (s,): leaders on the
    busiest surviving broker, and on the average one (0 if none survives). ``before``: the first line, with the same
    columns, how the cluster stands.
    """

    kind: UInt8
    first: Int32
    second: Int32
    rack: Int32
    failed: Int32
    counts: Int32
    leaders_most: Int32
    leaders_mean: Float64
    before: Mapping[str, int | None]
    before_skew: Skew
    rack_names: tuple[str, ...]
    rack_brokers: tuple[tuple[int, ...], ...]
    brokers: tuple[int, ...]
    """Ids of the brokers that are registered."""
    configs_known: bool
    """Whether topic settings are known. If not, what is counted of min.insync.replicas means nothing."""

    def __len__(self) -> int:
        return len(self.kind)

    def column(self, name: str) -> Int32 | None:
        """(s,) one of METRICS. None if the snapshot lacks what decides it."""
        if name in _OF_SETTINGS and not self.configs_known:
            return None
        count_of: Int32 = self.counts[:, METRICS.index(name)]
        return count_of

    @property
    def unclean(self) -> Int32:
        """(s,) partitions whose ISR died, but not all of their replicas: elected uncleanly, or waiting for it."""
        held, needed = (self.counts[:, METRICS.index(name)] for name in ("unclean_elections", "unclean_needed"))
        count_of: Int32 = held + needed
        return count_of

    @property
    def over_mean(self) -> Float64:
        """(s,) leader skew, as ``Skew.over_mean``. NaN where nothing is led."""
        mean = np.where(self.leaders_mean == 0, np.nan, self.leaders_mean)
        return np.asarray(self.leaders_most / mean, np.float64)

    def count_of(self, what: FailOn) -> Int32 | None:
        """(s,) the partitions in which the failure alone causes this (``Outcome.found``)."""
        names = {FailOn.OFFLINE: "newly_offline", FailOn.UNDER_MIN_ISR: "newly_under_min_isr",
                 FailOn.LOSS: "unclean_elections"}  # fmt: skip
        return self.column(names[what])

    def ranked(self, by: SortBy = SortBy.OFFLINE, kind: Failure | None = None) -> Int64:
        """Positions of all failures, or of one kind, the worst first. Equal ones in the order of the columns."""
        skew = self.over_mean
        keys = {SortBy.OFFLINE: self.column("offline"), SortBy.UNDER_MIN_ISR: self.column("under_min_isr"),
                SortBy.UNCLEAN: self.unclean, SortBy.SKEW: np.where(np.isnan(skew), 0.0, skew)}  # fmt: skip
        chosen = np.arange(len(self)) if kind is None else np.flatnonzero(self.kind == KINDS.index(kind))
        order = [by, *(metric for metric in SortBy if metric is not by)]
        return chosen[np.lexsort([-key[chosen] for metric in reversed(order) if (key := keys[metric]) is not None])]

    def worst(self, n: int, by: SortBy = SortBy.OFFLINE, kind: Failure | None = None) -> list[dict[str, Any]]:
        """The ``n`` worst failures, all kinds together or of one, as records."""
        return list(self.records(self.ranked(by, kind)[:n]))

    def records(self, positions: Int64 | None = None) -> Iterator[dict[str, Any]]:
        """Failures as objects for people and files. All of them, or those at ``positions`` in that order."""
        chosen = np.arange(len(self)) if positions is None else positions
        for start in range(0, len(chosen), _CHUNK):
            yield from self._records(chosen[start : start + _CHUNK])

    def _records(self, chosen: Int64) -> Iterator[dict[str, Any]]:
        columns = {name: None if (column := self.column(name)) is None else column[chosen].tolist() for name in METRICS}
        where = zip(self.kind[chosen].tolist(), self.first[chosen].tolist(), self.second[chosen].tolist(),
                    self.rack[chosen].tolist(), strict=True)  # fmt: skip
        loads = list(zip(self.leaders_most[chosen].tolist(), self.leaders_mean[chosen].tolist(), strict=True))
        for i, (kind, first, second, rack) in enumerate(where):
            most, mean = loads[i]
            yield {
                "kind": str(KINDS[kind]),
                "brokers": list(self.rack_brokers[rack]) if rack >= 0 else [id_ for id_ in (first, second) if id_ >= 0],
                "rack": self.rack_names[rack] if rack >= 0 else None,
                **{name: None if column is None else column[i] for name, column in columns.items()},
                "leaders_most": most,
                "leaders_mean": round(mean, 3),
                "leader_skew": round(most / mean, 3) if mean else None,
            }


def sweep(
    snapshot: Snapshot, config: Mapping[str, object] | None = None, *, depth: int = 2, racks: bool = True,
    elr: bool | None = None, progress: Progress = ignore_progress,
) -> Sweep:  # fmt: skip
    """Fail each registered broker and each rack, and each two brokers if ``depth`` is 2. Each failure starts from
    ``snapshot``. Of a KRaft cluster also fail each log directory; the result is a ``KraftSweep``.

    The numbers are those of ``WhatIf(snapshot, config).fail(…)`` with the built-in leader election. ``elr`` turns
    eligible leader replicas of a KRaft cluster on or off first. Raises SnapshotError if the snapshot does not say who
    leads, ConfigError for a key or value, and InputError for ``elr`` that the cluster cannot have.
    """
    if snapshot.partitions.leader is None:
        raise SnapshotError(snapshot.source.name, "nothing about who leads", "a snapshot that has leaders and ISRs")
    if snapshot.is_kraft:
        from kframe.whatif.kraft.sweep import sweep_kraft

        return sweep_kraft(snapshot, config, depth=depth, racks=racks, elr=elr, progress=progress)
    if elr is not None:
        raise InputError("elr", "a cluster in ZooKeeper mode", "a KRaft cluster, which has eligible leader replicas")
    settings = config_of(snapshot, config)
    counts = count_failures(snapshot.to_cluster(), settings, depth=depth, racks=racks, progress=progress)
    return sweep_of(counts, configs_known=knows_min_insync(snapshot.topics, config))


def sweep_of(counts: FailureCounts, *, configs_known: bool = True) -> Sweep:
    """What the counts of a whole cluster say of each failure. Cost O(b³) in array passes, one broker's pairs each."""
    up = np.flatnonzero(counts.registered)
    groups = [np.flatnonzero(counts.rack == number) for number in range(len(counts.rack_names))]
    members = np.zeros((len(groups), len(counts.registered)), np.bool_)
    for number, group in enumerate(groups):
        members[number, group] = True
    alone = np.zeros((len(up), len(counts.registered)), np.bool_)
    alone[np.arange(len(up)), up] = True
    parts = [
        _Part.of(counts, alone, counts.brokers[up], counts.broker_leads[up]),
        *([] if counts.pairs is None else (_pairs_with(counts, up, at) for at in range(len(up) - 1))),
        _Part.of(counts, members, counts.racks, counts.rack_leads),
    ]
    ids, pairs = counts.broker_ids[up], np.triu_indices(len(up) if counts.pairs is not None else 0, 1)
    lengths = (len(up), len(pairs[0]), len(groups))
    gone = np.full(len(groups), -1, np.int32)
    return Sweep(
        kind=np.repeat(np.arange(3, dtype=np.uint8), lengths),
        first=np.concatenate([ids, ids[pairs[0]], gone]),
        second=np.concatenate([np.full(len(up), -1, np.int32), ids[pairs[1]], gone]),
        rack=np.concatenate([np.full(lengths[0] + lengths[1], -1, np.int32), np.arange(len(groups), dtype=np.int32)]),
        failed=np.repeat(np.append([1, 2], members.sum(axis=1)).astype(np.int32), (*lengths[:2], *[1] * len(groups))),
        counts=np.concatenate([part.counts for part in parts]),
        leaders_most=np.concatenate([part.most for part in parts]),
        leaders_mean=np.concatenate([part.mean for part in parts]),
        before={
            name: None if name in _OF_SETTINGS and not configs_known else value
            for name, value in zip(METRICS, counts.totals[0].tolist(), strict=True)
            if name in ("offline", "under_min_isr", "at_min_isr", "unclean_needed")
        },
        before_skew=Skew.of(counts.leads[0, up]),
        rack_names=counts.rack_names,
        rack_brokers=tuple(tuple(counts.broker_ids[group].tolist()) for group in groups),
        brokers=tuple(ids.tolist()),
        configs_known=configs_known,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Some failures: (m, 8) counts and (m,) loads."""

    counts: Int32
    most: Int32
    mean: Float64

    @staticmethod
    def of(counts: FailureCounts, failing: Bool, more: Int32, more_leads: Int32) -> _Part:
        """``failing`` (m, b) says who fails, the other two what that adds to what there is when nothing more fails."""
        leads = counts.leads[1] + more_leads
        if counts.deleting_topics.topics:
            leads -= counts.deleting_topics.resigned(failing)
        leads[failing] = 0
        left = np.count_nonzero(counts.registered) - failing.sum(axis=1)
        mean = leads.sum(axis=1) / np.maximum(left, 1)
        return _Part(counts.totals[1] + more, leads.max(axis=1, initial=0), mean)


def _pairs_with(counts: FailureCounts, up: Int64, at: int) -> _Part:
    """The pairs of a registered broker with those after it."""
    assert counts.pairs is not None
    count, broker, others = len(counts.registered), up[at], up[at + 1 :]
    numbers = broker * (2 * count - broker - 1) // 2 + others - broker - 1
    failing = np.zeros((len(others), count), np.bool_)
    failing[:, broker] = failing[np.arange(len(others)), others] = True
    leads = counts.broker_leads[broker] + counts.broker_leads[others]
    span = np.searchsorted(counts.pair_lead_keys, [numbers[0] * count, (numbers[-1] + 1) * count])
    keys, changes = counts.pair_lead_keys[slice(*span)], counts.pair_lead_changes[slice(*span)]
    leads[np.searchsorted(numbers, keys // count), keys % count] += changes
    return _Part.of(counts, failing, counts.brokers[broker] + counts.brokers[others] + counts.pairs[numbers], leads)
