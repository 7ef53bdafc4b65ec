"""The response to each request by ``wire.md`` sections 6 to 15, through a real socket."""

from __future__ import annotations

from typing import Any

import pytest

from kframe.testing.clusters import healthy
from verification.kafka_wire.client import Client
from verification.kafka_wire.served import Served

pytestmark = pytest.mark.kernel

NONE, ZERO = 0, bytes(16)


def new_topic(name: str = "n", partitions: int = 1, factor: int = 1, **fields: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **fields}


# -- CreateTopics

REPLICAS = [{"partition_index": 0, "broker_ids": [1, 2]}]
#: (topic, code). The first failing check determines the code.
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
            continue  # This version cannot validate only.
        (result,) = client.ask(19, version, topics=[topic], timeout=9000, validate_only=True)["topics"]
        assert result["error_code"] == code, topic
        assert version == 0 or bool(result["error_message"]) == bool(code), topic
    (result,) = client.ask(19, version, topics=[new_topic()], timeout=0)["topics"]
    assert result["error_code"] == 7  # REQUEST_TIMED_OUT for a timeout of 0, although the topic is created.


def test_a_topic_listed_twice_is_refused_and_others_are_created(client: Client) -> None:
    topics = [new_topic("twice"), new_topic("once", 2, 2), new_topic("twice")]
    results = {topic["name"]: topic for topic in client.ask(19, 7, topics=topics, timeout=9000)["topics"]}
    assert results["twice"]["error_code"] == 42
    assert results["once"]["error_code"] == 0
    assert (results["once"]["num_partitions"], results["once"]["replication_factor"]) == (2, 2)
    assert results["once"]["topic_id"] != ZERO
    seen = client.ask(3, 12, topics=[{"name": None, "topic_id": results["once"]["topic_id"]}])["topics"][0]
    assert seen["name"] == "once"
    assert {leader for partition in seen["partitions"] for leader in partition["replica_nodes"]} <= {1, 2, 3}


# -- DeleteTopics, CreatePartitions


def test_delete_topics_by_name_and_by_id(client: Client) -> None:
    (seen,) = client.ask(3, 12, topics=[{"name": "t"}])["topics"]
    topics = [
        {"name": "unknown", "topic_id": ZERO},
        {"name": None, "topic_id": b"x" * 16},
        {"name": None, "topic_id": seen["topic_id"]},
    ]
    results = client.ask(20, 6, topics=topics, timeout=9000)["responses"]
    codes = {(result["name"], result["topic_id"]): result["error_code"] for result in results}
    assert codes == {("unknown", ZERO): 3, (None, b"x" * 16): 100, ("t", seen["topic_id"]): 0}
    assert client.ask(3, 12, topics=[{"name": "t"}], allow_auto_topic_creation=False)["topics"][0]["error_code"] == 3


def test_a_topic_by_name_and_id_at_once_is_refused(client: Client) -> None:
    results = client.ask(20, 6, topics=[{"name": "t", "topic_id": b"x" * 16}, {"name": "dead"}])["responses"]
    assert [result["error_code"] for result in results] == [42, 42]


