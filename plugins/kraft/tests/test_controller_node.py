"""A controller on loopback, followed by kframe's own observer: elections, the log, snapshots, and restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kframe_kafka_wire.connections.node import CONNECTION_ERRORS
from kframe_kafka_wire.protocol.metadata_log import TOPIC, TOPIC_ID
from kframe_kraft.disk import (
    CheckpointWriter,
    MetaProperties,
    SnapshotId,
    read_checkpoint,
    read_quorum_state,
    write_properties,
)
from kframe_kraft.errors import LogError
from kframe_kraft.live import QuorumObserver
from kframe_kraft.live.calls import describe_quorum
from kframe_kraft.log import LogSettings, RetentionSettings
from kframe_kraft.quorum import Voters
from kframe_kraft.replay.image import image_of
from kframe_kraft.server.node import NodeSettings, VoterNode
from kframe_kraft.server.serving import ServedController
from kframe_kraft.server.snapshotting import SnapshotSettings, SnapshotThread
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.core.kraft import controller_apis
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.topics.topic_requests import CreatableTopic
from kframe.model.kraft import control, records
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.plugin import ErrorCode
from kframe.testing.waiting import wait_until
from verification.kraft.scripted_quorum import connect
from verification.kraft.served_controller import (
    ENDPOINT,
    LEVEL,
    VOTER,
    FakeBroker,
    address,
    connected,
    formatted,
    served,
)

WAIT_S = 20
Serve = Callable[..., ServedController]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda directory, **settings: stack.enter_context(served(directory, **settings))


def observer(*controllers: ServedController) -> QuorumObserver:
    return QuorumObserver([address(controller) for controller in controllers], connect)


def caught_up(follower: QuorumObserver, controller: ServedController) -> None:
    """Poll until the observer has the committed end of the log."""
    assert controller.node is not None
    while follower.poll() < controller.node.log.end or follower.log.end < controller.node.log.end:
        pass


def config(value: str) -> Callable[[Any], ControllerResult[None]]:
    record = records.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value=value)
    return lambda context: ControllerResult([RecordAndVersion(record, 0)], None)


def write(controller: ServedController, value: str) -> None:
    assert controller.node is not None
    assert controller.node.loop is not None
    controller.node.loop.submit(config(value)).result(WAIT_S)


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


def snapshot_request(snapshot_id: SnapshotId, position: int, max_bytes: int = 2**20, epoch: int = 1) -> dict[str, Any]:
    partition = {
        "partition": 0,
        "current_leader_epoch": epoch,
        "snapshot_id": {"end_offset": snapshot_id.offset, "epoch": snapshot_id.epoch},
        "position": position,
    }
    return {"replica_id": -1, "max_bytes": max_bytes, "topics": [{"name": TOPIC, "partitions": [partition]}]}


@pytest.mark.parametrize(
    ("snapshot_id", "position", "epoch", "error"),
    [
        (SnapshotId(2, 1), 0, 1, ErrorCode.NONE),
        (SnapshotId(2, 1), 10**6, 1, ErrorCode.POSITION_OUT_OF_RANGE),
        (SnapshotId(2, 1), -1, 1, ErrorCode.POSITION_OUT_OF_RANGE),
        (SnapshotId(3, 1), 0, 1, ErrorCode.SNAPSHOT_NOT_FOUND),
        (SnapshotId(0, 0), 0, 1, ErrorCode.SNAPSHOT_NOT_FOUND),
        (SnapshotId(-1, 1), 0, 1, ErrorCode.SNAPSHOT_NOT_FOUND),
        (SnapshotId(2, 1), 0, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (SnapshotId(2, 1), 0, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_snapshot_requests(
    tmp_path: Path, serve: Serve, snapshot_id: SnapshotId, position: int, epoch: int, error: ErrorCode
) -> None:
    controller = serve(formatted(tmp_path))
    write(controller, "2")
    stored = SnapshotId(2, 1)
    path = tmp_path / LOG_DIRECTORY / stored.file_name
    with CheckpointWriter(path, stored, timestamp=0, now=0) as writer:
        writer.add_records([LEVEL])
        writer.finish()
    with closing(connected(controller)) as client:
        response = client.ask(59, snapshot_request(snapshot_id, position, epoch=epoch))
        partition = response["topics"][0]["partitions"][0]
        assert partition["error_code"] == error
        if error is ErrorCode.NONE:
            content = b""
            while len(content) < partition["size"]:
                response = client.ask(59, snapshot_request(snapshot_id, len(content), 7))
                content += response["topics"][0]["partitions"][0]["unaligned_records"]
            assert content == path.read_bytes()


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


def snapshots(controller: ServedController) -> SnapshotThread:
    assert controller.node is not None
    assert controller.node.snapshots is not None
    return controller.node.snapshots


def state(follower: QuorumObserver) -> tuple[Any, ...]:
    metadata = image_of(follower.history()).metadata
    return metadata.features, metadata.configs, sorted(metadata.controllers)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_new_observer_begins_with_the_snapshot(tmp_path: Path, serve: Serve, dynamic: bool) -> None:
    controller = serve(formatted(tmp_path, dynamic=dynamic), no_op_ms=0)
    with closing(observer(controller)) as first, closing(observer(controller)) as second:
        write(controller, "2")
        caught_up(first, controller)
        snapshot_id = snapshots(controller).write()
        assert controller.node is not None
        assert snapshot_id == SnapshotId(controller.node.log.end, 1)
        checkpoint = read_checkpoint(tmp_path / LOG_DIRECTORY / snapshot_id.file_name)
        assert checkpoint.kraft_version == int(dynamic)
        write(controller, "3")
        for follower in (first, second):
            caught_up(follower, controller)
        assert (first.generation, second.generation) == (0, 1)
        assert state(first) == state(second)


def test_snapshots_follow_the_size_of_the_log(tmp_path: Path, serve: Serve) -> None:
    controller = serve(formatted(tmp_path), no_op_ms=0, snapshots=SnapshotSettings(bytes_max=1))
    assert controller.node is not None
    log = controller.node.log
    for value in ("2", "3"):
        write(controller, value)
        wait_until(lambda: log.snapshots[-1:] == (SnapshotId(log.end, 1),))


def test_snapshots_follow_the_time(tmp_path: Path, serve: Serve) -> None:
    controller = serve(formatted(tmp_path), no_op_ms=0, snapshots=SnapshotSettings(interval_ms=1))
    assert controller.node is not None
    log = controller.node.log
    wait_until(lambda: log.snapshots[-1:] == (SnapshotId(log.end, 1),))


def test_retention_begins_the_log_at_a_snapshot(tmp_path: Path, serve: Serve) -> None:
    settings = {"log": LogSettings(segment_bytes=300), "retention": RetentionSettings(0, -1), "no_op_ms": 0}
    controller = serve(formatted(tmp_path), **settings)
    for value in range(20):
        write(controller, str(value))
        if value % 5 == 0:
            last = snapshots(controller).write()
    assert controller.node is not None
    assert controller.node.log.snapshots == (last,)
    assert controller.node.log.start == last.offset
    controller.stop()
    controller = serve(tmp_path, **settings)
    with closing(observer(controller)) as follower:
        caught_up(follower, controller)
        assert state(follower)[1] == {(4, ""): {"min.insync.replicas": "19"}}


# -- brokers


@pytest.fixture
def brokers(tmp_path: Path, serve: Serve) -> Iterator[tuple[ServedController, list[FakeBroker]]]:
    controller = serve(formatted(tmp_path))
    fakes = [FakeBroker(controller, broker_id) for broker_id in range(3)]
    for fake in fakes:
        assert fake.register() == 0
        assert fake.heartbeat(fake.epoch) == (0, 1, 0, 0)
    yield controller, fakes
    for fake in fakes:
        fake.client.close()


def test_broker_boots(tmp_path: Path, serve: Serve) -> None:
    """Registered and fenced, then caught up, then unfenced (apis.md, How a broker boots)."""
    controller = serve(formatted(tmp_path))
    fake = FakeBroker(controller, 1)
    with closing(fake.client):
        assert fake.register(cluster_id="another") == ErrorCode.INCONSISTENT_CLUSTER_ID
        assert fake.heartbeat(0) == (ErrorCode.STALE_BROKER_EPOCH, 0, 1, 0)
        assert fake.register() == 0
        assert fake.heartbeat(fake.epoch - 1, want_fence=True) == (0, 0, 1, 0)
        assert fake.heartbeat(fake.epoch, want_fence=True) == (0, 1, 1, 0)
        assert fake.heartbeat(fake.epoch) == (0, 1, 0, 0)
    with closing(observer(controller)) as follower:
        caught_up(follower, controller)
        image = image_of(follower.history())
    (stored,) = image.metadata.brokers.registrations.values()
    assert (stored.broker_epoch, stored.fenced, stored.rack) == (fake.epoch, False, "r")
    assert image.metadata.controllers.keys() == {9}


def test_another_process_waits_for_the_session_unless_the_broker_stopped(tmp_path: Path, serve: Serve) -> None:
    fake = FakeBroker(serve(formatted(tmp_path)), 1)
    with closing(fake.client):
        fake.register()
        fake.heartbeat(fake.epoch)
        fake.incarnation = UUID(int=7)
        assert fake.register() == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        assert fake.heartbeat(fake.epoch, want_shut_down=True) == (0, 1, 1, 1)
        former = fake.epoch
        assert fake.register(previous_broker_epoch=former) == 0
        assert fake.epoch > former


def test_controlled_shutdown_waits_for_the_other_brokers(brokers: tuple[ServedController, list[FakeBroker]]) -> None:
    controller, (first, second, third) = brokers
    create(controller, "t", (0, 1, 2))
    assert controller.node is not None
    assert first.heartbeat(first.epoch, want_shut_down=True) == (0, 1, 0, 0)
    assert first.heartbeat(first.epoch, want_shut_down=True) == (0, 1, 0, 0)
    for other in (second, third):
        other.heartbeat(controller.node.log.end)
    assert first.heartbeat(first.epoch, want_shut_down=True) == (0, 1, 1, 1)


def create(controller: ServedController, name: str, replicas: tuple[int, ...]) -> UUID:
    """Create a topic with one partition."""
    topic = CreatableTopic(name, assignments=((0, replicas),))
    topic_id = UUID(int=5000)
    assert controller.node is not None
    assert controller.node.loop is not None
    event = partial(controller_apis.create_topics, requested=[topic], new_id=lambda name: topic_id)
    (result,) = controller.node.loop.submit(event).result(WAIT_S)
    assert result.error is ErrorCode.NONE
    return topic_id


def proposal(fake: FakeBroker, topic_id: UUID, isr: list[tuple[int, int]], partition_epoch: int) -> dict[str, Any]:
    members = [{"broker_id": broker_id, "broker_epoch": epoch} for broker_id, epoch in isr]
    partition = {
        "partition_index": 0,
        "leader_epoch": 0,
        "new_isr_with_epochs": members,
        "leader_recovery_state": 0,
        "partition_epoch": partition_epoch,
    }
    topic = {"topic_id": topic_id.bytes, "partitions": [partition]}
    return {"broker_id": fake.broker_id, "broker_epoch": fake.epoch, "topics": [topic]}


def test_leader_shrinks_and_expands_its_isr(brokers: tuple[ServedController, list[FakeBroker]]) -> None:
    controller, (first, second, third) = brokers
    topic_id = create(controller, "t", (0, 1, 2))
    members = [(fake.broker_id, fake.epoch) for fake in (first, second, third)]
    for isr, epoch in ((members[:2], 0), (members, 1)):
        (topic,) = first.client.ask(56, proposal(first, topic_id, isr, epoch))["topics"]
        (partition,) = topic["partitions"]
        assert (partition["error_code"], tuple(partition["isr"])) == (0, tuple(member for member, _ in isr))
        assert partition["partition_epoch"] == epoch + 1
    stale = first.client.ask(56, proposal(first, topic_id, members[:1], 0))["topics"][0]["partitions"][0]
    assert stale["error_code"] == 95
    fenced = proposal(first, topic_id, members[:1], 2) | {"broker_epoch": 1}
    assert first.client.ask(56, fenced)["error_code"] == ErrorCode.STALE_BROKER_EPOCH


def test_directories_and_producer_ids(brokers: tuple[ServedController, list[FakeBroker]]) -> None:
    controller, (first, *_) = brokers
    topic_id = create(controller, "t", (0, 1, 2))
    partitions = [{"partition_index": 0}, {"partition_index": 7}]
    directory = {"id_": first.directory.bytes, "topics": [{"topic_id": topic_id.bytes, "partitions": partitions}]}
    body = {"broker_id": 0, "broker_epoch": first.epoch, "directories": [directory]}
    (answered,) = first.client.ask(73, body)["directories"]
    assert [each["error_code"] for each in answered["topics"][0]["partitions"]] == [0, 3]
    blocks = [first.client.ask(67, {"broker_id": 0, "broker_epoch": first.epoch}) for _ in range(2)]
    assert [(block["producer_id_start"], block["producer_id_len"]) for block in blocks] == [(0, 1000), (1000, 1000)]
    assert first.client.ask(67, {"broker_id": 0, "broker_epoch": 1})["error_code"] == ErrorCode.STALE_BROKER_EPOCH


def test_broker_is_unregistered(brokers: tuple[ServedController, list[FakeBroker]]) -> None:
    _, (first, *_) = brokers
    assert first.client.ask(64, {"broker_id": 2})["error_code"] == 0
    unknown = first.client.ask(64, {"broker_id": 77})
    assert unknown["error_code"] == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert "77 is not currently registered" in unknown["error_message"]


def test_features_are_on_offer(tmp_path: Path, serve: Serve) -> None:
    controller = serve(formatted(tmp_path, dynamic=True))
    write(controller, "2")
    with closing(connected(controller)) as client:
        assert client.features == {"metadata.version": 25, "kraft.version": 1}
