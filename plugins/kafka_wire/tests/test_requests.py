"""What each request is answered, as ``wire.md`` sections 6 to 15 has it, through a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kframe_kafka_wire.testing.client import Client
from kframe_kafka_wire.testing.served import Served, sample_world

from kframe.testing.clusters import healthy

NONE, ZERO = 0, bytes(16)


@pytest.fixture
def world() -> Iterator[Served]:
    with sample_world() as world:
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


@pytest.mark.parametrize("version", range(8))
def test_create_topics(version: int, client: Client) -> None:
    for topic, code in CREATIONS:
        if version == 0 and not code:
            continue  # it knows no way of asking only
        (told,) = client.ask(19, version, topics=[topic], timeout=9000, validate_only=True)["topics"]
        assert told["error_code"] == code, topic
        assert version == 0 or bool(told["error_message"]) == bool(code), topic
    (told,) = client.ask(19, version, topics=[new_topic()], timeout=0)["topics"]
    assert told["error_code"] == 7  # who allows no time is told so even of what is done


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
    assert "not supported" in answer["results"][0]["error_message"]
