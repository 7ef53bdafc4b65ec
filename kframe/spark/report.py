"""Outcomes of scenarios in a fleet, summed by cluster, broker, rack and topic.

One process reads what ``kframe spark failover`` and ``requests`` have written, scenario by scenario, and holds the
sums. Numbers are of partitions unless a column says otherwise, null where they are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import asdict

from kframe.errors import InputError
from kframe.pages.figures import new_figure
from kframe.pages.parts import BarsPart, FactsPart, Heading, PageContent, Part, TablePart
from kframe.ports.progress import Progress, ignore_progress
from kframe.spark.marks import Marks, pair_of_part
from kframe.spark.play import BROKER_COUNTS, CHANGES, CONDITIONS, IMPACTS, LOADS, REQUESTS, SHARED
from kframe.spark.row_types import ClusterReportRow, LeftOutCluster, TopicReportRow
from kframe.spark.schema import LONG, TEXT, FleetTable, columns_of, with_columns_of
from kframe.whatif.files import write_figure
from kframe.whatif.results.health import CONDITIONS as CONDITION_NAMES

_KEY: Final = ("cluster", "scenario")
_SENT: Final = ("requests", "entries", "bytes")

#: A row for each cluster and scenario: its impact, the health afterwards, and the leader skew before and after.
BY_CLUSTER: Final = FleetTable("report_by_cluster", columns_of(ClusterReportRow), ("cluster", "scenario"))
#: BROKER_COUNTS, and the requests to the broker, which are null if they were not computed.
BY_BROKER: Final = FleetTable(
    "report_by_broker", pa.schema([*BROKER_COUNTS.schema, *((name, LONG) for name in _SENT)]), BROKER_COUNTS.key
)
#: The same by rack.
BY_RACK: Final = FleetTable(
    "report_by_rack",
    pa.schema(
        [*SHARED, ("rack", TEXT), *((name, LONG) for name in ("brokers_before", "brokers_after", *LOADS, *_SENT))]
    ),
    ("cluster", "scenario", "rack"),
)
#: Topics with changed partitions.
BY_TOPIC: Final = FleetTable("report_by_topic", columns_of(TopicReportRow), ("cluster", "scenario", "topic"))

#: By column: the label and colour of its bars. Then the height of a bar in a row of height 1, and
#: the length of a label.
_BARS: Final = {"offline": ("offline", "#b2182b"), "under_min_isr": ("under min ISR", "#f4a582")}
_BAR: Final = 0.4
_LABEL: Final = 28


#: A sum is null if a summand is.
_OF_ALL: Final = pc.ScalarAggregateOptions(skip_nulls=False)


@dataclass(frozen=True, slots=True)
class PlayedScenario:
    """A scenario on a cluster, as it was played. Its tables are read as often as they are named."""

    store: Marks
    part: Path
    requests_store: Marks | None
    """None if its requests were not computed."""

    def rows(self, table: FleetTable) -> pa.Table:
        """Rows of a table of FAILOVER. Raises SnapshotError."""
        return self.store.rows(table, self.part)

    def requests(self) -> pa.Table:
        """Rows of REQUESTS, none if they were not computed. Raises SnapshotError."""
        if self.requests_store is None:
            return REQUESTS.schema.empty_table()
        return self.requests_store.rows(REQUESTS, self.part)


@dataclass(frozen=True, slots=True)
class Played:
    """A played fleet, and the clusters and scenarios of it that could not be played."""

    scenarios: tuple[PlayedScenario, ...]
    clusters: frozenset[str]
    left_out: tuple[LeftOutCluster, ...]


def written(path: str) -> Played:
    """What ``kframe spark failover --out`` and ``requests --out`` wrote. Raises InputError if nothing."""
    store, requests_store = Marks(path, IMPACTS.name), Marks(path, REQUESTS.name)
    parts = store.parts(2)
    if not parts and not store.left_out():
        expected = "a directory that kframe spark failover --out wrote"
        raise InputError(path, "nothing played" if Path(path).is_dir() else "no such directory", expected)
    requested = set(requests_store.parts(2))
    played = set(map(pair_of_part, parts))
    clusters = frozenset(cluster for cluster, _ in played)
    left_out = tuple(
        part
        for part in store.left_out()
        if (part.cluster not in clusters if part.scenario is None else (part.cluster, part.scenario) not in played)
    )
    scenarios = (PlayedScenario(store, part, requests_store if part in requested else None) for part in parts)
    return Played(tuple(scenarios), clusters, left_out)


def by_cluster(played: PlayedScenario) -> pa.Table:
    """The row of BY_CLUSTER."""
    brokers = played.rows(BROKER_COUNTS).to_pylist()
    steps: list[dict[str, Any]] = played.rows(CONDITIONS).to_pylist()
    after = max(steps, key=lambda row: row["step"], default={})
    conditions = {name: after.get(name) for name in ("partitions", *CONDITION_NAMES)}
    skews = {f"leader_skew_{when}": _leader_skew(brokers, when) for when in ("before", "after")}
    rows = [row | conditions | skews for row in played.rows(IMPACTS).to_pylist()]
    return pa.Table.from_pylist(rows, BY_CLUSTER.schema)


def _leader_skew(brokers: Sequence[Mapping[str, Any]], when: str) -> float | None:
    """The largest number of leaders of a registered broker by the mean; None without leaders."""
    loads = [row[f"leaders_{when}"] for row in brokers if row[f"registered_{when}"]]
    known = [load for load in loads if load is not None]
    return max(known) / (total / len(known)) if (total := sum(known)) else None


def by_broker(played: PlayedScenario) -> pa.Table:
    """Rows of BY_BROKER."""
    brokers, requests = played.rows(BROKER_COUNTS), played.requests()
    if not len(requests):  # The controller of a KRaft cluster sends none.
        return with_columns_of(BY_BROKER.schema, brokers)
    sums = requests.group_by("broker_id").aggregate([(name, "sum", _OF_ALL) for name in _SENT])
    sent = sums.rename_columns({f"{name}_sum": name for name in _SENT}).append_column(
        "sent", pa.repeat(True, len(sums))
    )
    joined = brokers.join(sent, "broker_id")
    for name in _SENT:  # A broker without requests has no row among them.
        counts = pc.if_else(joined["sent"].is_valid(), joined[name], pa.scalar(0, LONG))
        joined = joined.set_column(joined.schema.get_field_index(name), name, counts)
    return with_columns_of(BY_BROKER.schema, joined)


def by_rack(played: PlayedScenario) -> pa.Table:
    """Rows of BY_RACK."""
    sums = {
        **{f"registered_{when}": (f"brokers_{when}", None) for when in ("before", "after")},
        **{name: (name, _OF_ALL) for name in (*LOADS, *_SENT)},
    }
    aggregates = [(name, "sum", options) for name, (_, options) in sums.items()]
    racks = by_broker(played).group_by([*_KEY, "rack"]).aggregate(aggregates)
    return with_columns_of(
        BY_RACK.schema, racks.rename_columns({f"{name}_sum": new for name, (new, _) in sums.items()})
    )


def by_topic(played: PlayedScenario) -> pa.Table:
    """Rows of BY_TOPIC."""
    changes = played.rows(CHANGES)
    before, after = changes["leader_before"], changes["leader_after"]
    led = pc.and_(pc.greater_equal(before, 0), pc.greater_equal(after, 0))
    counted = {
        "changed": pa.repeat(True, len(changes)),
        "leaders_moved": pc.and_(led, pc.not_equal(before, after)),
        **{name: changes[name] for name in ("went_offline", "came_online", "unclean")},
    }
    table = pa.table(
        {name: changes[name] for name in (*_KEY, "topic")}
        | {name: pc.cast(pc.fill_null(marks, False), LONG) for name, marks in counted.items()}
    )
    sums = table.group_by([*_KEY, "topic"]).aggregate([(name, "sum") for name in counted])
    return with_columns_of(BY_TOPIC.schema, sums.rename_columns({f"{name}_sum": name for name in counted}))


@dataclass(frozen=True, slots=True)
class Report:
    """One way to sum up: how a scenario is summed up, the table, and columns of which more is worse, what counts most
    first."""

    of_scenario: Callable[[PlayedScenario], pa.Table]
    table: FleetTable
    worst: tuple[str, ...]
    why_none: str
    """Why a cluster that is played has no row."""

    def rows(self, played: Played, progress: Progress = ignore_progress) -> pa.Table:
        """All rows, the worst first, then by the table's key. Nulls are last. Raises SnapshotError for a file that
        cannot be read."""
        parts = [self.table.schema.empty_table()]
        for done, scenario in enumerate(played.scenarios):
            progress(done, len(played.scenarios))
            parts.append(self.of_scenario(scenario))
        order = [*((name, "descending") for name in self.worst), *((name, "ascending") for name in self.table.key)]
        return pa.concat_tables(parts).sort_by(order)

    def left_out(self, played: Played, rows: pa.Table) -> list[LeftOutCluster]:
        """Clusters and scenarios without any of the ``rows``."""
        without = played.clusters - set(pc.unique(rows["cluster"]).to_pylist())
        return [*played.left_out, *(LeftOutCluster(name, None, self.why_none) for name in without)]


REPORTS: Final = {
    "cluster": Report(by_cluster, BY_CLUSTER, ("offline", "under_min_isr"), "it has no scenario"),
    "broker": Report(by_broker, BY_BROKER, ("leaders_after", "bytes"), "it has no brokers"),
    "rack": Report(by_rack, BY_RACK, ("leaders_after", "bytes"), "it has no brokers"),
    "topic": Report(by_topic, BY_TOPIC, ("went_offline", "changed"), "no scenario changes a partition of it"),
}


def write_plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw rows of BY_CLUSTER as bars in this order: partitions offline, and under min ISR where that is known.

    SVG or PNG by the name of the file. Raises InputError if the place cannot be written or matplotlib is missing.
    """
    figure = new_figure(9, 1.6 + 0.4 * max(len(rows), 1))
    axes = figure.add_subplot()
    largest = max((row[name] or 0 for row in rows for name in _BARS), default=0)
    for bar_index, (name, (title, colour)) in enumerate(_BARS.items()):
        positions = [row_number + (bar_index - 0.5) * _BAR for row_number in range(len(rows))]
        bars = axes.barh(positions, [row[name] or 0 for row in rows], _BAR, label=title, color=colour)
        labels = ["not known" if row[name] is None else f"{row[name]:,}" for row in rows]
        axes.bar_label(bars, labels, padding=3, fontsize="small")
    axes.set_yticks(range(len(rows)), [_label(row) for row in rows])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlim(0, max(largest, 1) * 1.12)  # room for the numbers
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("partitions after the scenario")
    axes.set_title("Impact of the scenarios, the worst first", loc="left")
    figure.legend(loc="outside lower right", ncols=len(_BARS), frameon=False)
    write_figure(figure, path)


