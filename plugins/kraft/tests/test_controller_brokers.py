"""Brokers of a controller on loopback: registration, heartbeats, shutdown, ISRs and directories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kframe_kraft.replay.image import image_of
from kframe_kraft.server.serving import ServedController

from kframe.core.kraft import controller_apis
from kframe.core.kraft.topics.topic_requests import CreatableTopic
from kframe.plugin import ErrorCode
from verification.kraft.observed_controller import caught_up, observer
from verification.kraft.served_controller import FakeBroker, connected, formatted

WAIT_S = 20
Serve = Callable[..., ServedController]


@pytest.fixture
def brokers(tmp_path: Path, serve: Serve) -> Iterator[tuple[ServedController, list[FakeBroker]]]:
    controller = serve(formatted(tmp_path))
    fakes = [FakeBroker(connected(controller), broker_id) for broker_id in range(3)]
    for fake in fakes:
        assert fake.register() == 0
        assert fake.heartbeat(fake.epoch) == (0, 1, 0, 0)
    yield controller, fakes
    for fake in fakes:
        fake.client.close()


def test_broker_boots(tmp_path: Path, serve: Serve) -> None:
    """Registered and fenced, then caught up, then unfenced (apis.md, How a broker boots)."""
    controller = serve(formatted(tmp_path))
    fake = FakeBroker(connected(controller), 1)
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
    fake = FakeBroker(connected(serve(formatted(tmp_path))), 1)
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
