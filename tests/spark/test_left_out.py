"""Every cluster of a fleet has a row in the tables of its commands, or is named as left out, with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kframe.model.arrays import Ragged
from kframe.snapshot import PartitionFacts, Snapshot, TopicFacts, write_snapshot
from kframe.snapshot.generate import generate
from kframe.spark.marks import Marks
from tests.cli.running import kframe
from tests.schemas import assert_valid
from tests.spark.kraft_fleets import kraft_snapshot

pytestmark = pytest.mark.usefixtures("spark")

REJECTED = "cluster torn: left out: rejected when it was ingested: "
NO_RACK = "left out: no broker that is up has a rack"


def without_topics(snapshot: Snapshot) -> Snapshot:
    return replace(
        snapshot,
        topics=TopicFacts((), np.empty(0, np.int32)),
        partitions=PartitionFacts(Ragged.empty(0), np.empty(0, np.int32), Ragged.empty(0)),
    )


def fleet() -> dict[str, Snapshot]:
    """Return a cluster with racks, one without, one without topics, one without brokers too, and a KRaft cluster."""
    plain = generate(12, 3, seed=3)
    return {
        "bare": plain,
        "brokerless": replace(without_topics(plain), brokers=()),
        "east": generate(30, 4, racks=2, seed=1),
        "kraft": kraft_snapshot(Random(3)),
        "topicless": without_topics(plain),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an ingested fleet of these clusters and of a rejected one."""
    exports = tmp_path_factory.mktemp("left-out") / "exports"
    exports.mkdir()
    for name, snapshot in fleet().items():
        write_snapshot(snapshot, exports / name)
    (exports / "torn.txt").write_text("Topic: t\tPartition")
    out = exports.parent / "fleet"
    result = kframe("spark", "ingest", exports, "--out", out, "-o", "json")
    assert result.exit_code == 0, result.output
    assert {row["cluster"]: row["status"] for row in json.loads(result.stdout)["rows"]} == {
        **dict.fromkeys(fleet(), "ingested"),
        "torn": "rejected",
    }
    assert "6 clusters, 1 rejected, 1 row in quarantine" in result.stderr
    return out


def run(*arguments: object, exit_code: int = 0) -> tuple[set[str], dict[str, str]]:
    """Return the clusters with rows, and the lines on stderr that name clusters as left out or with problems.

    ``left_out`` of the document has the same clusters and reasons.
    """
    result = kframe("spark", *arguments, "-o", "json")
    assert result.exit_code == exit_code, result.output
    document = json.loads(result.stdout)
    assert_valid(document, document["schema"])
    lines = [line.removeprefix("cluster ") for line in result.stderr.splitlines() if line.startswith("cluster ")]
    named = {line.partition(":")[0].partition(",")[0]: line.partition(": ")[2] for line in lines}
    reasons = {row["cluster"]: row["reason"] for row in document["left_out"]}
    assert reasons == {name: line.removeprefix("left out: ") for name, line in named.items()}
    assert named.pop("torn").startswith("left out: rejected when it was ingested: ")
    return {row["cluster"] for row in document["rows"]}, named


def test_each_rack_names_clusters_without_racks(folder: Path, tmp_path: Path) -> None:
    listed, named = run("failover", folder, "--each-rack", "--out", tmp_path / "out")
    assert listed == {"east", "kraft"}
    assert named == dict.fromkeys(("bare", "brokerless", "topicless"), NO_RACK)
    saved = {part.cluster for part in Marks(tmp_path / "out", "impacts").left_out()}
    assert saved == {"bare", "brokerless", "topicless", "torn"}
    assert run("report", tmp_path / "out") == ({"east", "kraft"}, named)
    listed, named = run("failover", folder, "--each-broker", "--out", tmp_path / "out")
    assert (listed, named) == (
        {"bare", "east", "kraft", "topicless"},
        {"brokerless": "left out: no broker is known to be up"},
    )
    listed, named = run("report", tmp_path / "out", "--by", "topic")
    assert (listed, set(named)) == ({"bare", "east", "kraft"}, {"brokerless", "topicless"})
    assert named["topicless"] == "left out: no scenario changes a partition of it"


