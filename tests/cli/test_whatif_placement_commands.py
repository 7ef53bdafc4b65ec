"""``kframe whatif reassign``, ``create`` and ``delete``: exit codes. Every output format has equal content."""

from __future__ import annotations

import json
from pathlib import Path

from pyarrow import parquet

from tests.cli.running import CLUSTER, HEALTHY, PLAN, document, whatif


def plan_file(path: Path, *assignments: tuple[int, list[int]]) -> Path:
    entries = [{"topic": "t", "partition": partition, "replicas": replicas} for partition, replicas in assignments]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return path


def test_reassign_tells_phases_costs_and_problems(snapshot: Path, tmp_path: Path) -> None:
    plan = plan_file(tmp_path / "plan.json", (0, [1, 2]), (1, [3, 4]), (3, [2]), (8, [1]))
    parsed = document("reassign", snapshot, plan, code=1)
    assert parsed["operation"]["text"] == "reassign 4 partitions of 1 topic"
    assert [step["name"].partition(":")[0] for step in parsed["steps"]] == [
        "phase A",
        "the new replicas catch up",
        "phase B",
    ]
    assert parsed["steps"][0]["response"]["partitions"] == {
        "NONE": 2,
        "UNKNOWN_TOPIC_OR_PARTITION": 1,
        "INVALID_REPLICA_ASSIGNMENT": 1,
    }
    assert parsed["steps"][0]["response"]["named"] == ["t-1", "t-8"]
    reassignment = parsed["reassignment"]
    assert (
        reassignment["completed"],
        reassignment["refused"],
        reassignment["replicas_copied"],
        reassignment["replicas_deleted"],
    ) == (2, 2, 1, 2)
    assert {problem["partition"]: problem["reason"] for problem in reassignment["problems"]} == {
        1: "not live: 4",
        8: "no such partition",
    }
    assert [(partition["partition"], partition["replicas_after"]) for partition in parsed["partitions"]] == [
        (0, [1, 2]),
        (3, [2]),
    ]
    table = whatif("reassign", snapshot, plan, "-o", "wide").stdout
    for step in parsed["steps"]:
        for timeline_event in step["timeline"]:
            assert timeline_event["text"] in table
    lines = [line.split() for line in table.splitlines()]
    for row in reassignment["brokers"]:
        assert [str(value) for value in row.values()] in [
            [cells[0], cells[3], cells[1], cells[2], *cells[4:]] for cells in lines if len(cells) == 9
        ]
    assert any(line[-2:] == ["live:", "4"] for line in lines)


def test_reassign_writes_outcome(snapshot: Path, tmp_path: Path) -> None:
    plan = plan_file(tmp_path / "plan.json", (0, [3, 2]))
    result = whatif("reassign", snapshot, plan, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert json.loads((tmp_path / "out" / "outcome.json").read_text())["reassignment"]["completed"] == 1
    (row,) = parquet.read_table(tmp_path / "out" / "partitions.parquet").to_pylist()
    assert (row["replicas_before"], row["replicas_after"], row["leader_after"]) == ([1, 2, 3], [3, 2], 3)
    timeline = parquet.read_table(tmp_path / "out" / "timeline.parquet").to_pylist()
    assert [event["removing"] for event in timeline if event["what"] == "topics"] == [1, 0]


def test_plan_may_lose_quorum_of_topic(snapshot: Path, tmp_path: Path) -> None:
    plan = plan_file(tmp_path / "plan.json", (0, [2, 1]))
    assert whatif("reassign", snapshot, plan, "--fail-on", "offline").exit_code == 0
    result = whatif("create", snapshot, "new", "--assignments", "[[4]]", "--fail-on", "offline")
    assert (result.exit_code, result.stderr) == (3, "--fail-on offline: 1 partition\n")


def test_real_plan_is_printed_as_table() -> None:
    table = whatif("reassign", HEALTHY, PLAN).stdout
    assert table.startswith(
        "mode: ZooKeeper (Kafka 3.9)\nreassign 24 partitions of 1 topic: 645 partitions of healthy.zookeeper.jsonl.gz\n"
    )
    assert "replicas copied   36\n" in table
    assert "replicas peak     1901\n" in table
    generated = document("reassign", HEALTHY, CLUSTER / "reassign-generate.txt")
    assert generated["reassignment"] == document("reassign", HEALTHY, PLAN)["reassignment"]


def test_create_and_delete_report_result_of_each_topic(snapshot: Path) -> None:
    created = document("create", snapshot, "new", "--partitions", "4", "--rf", "2", "--seed", "5")
    assert created["topics"] == [
        {
            "topic": "new",
            "status": "completed",
            "error": "NONE",
            "partitions": 4,
            "replicas": 8,
            "waiting_for": [],
            "reason": None,
        }
    ]
    assert (
        created["partitions"]
        == document("create", snapshot, "new", "--partitions", "4", "--rf", "2", "--seed", "5")["partitions"]
    )
    deleted = document("delete", snapshot, "t", "nope", code=1)
    assert [(topic["topic"], topic["status"], topic["waiting_for"]) for topic in deleted["topics"]] == [
        ("t", "waiting", [4]),
        ("nope", "refused", []),
    ]
    table = whatif("delete", snapshot, "t", "nope").stdout
    assert ["nope", "refused", "UNKNOWN_TOPIC_OR_PARTITION", "0", "0", "-", "no", "such", "topic"] in [
        line.split() for line in table.splitlines()
    ]
    assert "response: NONE; 1 NONE; 1 UNKNOWN_TOPIC_OR_PARTITION; nope (no such topic)" in " ".join(table.split())


def test_create_partitions_reports_topic_and_its_new_partitions(snapshot: Path) -> None:
    parsed = document("create-partitions", HEALTHY, "__consumer_offsets", "--partitions", "52")
    assert parsed["operation"]["verb"] == "create-partitions"
    (topic,) = parsed["topics"]
    assert (topic["topic"], topic["status"], topic["partitions"]) == ("__consumer_offsets", "completed", 2)
    assert [partition["partition"] for partition in parsed["partitions"]] == [50, 51]
    # A partition of topic t has no leader, so Kafka waits in vain.
    waiting = document("create-partitions", snapshot, "t", "--partitions", "6", code=1)
    assert (waiting["topics"][0]["status"], waiting["topics"][0]["error"]) == ("waiting", "REQUEST_TIMED_OUT")
    assert len(waiting["partitions"]) == 1
    assert "REPLICAS-AFTER" in whatif("create-partitions", snapshot, "t", "--partitions", "6").stdout


def test_failure_table_hides_replica_columns() -> None:
    assert " REPLICAS-BEFORE " not in whatif("fail", HEALTHY, "--brokers", "4").stdout
    assert " REPLICAS-BEFORE " in whatif("fail", HEALTHY, "--brokers", "4", "-o", "wide").stdout
