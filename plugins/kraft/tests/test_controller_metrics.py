"""Metrics of a KRaft controller: their names are Kafka's, their values those of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kframe_kraft.server.serving import ServedController

from kframe.testing.waiting import wait_until
from verification.kraft.served_controller import FakeBroker, connected, formatted, served

CONTROLLER = "kafka_controller_kafkacontroller_"
RAFT = "kafka_server_raft_metrics_"


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[ServedController]:
    with served(formatted(tmp_path), no_op_ms=0) as started:
        yield started


def create_topic(controller: ServedController, *assignments: list[int]) -> None:
    listed = [{"partition_index": index, "broker_ids": ids} for index, ids in enumerate(assignments)]
    topic = {"name": "a", "num_partitions": -1, "replication_factor": -1, "assignments": listed, "configs": []}
    with closing(connected(controller)) as client:
        response = client.ask(19, {"topics": [topic], "timeout": 1000, "validate_only": False})
    assert [each["error_code"] for each in response["topics"]] == [0]


def gauges(controller: ServedController) -> dict[str, float]:
    """The gauges of the controller by Kafka's name in lower case."""
    metrics = controller.metrics()
    return {name.removeprefix(CONTROLLER): value for name, value in metrics.items() if name.startswith(CONTROLLER)}


def test_gauges_follow_the_cluster(controller: ServedController) -> None:
    brokers = [FakeBroker(connected(controller), broker_id) for broker_id in range(3)]
    for broker in brokers:
        with closing(broker.client):
            broker.register()
            broker.heartbeat(broker.epoch)
    create_topic(controller, [0, 1], [1, 0], [2, 1])
    before = gauges(controller)
    assert (before["activebrokercount"], before["fencedbrokercount"]) == (3, 0)
    assert (before["globaltopiccount"], before["globalpartitioncount"]) == (1, 3)
    assert (before["offlinepartitionscount"], before["preferredreplicaimbalancecount"]) == (0, 0)
    for broker in brokers[1:]:
        again = FakeBroker(connected(controller), broker.broker_id)
        again.epoch = broker.epoch
        with closing(again.client):
            again.heartbeat(broker.epoch, want_fence=True)
    after = gauges(controller)
    assert (after["activebrokercount"], after["fencedbrokercount"]) == (1, 2)
    assert (after["offlinepartitionscount"], after["preferredreplicaimbalancecount"]) == (1, 2)
    states = {broker_id: after[f'brokerregistrationstate{{broker="{broker_id}"}}'] for broker_id in range(3)}
    assert states == {0: 30, 1: 10, 2: 10}


def test_offsets_and_the_role_are_those_of_the_quorum(controller: ServedController) -> None:
    broker = FakeBroker(connected(controller), 0)
    with closing(broker.client):
        broker.register()
    metrics = controller.metrics()
    assert controller.node is not None
    end = controller.node.log.end
    assert metrics[f"{CONTROLLER}activecontrollercount"] == 1
    assert metrics[f"{RAFT}current_leader"] == 9
    assert metrics[f"{RAFT}current_epoch"] == 1
    assert metrics[f"{RAFT}log_end_offset"] == metrics[f"{RAFT}high_watermark"] == end
    assert metrics[f"{CONTROLLER}lastcommittedrecordoffset"] == end - 1
    assert metrics[f"{RAFT}number_of_voters"] == 1
    assert metrics["kafka_controller_controllereventmanager_eventqueuetimems_count"] > 0


def test_stopped_controller_has_no_role_and_no_gauges(controller: ServedController) -> None:
    wait_until(lambda: controller.problems() == ())
    controller.stop()
    metrics = controller.metrics()
    assert metrics[f"{CONTROLLER}activecontrollercount"] == 0
    assert metrics[f"{RAFT}current_leader"] == -1
    assert f"{CONTROLLER}globaltopiccount" not in metrics
    assert controller.problems() == ("this node does not lead",)


def test_snapshot_metrics_begin_with_the_first_snapshot(controller: ServedController) -> None:
    name = "kafka_server_snapshotemitter_latestsnapshotgeneratedbytes"
    node = controller.node
    assert node is not None
    assert node.snapshots is not None
    written = node.snapshots.write()
    assert controller.metrics()[name] == (node.log.directory / written.file_name).stat().st_size
