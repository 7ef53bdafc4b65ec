"""KRaft clusters in a fleet: no fact is lost, and every stage has the results of the engine on the snapshot."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyarrow import parquet

from kframe.errors import InputError
from kframe.model.ids import NO_LEADER
from kframe.snapshot import Snapshot, write_snapshot
from kframe.spark.fleet import records
from kframe.spark.ingest import ingest_source
from kframe.spark.inputs import ClusterInput
from kframe.spark.marks import Mark
from kframe.spark.play import BROKER_COUNTS, CHANGES, CONDITIONS, IMPACTS, EngineSettings, play
from kframe.spark.rows import rows_of, snapshot_of, table_of
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, TOPICS
from kframe.spark.sources import find_sources
from kframe.spark.stages import FAILOVER
from kframe.spark.sweeping import FAILURES, Sweeping, sweep_whole, swept_whole
from kframe.spark.validate import validate_whole
from kframe.spark.whole import Output, Unit, play_units
from kframe.whatif import SortBy, WhatIf
from tests.spark.kraft_fleets import kraft_scenarios, kraft_snapshot
from tests.spark.sharding import (
    Rows,
    assert_same_rows,
    concatenated,
    merged,
    reference_rows_or_problem,
    shard_rows,
    table,
    to_play,
)
from tests.spark.test_sweeping import reference_sweep
from verification.support.properties import examples

RANDOMS = st.randoms(use_true_random=False)


@contextmanager
def ingested(snapshot: Snapshot) -> Iterator[ClusterInput]:
    """The cluster east of a fleet that was ingested from a snapshot directory."""
    with tempfile.TemporaryDirectory() as folder:
        write_snapshot(snapshot, Path(folder) / "east")
        (source,) = find_sources([f"{folder}/east"])
        (row,) = ingest_source(source, Path(folder) / "fleet").to_pylist()
        assert (row["status"], row["mode"]) == ("ingested", "kraft")
        (record,) = records(Path(folder) / "fleet")
        yield ClusterInput.of_record(Path(folder) / "fleet", record)


@examples(0.3)
@given(RANDOMS)
def test_ingested_cluster_equals_snapshot(random: Random) -> None:
    snapshot = kraft_snapshot(random)
    with ingested(snapshot) as cluster:
        assert cluster.kraft
        assert cluster.snapshot().digest() == snapshot.digest()
    tables = [table_of(rows_of(snapshot, "c", kind), kind) for kind in (PARTITIONS, BROKERS, TOPICS, CLUSTERS)]
    assert snapshot_of(*tables).digest() == snapshot.digest()


@pytest.mark.extended
@examples(0.3)
@given(RANDOMS)
def test_whole_clusters_of_a_fleet_equal_a_single_machine(random: Random) -> None:
    snapshot = kraft_snapshot(random)
    scenarios = kraft_scenarios(random, snapshot)
    with ingested(snapshot) as cluster, tempfile.TemporaryDirectory() as folder:
        output = Output(tuple(FAILOVER.makers), IMPACTS, out=folder, staged=f"{folder}/_staged")
        unit = Unit(cluster, tuple((row, Mark("how")) for row in scenarios))
        results = [row for batch in play_units([unit], EngineSettings(), output) for row in batch.to_pylist()]
        for scenario, result in zip(scenarios, results, strict=True):
            expected = reference_rows_or_problem(snapshot, scenario)
            event(f"{scenario['verb']} {'is refused' if isinstance(expected, str) else 'is played'}")
            if isinstance(expected, str):
                assert result["problem"] == expected
                continue
            assert result["problem"] is None
            written = f"cluster=east/scenario={scenario['scenario']}/part-0.parquet"
            for fleet_table in (CHANGES, BROKER_COUNTS, CONDITIONS, IMPACTS):
                file = Path(folder) / fleet_table.name / written
                rows = parquet.ParquetFile(file).read().to_pylist() if file.exists() else []
                shared = {"cluster": "east", "scenario": scenario["scenario"]}
                assert [shared | row for row in rows] == expected[fleet_table.name]


@examples(0.3)
@given(RANDOMS)
def test_sharded_rows_in_any_order_are_combined(random: Random) -> None:
    snapshot = kraft_snapshot(random)
    whole = table(snapshot)
    pieces = shard_rows(whole, [random.randint(0, 3) for _ in range(5)], random.sample(range(len(whole)), len(whole)))
    for row in kraft_scenarios(random, snapshot):
        expected = reference_rows_or_problem(snapshot, row)
        rows = to_play(snapshot, concatenated(pieces), [row])
        if isinstance(expected, str):
            assert [batch["problem"][0].as_py() for batch in play(rows, EngineSettings())] == [expected]
        else:
            assert_same_rows(merged(play(rows, EngineSettings()), rows[0]), expected)


@examples(0.3)
@given(RANDOMS, st.sampled_from([1, 2]), st.booleans(), st.sampled_from(list(SortBy)))
def test_sweep_equals_a_single_machine(random: Random, depth: int, racks: bool, by: SortBy) -> None:
    snapshot, options = kraft_snapshot(random), Sweeping(depth=depth, racks=racks, by=by)
    actual = sweep_whole("east", snapshot, options)
    assert actual.schema == FAILURES.schema
    whole = concatenated(shard_rows(table(snapshot), [0], range(len(snapshot))))
    batches = [batch.drop_columns(["scenarios"]) for batch in to_play(snapshot, whole, [])]
    assert pa.Table.from_batches(list(swept_whole(batches, options)), FAILURES.schema) == actual
    expected = _reference_sweep_or_problem(snapshot, options)
    event("refused" if isinstance(expected, str) else "swept")
    if isinstance(expected, str):
        expected = [dict.fromkeys(FAILURES.schema.names) | {"cluster": "east", "problem": expected}]
    assert actual.to_pylist() == expected


def _reference_sweep_or_problem(snapshot: Snapshot, options: Sweeping) -> Rows | str:
    try:
        return reference_sweep(snapshot, options)
    except InputError as problem:
        return str(problem)


@examples(0.3)
@given(RANDOMS)
def test_valid_cluster_has_only_health_warnings(random: Random) -> None:
    snapshot = kraft_snapshot(random)
    tables = {kind.name: table_of(rows_of(snapshot, "east", kind), kind)
              for kind in (PARTITIONS, BROKERS, TOPICS, CLUSTERS)}  # fmt: skip
    violations = validate_whole("east", tables).to_pylist()
    assert {row["mode"] for row in violations} <= {"kraft"}
    assert [row for row in violations if row["severity"] == "error"] == []
    names = [snapshot.topics.name_of_row(row) for row in range(len(snapshot))]
    reported = {rule: {f"{row['topic']}-{row['partition']}" for row in violations if row["rule"] == rule}
                for rule in ("offline", "under_min_isr", "leader_not_live")}  # fmt: skip
    whatif = WhatIf(snapshot)
    health = whatif.health()
    assert reported["offline"] == {names[row] for row in np.flatnonzero(health.offline)}
    assert health.under_min_isr is not None
    assert reported["offline"] | reported["under_min_isr"] == {
        names[row] for row in np.flatnonzero(health.under_min_isr)
    }
    leaders = snapshot.partitions.leader
    assert leaders is not None
    down = (leaders != NO_LEADER) & ~np.isin(leaders, whatif.registered)
    assert reported["leader_not_live"] == {names[row] for row in np.flatnonzero(down)}