def page_of(
    by: str, folder: str, rows: Sequence[Mapping[str, Any]], total_rows: int, left_out: Sequence[LeftOutCluster]
) -> PageContent:
    """The page of a report: its first rows, the worst first, of ``total_rows``, with bars where there are leaders."""
    parts: list[Part] = []
    if "leaders_before" in REPORTS[by].table.schema.names:
        bars = [
            (_bar_label(by, row), row["leaders_before"], row["leaders_after"])
            for row in rows
            if row["leaders_before"] is not None and row["leaders_after"] is not None
        ]
        parts.append(BarsPart("leaders before (grey) and after (blue)", bars, total_rows))
    columns = tuple(REPORTS[by].table.schema.names)
    parts.append(TablePart(f"by {by}, the worst first", columns, rows, total_rows))
    if left_out:
        omitted = [asdict(part) for part in left_out]
        parts.append(TablePart("left out", tuple(omitted[0]), omitted, len(omitted)))
    facts = FactsPart([("rows", total_rows), ("clusters and scenarios left out", len(left_out))])
    return PageContent(Heading(f"results in {folder}, by {by}", facts), parts)


def _bar_label(by: str, row: Mapping[str, Any]) -> str:
    entity = f"broker {row['broker_id']}" if by == "broker" else row["rack"] or "no rack"
    return f"{row['cluster']} {row['scenario']} {entity}"


def _label(row: Mapping[str, Any]) -> str:
    return "  ".join(_shortened(row[name]) for name in ("cluster", "scenario"))


def _shortened(text: str) -> str:
    """Both ends of a long text."""
    return text if len(text) <= _LABEL else f"{text[: _LABEL // 2]}…{text[1 - _LABEL // 2 :]}"
