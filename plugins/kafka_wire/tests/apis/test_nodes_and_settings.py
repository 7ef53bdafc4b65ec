"""Metadata and settings by ``wire.md`` sections 14 and 15, through a real socket."""

from __future__ import annotations

from typing import Any

import pytest
from kframe_kafka_wire.apis.internal import java_hash, partition_of

from kframe.testing.clusters import PartitionSpec, healthy
from verification.kafka_wire.client import Client
from verification.kafka_wire.served import Served

# -- Metadata, DescribeCluster, FindCoordinator


def test_metadata_names_the_controller_and_brokers_on_the_listener(client: Client) -> None:
    response = client.ask(3, 12, topics=[{"name": "t"}, {"name": "dead"}])
    assert [(broker["node_id"], broker["rack"]) for broker in response["brokers"]] == [(1, "a"), (2, "b"), (1000, "a")]
    assert (response["controller_id"], response["cluster_id"]) == (1000, "the-cluster")
    t, dead = response["topics"]
    assert [(partition["error_code"], partition["leader_id"]) for partition in t["partitions"]] == [(0, 1), (72, -1)]
    assert [
        (partition["error_code"], partition["leader_id"], partition["offline_replicas"])
        for partition in dead["partitions"]
    ] == [(5, -1, [9])]


#: (version, requested topics, number of topics returned)
AMOUNTS: list[tuple[int, list[dict[str, str]] | None, int]] = [
    (0, [], 2),
    (1, None, 2),
    (1, [], 0),
    (12, None, 2),
    (12, [], 0),
]


@pytest.mark.parametrize("version, topics, count", AMOUNTS)
def test_all_topics_or_none(version: int, topics: list[dict[str, str]] | None, count: int, client: Client) -> None:
    assert len(client.ask(3, version, topics=topics)["topics"]) == count


def test_metadata_before_version_6_reports_a_missing_listener_as_no_leader(client: Client) -> None:
    (t,) = client.ask(3, 5, topics=[{"name": "t"}])["topics"]
    assert [partition["error_code"] for partition in t["partitions"]] == [0, 5]


def test_metadata_version_0_lists_only_live_replicas(client: Client) -> None:
    (t,) = client.ask(3, 0, topics=[{"name": "t"}])["topics"]
    assert [partition["replica_nodes"] for partition in t["partitions"]] == [[1, 2], [2]]


#: (version, topic, code)
UNKNOWN = [
    (12, {"name": None, "topic_id": b"x" * 16}, 100),
    (12, {"name": "a b"}, 17),
    (10, {"name": "t", "topic_id": b"x" * 16}, 42),
    (11, {"name": None}, 42),
]


@pytest.mark.parametrize("version, topic, code", UNKNOWN)
def test_unknown_topics(version: int, topic: dict[str, Any], code: int, client: Client) -> None:
    assert client.ask(3, version, topics=[topic])["topics"][0]["error_code"] == code


def test_auto_topic_creation_needs_create_permission(client: Client) -> None:
    assert (
        client.ask(3, 12, topics=[{"name": "fresh"}], allow_auto_topic_creation=False)["topics"][0]["error_code"] == 3
    )
    assert client.ask(3, 12, topics=[{"name": "fresh"}])["topics"][0]["error_code"] == 5
    assert client.ask(3, 12, topics=[{"name": "fresh"}])["topics"][0]["partitions"][0]["replica_nodes"][0] in (1, 2, 3)


