"""What each request is answered, as ``spec/wire.md`` part II has it, through a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kframe_kafka_wire.apis.internal import java_hash, partition_of
from kframe_kafka_wire.testing.client import Client
from kframe_kafka_wire.testing.served import FakeRecords, Served, broker

from kframe.testing.clusters import PartitionSpec, healthy

NONE, ZERO = 0, bytes(16)
RECORDS = FakeRecords({"/cluster/id": '{"version":"1","id":"the-cluster"}'})


@pytest.fixture
def world() -> Iterator[Served]:
    topics = {
        "t": [healthy(1, 2), PartitionSpec((2, 3), leader=3, isr=(3, 2))],
        "dead": [PartitionSpec((9, 1), leader=9, isr=(9,))],
    }
    brokers = [broker(1, rack="a"), broker(2, rack="b"), broker(3, "OTHER", rack="a")]
    with Served(topics, brokers, {"broker.rack": "a", "auto.create.topics.enable": "true"}, RECORDS) as world:
        yield world


@pytest.fixture
def client(world: Served) -> Iterator[Client]:
    with world.client() as client:
        yield client


def new_topic(name: str = "n", partitions: int = 1, factor: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **more}


# -- CreateTopics

REPLICAS = [{"partition_index": 0, "broker_ids": [1, 2]}]
#: (topic, code): the first check that fails decides.
CREATIONS = [
    (new_topic(), NONE),
    (new_topic("__cluster_metadata"), 42),
    (new_topic("t"), 36),
    (new_topic(configs=[{"name": "retention.ms", "value": None}]), 40),
    (new_topic(assignments=REPLICAS), 42),
    (new_topic("n", -1, -1, assignments=REPLICAS), NONE),
    (new_topic("n", -1, -1), NONE),
    (new_topic("n", 0), 37),
    (new_topic("n", 2**31 - 1), 37),
    (new_topic("n", 1, 0), 38),
    (new_topic("n", 1, 4), 38),
    (new_topic("n", 1, 32_767), 38),
    (new_topic(""), 17),
    (new_topic("a b"), 17),
    (new_topic("x" * 250), 17),
    (new_topic("n", -1, -1, assignments=[{"partition_index": 1, "broker_ids": [1]}]), 39),
    (new_topic("n", -1, -1, assignments=[{"partition_index": 0, "broker_ids": [1, 1]}]), 39),
    (new_topic(configs=[{"name": "no.such.key", "value": "1"}]), 40),
    (new_topic(configs=[{"name": "retention.ms", "value": "soon"}]), 40),
]


@pytest.mark.parametrize("version", [0, 4, 7])
def test_create_topics(version: int, world: Served) -> None:
    with world.client() as client:
        for topic, code in CREATIONS:
            (told,) = client.ask(19, version, topics=[topic], timeout=0)["topics"]
            # With no time to wait, what was begun is told as not done.
            assert told["error_code"] == (code or 7), topic
            if version >= 1:
                assert told["error_message"], topic
            if not code:
                client.ask(20, 1, topic_names=["n"], timeout=9000)
                break  # the others are checked without being made
        for topic, code in CREATIONS[1:] if version else ():
            (told,) = client.ask(19, version, topics=[topic], timeout=9000, validate_only=True)["topics"]
            assert told["error_code"] == code, topic


def test_a_topic_listed_twice_is_refused_and_the_others_made(client: Client) -> None:
    topics = [new_topic("twice"), new_topic("once", 2, 2), new_topic("twice")]
    told = {one["name"]: one for one in client.ask(19, 7, topics=topics, timeout=9000)["topics"]}
    assert told["twice"]["error_code"] == 42
    assert told["once"]["error_code"] == 0
    assert (told["once"]["num_partitions"], told["once"]["replication_factor"]) == (2, 2)
    assert told["once"]["topic_id"] != ZERO
    seen = client.ask(3, 12, topics=[{"name": None, "topic_id": told["once"]["topic_id"]}])["topics"][0]
    assert seen["name"] == "once"
    assert {leader for one in seen["partitions"] for leader in one["replica_nodes"]} <= {1, 2, 3}


# -- DeleteTopics, CreatePartitions


def test_delete_topics_by_name_and_by_id(client: Client) -> None:
    (seen,) = client.ask(3, 12, topics=[{"name": "t"}])["topics"]
    asked = [
        {"name": "unknown", "topic_id": ZERO},
        {"name": None, "topic_id": b"x" * 16},
        {"name": None, "topic_id": seen["topic_id"]},
    ]
    told = client.ask(20, 6, topics=asked, timeout=9000)["responses"]
    found = {(one["name"], one["topic_id"]): one["error_code"] for one in told}
    assert found == {("unknown", ZERO): 3, (None, b"x" * 16): 100, ("t", seen["topic_id"]): 0}
    assert client.ask(3, 12, topics=[{"name": "t"}], allow_auto_topic_creation=False)["topics"][0]["error_code"] == 3


def test_a_topic_by_name_and_id_at_once_is_refused(client: Client) -> None:
    told = client.ask(20, 6, topics=[{"name": "t", "topic_id": b"x" * 16}, {"name": "dead"}])["responses"]
    assert [one["error_code"] for one in told] == [42, 42]


@pytest.mark.parametrize("version, code", [(0, 42), (2, 42), (3, 73), (6, 73)])
def test_where_topics_cannot_be_deleted(version: int, code: int) -> None:
    fields = {"topics": [{"name": "t"}]} if version == 6 else {"topic_names": ["t"]}
    with (
        Served({"t": [healthy(1)]}, controller_config={"delete.topic.enable": False}) as world,
        world.client() as client,
    ):
        assert client.ask(20, version, **fields)["responses"][0]["error_code"] == code


#: (topic, code)
GROWTHS = [
    ({"name": "t", "count": 3, "assignments": None}, NONE),
    ({"name": "t", "count": 2, "assignments": None}, 37),
    ({"name": "t", "count": 2**31 - 1, "assignments": None}, 37),
    ({"name": "unknown", "count": 3, "assignments": None}, 3),
    ({"name": "t", "count": 3, "assignments": [{"broker_ids": [1, 7]}]}, 39),
    ({"name": "t", "count": 3, "assignments": [{"broker_ids": [1]}]}, 39),
    ({"name": "t", "count": 3, "assignments": [{"broker_ids": [1, 2]}]}, NONE),
    ({"name": "t", "count": 3, "assignments": []}, 39),
]


@pytest.mark.parametrize("version", range(4))
def test_create_partitions(version: int, client: Client) -> None:
    for topic, code in GROWTHS:
        (told,) = client.ask(37, version, topics=[topic], timeout=9000, validate_only=True)["results"]
        assert (told["error_code"], told["error_message"] is None) == (code, code == 0), topic
    (told,) = client.ask(37, version, topics=[GROWTHS[0][0]], timeout=9000)["results"]
    assert told["error_code"] == 0
    assert len(client.ask(3, 12, topics=[{"name": "t"}])["topics"][0]["partitions"]) == 3


# -- reassignments, elections


def test_reassignments_are_begun_listed_and_given_up(client: Client) -> None:
    topics = [
        {"name": "t", "partitions": [
            {"partition_index": 0, "replicas": [3, 2]}, {"partition_index": 1, "replicas": None},
            {"partition_index": 7, "replicas": [1]},
        ]},
        {"name": "dead", "partitions": [{"partition_index": 0, "replicas": [1000]}]},
    ]  # fmt: skip
    told = client.ask(45, 0, topics=topics, timeout=9000)
    codes = {
        (topic["name"], one["partition_index"]): (one["error_code"], bool(one["error_message"]))
        for topic in told["responses"]
        for one in topic["partitions"]
    }
    # A partition that is not there is not moved; we are no broker, and host nothing.
    assert codes == {("t", 0): (0, False), ("t", 1): (85, True), ("t", 7): (3, True), ("dead", 0): (39, True)}
    assert told["error_code"] == 0
    for asked in (None, [{"name": "t", "partition_indexes": [0, 1]}]):
        listed = client.ask(46, 0, topics=asked)["topics"]
        moved = {
            "partition_index": 0, "replicas": [3, 2, 1], "adding_replicas": [3], "removing_replicas": [1],
        }  # fmt: skip
        assert listed == [{"name": "t", "partitions": [moved]}]
    assert client.ask(46, 0, topics=[])["topics"] == []
    client.ask(45, 0, topics=[{"name": "t", "partitions": [{"partition_index": 0, "replicas": None}]}])
    assert client.ask(46, 0, topics=None)["topics"] == []


#: (election type, partitions, code of each)
ELECTIONS = [
    (0, [("t", 1)], [0]),
    (0, [("t", 0)], [84]),
    (0, [("unknown", 0)], [3]),
    (0, [("dead", 0)], [80]),
    (1, [("t", 0)], [84]),
    (1, [("dead", 0)], [0]),
]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("kind, partitions, codes", ELECTIONS)
def test_elect_leaders(
    kind: int, partitions: list[tuple[str, int]], codes: list[int], version: int, client: Client
) -> None:
    if version == 0 and kind == 1:
        kind = 0
        codes = [80 if partitions == [("dead", 0)] else 84]
    listed = [{"topic": topic, "partitions": [number]} for topic, number in partitions]
    told = client.ask(43, version, election_type=kind, topic_partitions=listed, timeout=9000)
    results = [one for topic in told["replica_election_results"] for one in topic["partition_result"]]
    assert [one["error_code"] for one in results] == codes
    assert all(bool(one["error_message"]) == bool(one["error_code"]) for one in results)


def test_of_all_partitions_those_are_answered_that_needed_an_election(client: Client) -> None:
    told = client.ask(43, 2, election_type=0, topic_partitions=None, timeout=9000)
    results = {one["topic"]: [each["partition_id"] for each in one["partition_result"]]
               for one in told["replica_election_results"]}  # fmt: skip
    assert results["t"] == [1]
    assert told["error_code"] == 0


def test_an_election_of_no_known_kind_is_refused(client: Client) -> None:
    told = client.ask(43, 2, election_type=5, topic_partitions=[{"topic": "t", "partitions": [0]}])
    assert told["error_code"] == 42


# -- what brokers ask


@pytest.mark.parametrize("version", range(4))
def test_alter_partition(version: int, client: Client) -> None:
    (seen,) = client.ask(3, 12, topics=[{"name": "t"}])["topics"]
    name = {"topic_id": seen["topic_id"]} if version >= 2 else {"topic_name": "t"}
    members = {"new_isr_with_epochs": [{"broker_id": 1}]} if version == 3 else {"new_isr": [1]}
    right = {"partition_index": 0, "leader_epoch": 0, "partition_epoch": 0, **members}
    stale = {**right, "partition_epoch": -1, "partition_index": 1}
    topics = [{**name, "partitions": [right, stale]}]
    assert client.ask(56, version, broker_id=1, broker_epoch=99, topics=topics)["error_code"] == 77
    answer = client.ask(56, version, broker_id=1, broker_epoch=100, topics=topics)
    assert answer["error_code"] == 0
    first, second = answer["topics"][0]["partitions"]
    assert {key: answer["topics"][0][key] for key in name} == name
    assert (first["error_code"], first["leader_id"], first["isr"], first["partition_epoch"]) == (0, 1, [1], 1)
    assert (second["error_code"], second["isr"], second["leader_id"]) == (95, [], 0)


def test_isr_members_that_were_registered_anew_are_refused(client: Client) -> None:
    (seen,) = client.ask(3, 12, topics=[{"name": "t"}])["topics"]

    def propose(partition_epoch: int, *members: tuple[int, int]) -> int:
        isr = [{"broker_id": broker_id, "broker_epoch": broker_epoch} for broker_id, broker_epoch in members]
        one = {"partition_index": 0, "leader_epoch": 0, "partition_epoch": partition_epoch, "new_isr_with_epochs": isr}
        topics = [{"topic_id": seen["topic_id"], "partitions": [one]}]
        answer = client.ask(56, 3, broker_id=1, broker_epoch=100, topics=topics)
        code: int = answer["topics"][0]["partitions"][0]["error_code"]
        return code

    assert propose(0, (1, -1)) == 0
    assert propose(1, (1, 100), (2, 199)) == 107
    assert propose(1, (1, 100), (2, 200)) == 0


@pytest.mark.parametrize("version", range(4))
def test_controlled_shutdown(version: int, client: Client) -> None:
    answer = client.ask(7, version, broker_id=3, broker_epoch=300)
    assert answer == {"error_code": 0, "remaining_partitions": []}
    (seen,) = client.ask(3, 12, topics=[{"name": "t"}])["topics"]
    assert seen["partitions"][1]["leader_id"] == 2
    # As in Kafka: who shows an epoch is looked up by it first, and is not there.
    assert client.ask(7, version, broker_id=55, broker_epoch=1)["error_code"] == (8 if version < 2 else -1)
    if version >= 2:
        assert client.ask(7, version, broker_id=1, broker_epoch=1)["error_code"] == 77


def test_producer_ids_of_brokers_and_of_producers_are_never_the_same(client: Client) -> None:
    block = client.ask(67, 0, broker_id=1, broker_epoch=100)
    assert (block["error_code"], block["producer_id_len"]) == (0, 1000)
    ours = [client.ask(22, version, transactional_id=None)["producer_id"] for version in range(6)]
    assert ours == list(range(ours[0], ours[0] + 6))
    assert not set(ours) & set(range(block["producer_id_start"], block["producer_id_start"] + 1000))
    assert client.ask(67, 0, broker_id=9, broker_epoch=1)["error_code"] == 102
    assert client.ask(67, 0, broker_id=1, broker_epoch=1)["error_code"] == 77
    assert client.ask(67, 0, broker_id=1000, broker_epoch=-1)["error_code"] == 102
    assert client.ask(22, 5, transactional_id="mine")["error_code"] == 16


@pytest.mark.parametrize("api_key, version", [(4, 7), (4, 2), (5, 4), (6, 8), (6, 0)])
def test_other_controllers_are_not_obeyed(api_key: int, version: int, client: Client) -> None:
    assert client.ask(api_key, version, controller_epoch=99)["error_code"] == 11


def test_no_feature_can_be_finalised(client: Client) -> None:
    answer = client.ask(57, 1, feature_updates=[{"feature": "metadata.version", "max_version_level": 1}])
    assert (answer["error_code"], answer["results"][0]["error_code"]) == (0, 42)
    assert "metadata.version" in answer["results"][0]["error_message"]


# -- Metadata, DescribeCluster, FindCoordinator


def test_metadata_names_ourselves_and_who_listens_here(client: Client) -> None:
    answer = client.ask(3, 12, topics=[{"name": "t"}, {"name": "dead"}])
    assert [(one["node_id"], one["rack"]) for one in answer["brokers"]] == [(1, "a"), (2, "b"), (1000, "a")]
    assert (answer["controller_id"], answer["cluster_id"]) == (1000, "the-cluster")
    t, dead = answer["topics"]
    assert [(one["error_code"], one["leader_id"]) for one in t["partitions"]] == [(0, 1), (72, -1)]
    assert [(one["error_code"], one["leader_id"], one["offline_replicas"]) for one in dead["partitions"]] == [
        (5, -1, [9])
    ]


#: (version, topics asked for, how many topics are told)
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


def test_before_version_6_no_listener_is_told_as_no_leader(client: Client) -> None:
    (t,) = client.ask(3, 5, topics=[{"name": "t"}])["topics"]
    assert [one["error_code"] for one in t["partitions"]] == [0, 5]


def test_version_0_shows_only_what_is_alive_here(client: Client) -> None:
    (t,) = client.ask(3, 0, topics=[{"name": "t"}])["topics"]
    assert [one["replica_nodes"] for one in t["partitions"]] == [[1, 2], [2]]


#: (version, topic, code)
UNKNOWN = [
    (12, {"name": None, "topic_id": b"x" * 16}, 100),
    (12, {"name": "a b"}, 17),
    (10, {"name": "t", "topic_id": b"x" * 16}, 42),
    (11, {"name": None}, 42),
]


@pytest.mark.parametrize("version, topic, code", UNKNOWN)
def test_topics_that_are_not_there(version: int, topic: dict[str, Any], code: int, client: Client) -> None:
    assert client.ask(3, version, topics=[topic])["topics"][0]["error_code"] == code


def test_topics_are_created_for_who_asks_for_them(client: Client) -> None:
    assert (
        client.ask(3, 12, topics=[{"name": "fresh"}], allow_auto_topic_creation=False)["topics"][0]["error_code"] == 3
    )
    assert client.ask(3, 12, topics=[{"name": "fresh"}])["topics"][0]["error_code"] == 5
    assert client.ask(3, 12, topics=[{"name": "fresh"}])["topics"][0]["partitions"][0]["replica_nodes"][0] in (1, 2, 3)


def test_what_may_be_done_is_told_to_who_asks(client: Client) -> None:
    answer = client.ask(3, 9, topics=[{"name": "t"}], include_cluster_authorized_operations=True,
                        include_topic_authorized_operations=True)  # fmt: skip
    assert answer["cluster_authorized_operations"] == 0b1111110100000
    assert answer["topics"][0]["topic_authorized_operations"] == 0b110111111000
    assert client.ask(3, 9, topics=[])["cluster_authorized_operations"] == -(2**31)


def test_topics_that_no_broker_has_heard_of_are_not_told() -> None:
    with Served({"unborn": [PartitionSpec((9,))]}) as world, world.client() as client:
        assert client.ask(3, 12, topics=None)["topics"] == []
        (told,) = client.ask(3, 12, topics=[{"name": "unborn"}], allow_auto_topic_creation=False)["topics"]
        assert told["error_code"] == 3


@pytest.mark.parametrize("kind, code", [(1, 0), (2, 114), (3, 115)])
def test_describe_cluster(kind: int, code: int, client: Client) -> None:
    answer = client.ask(60, 1, endpoint_type=kind)
    assert answer["error_code"] == code
    if not code:
        assert [one["broker_id"] for one in answer["brokers"]] == [1, 2, 1000]
        assert (answer["controller_id"], answer["cluster_id"]) == (1000, "the-cluster")


def test_coordinators_are_found_where_brokers_would_find_them() -> None:
    topics = {"__consumer_offsets": [healthy(1), healthy(2), PartitionSpec((3,), leader=None, isr=(3,))]}
    with Served(topics, (1, 2)) as world, world.client() as client:
        for key in ("a", "b", "c", "group", "Gruppe-ü"):
            expected = {0: 1, 1: 2, 2: -1}[partition_of(key, 3)]
            for version in range(7):
                fields = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
                told = client.ask(10, version, **fields)
                told = told["coordinators"][0] if version >= 4 else told
                assert (told["node_id"], told["error_code"]) == (expected, 0 if expected > 0 else 15)
        assert client.ask(10, 6, key_type=2, coordinator_keys=["g:t:0"])["coordinators"][0]["error_code"] == 42


def test_internal_topics_are_left_to_brokers_where_we_do_not_know_their_size() -> None:
    with Served({}, (1, 2, 3)) as world, world.client() as client:
        for kind in (0, 1):
            (told,) = client.ask(10, 6, key_type=kind, coordinator_keys=["g"])["coordinators"]
            assert (told["error_code"], "a broker will create it" in told["error_message"]) == (15, True)
        assert client.ask(3, 12, topics=[{"name": "__consumer_offsets"}])["topics"][0]["error_code"] == 3
        assert client.ask(3, 12, topics=None)["topics"] == []


def test_a_missing_internal_topic_is_created_on_brokers() -> None:
    config = {"offsets.topic.num.partitions": "5", "offsets.topic.replication.factor": "2"}
    with Served({}, (1, 2, 3), config) as world, world.client() as client:
        assert client.ask(10, 0, key="g")["error_code"] == 15
        (seen,) = client.ask(3, 12, topics=[{"name": "__consumer_offsets"}])["topics"]
        assert (seen["is_internal"], len(seen["partitions"])) == (True, 5)
        assert all(set(one["replica_nodes"]) <= {1, 2, 3} for one in seen["partitions"])
        assert client.ask(10, 0, key="g")["node_id"] in (1, 2, 3)
        resource = {"resource_type": 2, "resource_name": "__consumer_offsets", "configuration_keys": ["cleanup.policy"]}
        (told,) = client.ask(32, 4, resources=[resource])["results"]
        assert told["configs"][0]["value"] == "compact"


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
def test_hashes_are_javas(text: str, value: int) -> None:
    assert java_hash(text) == value
    assert 0 <= partition_of(text, 50) < 50


# -- settings


def alter(client: Client, kind: int, name: str, *configs: tuple[str, int, str | None], version: int = 1) -> int:
    told = client.ask(44, version, resources=[
        {"resource_type": kind, "resource_name": name, "configs": [
            {"name": key, "config_operation": operation, "value": value} for key, operation, value in configs
        ]},
    ])  # fmt: skip
    code: int = told["responses"][0]["error_code"]
    assert bool(code) == bool(told["responses"][0]["error_message"])
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
    (4, "", [("unclean.leader.election.enable", 0, "perhaps")], 40),
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


def test_what_is_appended_comes_behind_the_default(client: Client) -> None:
    alter(client, 2, "t", ("cleanup.policy", 2, "compact"))
    assert described(client, "t")["cleanup.policy"]["value"] == "delete,compact"
    alter(client, 2, "t", ("cleanup.policy", 3, "delete"))
    assert described(client, "t")["cleanup.policy"]["value"] == "compact"


def test_settings_named_twice_are_refused(client: Client) -> None:
    resource = {"resource_type": 2, "resource_name": "t", "configs": []}
    told = client.ask(44, 0, resources=[resource, resource])["responses"]
    assert [one["error_code"] for one in told] == [42]


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_replaces_all(version: int, client: Client) -> None:
    alter(client, 2, "t", ("retention.ms", 0, "1"), ("flush.ms", 0, "2"))
    resource = {"resource_type": 2, "resource_name": "t", "configs": [{"name": "flush.ms", "value": "3"}]}
    for validate_only in (True, False):
        told = client.ask(33, version, resources=[resource], validate_only=validate_only)
        assert told["responses"][0]["error_code"] == 0
        found = described(client, "t")
        assert (found["flush.ms"]["value"], found["retention.ms"]["value"]) == (
            ("2", "1") if validate_only else ("3", "604800000")
        )


def described(client: Client, topic: str, version: int = 4) -> dict[str, Any]:
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": None}
    (told,) = client.ask(32, version, resources=[resource], include_synonyms=True)["results"]
    return {one["name"]: one for one in told["configs"]}


def test_describe_configs_tells_where_a_value_comes_from(world: Served) -> None:
    with world.client() as client:
        alter(client, 4, "", ("log.retention.ms", 0, "5"))
        alter(client, 2, "t", ("retention.ms", 0, "7"))
        found = described(client, "t")
        assert (found["retention.ms"]["value"], found["retention.ms"]["config_source"]) == ("7", 1)
        assert [(one["name"], one["value"], one["source"]) for one in found["retention.ms"]["synonyms"]] == [
            ("retention.ms", "7", 1), ("log.retention.ms", "5", 3), ("log.retention.ms", "604800000", 5),
        ]  # fmt: skip
        assert (found["segment.bytes"]["config_type"], found["segment.bytes"]["config_source"]) == (3, 5)
        old = described(client, "t", version=0)
        assert (old["retention.ms"]["is_default"], old["segment.bytes"]["is_default"]) == (False, True)
        resources = [
            {"resource_type": 4, "resource_name": name, "configuration_keys": None} for name in ("", "1000", "1")
        ]
        everyone, ours, other = client.ask(32, 4, resources=resources)["results"]
        assert [(one["name"], one["value"]) for one in everyone["configs"]] == [("log.retention.ms", "5")]
        assert "broker.id" in [one["name"] for one in ours["configs"]]
        assert other["error_code"] == 42
