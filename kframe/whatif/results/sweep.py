"""The failures of a sweep in columns, their ranking and their records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import ParameterError
from kframe.model.arrays import Int32, Int64, Ragged, UInt8, offsets_of
from kframe.pages.figures import heat_figure
from kframe.pages.parts import FactsPart, Heading, HeatPart, NotesPart, Part, TablePart
from kframe.pages.shown import Tabular
from kframe.whatif.results.findings import FailOn
from kframe.whatif.results.health import Skew
from kframe.whatif.results.release import ReleaseRecord
from kframe.whatif.results.sweep_records import FailureRow

if TYPE_CHECKING:
    import pyarrow as pa

Float64 = NDArray[np.float64]

#: Most rows that a page lists, and their columns.
_SHOWN: Final = 20
_WORST: Final = (
    "kind",
    "brokers",
    "rack",
    "offline",
    "under_min_isr",
    "unclean_elections",
    "needs_unclean_election",
    "leader_skew",
)
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
    """The first key of the ranking; ties are broken by the others, in this order. ``UNCLEAN``: partitions for
    which an unclean election was held or would be needed."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    UNCLEAN = "unclean"
    SKEW = "skew"

    @property
    def effect(self) -> str:
        """What is counted of a failure, in words."""
        match self:
            case SortBy.OFFLINE:
                return "partitions offline"
            case SortBy.UNDER_MIN_ISR:
                return "partitions under min ISR"
            case SortBy.UNCLEAN:
                return "partitions with only an unclean election left"
            case SortBy.SKEW:
                return "leaders on the busiest broker over the mean"


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sweep(Tabular):
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

    def to_arrow(self) -> Any:
        """All failures as a ``pyarrow.Table``, the worst first: see ``table``."""
        return self.table(self.ranked())

    def table(self, positions: Int64) -> pa.Table:
        """Failures as a table, a row each in this order: the fields of ``records``, means and skews not rounded."""
        import pyarrow as pa

        racks = pa.array(list(self.rack_names), pa.string())
        columns = {name: self.column(name) for name in METRICS}
        rack, skew, failed = self.rack[positions], self.max_mean_ratio[positions], self.failed_ids(positions)
        return pa.table(
            {
                "kind": pa.array([str(kind) for kind in KINDS]).take(pa.array(self.kind[positions])),
                "brokers": pa.ListArray.from_arrays(pa.array(failed.offsets), pa.array(failed.values)),
                "rack": racks.take(pa.array(rack, mask=rack < 0)),
                **{
                    name: pa.nulls(len(positions), pa.int32()) if column is None else pa.array(column[positions])
                    for name, column in columns.items()
                },
                "leaders_max": pa.array(self.leaders_max[positions]),
                "leaders_mean": pa.array(self.leaders_mean[positions]),
                "leader_skew": pa.array(skew, mask=np.isnan(skew)),
                **self._kraft_columns(positions),
            }
        )

    def _kraft_columns(self, positions: Int64) -> dict[str, pa.Array]:
        """The further columns of a KRaft cluster."""
        import pyarrow as pa

        failed = self.directories
        if failed is None:
            return {}
        directory = failed.directory[positions]
        ids = pa.array(list(failed.ids), pa.string())
        return {
            "directory": ids.take(pa.array(directory, mask=directory < 0)),
            "may_lose_data": pa.array(failed.may_lose_data[positions]),
        }

    def failed_ids(self, positions: Int64) -> Ragged:
        """The ids of the brokers that fail in each of these failures."""
        offsets, rack = offsets_of(self.failed[positions]), self.rack[positions]
        values = np.empty(int(offsets[-1]), np.int32)
        alone = np.flatnonzero(rack < 0)
        values[offsets[alone]] = self.first[positions][alone]
        two = alone[self.failed[positions][alone] == 2]
        values[offsets[two] + 1] = self.second[positions][two]
        for position in np.flatnonzero(rack >= 0).tolist():
            values[offsets[position] : offsets[position + 1]] = self.rack_brokers[rack[position]]
        return Ragged(offsets, values)

    def plot(self, by: SortBy = SortBy.OFFLINE) -> Any:
        """A figure of matplotlib: the pairs as a heat map, single brokers on the diagonal.

        Raises InputError if the snapshot lacks what ``by`` ranks, or matplotlib is missing.
        """
        return heat_figure(self.heat(by).title, "broker that fails", list(map(str, self.brokers)), self.pairs(by))

    def pairs(self, by: SortBy) -> Float64:
        """(b, b) what ``by`` ranks, of each two of ``brokers``, and of single ones on the diagonal.

        Raises InputError if the snapshot lacks what decides it.
        """
        values = self.sort_keys()[by]
        if values is None:
            raise ParameterError("plot", "a snapshot without topic settings", "one that has min.insync.replicas")
        ids = np.array(self.brokers, np.int32)
        single, pair = (self.kind == KINDS.index(kind) for kind in (Failure.BROKER, Failure.PAIR))
        heat = np.zeros((len(ids), len(ids)))
        heat[np.diag_indices(len(ids))] = values[single]
        low, high = np.searchsorted(ids, self.first[pair]), np.searchsorted(ids, self.second[pair])
        heat[low, high] = heat[high, low] = values[pair]
        return heat

    def heading(self) -> Heading:
        """See ``Shown``."""
        counts = {what: self.failures_with(what) for what in FailOn}
        facts: list[tuple[str, object]] = [("failures", len(self))]
        facts += [(f"that bring {what}", "unknown" if count is None else count) for what, count in counts.items()]
        return Heading(f"failures of {len(self.brokers)} brokers", FactsPart(facts))

    def parts(self) -> Sequence[Part]:
        """See ``Shown``."""
        parts: list[Part] = []
        if (self.kind == KINDS.index(Failure.PAIR)).any():
            parts.append(self.heat(SortBy.OFFLINE))
        parts.append(TablePart("worst failures", _WORST, self.worst(_SHOWN), len(self)))
        return [*parts, NotesPart(self.assumptions)]

    def heat(self, by: SortBy) -> HeatPart:
        """``pairs`` as a picture. Raises InputError as it does."""
        labels = [f"broker {broker_id}" for broker_id in self.brokers]
        return HeatPart(f"{by.effect} when two brokers fail, or one (diagonal)", labels, self.pairs(by))

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