def test_authorized_operations_are_returned_on_request(client: Client) -> None:
    response = client.ask(
        3,
        9,
        topics=[{"name": "t"}],
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    assert response["cluster_authorized_operations"] == 0b1111110100000
    assert response["topics"][0]["topic_authorized_operations"] == 0b110111111000
    assert client.ask(3, 9, topics=[])["cluster_authorized_operations"] == -(2**31)


@pytest.mark.parametrize("protocol, has_topic_id", [("2.4", False), ("2.8", True), ("", True)])
def test_topics_have_ids_if_brokers_support_them(protocol: str, has_topic_id: bool) -> None:
    """A client fetches by the topic id that it received. A broker without that id serves nothing."""
    config = {"inter.broker.protocol.version": protocol} if protocol else {}
    with Served({}, (1,), config, controller_config=config) as served, served.client() as client:
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
        (created,) = client.ask(19, 7, topics=[topic], timeout=9000, validate_only=False)["topics"]
        (result,) = client.ask(3, 12, topics=[{"name": "t"}])["topics"]
        assert (result["error_code"], result["topic_id"] != bytes(16)) == (0, has_topic_id)
        assert (created["error_code"], created["topic_id"]) == (0, result["topic_id"])
        known = served.controller.inspect(lambda cluster: cluster is not None and bool(cluster.topics.ids.any()))
        assert known.result(30) is has_topic_id


def test_metadata_omits_topics_unknown_to_brokers() -> None:
    with Served({"leaderless": [PartitionSpec((9,))]}) as served, served.client() as client:
        assert client.ask(3, 12, topics=None)["topics"] == []
        (result,) = client.ask(3, 12, topics=[{"name": "leaderless"}], allow_auto_topic_creation=False)["topics"]
        assert result["error_code"] == 3


@pytest.mark.parametrize("kind, code", [(1, 0), (2, 114), (3, 115)])
def test_describe_cluster(kind: int, code: int, client: Client) -> None:
    response = client.ask(60, 1, endpoint_type=kind)
    assert response["error_code"] == code
    if not code:
        assert [broker["broker_id"] for broker in response["brokers"]] == [1, 2, 1000]
        assert (response["controller_id"], response["cluster_id"]) == (1000, "the-cluster")


def test_coordinators_are_leaders_of_internal_topic_partitions() -> None:
    topics = {"__consumer_offsets": [healthy(1), healthy(2), PartitionSpec((3,), leader=None, isr=(3,))]}
    with Served(topics, (1, 2)) as served, served.client() as client:
        for key in ("a", "b", "c", "group", "Gruppe-ü"):
            expected = {0: 1, 1: 2, 2: -1}[partition_of(key, 3)]
            for version in range(7):
                fields = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
                result = client.ask(10, version, **fields)
                result = result["coordinators"][0] if version >= 4 else result
                assert (result["node_id"], result["error_code"]) == (expected, 0 if expected > 0 else 15)
        assert client.ask(10, 6, key_type=2, coordinator_keys=["g:t:0"])["coordinators"][0]["error_code"] == 42


#: Texts and their ``String.hashCode`` in Java.
HASHES = [
    ("", 0),
    ("a", 97),
    ("hello", 99162322),
    ("polygenelubricants", -(2**31)),
    ("ü", 252),
    ("\U0001f600", 1772899),
]


@pytest.mark.parametrize("text, value", HASHES)
def test_java_hash_equals_java(text: str, value: int) -> None:
    assert java_hash(text) == value
    assert 0 <= partition_of(text, 50) < 50


# -- settings


def alter(client: Client, kind: int, name: str, *configs: tuple[str, int, str | None], version: int = 1) -> int:
    result = client.ask(
        44,
        version,
        resources=[
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [
                    {"name": key, "config_operation": operation, "value": value} for key, operation, value in configs
                ],
            },
        ],
    )
    code: int = result["responses"][0]["error_code"]
    assert bool(code) == bool(result["responses"][0]["error_message"])
    return code


