"""Snapshots of a controller on loopback: when they are written, who reads them, and what they replace."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kframe_kafka_wire.protocol.metadata_log import TOPIC
from kframe_kraft.disk import CheckpointWriter, SnapshotId, read_checkpoint
from kframe_kraft.live import QuorumObserver
from kframe_kraft.log import LogSettings, RetentionSettings
from kframe_kraft.replay.image import image_of
from kframe_kraft.server.serving import ServedController
from kframe_kraft.server.snapshotting import SnapshotSettings, SnapshotThread
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.plugin import ErrorCode
from kframe.testing.waiting import wait_until
from verification.kraft.observed_controller import caught_up, observer, write
from verification.kraft.served_controller import LEVEL, connected, formatted

Serve = Callable[..., ServedController]


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
