"""``kframe spark plan`` on ZooKeeper and KRaft clusters equals ``kframe plan generate`` on each snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from kframe.errors import InputError
from kframe.plans.file.write import plan_document
from kframe.plans.generate import plan
from kframe.snapshot import Snapshot, read_snapshot, write_snapshot
from kframe.snapshot.generate import generate
from kframe.spark import plans
from kframe.spark.plans import move_rows, plan_row
from tests.cli.running import kframe
from tests.plans.generate.clusters import snapshot_of
from tests.schemas import assert_valid
from tests.spark.kraft_fleets import kraft_snapshot
from tests.spark.outcomes import Rows, clusters
from tests.spark.test_rows import OBSERVERS

SNAPSHOTS: dict[str, Snapshot] = {
    "east": generate(60, 4, racks=2, seed=3),
    "west": snapshot_of(
        {"a": [[1, 2]] * 30 + [[2, 3]] * 20, "b": [[3, 1]] * 15}, {1: "x", 2: "y", 3: "y", 4: "x", 5: None, 8: "z"}
    ),
    **{name: kraft_snapshot(Random(seed)) for name, seed in {"north": 11, "south": 12}.items()},
}
REQUESTS = (("--rebalance",), ("--remove-brokers", "2", "--fix-racks"))


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The snapshots, and in ``sizes`` beside them the bytes of their partitions."""
    folder = tmp_path_factory.mktemp("plans") / "exports"
    folder.mkdir()
    for name, snapshot in SNAPSHOTS.items():
        write_snapshot(snapshot, folder / name)
        facts = snapshot.topics
        sizes = folder.parent / "sizes" / f"{name}.csv"
        sizes.parent.mkdir(exist_ok=True)
        lines = [
            f"{facts.names[topic]},{partition},{1000 + 37 * row % 500}\n"
            for row, (topic, partition) in enumerate(
                zip(facts.topic_of_rows().tolist(), facts.partition_of_rows().tolist(), strict=True)
            )
        ]
        sizes.write_text("topic,partition,bytes\n" + "".join(lines))
    return folder


@pytest.fixture(scope="module")
def fleet(spark: Any, exports: Path) -> Path:
    """The clusters, ingested."""
    folder = exports.parent / "fleet"
    assert kframe("spark", "ingest", exports, "--out", folder).exit_code == 0
    return folder


def generated(source: Path, *options: object) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the report of ``kframe plan generate`` and the partitions of its plan."""
    report = json.loads(kframe("plan", "generate", source, *options, "-o", "json").stdout)
    written = kframe("plan", "generate", source, *options, "--out", "-")
    return report, json.loads(written.stdout)["partitions"]


@pytest.mark.parametrize("options", REQUESTS, ids=" ".join)
def test_plans_of_a_fleet_equal_plan_generate(
    fleet: Path, exports: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    result = kframe("spark", "plan", fleet, *options, "--out", out, "-o", "json")
    document = json.loads(result.stdout)
    assert_valid(document, "kframe.spark-plans/v1")
    assert kframe("spark", "plan", exports, *options, "-o", "json").stdout == result.stdout
    planned = {row["cluster"]: row for row in document["rows"]}
    assert planned.keys() == SNAPSHOTS.keys()
    assert result.exit_code == int(not all(row["targets_met"] for row in planned.values()))
    for name, row in planned.items():
        report, partitions = generated(exports / name, *options)
        moves = report["moves"]
        expected = {**report["partitions"], **{key: moves[key] for key in ("unit", "cost", "bound", "gap", "exact")}}
        expected |= {"moves": moves["replicas"], "leader_changes": moves["leaders"], **report["racks"]}
        expected |= {key: report[key] for key in ("summary", "proof", "targets_met")}
        assert row == {"cluster": name, "bytes": None, **expected}
        assert targets(out, name) == {(part["topic"], part["partition"]): part["replicas"] for part in partitions}


def targets(out: Path, cluster: str) -> dict[tuple[str, int], list[int]]:
    return {(row["topic"], row["partition"]): row["target"] for row in written(out, cluster)}


def written(out: Path, cluster: str) -> Rows:
    """Return the moves of a cluster in the folder of ``--out``."""
    file = out / "plan_moves" / f"cluster={cluster}" / "part-0.parquet"
    return parquet.ParquetFile(file).read().to_pylist() if file.exists() else []


def test_partition_sizes_give_plans_in_bytes(fleet: Path, exports: Path, tmp_path: Path) -> None:
    """A cluster without a file of sizes has no plan, and the others have."""
    out, sizes = tmp_path / "out", tmp_path / "sizes"
    sizes.mkdir()
    for name in ("east", "north", "west"):
        (sizes / f"{name}.csv").write_bytes((exports.parent / "sizes" / f"{name}.csv").read_bytes())
    command = ("spark", "plan", fleet, "--rebalance", "--weights", sizes, "--out", out, "-o", "json")
    result = kframe(*command)
    assert result.exit_code == 3
    assert f"cluster south: {sizes}/south: found no sizes of the cluster, expected a file .parquet" in result.stderr
    planned = {row["cluster"]: row for row in json.loads(result.stdout)["rows"]}
    assert planned.keys() == {"east", "north", "west"}
    for name, row in planned.items():
        report, partitions = generated(exports / name, "--rebalance", "--weights", sizes / f"{name}.csv")
        assert (row["bytes"], row["bound"], row["unit"]) == (report["moves"]["cost"], report["moves"]["bound"], "bytes")
        assert sum(part["bytes"] for part in written(out, name)) == row["bytes"]
        assert targets(out, name) == {(part["topic"], part["partition"]): part["replicas"] for part in partitions}
    before = {path: path.stat().st_mtime_ns for path in (out / "_done").rglob("cluster=*")}
    (sizes / "west.csv").write_text((sizes / "west.csv").read_text().replace(",1000\n", ",9000\n"))
    (sizes / "south.csv").write_bytes((exports.parent / "sizes" / "south.csv").read_bytes())
    rerun = kframe(*command)
    assert (rerun.exit_code, rerun.stderr) == (
        int(not all(row["targets_met"] for row in json.loads(rerun.stdout)["rows"])),
        "cluster west: its input has changed since it was written; done again\n",
    )
    after = {path: path.stat().st_mtime_ns for path in (out / "_done").rglob("cluster=*")}
    assert {path.name for path in after if after[path] != before.get(path)} == {"cluster=south", "cluster=west"}


PLUGIN = """
from kframe.plugin import CostTermSpec, GoalSpec, Tier, hookimpl