#: (type, resource, changes, code)
ALTERATIONS: list[tuple[int, str, list[tuple[str, int, str | None]], int]] = [
    (2, "t", [("retention.ms", 0, "1000")], 0),
    (2, "t", [("retention.ms", 1, None)], 0),
    (2, "t", [("retention.ms", 0, "soon")], 40),
    (2, "t", [("no.such.key", 0, "1")], 40),
    (2, "t", [("retention.ms", 2, "1")], 40),
    (2, "t", [("cleanup.policy", 2, "compact")], 0),
    (2, "t", [("retention.ms", 0, "1"), ("retention.ms", 1, None)], 42),
    (2, "t", [("retention.ms", 9, "1")], 42),
    (2, "", [], 42),
    (2, "unknown", [("retention.ms", 0, "1")], 3),
    (4, "", [("log.retention.ms", 0, "1")], 0),
    (4, "", [("unclean.leader.election.enable", 0, "perhaps")], 42),
    (4, "", [("log.retention.ms", 0, "soon")], 42),
    (4, "", [("num.io.threads", 0, "0")], 42),
    (4, "", [("auto.create.topics.enable", 0, "false")], 42),  # Brokers read it only when they start.
    (4, "", [("ssl.keystore.location", 0, "/k")], 42),  # Each broker has its own value.
    (4, "", [("listener.name.secure.ssl.keystore.location", 0, "/k")], 42),
    (4, "", [("listener.name.secure.max.connections", 0, "7")], 0),
    (4, "", [("com.example.plugin.key", 0, "anything")], 0),  # Not a key of Kafka, so it may belong to a plugin.
    (4, "", [("log.cleanup.policy", 2, "compact")], 0),
    (4, "", [("log.retention.ms", 2, "1")], 40),
    (4, "1000", [("leader.replication.throttled.rate", 0, "1")], 0),
    (4, "1", [("leader.replication.throttled.rate", 0, "1")], 42),
    (8, "1000", [("root", 0, "DEBUG")], 42),
    (16, "", [], 42),
]


@pytest.mark.parametrize("kind, name, changes, code", ALTERATIONS)
def test_incremental_alter_configs(
    kind: int, name: str, changes: list[tuple[str, int, str | None]], code: int, client: Client
) -> None:
    assert alter(client, kind, name, *changes) == code


def test_append_extends_the_default(client: Client) -> None:
    alter(client, 2, "t", ("cleanup.policy", 2, "compact"))
    assert client.describe_topic("t")["cleanup.policy"]["value"] == "delete,compact"
    alter(client, 2, "t", ("cleanup.policy", 3, "delete"))
    assert client.describe_topic("t")["cleanup.policy"]["value"] == "compact"


def test_duplicate_settings_are_refused(client: Client) -> None:
    resource = {"resource_type": 2, "resource_name": "t", "configs": []}
    result = client.ask(44, 0, resources=[resource, resource])["responses"]
    assert [entry["error_code"] for entry in result] == [42]


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_replaces_all(version: int, client: Client) -> None:
    alter(client, 2, "t", ("retention.ms", 0, "1"), ("flush.ms", 0, "2"))
    resource = {"resource_type": 2, "resource_name": "t", "configs": [{"name": "flush.ms", "value": "3"}]}
    for validate_only in (True, False):
        result = client.ask(33, version, resources=[resource], validate_only=validate_only)
        assert result["responses"][0]["error_code"] == 0
        entries = client.describe_topic("t")
        assert (entries["flush.ms"]["value"], entries["retention.ms"]["value"]) == (
            ("2", "1") if validate_only else ("3", "604800000")
        )


def test_describe_configs_names_config_sources(client: Client) -> None:
    alter(client, 4, "", ("log.retention.ms", 0, "5"))
    alter(client, 2, "t", ("retention.ms", 0, "7"))
    entries = client.describe_topic("t")
    assert (entries["retention.ms"]["value"], entries["retention.ms"]["config_source"]) == ("7", 1)
    synonyms = entries["retention.ms"]["synonyms"]
    assert [(synonym["name"], synonym["value"], synonym["source"]) for synonym in synonyms] == [
        ("retention.ms", "7", 1),
        ("log.retention.ms", "5", 3),
        ("log.retention.hours", "168", 5),
    ]
    assert (entries["segment.bytes"]["config_type"], entries["segment.bytes"]["config_source"]) == (3, 5)
    old = client.describe_topic("t", version=0)
    assert (old["retention.ms"]["is_default"], old["segment.bytes"]["is_default"]) == (False, True)
    resources = [{"resource_type": 4, "resource_name": name, "configuration_keys": None} for name in ("", "1000", "1")]
    everyone, ours, other = client.ask(32, 4, resources=resources)["results"]
    assert [(config["name"], config["value"]) for config in everyone["configs"]] == [("log.retention.ms", "5")]
    assert "broker.id" in [config["name"] for config in ours["configs"]]
    assert other["error_code"] == 42
