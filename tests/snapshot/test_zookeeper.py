"""ZooKeeper dumps beyond the bundled example."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kframe.model.brokers import Endpoint
from kframe.model.ids import NO_LEADER, NO_STATE
from kframe.snapshot import BrokerFacts, Snapshot, read_snapshot
from tests.snapshot.samples import assignment, dump, dump_text, facts, registration, state, znode


def read(tmp_path: Path, *changed: dict[str, Any], without: tuple[str, ...] = ()) -> Snapshot:
    path = tmp_path / "c.zookeeper.jsonl"
    path.write_text(dump_text(dump(*changed, without=without)))
    return read_snapshot(path)


def broker(snapshot: Snapshot, broker_id: int) -> BrokerFacts:
    return next(facts for facts in snapshot.brokers if facts.broker_id == broker_id)


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({}, [Endpoint("PLAINTEXT", "host-1", 9092)]),
        ({"version": 1, "endpoints": ["IGNORED://x:1"], "host": "old", "port": 7}, [Endpoint("PLAINTEXT", "old", 7)]),
        ({"endpoints": ["SSL://[::1]:9093"]}, [Endpoint("SSL", "::1", 9093, "SSL")]),
        ({"endpoints": ["SASL_SSL://:9094"]}, [Endpoint("SASL_SSL", "", 9094, "SASL_SSL")]),
        (
            {
                "endpoints": ["in://a:1", "OUT://b:2"],
                "listener_security_protocol_map": {"IN": "PLAINTEXT", "OUT": "SSL"},
            },
            [Endpoint("IN", "a", 1), Endpoint("OUT", "b", 2, "SSL")],
        ),
    ],
    ids=["one", "version 1", "IPv6", "no host", "named listeners"],
)
def test_endpoints(fields: dict[str, Any], expected: list[Endpoint], tmp_path: Path) -> None:
    assert broker(read(tmp_path, registration(1, **fields)), 1).endpoints == tuple(expected)


def test_rack_and_epoch(tmp_path: Path) -> None:
    snapshot = read(tmp_path, registration(1, rack=None))
    assert [(facts.rack, facts.broker_epoch) for facts in snapshot.brokers] == [(None, 101), ("r0", 102), ("r1", 103)]


@pytest.mark.parametrize("broker_id", [0, 2**31 - 1])
def test_broker_ids_of_any_size(broker_id: int, tmp_path: Path) -> None:
    replicas = assignment("t", {0: [broker_id]})
    unused = "/brokers/topics/t/partitions/1/state"
    snapshot = read(
        tmp_path, registration(broker_id), replicas, state("t", 0, broker_id, [broker_id]), without=(unused,)
    )
    view = snapshot.to_cluster()["t", 0]
    assert (view.replicas, view.leader, view.isr) == ((broker_id,), broker_id, (broker_id,))


def test_broker_named_only_by_partitions_is_unregistered(tmp_path: Path) -> None:
    snapshot = read(tmp_path, without=("/brokers/ids/3",))
    assert broker(snapshot, 3) == BrokerFacts(3, registered=False)
    assert 3 in snapshot.to_cluster().brokers
    assert snapshot.to_cluster().brokers.registered_ids() == [1, 2]


def test_assigned_partition_without_state_is_new(tmp_path: Path) -> None:
    snapshot = read(tmp_path, without=("/brokers/topics/t/partitions/1/state",))
    row = facts(snapshot)["t-1"]
    assert (row["partition_epoch"], row["leader"], row["leader_epoch"], row["isr"]) == (NO_STATE, NO_LEADER, -1, [])
    assert snapshot.to_cluster()["t", 1].leader is None
    assert facts(snapshot)["t-0"]["leader"] == 1


@pytest.mark.parametrize("order", range(5))
def test_line_order_does_not_change_snapshot(order: int, tmp_path: Path) -> None:
    topics = [assignment("b", {0: [1], 1: [2]}), state("b", 1, 2, [2]), assignment("a", {0: [3]})]
    sorted_digest = read(tmp_path, *topics).digest()
    lines = dump(*topics)
    random.Random(order).shuffle(lines)
    path = tmp_path / "shuffled.zookeeper.jsonl"
    path.write_text(dump_text(lines))
    assert read_snapshot(path).digest() == sorted_digest


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({"adding_replicas": {"0": [3]}, "removing_replicas": {"0": [1]}}, ([3], [1])),
        ({"adding_replicas": {}}, ([], [])),
    ],
)
def test_reassignment_under_way(fields: dict[str, Any], expected: tuple[list[int], list[int]], tmp_path: Path) -> None:
    snapshot = read(tmp_path, assignment("t", {0: [1, 2, 3], 1: [2, 3, 1]}, **fields))
    row = facts(snapshot)["t-0"]
    assert (row["adding_replicas"], row["removing_replicas"]) == expected
    view = snapshot.to_cluster()["t", 0]
    assert (list(view.adding_replicas), list(view.removing_replicas)) == expected


def test_recovery_state(tmp_path: Path) -> None:
    snapshot = read(tmp_path, state("t", 0, 1, [1], leader_recovery_state=1))
    assert [row["leader_recovery_state"] for row in facts(snapshot).values()] == [1, 0]


def test_topics_that_are_being_deleted(tmp_path: Path) -> None:
    marks = [znode("/admin/delete_topics/t"), znode("/admin/delete_topics/long-gone")]
    snapshot = read(tmp_path, *marks, assignment("u", {0: [1]}))
    assert snapshot.topics.deleting is not None
    assert dict(zip(snapshot.topics.names, snapshot.topics.deleting.tolist(), strict=True)) == {"t": 1, "u": 0}


def test_configs(tmp_path: Path) -> None:
    nodes = [
        znode("/config/topics/t", {"version": 1, "config": {"unclean.leader.election.enable": " TRUE ", "a": "b"}}),
        znode("/config/topics/gone", {"version": 1, "config": {"a": "b"}}),
        znode("/config/topics/u", None),
        znode("/config/brokers/<default>", {"version": 1, "config": {"min.insync.replicas": "3"}}),
        assignment("u", {0: [1]}),
    ]
    snapshot = read(tmp_path, *nodes)
    assert snapshot.topics.configs == {0: {"unclean.leader.election.enable": " TRUE ", "a": "b"}}
    assert (snapshot.topics.unclean(0), snapshot.topics.unclean(1), snapshot.topics.min_insync(0)) == (True, None, None)
    assert snapshot.broker_default_configs == {"min.insync.replicas": "3"}


def test_topics_of_old_releases(tmp_path: Path) -> None:
    old = znode("/brokers/topics/t", '{"version":1,"partitions":{"1":[2,3,1],"0":[1,2,3]}}')
    bare = znode("/brokers/topics/none")
    snapshot = read(tmp_path, old, bare)
    assert snapshot.topics.names == ("none", "t")
    assert snapshot.topics.partition_counts.tolist() == [0, 2]
    assert snapshot.topics.topic_ids is not None
    assert not snapshot.topics.topic_ids.any()


def test_progress_counts_bytes_of_file(tmp_path: Path) -> None:
    path = tmp_path / "c.zookeeper.jsonl"
    path.write_text(dump_text([*dump(), *(znode(f"/other/{number}") for number in range(40_000))]))
    calls: list[tuple[int, int]] = []
    read_snapshot(path, progress=lambda done, total: calls.append((done, total)))
    size = path.stat().st_size
    assert {total for _, total in calls} == {size}
    assert len(calls) > 2
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})
    assert calls[-1][0] == size


@pytest.mark.parametrize(
    "path, column",
    [
        ("/cluster/id", "cluster.cluster_id"),
        ("/controller", "cluster.controller_id"),
        ("/controller_epoch", "cluster.controller_epoch"),
    ],
)
def test_missing_znode_makes_column_unknown(path: str, column: str, tmp_path: Path) -> None:
    snapshot = read(tmp_path, without=(path,))
    assert getattr(snapshot, column.split(".")[1]) is None
    assert snapshot.provenance == {column: f"no {path} in the dump"}
    assert snapshot.assumptions == ()