@pytest.mark.parametrize("version, code", [(0, 42), (2, 42), (3, 73), (6, 73)])
def test_topic_deletion_disabled_is_refused(version: int, code: int) -> None:
    fields = {"topics": [{"name": "t"}]} if version == 6 else {"topic_names": ["t"]}
    with (
        Served({"t": [healthy(1)]}, controller_config={"delete.topic.enable": False}) as served,
        served.client() as client,
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
        (result,) = client.ask(37, version, topics=[topic], timeout=9000, validate_only=True)["results"]
        assert (result["error_code"], result["error_message"] is None) == (code, code == 0), topic
    (result,) = client.ask(37, version, topics=[GROWTHS[0][0]], timeout=9000)["results"]
    assert result["error_code"] == 0
    assert len(client.ask(3, 12, topics=[{"name": "t"}])["topics"][0]["partitions"]) == 3


# -- reassignments, elections


def test_reassignments_are_started_listed_and_cancelled(client: Client) -> None:
    topics = [
        {
            "name": "t",
            "partitions": [
                {"partition_index": 0, "replicas": [3, 2]},
                {"partition_index": 1, "replicas": None},
                {"partition_index": 7, "replicas": [1]},
            ],
        },
        {"name": "dead", "partitions": [{"partition_index": 0, "replicas": [1000]}]},
    ]
    response = client.ask(45, 0, topics=topics, timeout=9000)
    codes = {
        (topic["name"], partition["partition_index"]): (partition["error_code"], bool(partition["error_message"]))
        for topic in response["responses"]
        for partition in topic["partitions"]
    }
    # An unknown partition cannot be reassigned. The controller is no broker and has no replicas.
    assert codes == {("t", 0): (0, False), ("t", 1): (85, True), ("t", 7): (3, True), ("dead", 0): (39, True)}
    assert response["error_code"] == 0
    for requested in (None, [{"name": "t", "partition_indexes": [0, 1]}]):
        listed = client.ask(46, 0, topics=requested)["topics"]
        moved = {
            "partition_index": 0,
            "replicas": [3, 2, 1],
            "adding_replicas": [3],
            "removing_replicas": [1],
        }
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
    response = client.ask(43, version, election_type=kind, topic_partitions=listed, timeout=9000)
    results = [result for topic in response["replica_election_results"] for result in topic["partition_result"]]
    assert [result["error_code"] for result in results] == codes
    assert all(bool(result["error_message"]) == bool(result["error_code"]) for result in results)


def test_elect_all_leaders_returns_only_needed_elections(client: Client) -> None:
    result = client.ask(43, 2, election_type=0, topic_partitions=None, timeout=9000)
    results = {
        entry["topic"]: [each["partition_id"] for each in entry["partition_result"]]
        for entry in result["replica_election_results"]
    }
    assert results["t"] == [1]
    assert result["error_code"] == 0


def test_unknown_election_type_is_refused(client: Client) -> None:
    result = client.ask(43, 2, election_type=5, topic_partitions=[{"topic": "t", "partitions": [0]}])
    assert result["error_code"] == 42


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
    response = client.ask(56, version, broker_id=1, broker_epoch=100, topics=topics)
    assert response["error_code"] == 0
    first, second = response["topics"][0]["partitions"]
    assert {key: response["topics"][0][key] for key in name} == name
    assert (first["error_code"], first["leader_id"], first["isr"], first["partition_epoch"]) == (0, 1, [1], 1)
    assert (second["error_code"], second["isr"], second["leader_id"]) == (95, [], 0)


def test_reregistered_isr_members_are_refused(client: Client) -> None:
    (seen,) = client.ask(3, 12, topics=[{"name": "t"}])["topics"]

    def propose(partition_epoch: int, *members: tuple[int, int]) -> int:
        isr = [{"broker_id": broker_id, "broker_epoch": broker_epoch} for broker_id, broker_epoch in members]
        proposal = {
            "partition_index": 0,
            "leader_epoch": 0,
            "partition_epoch": partition_epoch,
            "new_isr_with_epochs": isr,
        }
        topics = [{"topic_id": seen["topic_id"], "partitions": [proposal]}]
        response = client.ask(56, 3, broker_id=1, broker_epoch=100, topics=topics)
        code: int = response["topics"][0]["partitions"][0]["error_code"]
        return code

    assert propose(0, (1, -1)) == 0
    assert propose(1, (1, 100), (2, 199)) == 107
    assert propose(1, (1, 100), (2, 200)) == 0


@pytest.mark.parametrize("version", range(4))
def test_controlled_shutdown(version: int, client: Client) -> None:
    response = client.ask(7, version, broker_id=3, broker_epoch=300)
    assert response == {"error_code": 0, "remaining_partitions": []}
    (seen,) = client.ask(3, 12, topics=[{"name": "t"}])["topics"]
    assert seen["partitions"][1]["leader_id"] == 2
    # As in Kafka. A request with an epoch is checked against the registration first, which does not exist.
    assert client.ask(7, version, broker_id=55, broker_epoch=1)["error_code"] == (8 if version < 2 else -1)
    if version >= 2:
        assert client.ask(7, version, broker_id=1, broker_epoch=1)["error_code"] == 77


def test_producer_ids_of_brokers_and_producers_are_distinct(client: Client) -> None:
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
def test_requests_of_other_controllers_are_stale(api_key: int, version: int, client: Client) -> None:
    assert client.ask(api_key, version, controller_epoch=99)["error_code"] == 11


def test_no_feature_can_be_finalised(client: Client) -> None:
    response = client.ask(57, 1, feature_updates=[{"feature": "metadata.version", "max_version_level": 1}])
    assert (response["error_code"], response["results"][0]["error_code"]) == (0, 42)
    assert "not supported" in response["results"][0]["error_message"]
