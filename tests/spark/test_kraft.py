"""KRaft clusters in a fleet: no fact is lost, and every stage has the results of the engine on the snapshot."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st

from kframe.errors import InputError
from kframe.model.ids import NO_LEADER
from kframe.snapshot import Snapshot, write_snapshot
from kframe.spark.fleet import records
from kframe.spark.ingest import ingest_source
from kframe.spark.inputs import ClusterInput
from kframe.spark.play import FAILOVER, ScenarioStage
from kframe.spark.rows import snapshot_of
from kframe.spark.sources import find_sources
from kframe.spark.stages import Unit, join_parts, play_units, results_of
from kframe.spark.sweeping import FAILURES, SweepStage
from kframe.spark.validation import validate_tables
from kframe.whatif import SortBy, WhatIf
from tests.spark.kraft_fleets import kraft_scenarios, kraft_snapshot
from tests.spark.outcomes import Rows, reference_rows_or_problem, single_result, tables
from tests.spark.test_sweeping import reference_sweep
from verification.support.properties import examples

PART = pa.struct([("problem", pa.string()), ("data", pa.binary())])
PACKED = pa.schema([("cluster", pa.string()), ("scenario", pa.string()), ("parts", pa.list_(PART))])
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
        assert cluster.mode == "kraft"
        assert cluster.snapshot().digest() == snapshot.digest()
    assert snapshot_of(*tables(snapshot).values()).digest() == snapshot.digest()


@examples(0.3)
@given(RANDOMS)
def test_scenarios_on_an_ingested_cluster_equal_a_single_machine(random: Random) -> None:
    snapshot = kraft_snapshot(random)
    scenarios = kraft_scenarios(random, snapshot)
    level = logging.getLogger("kframe.statechange").level
    with ingested(snapshot) as cluster:
        results = list(results_of(cluster, ScenarioStage(FAILOVER), scenarios, FAILOVER))
    assert logging.getLogger("kframe.statechange").level == level
    for scenario, result in results:
        assert scenario is not None
        expected = reference_rows_or_problem(snapshot, scenario)
        event(f"{scenario['verb']} {'is refused' if isinstance(expected, str) else 'is played'}")
        if isinstance(expected, str) or isinstance(result, str):
            assert result == expected
            continue
        for table, rows in result.items():
            assert rows.to_pylist() == expected[table.name]


@examples(0.3)
@given(RANDOMS, st.sampled_from([1, 2]), st.booleans(), st.sampled_from(list(SortBy)))
def test_sweep_equals_a_single_machine(random: Random, depth: int, racks: bool, by: SortBy) -> None:
    snapshot, stage = kraft_snapshot(random), SweepStage(depth=depth, racks=racks, by=by)
    result, expected = single_result(stage, tables(snapshot)), _reference_sweep_or_problem(snapshot, stage)
    event("refused" if isinstance(expected, str) else "swept")
    assert expected == (result if isinstance(result, str) else result[FAILURES].to_pylist())


@examples(0.3)
@given(RANDOMS, st.integers(2, 7))
def test_sweep_by_several_tasks_equals_a_single_machine(random: Random, parts: int) -> None:
    snapshot, stage = kraft_snapshot(random), SweepStage()
    with ingested(snapshot) as cluster:
        units = [Unit(cluster, (None,), part, parts) for part in range(parts)]
        rows = [row for batch in play_units(units, stage) for row in batch.to_pylist()]
        packed = [{"cluster": "east", "scenario": None, "parts": [(row["problem"], row["data"]) for row in rows]}]
        (joined,) = join_parts([pa.RecordBatch.from_pylist(packed, PACKED)], stage, None)
        (row,) = joined.to_pylist()
    expected = _reference_sweep_or_problem(snapshot, stage)
    assert expected == (row["problem"] or pa.ipc.open_stream(row["data"]).read_all().to_pylist())


def _reference_sweep_or_problem(snapshot: Snapshot, options: SweepStage) -> Rows | str:
    try:
        return reference_sweep(snapshot, options)
    except InputError as problem:
        return str(problem)


@examples(0.3)
@given(RANDOMS)
def test_valid_cluster_has_only_health_warnings(random: Random) -> None:
    snapshot = kraft_snapshot(random)
    violations = validate_tables("east", tables(snapshot)).to_pylist()
    assert {row["mode"] for row in violations} <= {"kraft"}
    assert [row for row in violations if row["severity"] == "error"] == []
    names = [snapshot.topics.name_of_row(row) for row in range(len(snapshot))]
    reported = {
        rule: {f"{row['topic']}-{row['partition']}" for row in violations if row["rule"] == rule}
        for rule in ("offline", "under_min_isr", "leader_not_live")
    }
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
