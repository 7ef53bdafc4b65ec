"""A controller on loopback, followed by kframe's own observer: elections, the log, and restarts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kframe_kafka_wire.connections.node import CONNECTION_ERRORS
from kframe_kafka_wire.protocol.metadata_log import TOPIC, TOPIC_ID
from kframe_kraft.batches import read_batches
from kframe_kraft.disk import MetaProperties, read_quorum_state, write_properties
from kframe_kraft.errors import LogError
from kframe_kraft.live.calls import describe_quorum
from kframe_kraft.quorum import Voters
from kframe_kraft.replay.image import image_of
from kframe_kraft.server.node import NodeSettings, VoterNode
from kframe_kraft.server.serving import ServedController
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.model.kraft import control
from kframe.plugin import ErrorCode
from verification.kraft.observed_controller import caught_up, observer, write
from verification.kraft.served_controller import ENDPOINT, VOTER, address, connected, formatted

Serve = Callable[..., ServedController]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_observer_follows_a_new_cluster(tmp_path: Path, serve: Serve, dynamic: bool) -> None:
    controller = serve(formatted(tmp_path, dynamic=dynamic))
    write(controller, "2")
    with closing(observer(controller)) as follower:
        caught_up(follower, controller)
        image = image_of(follower.history())
    assert image.metadata.features == {"metadata.version": 25}
    assert image.metadata.configs == {(4, ""): {"min.insync.replicas": "2"}}
    assert (image.leader_id, image.epoch, image.voters) == (9, 1, (9,))
    assert image.kraft_version == int(dynamic)
    if dynamic:
        assert image.voters_record == control.VotersRecord(voters=(VOTER,))


def test_observer_receives_each_new_record(tmp_path: Path, serve: Serve) -> None:
    controller = serve(formatted(tmp_path))
    with closing(observer(controller)) as follower:
        for value in ("2", "3", "4"):
            write(controller, value)
            caught_up(follower, controller)
        assert image_of(follower.history()).metadata.configs[4, ""] == {"min.insync.replicas": "4"}


def test_each_start_begins_an_epoch(tmp_path: Path, serve: Serve) -> None:
    formatted(tmp_path)
    for epoch in (1, 2, 3):
        controller = serve(tmp_path)
        write(controller, str(epoch))
        with closing(observer(controller)) as follower:
            caught_up(follower, controller)
            image = image_of(follower.history())
        assert (image.epoch, image.metadata.configs[4, ""]) == (epoch, {"min.insync.replicas": str(epoch)})
        controller.stop()
        state = read_quorum_state(tmp_path / LOG_DIRECTORY)
        assert state is not None
        assert (state.leader_epoch, state.leader_id) == (epoch, 9)


def test_observer_survives_a_restart_of_the_controller(tmp_path: Path, serve: Serve) -> None:
    first = serve(formatted(tmp_path))
    write(first, "2")
    with closing(observer(first)) as follower:
        caught_up(follower, first)
        first.stop()
        second = serve(tmp_path)
        write(second, "3")
        follower._servers.append(address(second))
        caught_up(follower, second)
        assert image_of(follower.history()).epoch == 2


def test_other_nodes_may_not_lead(tmp_path: Path) -> None:
    formatted(tmp_path)
    write_properties(tmp_path, MetaProperties("cluster", 8, UUID(int=508)))
    with pytest.raises(LogError, match="voters: found nodes 9, expected node 8 alone"):
        VoterNode(tmp_path, NodeSettings((ENDPOINT,), Voters((VOTER,))))


def test_quorum_is_described(tmp_path: Path, serve: Serve) -> None:
    controller = serve(formatted(tmp_path, dynamic=True))
    write(controller, "2")
    with closing(connected(controller)) as client:
        leader = describe_quorum(client)
    assert (leader.leader_id, leader.leader_epoch, leader.voters) == (9, 1, (9,))
    assert leader.addresses == {9: ("127.0.0.1", 0)}


FETCH_PARTITION = {
    "partition": 0,
    "current_leader_epoch": 1,
    "fetch_offset": 0,
    "last_fetched_epoch": 0,
    "log_start_offset": -1,
    "partition_max_bytes": 10**6,
}
FETCH = {
    "replica_id": -1,
    "max_wait": 0,
    "min_bytes": 1,
    "max_bytes": 10**6,
    "session_id": 0,
    "session_epoch": -1,
    "topics": [{"topic": TOPIC, "topic_id": TOPIC_ID, "partitions": [FETCH_PARTITION]}],
    "forgotten_topics_data": [],
    "rack_id": "",
}


def fetching(**fields: Any) -> dict[str, Any]:
    topic = {**FETCH["topics"][0], "partitions": [{**FETCH_PARTITION, **fields}]}  # type: ignore[index]
    return {**FETCH, "topics": [topic]}


@pytest.mark.parametrize(
    "body",
    [
        {**FETCH, "topics": []},
        {**FETCH, "topics": 2 * FETCH["topics"]},  # type: ignore[operator]
        {**FETCH, "topics": [{"topic": "t", "topic_id": bytes(16), "partitions": [FETCH_PARTITION]}]},
        fetching(partition=1),
        fetching(fetch_offset=-1),
        fetching(last_fetched_epoch=-1),
        fetching(last_fetched_epoch=2),
        {**FETCH, "max_wait": -1},
    ],
    ids=["none", "two", "another topic", "partition 1", "offset", "no epoch", "later epoch", "wait"],
)
def test_fetch_that_no_replica_sends_ends_the_connection(tmp_path: Path, serve: Serve, body: dict[str, Any]) -> None:
    """Brokers do not survive INVALID_REQUEST in a response."""
    controller = serve(formatted(tmp_path))
    with closing(connected(controller)) as client, pytest.raises(CONNECTION_ERRORS):
        client.ask(1, body)
    write(controller, "2")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({**FETCH, "cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({**FETCH, "cluster_id": "cluster"}, ErrorCode.NONE),
    ],
)
def test_cluster_id_of_a_fetch(tmp_path: Path, serve: Serve, body: dict[str, Any], error: ErrorCode) -> None:
    with closing(connected(serve(formatted(tmp_path)))) as client:
        assert client.ask(1, body)["error_code"] == error


@pytest.mark.parametrize(("max_bytes", "batches"), [(2**31 - 1, 4), (10**6, 4), (1, 1), (0, 1), (-1, 1)])
def test_bytes_of_the_request_limit_the_batches(tmp_path: Path, serve: Serve, max_bytes: int, batches: int) -> None:
    """Replicas of Kafka leave the bytes of the partition 0."""
    controller = serve(formatted(tmp_path))
    write(controller, "2")
    partition = {**FETCH_PARTITION, "partition_max_bytes": 0}
    with closing(connected(controller)) as client:
        topic = {**FETCH["topics"][0], "partitions": [partition]}  # type: ignore[index]
        response = client.ask(1, {**FETCH, "max_bytes": max_bytes, "topics": [topic]})
    records = response["responses"][0]["partitions"][0]["records"]
    assert len(list(read_batches(records))) == batches


@pytest.mark.parametrize(("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_other_epochs_are_told_the_leader(tmp_path: Path, serve: Serve, epoch: int, error: ErrorCode) -> None:
    controller = serve(formatted(tmp_path))
    with closing(connected(controller)) as client:
        response = client.ask(1, fetching(current_leader_epoch=epoch))
    partition = response["responses"][0]["partitions"][0]
    assert (partition["error_code"], partition["current_leader"]) == (error, {"leader_id": 9, "leader_epoch": 1})
    host, port = address(controller)
    (endpoint,) = response["node_endpoints"]
    assert (endpoint["node_id"], endpoint["host"], endpoint["port"]) == (9, host, port)


@pytest.mark.parametrize("api_key", [52, 53, 54])
def test_there_is_no_other_leader(tmp_path: Path, serve: Serve, api_key: int) -> None:
    epochs = {"candidate_epoch": 7, "leader_epoch": 7}
    partition = {
        "partition_index": 0,
        "candidate_id": 5,
        "candidate_directory_id": bytes(16),
        "voter_directory_id": bytes(16),
        "last_offset_epoch": 6,
        "last_offset": 1000,
        "leader_id": 5,
        "preferred_candidates": [],
        **epochs,
    }
    body = {"topics": [{"topic_name": TOPIC, "partitions": [partition]}], "leader_endpoints": []}
    controller = serve(formatted(tmp_path))
    with closing(connected(controller)) as client:
        (answered,) = client.ask(api_key, body)["topics"][0]["partitions"]
    assert (answered["error_code"], answered["leader_id"], answered["leader_epoch"]) == (94, 9, 1)
    assert not answered.get("vote_granted")
    write(controller, "2")


# -- snapshots written by the controller


def test_features_are_on_offer(tmp_path: Path, serve: Serve) -> None:
    controller = serve(formatted(tmp_path, dynamic=True))
    write(controller, "2")
    with closing(connected(controller)) as client:
        assert client.features == {"metadata.version": 25, "kraft.version": 1}
