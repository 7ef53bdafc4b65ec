"""What kafka-reassign-partitions prints, and files that lack a version or repeat a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kframe.errors import SnapshotError
from kframe.plans.file.read import load_plan
from kframe.snapshot import read_snapshot
from tests.snapshot.samples import facts, reassignment

TEXTS = Path(__file__).parent / "texts"
CURRENT = "Current partition replica assignment\n\n"
ROLLBACK = "\n\nSave this to use as the --reassignment-json-file option during rollback\n"
RESULTS = {
    "0.8": "Successfully started reassignment of partitions {}\n",
    "2.3": "Successfully started reassignment of partitions.\n",
    "2.8": "Successfully started partition reassignments for t-0,t-1\n",
    "throttled": "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed.\nThe inter-broker throttle limit was set to 5000000 B/s\n"
    "Successfully started partition reassignments for t-0,t-1\n",
    "log directories": "The replica-alter-dir throttle limit was set to 100 B/s\n"
    "Successfully started partition reassignment for t-0\nSuccessfully started log directory move for: t-0-1\n",
}


def test_executed_reassignment_shows_former_assignment() -> None:
    path = TEXTS / "execute-output.txt"
    rows = facts(read_snapshot(path))
    assert [rows[f"pay.events-{number}"]["replicas"] for number in (0, 1)] == [[0, 1, 2], [1, 2, 0]]
    replicas = load_plan(path).targets.replicas
    assert [replicas[position].tolist() for position in (0, 1)] == [[0, 1, 2], [1, 2, 0]]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("release", RESULTS)
def test_output_of_execute(release: str, indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(CURRENT + json.dumps(reassignment(), indent=indent) + ROLLBACK + RESULTS[release])
    assert [row["replicas"] for row in facts(read_snapshot(path)).values()] == [[1, 2, 3], [2, 3, 1]]
    assert len(load_plan(path)) == 2


def test_output_of_execute_with_failure_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(
        CURRENT + json.dumps(reassignment()) + ROLLBACK + "Error reassigning partition(s):\nt-0: timed out\n"
    )
    with pytest.raises(SnapshotError, match="Error reassigning"):
        read_snapshot(path)


def test_current_assignment_of_cut_output_is_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(CURRENT + json.dumps(reassignment()))
    with pytest.raises(SnapshotError, match="the current assignment only"):
        load_plan(path)


def test_output_of_list(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(
        "Current partition reassignments:\na.b-c-0: replicas: 1,2,3. adding: 3.\n"
        "a.b-c-1: replicas: 2,3,1. adding: 3. removing: 1.\na.b-c-2: replicas: 1,2. removing: 2.\n"
    )
    snapshot = read_snapshot(path)
    columns = ("replicas", "adding_replicas", "removing_replicas")
    assert {name: tuple(row[column] for column in columns) for name, row in facts(snapshot).items()} == {
        "a.b-c-0": ([1, 2, 3], [3], []),
        "a.b-c-1": ([2, 3, 1], [3], [1]),
        "a.b-c-2": ([1, 2], [], [2]),
    }
    assert any("others may exist" in assumption for assumption in snapshot.assumptions)
    assert "partitions.adding_replicas" not in snapshot.provenance
    with pytest.raises(SnapshotError, match="the output of kafka-reassign-partitions --list"):
        load_plan(path)


def test_replicas_in_output_of_verify(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(
        "Status of partition reassignment:\n"
        "There is no active reassignment of partition t-0, but replica set is 0,1 rather than 1,2.\n\n"
        "Clearing broker-level throttles on brokers 0,1,2\nClearing topic-level throttles on topic t\n"
    )
    assert facts(read_snapshot(path))["t-0"]["replicas"] == [0, 1]


@pytest.mark.parametrize(
    "text, message",
    [
        ("No partition reassignments found.\n", "the output of --list"),
        ("Current partition reassignments:\n", "a heading and no partition"),
        ("Current partition reassignments:\nt-0: replicas: 1,2", ":2: found 't-0: replicas: 1,2', expected a line of"),
        (
            "Status of partition reassignment:\nReassignment of partition t-0 is completed.\n",
            "a state of --verify without replicas",
        ),
        (
            "Status of partition reassignment: \nReassignment of partition t-0 is still in progress\n",
            "a state of --verify without replicas",
        ),
    ],
    ids=["nothing listed", "no partition", "a cut line", "completed", "in progress"],
)
def test_output_without_assignments_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(text)
    with pytest.raises(SnapshotError, match=message):
        read_snapshot(path)
    with pytest.raises(SnapshotError, match="the output of kafka-reassign-partitions --"):
        load_plan(path)


def test_missing_version_is_1(tmp_path: Path) -> None:
    document = reassignment()
    del document["version"]
    path = tmp_path / "reassignment.json"
    for indent in (None, 1):
        path.write_text(json.dumps(document, indent=indent))
        assert (len(read_snapshot(path)), len(load_plan(path))) == (2, 2)
    assert len(load_plan(TEXTS / "plan-without-version.json")) == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "replicas": [2]}]}',
        '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}], "partitions": []}',
        '{"version": 1, "version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}',
        '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "r\\u0065plicas": [2]}]}',
    ],
    ids=["of an entry", "of the document", "version", "escaped"],
)
def test_repeated_key_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "reassignment.json"
    path.write_text(text)
    for read in (read_snapshot, load_plan):
        with pytest.raises(SnapshotError, match="twice in one object"):
            read(path)


def test_reassignment_without_partitions_shows_no_empty_cluster(tmp_path: Path) -> None:
    path = tmp_path / "reassignment.json"
    path.write_text('{"version": 1, "partitions": []}')
    with pytest.raises(SnapshotError, match="no partition"):
        read_snapshot(path)
    assert len(load_plan(path)) == 0
