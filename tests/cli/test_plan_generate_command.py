"""``kframe plan generate``: every goal, output formats, and a plan that other commands read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kframe import plan, read_snapshot
from kframe.cli.app import cli
from tests.cli.running import HEALTHY, kframe, size_lines, size_rows
from tests.cli.test_live_documents import EMBEDDED
from tests.whatif.samples import small


def report(*arguments: object, code: int = 0) -> dict[str, Any]:
    """The JSON report of a plan for the healthy cluster."""
    result = kframe("plan", "generate", HEALTHY, *arguments, "-o", "json")
    assert result.exit_code == code, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


@pytest.mark.parametrize(
    ("arguments", "moves", "bound"),
    [
        (("--rebalance",), 4, 4),
        (("--remove-brokers", "3"), 307, 307),
        (("--replace", "3=7"), 307, 307),
        (("--evacuate-rack", "rack-2"), 620, 620),
        (("--add-brokers", "7:rack-0,8:rack-1,9:rack-2"), 621, 621),
        (("--fix-racks",), 0, 0),
        (("--replication-factor", "__consumer_offsets=2"), 0, 0),
        (("--leaders-only",), 0, 0),
        (("--rebalance", "--topics", "__consumer_*"), 2, 2),
    ],
)
def test_every_goal_reaches_its_bound(arguments: tuple[str, ...], moves: int, bound: int) -> None:
    document = report(*arguments)
    assert (document["moves"]["replicas"], document["moves"]["bound"]) == (moves, bound)
    assert document["limits_reached"]


def test_written_plan_is_valid_and_stamped(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    document = report("--remove-brokers", "3", "--out", path)
    checked = json.loads(kframe("plan", "check", path, "--snapshot", HEALTHY, "-o", "json").stdout)
    assert checked["counts"]["error"] == checked["counts"]["warning"] == 0
    assert checked["moves"]["replicas_copied"] == document["moves"]["replicas"]
    assert set(json.loads(path.read_text())) == {"version", "partitions", "kframe"}
    after = {row["broker_id"]: row["replicas_after"] for row in checked["moves"]["brokers"]}
    assert after == {row["broker_id"]: row["replicas_after"] for row in document["brokers"]}
    assert after[3] == 0


def test_out_on_stdout_prints_plan_and_summary_on_stderr() -> None:
    result = kframe("plan", "generate", HEALTHY, "--rebalance", "--out", "-")
    assert len(json.loads(result.stdout)["partitions"]) == 6
    assert result.stderr.strip() == "4 moves; no plan can do with fewer than 4"


def test_table_shows_brokers_as_bars() -> None:
    result = kframe("plan", "generate", HEALTHY, "--remove-brokers", "3", "--limit", "4")
    lines = result.stdout.splitlines()
    assert lines[0] == "307 moves; no plan can do with fewer than 307"
    (removed,) = [line for line in lines if line.split()[:2] == ["3", "rack-2"]]
    assert removed.split()[4:6] == ["0", "-" * 12]
    assert lines[-1] == "and 2 more (--limit N; data has them all)"


def test_partitions_beyond_broker_cap_are_unassignable() -> None:
    document = report("--remove-brokers", "3", "--broker-cap", "320", code=1)
    assert document["partitions"]["unassignable"] > 0
    assert sum("no allowed broker" in note for note in document["notes"]) == 1
    assert all(row["replicas_after"] <= 320 for row in document["brokers"])


def test_weights_of_every_format_make_bound_a_byte_count(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = size_rows(lambda row: 1000 + 7 * row)
    (tmp_path / "sizes.json").write_text(json.dumps(rows))
    (tmp_path / "sizes.csv").write_text(size_lines(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "sizes.parquet")
    documents = [
        report("--rebalance", "--tolerance", "0.1", "--weights", tmp_path / f"sizes.{kind}")
        for kind in ("json", "csv", "parquet")
    ]
    assert documents[0] == documents[1] == documents[2]
    moves = documents[0]["moves"]
    assert moves["unit"] == "bytes"
    assert moves["bound"] <= moves["cost"]
    assert documents[0]["limits_reached"]
    assert documents[0]["skew"]["bytes_after"]["deviation"] < documents[0]["skew"]["bytes_before"]["deviation"]


def test_api_returns_proposal() -> None:
    proposal = plan(read_snapshot(HEALTHY), remove_brokers=(3,))
    assert (proposal.moves, proposal.bound, len(proposal.plan)) == (307, 307, 307)


def test_existing_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("mine")
    refused = kframe("plan", "generate", HEALTHY, "--rebalance", "--out", path)
    assert (refused.exit_code, path.read_text()) == (2, "mine")
    assert "something already there, expected a new file, or --force" in refused.stderr
    report("--rebalance", "--out", path, "--force")
    assert len(json.loads(path.read_text())["partitions"]) == 6
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]


def test_snapshot_comes_from_standard_input() -> None:
    content = gzip.decompress(HEALTHY.read_bytes())
    result = CliRunner().invoke(cli, ["plan", "generate", "-", "--rebalance", "-o", "json"], input=content)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["moves"]["replicas"] == 4


def test_snapshot_is_captured_from_live_cluster() -> None:
    result = kframe("plan", "generate", "zookeeper://a", "--rebalance", "-o", "json", *EMBEDDED)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["snapshot"]["partitions"] == len(small())
