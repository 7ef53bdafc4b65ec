"""``kframe spark ingest`` and ``validate``, in the session of the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kframe.snapshot import read_snapshot
from kframe.spark.fleet import read_fleet
from kframe.spark.rows import rows_of
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, TOPICS
from tests.cli.running import kframe
from tests.schemas import assert_valid
from tests.snapshot.samples import assignment, state
from tests.spark.fleets import BROKEN_STATE, mixed, two_topics

pytestmark = pytest.mark.usefixtures("spark")


@pytest.mark.smoke
def test_from_exports_to_violations(spark: Any, tmp_path: Path) -> None:
    """One pass through both commands, since each Spark query takes time."""
    exports, out = mixed(tmp_path / "exports"), tmp_path / "fleet"
    (exports / "east.zookeeper.jsonl").write_text(two_topics(BROKEN_STATE))
    (exports / "west.jsonl.gz").unlink()
    invalid_states = [state("t", 0, 1, [2, 3]), state("t", 1, -1, [3])]
    (exports / "west.jsonl").write_text(two_topics(assignment("u", {0: [1, 2]}), *invalid_states))
    (exports / "torn.txt").write_text("Topic: t\tPartition")
    result = kframe("spark", "ingest", exports, "--out", out, "--fail-on", "rejected", "-o", "json")
    assert result.exit_code == 3, result.output
    assert_valid(json.loads(result.stdout), "kframe.spark-ingest/v1")
    rows = {row["cluster"]: row for row in json.loads(result.stdout)["rows"]}
    assert {name: (row["status"], row["quarantined"]) for name, row in rows.items()} == {
        "east": ("ingested", 1),
        "north": ("ingested", 0),
        "south": ("ingested", 0),
        "torn": ("rejected", 1),
        "west": ("ingested", 0),
    }
    assert "torn.txt:1: found a last line without an end" in rows["torn"]["reason"]
    assert "5 clusters, 1 rejected, 2 rows in quarantine" in result.stderr
    for table in (PARTITIONS, BROKERS, TOPICS, CLUSTERS):
        violations = read_fleet(spark, str(out), table).where("cluster = 'west'").toArrow()
        expected = [
            row for batch in rows_of(read_snapshot(exports / "west.jsonl"), "west", table) for row in batch.to_pylist()
        ]
        assert violations.sort_by([(name, "ascending") for name in table.key]).to_pylist() == expected

    checked = kframe("spark", "validate", out, "--out", tmp_path / "broken", "--fail-on", "error", "-o", "json")
    assert checked.exit_code == 3, checked.output
    assert_valid(json.loads(checked.stdout), "kframe.spark-violations/v1")
    assert [
        (row["cluster"], row["rule"], row["severity"], row["topic"], row["partition"], row["actual"])
        for row in json.loads(checked.stdout)["rows"]
    ] == [
        ("west", "leader_not_in_isr", "error", "t", 0, "1"),
        ("west", "offline", "warning", "t", 1, "-1"),
        ("west", "under_min_isr", "warning", "t", 1, "[3]"),
    ]
    assert "1 error, 2 warnings" in checked.stderr
    written = set((tmp_path / "broken").rglob("*.parquet"))
    rerun = kframe("spark", "validate", out, "--out", tmp_path / "broken", "-o", "json")
    assert (rerun.exit_code, rerun.stdout) == (0, checked.stdout)
    assert set((tmp_path / "broken").rglob("*.parquet")) == written


def test_error_in_executor_prints_single_line(tmp_path: Path) -> None:
    (tmp_path / "east.jsonl").write_text(two_topics(BROKEN_STATE))
    result = kframe("spark", "validate", tmp_path)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert "east.jsonl:10 data of /brokers/topics/t/partitions/1/state: found malformed JSON" in line


@pytest.mark.parametrize(
    "arguments,message",
    [
        (("ingest", "nowhere", "--out", "fleet"), "nowhere: found no snapshot there"),
        (("validate", "nowhere"), "nowhere: found no snapshot there"),
        (("ingest", ".", "--out", "fleet", "--master", "local", "--remote", "sc://h"), "exclude one another"),
        (
            ("ingest", ".", "--out", "fleet", "--conf", "spark.ui.enabled"),
            "found 'spark.ui.enabled', expected KEY=VALUE",
        ),
    ],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...], message: str) -> None:
    result = kframe("spark", *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stdout == ""
