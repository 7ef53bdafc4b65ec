"""Output of kafka-topics, kcat and kafka-reassign-partitions in different releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kframe.snapshot import Snapshot, read_reassignment, read_snapshot
from kframe.snapshot.listing import partition_rows
from tests.snapshot.samples import DESCRIBE, facts, kcat, reassignment

OLD = "Topic:t\tPartitionCount:1\tReplicationFactor:2\tConfigs:{configs}{mark}\n\tTopic: t\tPartition: 0\t{rest}\n"


def described(tmp_path: Path, text: str) -> Snapshot:
    path = tmp_path / "c.txt"
    path.write_text(text)
    return read_snapshot(path)


def listed(tmp_path: Path, document: dict[str, Any]) -> Snapshot:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(document))
    return read_snapshot(path)


@pytest.mark.parametrize(
    "rest, leader, replicas, isr",
    [
        ("Leader: 2\tReplicas: 2,1\tIsr: 2,1", 2, [2, 1], [2, 1]),
        ("Leader: none\tReplicas: 2,1\tIsr: ", -1, [2, 1], []),
        ("Leader: -1\tReplicas: 2,1\tIsr: 1", -1, [2, 1], [1]),
        ("Leader:2  Replicas:2, 1   Isr:2", 2, [2, 1], [2]),
        ("Isr: 1\tReplicas: 2,1\tLeader: 1\tMarkedForDeletion: true", 1, [2, 1], [1]),
        ("Leader: 0\tReplicas: 0,2147483647\tIsr: 0\n", 0, [0, 2147483647], [0]),
    ],
    ids=["0.8", "none", "-1", "spaces", "order", "ids and a blank line"],
)
def test_spacing_and_order_of_labels(
    rest: str, leader: int, replicas: list[int], isr: list[int], tmp_path: Path
) -> None:
    row = facts(described(tmp_path, OLD.format(configs="", mark="", rest=rest)))["t-0"]
    assert (row["leader"], row["replicas"], row["isr"], row["adding_replicas"]) == (leader, replicas, isr, [])


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", {}),
        ("a=b", {0: {"a": "b"}}),
        (
            "cleanup.policy=compact,delete,retention.ms=-1",
            {0: {"cleanup.policy": "compact,delete", "retention.ms": "-1"}},
        ),
        (
            "follower.replication.throttled.replicas=0:1,0:2",
            {0: {"follower.replication.throttled.replicas": "0:1,0:2"}},
        ),
        ("a=,b=x=y", {0: {"a": "", "b": "x=y"}}),
    ],
)
def test_configs(text: str, expected: dict[int, dict[str, str]], tmp_path: Path) -> None:
    rest = "Leader: 2\tReplicas: 2,1\tIsr: 2,1"
    assert described(tmp_path, OLD.format(configs=text, mark="", rest=rest)).topics.configs == expected


def test_marked_for_deletion(tmp_path: Path) -> None:
    text = OLD.format(configs="", mark="\tMarkedForDeletion:true", rest="Leader: 2\tReplicas: 2,1\tIsr: 2,1")
    snapshot = described(tmp_path, text)
    assert snapshot.topics.deleting is not None
    assert snapshot.topics.deleting.tolist() == [1]
    assert "topics.deleting" not in snapshot.provenance


def test_what_kafka_topics_lacks(tmp_path: Path) -> None:
    snapshot = described(tmp_path, DESCRIBE)
    assert snapshot.unknown == (
        "topics.deleting",
        "partitions.leader_epoch",
        "partitions.controller_epoch",
        "partitions.zk_version",
        "partitions.leader_recovery_state",
    )
    assert set(snapshot.unknown) <= set(snapshot.provenance)
    assert [broker.registered for broker in snapshot.brokers] == [True, True, True]


def test_only_the_isr_of_a_led_partition_shows_live_brokers(tmp_path: Path) -> None:
    text = DESCRIBE.replace("Leader: 2\tReplicas: 2,3,1\tIsr: 2,3", "Leader: none\tReplicas: 7,8,9\tIsr: 7")
    snapshot = described(tmp_path, text)
    assert {broker.broker_id: broker.registered for broker in snapshot.brokers} == {
        1: True,
        2: True,
        3: True,
        7: None,
        8: None,
        9: None,
    }
    assert any("brokers 7, 8, 9" in assumption and "taken as gone" in assumption for assumption in snapshot.assumptions)
    assert snapshot.to_cluster().brokers.registered_ids() == [1, 2, 3]


def test_kcat_lists_live_brokers(tmp_path: Path) -> None:
    document = kcat()
    del document["brokers"][0]
    snapshot = listed(tmp_path, document)
    assert {broker.broker_id: broker.registered for broker in snapshot.brokers} == {1: True, 2: True, 3: False}
    assert snapshot.controller_id == 3


def test_what_kcat_lacks(tmp_path: Path) -> None:
    snapshot = listed(tmp_path, kcat())
    assert set(snapshot.unknown) == {
        "topics.topic_id", "topics.deleting", "topics.configs", "partitions.leader_epoch",
        "partitions.controller_epoch", "partitions.zk_version", "partitions.leader_recovery_state",
        "partitions.adding_replicas", "partitions.removing_replicas",
    }  # fmt: skip
    assert {snapshot.provenance[column] for column in snapshot.unknown} == {"not in kcat -L -J"}
    view = snapshot.to_cluster()["t", 1]
    assert (view.leader_epoch, view.controller_epoch, view.partition_epoch) == (0, 0, 0)


@pytest.mark.parametrize("controller", [-1, None])
def test_kcat_without_a_controller(controller: int | None, tmp_path: Path) -> None:
    document = kcat(controllerid=controller)
    if controller is None:
        del document["controllerid"]
    snapshot = listed(tmp_path, document)
    assert snapshot.controller_id is None
    assert "cluster.controller_id" in snapshot.provenance


def test_a_topic_that_kcat_got_an_error_for_is_left_out(tmp_path: Path) -> None:
    document = kcat()
    document["topics"].insert(0, {"topic": "secret", "error": "Broker: Topic authorization failed", "partitions": []})
    snapshot = listed(tmp_path, document)
    assert snapshot.topics.names == ("t",)
    assert "secret" in snapshot.provenance["topics.topic"]
    assert any("secret" in assumption for assumption in snapshot.assumptions)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_reassignment_is_assignments_only(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "reassignment.json"
    path.write_text(json.dumps(reassignment(), indent=indent))
    snapshot = read_snapshot(path)
    assert [row["replicas"] for row in partition_rows(snapshot)] == [[1, 2, 3], [2, 3, 1]]
    assert snapshot.partitions.leader is None
    assert snapshot.partitions.isr is None
    assert {broker.registered for broker in snapshot.brokers} == {None}
    cluster = snapshot.to_cluster()
    assert cluster["t", 0].leader is None
    assert cluster.brokers.registered_ids() == []


def test_generate_prints_two_assignments(tmp_path: Path) -> None:
    proposed = reassignment(partitions=[{"topic": "t", "partition": 0, "replicas": [9], "log_dirs": ["any"]}])
    path = tmp_path / "printed.txt"
    path.write_text(
        f"Current partition replica assignment\n{json.dumps(reassignment())}\n\n"
        f"Proposed partition reassignment configuration\n{json.dumps(proposed)}\n"
    )
    reassignment_ = read_reassignment(path)
    assert reassignment_.current is not None
    assert reassignment_.proposed is not None
    assert [entry.replicas for entry in reassignment_.current] == [[1, 2, 3], [2, 3, 1]]
    assert [entry.replicas for entry in reassignment_.proposed] == [[9]]
    assert len(read_snapshot(path)) == 2


def test_a_reassignment_may_cover_part_of_a_topic(tmp_path: Path) -> None:
    path = tmp_path / "reassignment.json"
    path.write_text(json.dumps(reassignment(partitions=[{"topic": "t", "partition": 5, "replicas": [1]}])))
    reassignment_ = read_reassignment(path)
    assert reassignment_.proposed is not None
    assert (reassignment_.proposed[0].topic, reassignment_.proposed[0].partition) == ("t", 5)
