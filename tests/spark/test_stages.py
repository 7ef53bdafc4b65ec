"""Distribution of work on clusters, and settings of local sessions. No Spark is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kframe.snapshot.generate import generate
from kframe.spark.inputs import ClusterInput
from kframe.spark.marks import Mark, Marks, part_of
from kframe.spark.play import FAILOVER, IMPACTS, ScenarioStage
from kframe.spark.sessions import _local_settings
from kframe.spark.stages import Output, Unit, play_units, units_of
from kframe.spark.sweeping import SweepStage
from tests.spark.fleets import snapshot_directory
from tests.spark.outcomes import reference_rows, scenario

MARK = Mark("how", "of what")
STAGE = ScenarioStage(FAILOVER)


def units(*sizes: tuple[str, int | None, int], tasks: int = 16) -> list[tuple[str, int]]:
    """Clusters with their partition and scenario counts, as units with a scenario count each."""
    clusters = {name: ClusterInput(name, "place", True, partitions) for name, partitions, _ in sizes}
    due = {name: [scenario(name=f"s{index}") for index in range(count)] for name, _, count in sizes}
    listed = units_of(clusters, due, tasks, STAGE, 4)
    for name, rows in due.items():
        assert [row for unit in listed if unit.cluster.cluster == name for row in unit.scenarios] == rows
    return [(unit.cluster.cluster, len(unit.scenarios)) for unit in listed]


def test_largest_cluster_is_first() -> None:
    assert units(("a", 10, 1), ("b", 30, 1), ("c", None, 1), ("d", 20, 1)) == [("b", 1), ("d", 1), ("a", 1), ("c", 1)]


def test_scenarios_of_a_single_cluster_are_shared_by_all_tasks() -> None:
    assert units(("a", 10, 3)) == [("a", 1)] * 3
    assert sorted(units(("a", 10, 100))) == [("a", 6)] * 12 + [("a", 7)] * 4
    assert units(("a", 1_000_000, 66), tasks=2) == [("a", 33)] * 2


def test_only_a_cluster_with_more_than_its_share_of_work_is_shared() -> None:
    small = [(f"c{index}", 10, 8) for index in range(8)]
    assert units(("large", 1000, 8), *small, tasks=4) == [("large", 2)] * 4 + [(name, 8) for name, _, _ in small]
    assert units(*small, tasks=4) == [(name, 8) for name, _, _ in small]
    assert units() == []


@pytest.mark.parametrize(
    ("sizes", "cores", "parts"),
    [
        ({"a": 1_000}, 4, {"a": 4}),
        ({"a": 1_000}, 1, {"a": 1}),
        ({"a": 1_000}, 64, {"a": 8}),
        ({"a": 900, "b": 100}, 4, {"a": 4, "b": 1}),
        ({"a": 500, "b": 500}, 4, {"a": 2, "b": 2}),
        ({"a": 900, "zookeeper": 100}, 20, {"a": 8, "zookeeper": 1}),
    ],
)
def test_sweep_of_a_large_kraft_cluster_is_divided(sizes: dict[str, int], cores: int, parts: dict[str, int]) -> None:
    clusters = {
        name: ClusterInput(name, "place", True, size, "zookeeper" if name == "zookeeper" else "kraft")
        for name, size in sizes.items()
    }
    listed = units_of(clusters, dict.fromkeys(sizes, (None,)), 64, SweepStage(), cores)
    assert [(unit.cluster.cluster, unit.part, unit.parts) for unit in listed] == [
        (name, part, count) for name, count in parts.items() for part in range(count)
    ]


@pytest.fixture
def east(tmp_path: Path) -> ClusterInput:
    return ClusterInput("east", str(snapshot_directory(tmp_path / "east", generate(60, 4, racks=2, seed=3))), False, 60)


def test_each_scenario_is_written_and_marked(east: ClusterInput, tmp_path: Path) -> None:
    out = tmp_path / "out"
    scenarios = tuple(scenario(brokers=[broker], name=f"b{broker}") for broker in (1, 9, 2))
    output = Output(str(out), str(out / "_staged"), {part_of("east", f"b{broker}"): MARK for broker in (1, 9, 2)})
    marks, rows = Marks(out, IMPACTS.name), play_units([Unit(east, scenarios)], STAGE, output)
    written: list[Any] = []
    for batch in rows:
        (row,) = batch.to_pylist()
        assert row["data"] is None
        written.append((row["scenario"], row["problem"] is None, marks[part_of("east", row["scenario"])]))
    assert written == [("b1", True, MARK), ("b9", False, None), ("b2", True, MARK)]
    for table in FAILOVER:
        expected = reference_rows(east.snapshot(), scenario(brokers=[2], name="b2"))[table.name]
        assert marks.rows(table, part_of("east", "b2")).to_pylist() == expected


def test_summary_without_output_is_returned(east: ClusterInput) -> None:
    (batch,) = play_units([Unit(east, (scenario(brokers=[1]),))], STAGE)
    (row,) = batch.to_pylist()
    expected = reference_rows(east.snapshot(), scenario(brokers=[1]))["impacts"]
    assert pa.ipc.open_stream(row["data"]).read_all().to_pylist() == expected


@pytest.mark.parametrize(
    ("master", "partitions"),
    [
        ("local", 2),
        ("local[2]", 4),
        ("local[3,4]", 6),
        ("local[*]", 2 * (os.cpu_count() or 1)),
        ("local-cluster[2,1,512]", None),
        ("spark://host:7077", None),
    ],
)
def test_shuffle_partitions_of_local_master(master: str, partitions: int | None) -> None:
    settings = _local_settings(master)
    assert settings.get("spark.sql.shuffle.partitions") == partitions
    assert ("spark.python.daemon.module" in settings) is (partitions is not None)


def test_daemon_starts_no_threads_before_fork() -> None:
    """jemalloc, part of pyarrow, manages its own thread across forks."""
    program = """
import importlib, os
from kframe.spark import daemon
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
for name in daemon._PRELOADED:
    importlib.import_module(name)
print(*(open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")), sep=",")
"""
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert len([name for name in completed.stdout.strip().split(",") if name != "jemalloc_bg_thd"]) == 1
