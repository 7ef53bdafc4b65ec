"""The JSON documents of commands for live clusters, on embedded ones, are valid by their schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.replication.isr_changes import remove_broker
from tests.cli.printing import ADMIN, CLUSTER, EMBEDDED, STORE
from tests.cli.running import kframe
from tests.schemas import assert_valid
from tests.whatif.shadow.test_log_shadow import played


def document(name: str, *arguments: object) -> dict[str, Any]:
    """Run a command and return its valid JSON document, which is called ``name``."""
    result = kframe(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    assert_valid(parsed, name)
    return parsed


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Partition t-0 moves to brokers 3 and 4."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 4]}]}))
    return path


def test_elections_and_reassignments(plan: Path) -> None:
    dry = document("kframe.whatif/v1", "elect", "--type", "preferred", "--all", *ADMIN)
    assert dry["operation"]["verb"] == "elect"
    elected = document(
        "kframe.partition-codes/v1", "elect", "--type", "preferred", "--partition", "t-0", "--execute", *ADMIN
    )
    assert elected["rows"] == [{"topic": "t", "partition": 0, "error": "ELECTION_NOT_NEEDED"}]
    assert document("kframe.partition-codes/v1", "reassign", "cancel", "--plan", plan, *ADMIN)["rows"] == []
    assert document("kframe.reassignments/v1", "reassign", "list", *ADMIN)["rows"] == []
    document("kframe.partition-codes/v1", "reassign", "cancel", "--all", *ADMIN)


def test_executions_between_log_directories(tmp_path: Path) -> None:
    """A dry run, an execution, its status and its rollback; then another plan, and an unknown directory."""
    plan, journal = tmp_path / "plan.json", tmp_path / "journal"

    def write(*log_dirs: str) -> None:
        entry = {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": log_dirs}
        plan.write_text(json.dumps({"version": 1, "partitions": [entry]}))

    write("/empty", "any")
    execute = ("plan", "execute", *CLUSTER, plan, "--journal", journal, "--throttle", "1000", "--interval", "0.05")
    name = "kframe.plan-execution/v1"
    dry = document(name, *execute)
    move = {"topic": "t", "partition": 0, "broker_id": 1, "source": "/data", "target": "/empty", "bytes": 1000}
    assert dry["directories"] == [{**move, "settled": False}]
    assert (dry["stages"][0]["copies"], dry["bytes"], dry["expected_seconds"]) == (1, 1000, 1.0)
    assert dry["effect"]["reassignment"]["replicas_copied"] == 0
    done = document(name, *execute, "--execute")
    assert (done["result"], done["not_restored"], done["directories"]) == ("completed", [], [{**move, "settled": True}])
    assert document(name, "plan", "status", journal) == done
    rolled_back = document(name, "plan", "rollback", journal, "--url", *CLUSTER)
    assert (rolled_back["directories"][0]["source"], rolled_back["directories"][0]["target"]) == ("/empty", "/data")
    table = " ".join(kframe("plan", "status", journal).stdout.split())
    assert "t 0 1 /data /empty 1000 yes" in table
    write("any", "/empty")
    refused = kframe(*execute)
    assert (refused.exit_code, "the journal of another plan" in refused.stderr) == (2, True)
    write("/nowhere", "any")
    refused = kframe("plan", "execute", *CLUSTER, plan)
    message = "error: t-0: found log directory /nowhere of broker 1, expected one of /data, /empty"
    assert (refused.exit_code, refused.stderr.splitlines()) == (1, [message])


def test_executions(plan: Path, tmp_path: Path) -> None:
    """A dry run, an execution, the same command again, and its status; then what a rollback would do."""
    journal = tmp_path / "journal"
    execute = ("plan", "execute", *CLUSTER, plan, "--journal", journal, "--throttle", "1000", "--interval", "0.05")
    name = "kframe.plan-execution/v1"
    dry = document(name, *execute)
    assert (dry["executed"], dry["stages"][0]["copies"], journal.exists()) == (False, 2, False)
    assert (dry["effect"]["impact"]["leaders_moved"], dry["effect"]["impact"]["offline_peak"]) == (1, 0)
    assert dry["effect"]["reassignment"]["replicas_copied"] == 2
    done = document(name, *execute, "--execute")
    assert (done["result"], done["settled"], done["bytes"], done["not_restored"]) == ("completed", 1, 2000, [])
    assert done["effect"] is None
    assert document(name, *execute, "--execute") == document(name, "plan", "status", journal) == done
    rolled_back = document(name, "plan", "rollback", journal, "--url", *CLUSTER)
    assert (rolled_back["rolls_back"], rolled_back["executed"], rolled_back["settled"]) == (True, False, 0)


def test_reassignments_are_executed_as_plans_are(plan: Path, tmp_path: Path) -> None:
    """``plan rollback`` and ``plan execute`` take the journal of ``reassign start``."""
    journal, name = tmp_path / "journal", "kframe.plan-execution/v1"
    start = ("reassign", "start", "t-0=3,4", "--journal", journal, *ADMIN)
    execute = ("plan", "execute", *CLUSTER, plan, "--journal")
    dry = document(name, *start)
    assert dry["effect"] == document(name, *execute, tmp_path / "other")["effect"]
    assert not journal.exists()
    done = document(name, *start, "--execute", "--throttle", "1000", "--interval", "0.05")
    assert (done["plan"], done["result"], done["throttle"]) == ("reassign", "completed", 1000)
    assert document(name, *start, "--execute") == document(name, *execute, journal) == done
    assert document(name, "plan", "rollback", journal, "--url", *CLUSTER)["rolls_back"]


def test_journal_of_a_reassignment_has_a_default_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = document("kframe.plan-execution/v1", "reassign", "start", "t-0=3,4", "--execute", *ADMIN)
    assert [path.name for path in tmp_path.iterdir()] == [done["journal"]]
    assert re.fullmatch(r"reassign-\d{8}T\d{6}\.journal", done["journal"])


@pytest.mark.parametrize("output", ["table", "wide"])
def test_tables_of_a_dry_run_have_its_effect(output: str, plan: Path) -> None:
    lines = kframe("plan", "execute", *CLUSTER, plan, "--limit", "0", "-o", output).stdout.splitlines()
    expected = ["expected effect by the rules of ZooKeeper (Kafka 3.9)", "leaders moved", "replicas peak"]
    assert all(any(line.startswith(text) for line in lines) for text in expected)
    assert any(line.startswith("and 1 more (--limit N; ") for line in lines)
    assert any(line.startswith("offline peak") for line in lines) == (output == "wide")


def test_captures(tmp_path: Path) -> None:
    captured = document("kframe.snapshot-capture/v1", "snapshot", "capture", "zookeeper://a", tmp_path / "a", *EMBEDDED)
    assert "passes" not in captured
    url = "zookeeper://captured"
    twice = document("kframe.snapshot-capture/v1", "snapshot", "capture", url, tmp_path / "b", *EMBEDDED)
    assert twice["quarantined"] == [{"path": "/brokers/topics/x", "reason": "malformed JSON"}]


@pytest.mark.parametrize("quick", [(), ("--quick",)], ids=["whole", "quick"])
def test_status(quick: tuple[str, ...]) -> None:
    report = document("kframe.controller-status/v1", "controller", "status", *quick, *STORE)
    assert (report["controller_id"], report["quick"]) == (1000, bool(quick))


def test_resignation() -> None:
    assert document("kframe.controller-resignation/v1", "controller", "resign", *STORE)["controller_epoch"] == 5


def test_shadow() -> None:
    report = document("kframe.shadow/v1", "controller", "shadow", "--for", "0", *STORE)
    assert (report["disagreements"], report["records"]) == (0, [])


def test_shadow_of_a_log() -> None:
    report = document(
        "kframe.log-shadow/v1", "controller", "shadow", "kraft://embedded:9093", "--from-start", "--for", "0", *EMBEDDED
    )
    assert (report["disagreements"], report["controller_id"]) == (0, 3000)
    assert report["batches"] == report["equal"] + report["unpredictable"]
    assert any(event.startswith("broker fenced") for batch in report["records"] for event in batch["events"])


@pytest.mark.parametrize("output", ["table", "jsonl"])
def test_shadow_of_a_log_reports_differences(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that writes no change of a partition for a fenced broker."""
    played("fence-by-silence")
    no_rows = np.empty(0, np.int32)
    monkeypatch.setattr(
        broker_events, "remove_broker", lambda context, broker_id, _rows: remove_broker(context, broker_id, no_rows)
    )
    arguments = ("controller", "shadow", "kraft://embedded:9093", "--from-start", "--for", "0", *EMBEDDED)
    result = kframe(*arguments, "-o", output)
    assert result.exit_code == 3, result.output
    lines = result.stdout.splitlines()
    if output == "jsonl":
        differing = [batch for batch in map(json.loads, lines) if batch["outcome"] == "differs"]
        assert {difference["field"] for batch in differing for difference in batch["differences"]} >= {"record"}
    else:
        assert any(" differs: " in line for line in lines)
        assert any("PartitionChange record predicted none, committed written" in line for line in lines)
        assert "disagreements" in lines[-1]


@pytest.mark.parametrize(
    "partitions, text", [(("t-0",), "1 reassignment would be"), (("t-0", "t-1"), "2 reassignments would be")]
)
def test_reassignments_to_cancel_are_counted(partitions: tuple[str, ...], text: str) -> None:
    result = kframe("reassign", "cancel", *partitions, *ADMIN)
    assert (result.exit_code, text in result.stderr) == (0, True), result.output