def test_requests_sweep_plan_and_validate_name_every_cluster(folder: Path, tmp_path: Path) -> None:
    listed, named = run("requests", folder, "--each-broker")
    assert (listed, named) == (
        {"bare", "east", "topicless"},
        {
            "brokerless": "left out: no broker is known to be up",
            "kraft": "left out: the controller of a KRaft cluster sends no requests",
        },
    )
    for options in ((), ("--out", tmp_path / "sweep")):
        listed, named = run("sweep", folder, "--depth", "1", *options)
        assert (listed, set(named)) == (fleet().keys() - {"brokerless"}, {"brokerless"})
    listed, named = run("plan", folder, "--rebalance")
    assert listed | set(named) == fleet().keys()
    document = json.loads(kframe("spark", "validate", folder, "-o", "json").stdout)
    assert_valid(document, "kframe.spark-violations/v1")
    assert document["valid"] == ["bare", "brokerless", "east", "topicless"]
    assert [row["cluster"] for row in document["left_out"]] == ["torn"]
    result = kframe("spark", "validate", folder, "--out", tmp_path / "violations")
    assert result.exit_code == 0, result.output
    assert REJECTED in result.stderr
    assert "no violations in bare, brokerless, east, topicless" in result.stderr


def test_problems_of_clusters_and_scenarios_are_left_out_with_their_reason(folder: Path, tmp_path: Path) -> None:
    listed, named = run("plan", folder, "--remove-brokers", "3", exit_code=3)
    assert listed | set(named) == fleet().keys()
    assert named["brokerless"] == "remove_brokers: found broker 3, expected a broker of the snapshot"
    scenarios = tmp_path / "scenarios.jsonl"
    scenarios.write_text(
        '{"scenario": "known", "cluster": "east", "brokers": [1]}\n'
        '{"scenario": "unknown", "cluster": "east", "brokers": [99]}\n'
    )
    out = tmp_path / "out"
    result = kframe("spark", "failover", folder, "--scenarios", scenarios, "-o", "json", "--out", out)
    assert result.exit_code == 3, result.output
    document = json.loads(result.stdout)
    assert kframe("spark", "failover", folder, "--brokers", "2", "-o", "json", "--out", out).exit_code == 3
    report = json.loads(kframe("spark", "report", out, "-o", "json").stdout)
    assert [row for row in report["left_out"] if row["scenario"] == "unknown"] == [
        row for row in document["left_out"] if row["cluster"] == "east"
    ]
    assert [row["scenario"] for row in document["rows"]] == ["known"]
    (left_out,) = (row for row in document["left_out"] if row["cluster"] == "east")
    assert left_out["scenario"] == "unknown"
    assert f"cluster east, scenario unknown: {left_out['reason']}" in result.stderr


def test_commands_accept_a_fleet_without_clusters(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "torn.txt").write_text("Topic: t\tPartition")
    out = tmp_path / "fleet"
    assert kframe("spark", "ingest", tmp_path / "torn.txt", "--out", out, "--fail-on", "rejected").exit_code == 3
    for command in (
        ("failover", out, "--each-rack"),
        ("failover", out, "--brokers", "1", "--out", tmp_path / "out"),
        ("requests", out, "--each-broker"),
        ("sweep", out),
        ("sweep", out, "--out", tmp_path / "out"),
        ("plan", out, "--rebalance"),
        ("plan", out, "--rebalance", "--out", tmp_path / "out"),
        ("validate", out),
        ("report", tmp_path / "out"),
        ("report", tmp_path / "out", "--by", "rack"),
    ):
        assert run(*command) == (set(), {}), command
