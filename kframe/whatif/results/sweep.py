"""The failures of a sweep in columns, their ranking and their records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Literal

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from numpy.typing import NDArray

from kframe.model.arrays import Int32, Int64, UInt8
from kframe.snapshot.content import Mode
from kframe.whatif.results.health import Skew
from kframe.whatif.results.outcome import FailOn
from kframe.whatif.results.release import ReleaseRecord

Float64 = NDArray[np.float64]

#: Records made at a time.
_CHUNK: Final = 4096


class FailureRow(Struct):
    """A failure and its effects, in partitions; null is unknown."""

    kind: Literal["broker", "pair", "rack", "directory"]
    brokers: list[int]
    rack: str | None
    offline: int
    newly_offline: int
    under_min_isr: int | None
    newly_under_min_isr: int | None
    at_min_isr: int | None
    unclean_elections: int
    needs_unclean_election: int
    leaders_moved: int
    newly_may_lose_data: int
    leaders_max: int
    leaders_mean: float | None
    leader_skew: float | None


class SweepRow(FailureRow):
    """A failure in a sweep. Only rows of KRaft clusters have ``directory`` and ``may_lose_data``."""

    directory: str | UnsetType | None = UNSET
    may_lose_data: int | UnsetType = UNSET


class SweepSnapshot(Struct):
    """The snapshot of a sweep."""

    format: str
    name: str
    mode: Mode
    partitions: int


class FailureKinds(Struct):
    """Failures of each kind."""

    broker: int
    pair: int
    rack: int
    directory: int | UnsetType = UNSET


class SweepBefore(Struct, kw_only=True):
    """Partitions in each condition before any failure."""

    offline: int
    under_min_isr: int | None
    at_min_isr: int | None
    needs_unclean_election: int
    may_lose_data: int | UnsetType = UNSET
    leader_skew: Skew


class Failure(StrEnum):
    """What fails: one broker, two together, all registered brokers of a rack together, or in KRaft mode a log
    directory."""

    BROKER = "broker"
    PAIR = "pair"
    RACK = "rack"
    DIRECTORY = "directory"


class SortBy(StrEnum):
    """The first key of the ranking; ties are broken by the others, in this order. ``UNCLEAN``: partitions for
    which an unclean election was held or would be needed."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    UNCLEAN = "unclean"
    SKEW = "skew"


#: Counts of partitions, in the order of the kernels' columns. ``newly_…``: after the failure, but not before.
#: ``unclean_elections`` were held, ``needs_unclean_election`` not allowed (``ClusterHealth.needs_unclean_election``).
#: ``newly_may_lose_data``: those elected uncleanly, and those in ``ClusterHealth.may_lose_data``, but not before.
METRICS: Final = (
    "offline",
    "newly_offline",
    "under_min_isr",
    "newly_under_min_isr",
    "at_min_isr",
    "unclean_elections",
    "needs_unclean_election",
    "leaders_moved",
    "newly_may_lose_data",
)

#: The fields of a record in ZooKeeper and KRaft mode, as tables have them.
_COLUMNS: Final = FailureRow.__struct_fields__
KRAFT_COLUMNS: Final = (*_COLUMNS[:3], "directory", *_COLUMNS[3:5], "may_lose_data", *_COLUMNS[5:])
#: Columns of min.insync.replicas, which a snapshot may not know.
CONDITIONS_OF_SETTINGS: Final = frozenset({"under_min_isr", "newly_under_min_isr", "at_min_isr"})
KINDS: Final = tuple(Failure)


