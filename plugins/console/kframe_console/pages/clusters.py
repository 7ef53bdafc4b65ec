"""The table of all clusters of a fleet. Every cluster is read once for it, one after another."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from kframe.plugin import KframeError
from kframe.plugin.live import Progress
from kframe.plugin.snapshot import summarize
from kframe_console.pages.page import PageContext, TablePage, page
from kframe_console.sources.fleet import FleetSource
from kframe_console.tables.records import figures_table
from kframe_console.tables.table import ColumnTable

#: Counts of partitions in a condition.
_CONDITIONS: Final = (
    "offline",
    "under_min_isr",
    "at_min_isr",
    "under_replicated",
    "preferred_replica_imbalance",
    "reassigning",
)


class ClusterRow(Struct):
    """A cluster of a fleet in numbers, as ``kframe snapshot show`` has them. Null is unknown; ``problem`` says why
    a cluster could not be read."""

    cluster: str
    brokers: int | None = None
    unregistered_brokers: int | None = None
    racks: int | None = None
    topics: int | None = None
    partitions: int | None = None
    offline: int | None = None
    under_min_isr: int | None = None
    at_min_isr: int | None = None
    under_replicated: int | None = None
    preferred_replica_imbalance: int | None = None
    reassigning: int | None = None
    leader_skew: float | None = None
    replica_skew: float | None = None
    mode: str | None = None
    problem: str | None = None


@page(
    TablePage,
    "clusters",
    "/",
    row=ClusterRow,
    links={
        "cluster": "/overview?at={cluster}",
        "brokers": "/brokers?at={cluster}",
        "topics": "/topics?at={cluster}",
        "partitions": "/partitions?at={cluster}",
        **{name: f"/partitions?health={name}&at={{cluster}}" for name in _CONDITIONS},
    },
    in_navigation=True,
)
def clusters_page(context: PageContext) -> ColumnTable:
    """All clusters of a fleet on Parquet. The other pages show the cluster that the parameter at names.

    Raises Unfinished while they are read.
    """
    source = context.source
    assert isinstance(source, FleetSource)

    def compute(progress: Progress) -> ColumnTable:
        rows = []
        for index, cluster in enumerate(source.clusters):
            progress(index, len(source.clusters))
            rows.append(_row(source, cluster))
        return figures_table("clusters", rows, ClusterRow)

    return context.jobs.result("clusters", "Read all clusters of the fleet", compute, lambda table: table.nbytes)


def _row(source: FleetSource, cluster: str) -> ClusterRow:
    try:
        snapshot = source.snapshot(cluster)
    except KframeError as problem:
        return ClusterRow(cluster, problem=str(problem))
    figures = {
        name: value for name, value in asdict(summarize(snapshot)).items() if name in ClusterRow.__struct_fields__
    }
    return ClusterRow(cluster, **figures, mode=snapshot.mode)