@hookimpl
def kframe_cost_terms():
    return [CostTermSpec("twos", Tier.SCALAR, lambda: lambda view: dict.fromkeys(view.racks, 2), "All cost 2.")]


@hookimpl
def kframe_goals():
    return [GoalSpec("ordinals", Tier.SCALAR, lambda: lambda view: view.partition + 1, "By number.", unit="points")]
"""


def test_executors_load_goals_and_cost_terms(fleet: Path, exports: Path, tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text(PLUGIN)
    out = tmp_path / "out"
    options = ("--goal", "ordinals", "--cost", "twos", "--plugins-dir", tmp_path / "plugins", "--tolerance", "20")
    result = kframe("spark", "plan", fleet, *options, "--out", out, "-o", "json")
    planned = {row["cluster"]: row for row in json.loads(result.stdout)["rows"]}
    assert planned.keys() == SNAPSHOTS.keys()
    for name, row in planned.items():
        report, partitions = generated(exports / name, *options)
        moves = report["moves"]
        assert [row[key] for key in ("unit", "cost", "bound")] == ["points", moves["cost"], moves["bound"]]
        assert targets(out, name) == {(part["topic"], part["partition"]): part["replicas"] for part in partitions}
    assert any(row["cost"] for row in planned.values())
    missing = kframe("spark", "plan", fleet, "--goal", "ordinals")
    assert (missing.exit_code, "no goal 'ordinals'" in missing.stderr) == (2, True)


@given(clusters(), st.booleans())
def test_moves_transform_snapshot_into_plan(snapshot: Snapshot, weighted: bool) -> None:
    weights = np.arange(1, len(snapshot) + 1, dtype=np.int64) if weighted else None
    try:
        proposal = plan(snapshot, rebalance=True, weights=weights, tolerance=50.0)
    except InputError:
        return
    moves = move_rows("east", proposal)
    assert moves.schema == plans.PLAN_MOVES.schema
    planned = proposal.plan.targets
    assert moves["target"].to_pylist() == [planned.replicas[row].tolist() for row in range(len(planned.replicas))]
    assert moves["partition"].to_pylist() == planned.partition.tolist()
    assert moves["topic"].to_pylist() == [planned.names[topic] for topic in planned.topic.tolist()]
    for row in moves.to_pylist():
        assert {*row["replicas"], *row["adding"]} - {*row["removing"]} == {*row["target"]}
        assert (row["bytes"] is None) is not weighted
    (summary,) = plan_row("east", proposal).to_pylist()
    assert sum(map(len, moves["adding"].to_pylist())) == summary["moves"]
    assert summary["bytes"] == (pa.compute.sum(moves["bytes"]).as_py() or 0 if weighted else None)


def test_moves_have_the_observers_of_the_plan() -> None:
    proposal = plan(read_snapshot(OBSERVERS), replace={22: 23})
    moves = move_rows("c", proposal).to_pylist()
    assert [(row["topic"], row["partition"], row["target"], row["observers"]) for row in moves] == [
        (entry["topic"], entry["partition"], entry["replicas"], entry.get("observers", []))
        for entry in json.loads(plan_document(proposal.plan))["partitions"]
    ]
