"""Outcomes of scenarios in a fleet, summed by cluster, broker, rack and topic, as frames.

The tables come from ``kframe.spark.whatif``, or from files by ``written``. Numbers are of partitions unless a column
says otherwise, null where they are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from msgspec.structs import asdict

from kframe.errors import InputError
from kframe.pages.figures import new_figure
from kframe.pages.parts import BarsPart, FactsPart, Heading, PageContent, Part, TablePart
from kframe.spark.marks import Marks, pair_of_part
from kframe.spark.play import BROKER_COUNTS, CHANGES, CONDITIONS, IMPACT_COUNTS, IMPACTS, LOADS, REQUESTS, SHARED
from kframe.spark.row_types import ClusterReportRow, LeftOutCluster, TopicReportRow
from kframe.spark.schema import LONG, TEXT, FleetTable, columns_of
from kframe.whatif.files import write_figure
from kframe.whatif.results.health import CONDITIONS as CONDITION_NAMES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

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


@dataclass(frozen=True, slots=True)
class Played:
    """The tables of a played fleet; ``requests`` is None if they were not computed."""

    changes: DataFrame
    broker_counts: DataFrame
    conditions: DataFrame
    impacts: DataFrame
    requests: DataFrame | None = None
    clusters: frozenset[str] = frozenset()
    """The clusters that are played, if the tables were read from files."""
    left_out: tuple[LeftOutCluster, ...] = ()
    """Other clusters of the fleet, and scenarios that could not be played."""


def written(session: SparkSession, path: str) -> Played:
    """The tables that ``kframe spark failover --out`` and ``requests --out`` wrote. Raises InputError if none."""
    store, requests_store = Marks(path, IMPACTS.name), Marks(path, REQUESTS.name)
    parts, requests_parts = store.parts(2), requests_store.parts(2)
    if not parts and not store.left_out():
        expected = "a directory that kframe spark failover --out wrote"
        raise InputError(path, "nothing played" if Path(path).is_dir() else "no such directory", expected)
    requests = requests_store.read(session, REQUESTS, requests_parts) if requests_parts else None
    played = set(map(pair_of_part, parts))
    clusters = frozenset(cluster for cluster, _ in played)
    left_out = tuple(
        part
        for part in store.left_out()
        if (part.cluster not in clusters if part.scenario is None else (part.cluster, part.scenario) not in played)
    )
    changes, broker_counts, conditions, impacts = (
        store.read(session, table, parts) for table in (CHANGES, BROKER_COUNTS, CONDITIONS, IMPACTS)
    )
    return Played(changes, broker_counts, conditions, impacts, requests, clusters, left_out)


def total(name: str) -> Column:
    """The sum of a column. Null if any of it is."""
    from pyspark.sql import functions as f

    return f.when(f.count(name) == f.count(f.lit(1)), f.sum(name)).alias(name)


def by_cluster(played: Played) -> DataFrame:
    """Rows of BY_CLUSTER."""
    from pyspark.sql import functions as f

    key = ["cluster", "scenario"]
    last = f.max_by(f.struct("partitions", *CONDITION_NAMES), "step").alias("last")
    after = played.conditions.groupBy(*key).agg(last).select(*key, "last.*")

    def skew(when: str) -> Column:
        loads = f.when(f.col(f"registered_{when}"), f.col(f"leaders_{when}"))
        return f.try_divide(f.max(loads), f.avg(loads)).alias(f"leader_skew_{when}")

    skews = played.broker_counts.groupBy(*key).agg(skew("before"), skew("after"))
    impacts = played.impacts.drop(*(name for name in CONDITION_NAMES if name in IMPACT_COUNTS))
    return impacts.join(after, key, "left").join(skews, key, "left").select(*BY_CLUSTER.schema.names)


def by_broker(played: Played) -> DataFrame:
    """Rows of BY_BROKER."""
    from pyspark.sql import functions as f

    if played.requests is None:
        nothing = {name: f.lit(None).cast("bigint") for name in _SENT}
        return played.broker_counts.withColumns(nothing).select(*BY_BROKER.schema.names)
    key = ["cluster", "scenario"]
    sent = played.requests.groupBy(*key, "broker_id").agg(*(total(name) for name in _SENT), f.lit(True).alias("some"))
    known = played.requests.select(*key).distinct().withColumn("known", f.lit(True))
    joined = played.broker_counts.join(known, key, "left").join(sent, [*key, "broker_id"], "left")
    none = f.col("known") & f.col("some").isNull()
    counts = {name: f.when(none, f.lit(0)).otherwise(f.col(name)).cast("bigint") for name in _SENT}
    return joined.withColumns(counts).select(*BY_BROKER.schema.names)


def by_rack(played: Played) -> DataFrame:
    """Rows of BY_RACK."""
    from pyspark.sql import functions as f

    registered = (
        f.sum(f.col(f"registered_{when}").cast("bigint")).alias(f"brokers_{when}") for when in ("before", "after")
    )
    grouped = by_broker(played).groupBy("cluster", "scenario", "rack")
    return grouped.agg(*registered, *(total(name) for name in (*LOADS, *_SENT))).select(*BY_RACK.schema.names)


def by_topic(played: Played) -> DataFrame:
    """Rows of BY_TOPIC."""
    from pyspark.sql import functions as f

    led = (f.col("leader_before") >= 0) & (f.col("leader_after") >= 0)
    counts = {
        "changed": f.lit(True),
        "leaders_moved": led & (f.col("leader_before") != f.col("leader_after")),
        **{name: f.col(name) for name in ("went_offline", "came_online", "unclean")},
    }
    grouped = played.changes.groupBy("cluster", "scenario", "topic")
    return grouped.agg(*(f.count_if(condition).alias(name) for name, condition in counts.items())).select(
        *BY_TOPIC.schema.names
    )


@dataclass(frozen=True, slots=True)
class Report:
    """One way to sum up: how it is made, its table, and columns of which more is worse, what counts most first."""

    make: Callable[[Played], DataFrame]
    table: FleetTable
    worst: tuple[str, ...]
    why_none: str
    """Why a cluster that is played has no row."""

    def ordered(self, played: Played) -> DataFrame:
        """All rows, the worst first. Ties by the table's key."""
        from pyspark.sql import functions as f

        worst = (f.col(column).desc_nulls_last() for column in self.worst)
        return self.make(played).orderBy(*worst, *self.table.key)

    def left_out(self, played: Played) -> list[LeftOutCluster]:
        """Clusters and scenarios without a row. A Spark job finds the clusters that have rows."""
        listed = set(self.make(played).select("cluster").distinct().toArrow()["cluster"].to_pylist())
        return [*played.left_out, *(LeftOutCluster(name, None, self.why_none) for name in played.clusters - listed)]


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
