"""Validation of plan files, and every finding of a plan alone and against a snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict

from kframe.errors import InputError, SnapshotError
from kframe.model.plan import Plan
from kframe.plans.check.document import PlanRecord
from kframe.plans.check.findings import Check
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.file.read import load_plan
from kframe.snapshot import Snapshot, read_snapshot
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.whatif import WhatIf
from tests.architecture.source import ROOT
from tests.plans.check.test_check_kraft import CASES as KRAFT_CASES

CLUSTER = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers"


def small() -> Snapshot:
    """Brokers 1 and 2 in rack a, 3 in b, 4 in c; 5 is not registered. Topic t has four partitions; gone is under
    deletion."""
    cluster = cluster_of(
        {
            "t": [
                healthy(1, 3),
                PartitionSpec((1, 5), leader=1, isr=(1,)),
                PartitionSpec((5, 1), leader=None, isr=(5,)),
                PartitionSpec((4, 1, 3), leader=1, isr=(1, 3), adding_replicas=(4,), removing_replicas=(3,)),
            ],
            "gone": [healthy(1)],
            "whole": [healthy(1, 3)],
        },
        [registration(number, rack, 10 + number) for number, rack in ((1, "a"), (2, "a"), (3, "b"), (4, "c"))],
    )
    cluster.topics.deleting[1] = 1
    return Snapshot.from_cluster(cluster, controller_id=1, controller_epoch=7)


def findings_of(
    targets: list[tuple[tuple[str, int], tuple[int, ...]]], snapshot: Snapshot | None
) -> list[tuple[Any, ...]]:
    plan = Plan.of(targets)
    report = PlanReport.of(plan, None if snapshot is None else resolve_plan(plan, snapshot))
    return [(row.check, row.topic, row.partition, row.error) for row in report.rows()]


def write(path: Path, partitions: Any, **fields: Any) -> Path:
    path.write_text(json.dumps({"version": 1, "partitions": partitions, **fields}))
    return path


INVALID, UNKNOWN = "INVALID_REPLICA_ASSIGNMENT", "UNKNOWN_TOPIC_OR_PARTITION"

#: (plan, findings without a snapshot).
WITHOUT_SNAPSHOT: list[tuple[list[tuple[tuple[str, int], tuple[int, ...]]], list[tuple[Any, ...]]]] = [
    ([], [("empty-plan", None, None, None)]),
    ([(("t", 0), (1, 2))], []),
    ([(("no way", 0), (1,))], [("topic-name", "no way", 0, UNKNOWN)]),
    ([(("t", -1), (1,))], [("partition-number", "t", -1, UNKNOWN)]),
    (
        [(("t", 0), (1,)), (("u", 0), (1,)), (("t", 0), (2,)), (("t", 0), (3,))],
        [("duplicate-partition", "t", 0, None)] * 2,
    ),
    ([(("t", 0), ())], [("empty-replicas", "t", 0, INVALID)]),
    ([(("t", 0), (1, 2, 1))], [("duplicate-broker", "t", 0, INVALID)]),
    ([(("t", 0), (1, -2))], [("broker-id", "t", 0, INVALID)]),
    ([(("t", 0), (1, 2)), (("t", 1), (1,)), (("u", 0), (1,))], [("uneven-replication", "t", None, None)]),
]


@pytest.mark.parametrize("targets, expected", WITHOUT_SNAPSHOT)
def test_findings_without_snapshot(targets: list[Any], expected: list[tuple[Any, ...]]) -> None:
    assert findings_of(targets, None) == expected


#: (plan, findings against the small cluster).
AGAINST_SNAPSHOT: list[tuple[list[tuple[tuple[str, int], tuple[int, ...]]], list[tuple[Any, ...]]]] = [
    ([(("whole", 0), (4, 3))], []),
    ([(("nope", 0), (1, 3))], [("unknown-topic", "nope", 0, UNKNOWN)]),
    ([(("gone", 0), (1,))], [("topic-being-deleted", "gone", 0, UNKNOWN), ("no-op", "gone", 0, None)]),
    ([(("whole", 1), (1, 3))], [("unknown-partition", "whole", 1, UNKNOWN)]),
    ([(("whole", 0), (1, 9))], [("unknown-broker", "whole", 0, INVALID)]),
    ([(("whole", 0), (1, 5))], [("dead-broker", "whole", 0, INVALID)]),
    ([(("t", 1), (3, 5))], [("dead-broker-stays", "t", 1, None), ("partial-topic", "t", None, None)]),
    ([(("t", 2), (1, 3))], [("no-leader", "t", 2, None), ("partial-topic", "t", None, None)]),
    ([(("t", 3), (4, 1))], [("already-moving", "t", 3, None), ("partial-topic", "t", None, None)]),
    ([(("whole", 0), (1,))], [("fewer-replicas", "whole", 0, None)]),
    ([(("whole", 0), (1, 3, 4))], [("more-replicas", "whole", 0, None)]),
    ([(("whole", 0), (1, 2))], [("racks", "whole", 0, None)]),
    ([(("whole", 0), (3, 1))], [("order-only", "whole", 0, None)]),
    ([(("whole", 0), (1, 3))], [("no-op", "whole", 0, None)]),
    ([(("whole", 0), (1, 1))], [("duplicate-broker", "whole", 0, INVALID), ("racks", "whole", 0, None)]),
]


@pytest.mark.parametrize("targets, expected", AGAINST_SNAPSHOT)
def test_findings_against_snapshot(targets: list[Any], expected: list[tuple[Any, ...]]) -> None:
    assert findings_of(targets, small()) == expected


def test_cases_cover_every_check() -> None:
    covered = {row[0] for _, rows in (*WITHOUT_SNAPSHOT, *AGAINST_SNAPSHOT) for row in rows} | {
        "log-dirs",
        "log-directory",
        "observers",
        "fewer-observers",
        "placement-constraints",
    }
    covered |= {check for _, _, findings in KRAFT_CASES for check in findings}
    assert covered == {str(check) for check in Check}


def test_errors_come_first_and_make_plan_invalid() -> None:
    plan = Plan.of([(("whole", 0), (1, 3)), (("t", 0), (1, 9)), (("t", 1), (1, 2))])
    report = PlanReport.of(plan, resolve_plan(plan, small()))
    severities = [row.severity for row in report.rows()]
    assert severities == ["error", "warning", "info", "info"]
    assert (report.valid, report.counts()) == (False, {"error": 1, "warning": 1, "info": 2})


def test_details_of_findings() -> None:
    plan = Plan.of([(("t", 0), (1, 9)), (("t", 7), (1, 2)), (("t", 1), (5, 4)), (("whole", 0), (5, 1, 1))])
    details = {
        (row.topic, str(row.check)): row.detail for row in PlanReport.of(plan, resolve_plan(plan, small())).rows()
    }
    assert details["t", "unknown-broker"] == "broker 9 is not in the snapshot"
    assert details["t", "unknown-partition"] == "the topic has partitions 0 to 3"
    assert details["t", "dead-broker-stays"].startswith("broker 5 stays, but is not registered")
    assert details["t", "partial-topic"] == "the plan has 2 of its 4 partitions"
    assert details["whole", "dead-broker"] == "broker 5 is to be added, but is not registered"
    assert details["whole", "duplicate-broker"] == "broker 1 twice in [5, 1, 1]"
    assert details["whole", "more-replicas"] == "replication factor 2 becomes 3"


@pytest.mark.parametrize(
    ("targets", "seconds"),
    [
        pytest.param([(("whole", 0), (2, 4))], 80.0, id="busiest-sender"),
        pytest.param([(("whole", 0), (1, 4)), (("t", 0), (1, 4))], 50.0, id="busiest-receiver"),
        pytest.param([(("t", 2), (1, 4))], 3.0, id="no-leader-sends"),
        pytest.param([(("whole", 0), (9, 1))], 0.0, id="refused-copies-nothing"),
        pytest.param([(("whole", 0), (3, 1))], 0.0, id="order-only"),
    ],
)
def test_duration_is_that_of_the_busiest_broker(
    targets: list[tuple[tuple[str, int], tuple[int, ...]]], seconds: float
) -> None:
    snapshot, plan = small(), Plan.of(targets)
    names = [snapshot.topics.name_of_row(row) for row in range(len(snapshot))]
    size = {"whole-0": 400, "t-0": 100, "t-2": 30}
    weights = np.array([size.get(name, 1000) for name in names], np.int64)
    moves = PlanReport.of(plan, resolve_plan(plan, snapshot), weights, 10).document().moves
    assert moves is not None
    assert moves.expected_seconds == seconds


def test_counts_of_moves() -> None:
    plan = Plan.of([(("t", 0), (3, 4)), (("whole", 0), (3, 1)), (("t", 1), (9, 1)), (("t", 3), (1, 2))])
    moves = PlanReport.of(plan, resolve_plan(plan, small())).document().moves
    assert moves is not None
    assert asdict(moves.partitions) == {"none": 0, "order": 1, "grow": 0, "shrink": 0, "move": 2}
    # t-3 was under reassignment to 4, 1: the adding replica outside the new target is removed too.
    assert (moves.not_valid, moves.replicas_copied, moves.replicas_deleted) == (1, 2, 3)
    assert (moves.bytes_copied, moves.expected_seconds) == (None, None)
    by_broker = {row.broker_id: row for row in moves.brokers}
    assert {
        broker_id: (row.copied, row.deleted, row.replicas_before, row.replicas_after)
        for broker_id, row in by_broker.items()
    } == {
        1: (0, 1, 6, 5),
        2: (1, 0, 0, 1),
        3: (0, 1, 3, 2),
        4: (1, 1, 1, 1),
        5: (0, 0, 2, 2),
    }
    names = ("preferred_leaders_before", "preferred_leaders_after")
    assert {broker_id: tuple(getattr(row, name) for name in names) for broker_id, row in by_broker.items()} == {
        1: (4, 3),
        2: (0, 0),
        3: (0, 2),
        4: (1, 0),
        5: (1, 1),
    }


def test_partition_rows_state_change() -> None:
    plan = Plan.of([(("t", 0), (1, 3)), (("t", 3), (4, 1)), (("nope", 0), (1,)), (("whole", 0), (1,))])
    checked = resolve_plan(plan, small())
    rows = list(checked.partition_rows())
    assert [(row.change, row.replicas, row.adding, row.removing, row.leader, row.valid) for row in rows] == [
        ("none", [1, 3], [], [], 1, True),
        ("move", [4, 1, 3], [4], [3], 1, True),
        ("unknown", None, [], [], None, False),
        ("shrink", [1, 3], [], [3], 1, True),
    ]
    assert [row.change for row in checked.partition_rows(changes_only=True)] == ["move", "unknown", "shrink"]


@pytest.mark.parametrize("name", ["healthy.kcat.json.gz", "healthy.topics-describe.txt.gz", "reassignment.json"])
def test_plan_is_checked_against_incomplete_snapshots(name: str) -> None:
    plan = load_plan(CLUSTER / "reassignment.json")
    report = PlanReport.of(plan, resolve_plan(plan, read_snapshot(CLUSTER / name)))
    assert report.valid
    moves = report.document().moves
    assert moves is not None
    assert moves.replicas_copied == (0 if name == "reassignment.json" else 36)


def test_empty_snapshot_makes_topics_unknown() -> None:
    empty = Snapshot.from_cluster(cluster_of({}, [1]))
    assert findings_of([(("t", 0), (1,))], empty) == [("unknown-topic", "t", 0, UNKNOWN)]
    assert findings_of([], empty) == [("empty-plan", None, None, None)]


def test_plan_is_read_into_columns(tmp_path: Path) -> None:
    entries = [
        {"topic": "b", "partition": 1, "replicas": [3, 1], "log_dirs": ["any", "any"]},
        {"topic": "a", "partition": 0, "replicas": [], "log_dirs": ["any"]},
        {"topic": "b", "partition": 0, "replicas": [2, 2], "log_dirs": ["any", "/d"]},
    ]
    plan = load_plan(write(tmp_path / "plan.json", entries))
    assert plan.targets.names == ("b", "a")
    assert plan.targets.topic.tolist() == [0, 1, 0]
    assert plan.targets.partition.tolist() == [1, 0, 0]
    assert [replicas.tolist() for replicas in (plan.targets.replicas[i] for i in range(3))] == [[3, 1], [], [2, 2]]
    assert plan.log_dirs_differ.tolist() == [False, True, False]
    checks = {row.check for row in PlanReport.of(plan, None).rows()}
    assert checks == {"log-dirs", "empty-replicas", "duplicate-broker", "log-directory"}
    assert plan.targets.topic.dtype == np.int32


#: (content, error text).
MALFORMED: list[tuple[str, str]] = [
    ("", "an empty file"),
    ("nonsense", "expected"),
    ("{", "malformed JSON"),
    ("[]", "JSON document under one"),
    ("{}", "missing field"),
    ('{"version":1}', "missing field"),
    ('{"version":2,"partitions":[]}', "field version: found 2"),
    ('{"version":1,"partitions":[{"topic":"t","partition":0}]}', "field partitions[0]: missing field"),
    ('{"version":1,"partitions":[{"topic":1,"partition":0,"replicas":[1]}]}', "field partitions[0].topic: found 1"),
    ('{"version":1,"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}', "partitions[0].partition"),
    ('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":["1"]}]}', "field partitions[0].replicas[0]"),
    ('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1.5]}]}', "replicas[0]: found 1.5"),
    ('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2147483648]}]}', "found 2147483648"),
    ('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":null}]}', "field partitions[0].replicas"),
    ('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":[1]}]}', "log_dirs[0]: found 1"),
    ('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1],"replicas":[2]}]}', "key 'replicas' twice"),
    ('{"version":1,"partitions":[],"partitions":[]}', "key 'partitions' twice"),
    ('{"version":1,"partitions":[{"topic":"topic","topic":"u","partition":0,"replicas":[1]}]}', "key 'topic' twice"),
    ('Current partition replica assignment\n{"version":1,"partitions":[]}\n', "found the current assignment only"),
]


@pytest.mark.parametrize("content, message", MALFORMED)
def test_malformed_plan_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(SnapshotError) as problem:
        load_plan(path)
    assert message in str(problem.value)


@pytest.mark.parametrize("name", ["topic", "replicas", "log_dirs", "kframe", "version"])
def test_topic_may_have_name_of_field(tmp_path: Path, name: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [1]}]}))
    assert load_plan(path).targets.names == (name,)


def test_document_counts_equal_its_findings() -> None:
    plan = load_plan(CLUSTER / "reassignment.json")
    document = PlanReport.of(
        plan, resolve_plan(plan, read_snapshot(CLUSTER / "broker-4-dead.zookeeper.jsonl.gz"))
    ).document()
    for severity, count in asdict(document.counts).items():
        assert count == sum(row.severity == severity for row in document.findings)
    assert document.plan == PlanRecord("reassignment.json", topics=1, partitions=24, replicas=72)


def test_plan_with_another_number_of_log_directories_is_not_played() -> None:
    texts = Path(__file__).parents[2] / "snapshot" / "texts"
    whatif = WhatIf(read_snapshot(texts / "snapshot.txt"))
    plan = load_plan(texts / "plan-log-dirs-length.json")
    with pytest.raises(InputError, match=r"field log_dirs: found .* partition pay.events-0, expected 3"):
        whatif.reassign(plan)