@dataclass(frozen=True, slots=True, eq=False)
class FailedDirectories:
    """The log directories that fail in a sweep of a KRaft cluster.

    ``directory`` (s,): position in ``ids``, or -1; the broker of the directory is ``Sweep.first``. ``may_lose_data``
    (s,): partitions afterwards that have got an unclean leader, or that only an unclean election or the last-known
    leader could give a leader.
    """

    directory: Int32
    ids: tuple[str, ...]
    may_lose_data: Int32

    def columns(self, chosen: Int64) -> Iterator[dict[str, Any]]:
        """The fields that each of the failures ``chosen`` has besides."""
        ids = (*self.ids, None)
        for directory, count in zip(self.directory[chosen].tolist(), self.may_lose_data[chosen].tolist(), strict=True):
            yield {"directory": ids[directory], "may_lose_data": count}


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """``s`` failures in columns: brokers in the order of their ids, then pairs, then racks by name.

    ``kind`` (s,): index in KINDS. ``first`` and ``second`` (s,): ids of the brokers that fail, -1 where a rack does or
    none. ``rack`` (s,): index in ``rack_names``, or -1. ``failed`` (s,): how many brokers fail. ``counts`` (s, 9):
    partitions afterwards, in the columns METRICS. ``leaders_max`` (s,) and ``leaders_mean`` (s,): leaders on the
    busiest surviving broker, and on the average one (0 if none survives). ``before``: the first line, with the same
    columns, how the cluster stands.
    """

    kind: UInt8
    first: Int32
    second: Int32
    rack: Int32
    failed: Int32
    counts: Int32
    leaders_max: Int32
    leaders_mean: Float64
    before: Mapping[str, int | None]
    before_skew: Skew
    rack_names: tuple[str, ...]
    rack_brokers: tuple[tuple[int, ...], ...]
    brokers: tuple[int, ...]
    """Ids of the brokers that are registered."""
    configs_known: bool
    """Whether topic settings are known. If not, what is counted of min.insync.replicas means nothing."""
    rules: str
    """The rules that decided, in words."""
    assumptions: tuple[str, ...] = ()
    """Assumptions about values that the snapshot lacks."""
    release: ReleaseRecord | None = None
    """The release of Kafka whose rules decided; None in ZooKeeper mode."""
    directories: FailedDirectories | None = None
    """What only a sweep of a KRaft cluster counts."""

    def __len__(self) -> int:
        return len(self.kind)

    def of_racks(self) -> Sweep:
        """The failures of racks alone."""
        chosen = self.kind == KINDS.index(Failure.RACK)
        names = ("kind", "first", "second", "rack", "failed", "counts", "leaders_max", "leaders_mean")
        columns: dict[str, Any] = {name: getattr(self, name)[chosen] for name in names}
        directories = self.directories
        if directories is not None:
            directories = replace(
                directories,
                directory=directories.directory[chosen],
                may_lose_data=directories.may_lose_data[chosen],
            )
        return replace(self, **columns, directories=directories)

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields of ``records``, as tables have them."""
        return _COLUMNS if self.directories is None else KRAFT_COLUMNS

    def column(self, name: str) -> Int32 | None:
        """(s,) one of METRICS. None if the snapshot lacks what decides it."""
        if name in CONDITIONS_OF_SETTINGS and not self.configs_known:
            return None
        count_of: Int32 = self.counts[:, METRICS.index(name)]
        return count_of

    @property
    def unclean(self) -> Int32:
        """(s,) partitions whose ISR died, but not all of their replicas: elected uncleanly, or waiting for it."""
        elected, needed = (
            self.counts[:, METRICS.index(name)] for name in ("unclean_elections", "needs_unclean_election")
        )
        count_of: Int32 = elected + needed
        return count_of

    @property
    def max_mean_ratio(self) -> Float64:
        """(s,) leader skew, as ``Skew.max_mean_ratio``. NaN where nothing is led."""
        mean = np.where(self.leaders_mean == 0, np.nan, self.leaders_mean)
        return np.asarray(self.leaders_max / mean, np.float64)

    def count_of(self, what: FailOn) -> Int32 | None:
        """(s,) the partitions in which the failure alone causes this (``Outcome.count_of``)."""
        names = {
            FailOn.OFFLINE: "newly_offline",
            FailOn.UNDER_MIN_ISR: "newly_under_min_isr",
            FailOn.DATA_LOSS: "unclean_elections",
            FailOn.POSSIBLE_DATA_LOSS: "newly_may_lose_data",
        }
        return self.column(names[what])

    def failures_with(self, what: FailOn) -> int | None:
        """The number of failures that cause this. None if the snapshot lacks what decides it."""
        partitions = self.count_of(what)
        return None if partitions is None else int(np.count_nonzero(partitions))

    def sort_keys(self) -> dict[SortBy, Int32 | Float64 | None]:
        """(s,) the effects by which failures are ranked; None if the snapshot lacks what decides it."""
        return {
            SortBy.OFFLINE: self.column("offline"),
            SortBy.UNDER_MIN_ISR: self.column("under_min_isr"),
            SortBy.UNCLEAN: self.unclean,
            SortBy.SKEW: self.max_mean_ratio,
        }

    def ranked(self, by: SortBy = SortBy.OFFLINE, kind: Failure | None = None) -> Int64:
        """Positions of all failures, or of one kind, the worst first. Equal ones in the order of the columns."""
        keys = self.sort_keys() | {SortBy.SKEW: np.nan_to_num(self.max_mean_ratio)}
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
        where = zip(
            self.kind[chosen].tolist(),
            self.first[chosen].tolist(),
            self.second[chosen].tolist(),
            self.rack[chosen].tolist(),
            strict=True,
        )
        loads = list(zip(self.leaders_max[chosen].tolist(), self.leaders_mean[chosen].tolist(), strict=True))
        further = iter(()) if self.directories is None else self.directories.columns(chosen)
        for i, (kind, first, second, rack) in enumerate(where):
            busiest, mean = loads[i]
            yield {
                "kind": str(KINDS[kind]),
                "brokers": list(self.rack_brokers[rack]) if rack >= 0 else [id_ for id_ in (first, second) if id_ >= 0],
                "rack": self.rack_names[rack] if rack >= 0 else None,
                **{name: None if column is None else column[i] for name, column in columns.items()},
                "leaders_max": busiest,
                "leaders_mean": round(mean, 3),
                "leader_skew": round(busiest / mean, 3) if mean else None,
                **next(further, {}),
            }
