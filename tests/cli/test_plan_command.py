"""``kframe plan``: exit codes, and equal content in every output format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.running import CLUSTER, HEALTHY, PLAN, kframe, size_lines, size_rows


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan for the small cluster: t-0 reordered, t-1 to fewer replicas, t-2 to a dead broker. T-9 does not exist."""
    targets = {0: [3, 2, 1], 1: [2, 3], 2: [3, 4], 9: [1]}
    entries = [{"topic": "t", "partition": number, "replicas": replicas} for number, replicas in targets.items()]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return path


def run(*arguments: object) -> Result:
    return kframe("plan", *arguments)


def test_exit_codes(snapshot: Path, plan: Path, tmp_path: Path) -> None:
    assert run("check", PLAN).exit_code == 0
    assert run("check", HEALTHY, PLAN).exit_code == 0
    # Alone, the plan only has partitions of different replication factors, which is a warning.
    assert run("check", plan).exit_code == 0
    assert run("check", snapshot, plan).exit_code == 1
    (tmp_path / "empty.json").write_text('{"version":1,"partitions":[]}')
    assert run("check", tmp_path / "empty.json").exit_code == 1


def test_json_has_everything(snapshot: Path, plan: Path) -> None:
    result = run("check", snapshot, plan, "-o", "json")
    parsed: dict[str, Any] = json.loads(result.stdout)
    assert (result.exit_code, parsed["schema"], parsed["valid"]) == (1, "kframe.plan-check/v1", False)
    assert [(row["severity"], row["check"], row["partition"]) for row in parsed["findings"]] == [
        ("error", "unknown-partition", 9),
        ("error", "dead-broker", 2),
        ("warning", "fewer-replicas", 1),
        ("warning", "uneven-replication", None),
        ("info", "partial-topic", None),
        ("info", "order-only", 0),
    ]
    assert parsed["counts"] == {"error": 2, "warning": 2, "info": 2}
    assert parsed["moves"]["partitions"] == {"none": 0, "order": 1, "grow": 0, "shrink": 1, "move": 0}
    assert [row["broker_id"] for row in parsed["moves"]["brokers"]] == [1, 2, 3, 4]
    assert (parsed["snapshot"]["partitions"], parsed["plan"]["partitions"]) == (5, 4)


def test_check_prints_rules_first(snapshot: Path, plan: Path) -> None:
    kraft = CLUSTER.parent / "kafka-4-kraft-three-brokers" / "topics-describe.txt"
    kraft_rules = "KRaft (Kafka 4.4 assumed, metadata.version 4.4-IV2, ELR on)"
    for cluster, rules in ((snapshot, "ZooKeeper (Kafka 3.9)"), (kraft, kraft_rules)):
        arguments = ("check", cluster, plan)
        assert run(*arguments).stdout.splitlines()[0] == f"mode: {rules}"
        assert run(*arguments, "-o", "csv").stderr.splitlines()[0] == f"mode: {rules}"
        assert json.loads(run(*arguments, "-o", "json").stdout)["rules"] == rules
    assert json.loads(run("check", plan, "-o", "json").stdout)["rules"] is None


def test_check_expects_the_bytes_and_the_duration_that_generate_expects(tmp_path: Path) -> None:
    sizes, plan = tmp_path / "sizes.csv", tmp_path / "plan.json"
    sizes.write_text(size_lines(size_rows(lambda row: 1_000_000 * (row + 1))))
    measured = ("--weights", sizes, "--rate", "2MB/s")
    made = run("generate", HEALTHY, "--remove-brokers", "3", *measured, "--out", plan, "-o", "json")
    expected = json.loads(made.stdout)["moves"]
    assert expected["seconds"] > 0
    lines = {}
    for options in (measured, measured[:2], ()):
        moves = json.loads(run("check", HEALTHY, plan, *options, "-o", "json").stdout)["moves"]
        assert moves["bytes_copied"] == (expected["cost"] if options else None)
        assert moves["expected_seconds"] == (expected["seconds"] if options == measured else None)
        table = run("check", HEALTHY, plan, *options).stdout
        lines[len(options)] = next(line for line in table.splitlines() if line.startswith("expected duration"))
    assert lines[4].split()[2].isdecimal()
    assert lines[2] == lines[0]
    assert lines[0].endswith("unknown (--weights FILE with --rate RATE gives it)")
    names_directory = json.loads(plan.read_text())
    entry = names_directory["partitions"][0]
    entry["log_dirs"] = ["/data/d1", *["any"] * (len(entry["replicas"]) - 1)]
    plan.write_text(json.dumps(names_directory))
    parsed = json.loads(run("check", HEALTHY, plan, *measured, "-o", "json").stdout)
    assert parsed["moves"]["expected_seconds"] is None
    assert any("kframe plan disks --rate" in note for note in parsed["notes"])


def test_show_lists_every_partition(snapshot: Path, plan: Path) -> None:
    rows = json.loads(run("show", snapshot, plan, "-o", "json").stdout)["rows"]
    assert [(row["partition"], row["change"], row["adding"], row["removing"], row["valid"]) for row in rows] == [
        (0, "order", [], [], True),
        (1, "shrink", [], [1], True),
        (2, "move", [4], [1], False),
        (9, "unknown", [], [], False),
    ]
    table = run("show", snapshot, plan).stdout
    assert ["t", "1", "shrink", "2,3,1", "2,3", "-", "1", "2", "yes"] in [line.split() for line in table.splitlines()]
    assert "and 2 more" in run("show", snapshot, plan, "--limit", "2").stdout


def test_diff_lists_old_and_new_replicas(snapshot: Path, plan: Path) -> None:
    lines = run("diff", snapshot, plan).stdout.splitlines()
    assert lines == [
        "t-0 (order)",
        "- 1,2,3",
        "+ 3,2,1",
        "t-1 (shrink)",
        "- 2,3,1",
        "+ 2,3",
        "t-2 (move)  cannot be executed: see kframe plan check",
        "- 3,1",
        "+ 3,4",
        "t-9 (unknown)  cannot be executed: see kframe plan check",
        "+ 1",
        "changed: 4 of 4 partitions",
    ]
    rows = [json.loads(line) for line in run("diff", snapshot, plan, "-o", "jsonl").stdout.splitlines()]
    assert {row["schema"] for row in rows} == {"kframe.plan-diff/v1"}
    assert len(rows) == 4
