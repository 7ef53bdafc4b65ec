"""Validate the clusters of a fleet by the rules of ``kframe.spark.rules``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kframe.errors import SnapshotError
from kframe.snapshot.facts import MIN_INSYNC_CONFIG
from kframe.spark.inputs import ClusterInput, ClusterRows
from kframe.spark.modes import ZookeeperRows, rows_in_mode
from kframe.spark.rows import configs_of
from kframe.spark.rules import (
    RULES,
    VIOLATIONS,
    ClusterContext,
    RegisteredBrokers,
    shared_topic_ids,
    violations,
)
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, TOPICS, FleetTable
from kframe.spark.stages import Result, Scenario, Stage

#: The columns whose nulls violate ``key_unknown``, by table.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    BROKERS.name: ("cluster", "broker_id"),
    TOPICS.name: ("cluster", "topic", "partition_count"),
    CLUSTERS.name: ("cluster",),
}


@dataclass(frozen=True)
class ValidateStage(Stage):
    """Lists the violations in a cluster: rows of VIOLATIONS."""

    tables: tuple[FleetTable, ...] = (VIOLATIONS,)

    def read(self, cluster: ClusterInput | ClusterRows) -> tuple[str | None, dict[str, pa.Table]]:
        """See ``Stage``."""
        return cluster.cluster, cluster.tables()

    def results(
        self, cluster: str, content: Any, scenarios: Sequence[Scenario], tables: Collection[FleetTable]
    ) -> Iterator[Result]:
        """See ``Stage``."""
        yield {VIOLATIONS: validate_tables(*content)}


def validate_tables(cluster: str | None, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Rows of VIOLATIONS of a cluster, whose tables by name need not be valid. None: rows that name no cluster.

    A cluster without one valid row in ``clusters`` violates ``cluster_row``, and only unknown keys are listed besides.
    """
    parts = [*_unknown_keys(cluster, tables)]
    settings = _settings_or_problem(cluster, tables)
    if isinstance(settings, pa.Table):
        return pa.concat_tables([*parts, settings])
    assert cluster is not None
    min_isr, in_mode = settings
    topics = tables[TOPICS.name].filter(tables[TOPICS.name]["topic"].is_valid())
    counts = dict(zip(topics["topic"].to_pylist(), topics["partition_count"].fill_null(0).to_pylist(), strict=True))
    context = ClusterContext(RegisteredBrokers.of(tables[BROKERS.name]), counts, in_mode, min_isr)
    listed = [
        *violations(cluster, tables[PARTITIONS.name], context),
        *shared_topic_ids(cluster, tables[TOPICS.name], in_mode.mode),
    ]
    return pa.concat_tables([*parts, pa.Table.from_batches(listed, VIOLATIONS.schema)])


def _unknown_keys(cluster: str | None, tables: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
    for name, columns in _KEYS.items():
        rows = tables[name].to_pylist() if any(tables[name][column].null_count for column in columns) else []
        topics = [row.get("topic") for row in rows if any(row[column] is None for column in columns)]
        yield _report(cluster, "key_unknown", f"null in table {name}", topics)


def _settings_or_problem(cluster: str | None, tables: Mapping[str, pa.Table]) -> tuple[int, ZookeeperRows] | pa.Table:
    """The settings in the row of the cluster, or the violations if it has no valid one."""
    rows = tables[CLUSTERS.name].to_pylist()
    if cluster is None or not rows:
        topics = {*tables[PARTITIONS.name]["topic"].to_pylist(), *tables[TOPICS.name]["topic"].to_pylist()}
        topics_or_none = sorted(topics, key=lambda topic: topic or "") or [None]
        return _report(cluster, "cluster_row", "no row of the cluster", topics_or_none)
    if len(rows) > 1:
        return _report(cluster, "cluster_row", f"{len(rows)} rows", [None])
    try:
        return settings_of(rows[0])
    except SnapshotError as problem:
        return _report(cluster, "cluster_row", str(problem), [None])


def _report(cluster: str | None, rule: str, actual: str, topics: Sequence[str | None]) -> pa.Table:
    """A violation for each topic; None for one of no topic."""
    shared = {"cluster": cluster, "rule": rule, "severity": RULES[rule].severity, "expected": RULES[rule].expected}
    return pa.Table.from_pylist([{**shared, "actual": actual, "topic": topic} for topic in topics], VIOLATIONS.schema)


def settings_of(row: Mapping[str, Any]) -> tuple[int, ZookeeperRows]:
    """The default of ``min.insync.replicas``, and the rules of the mode, of a row of CLUSTERS. Raises SnapshotError."""
    in_mode = rows_in_mode(row)
    defaults = configs_of(row["broker_default_configs"], f"cluster {row['cluster']} field broker_default_configs") or {}
    value = _int32(in_mode.node_min_insync() or defaults.get(MIN_INSYNC_CONFIG, ""))
    return 1 if value is None else value, in_mode


def _int32(text: str) -> int | None:
    """The number in a text; None for no int32."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if -(2**31) <= value < 2**31 else None
