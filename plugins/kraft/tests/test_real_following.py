"""A running cluster of Kafka 4.4: ``kframe log show --follow`` of a directory, a controller and a broker.

The segments are small and old ones are deleted, so that the log rolls and its start moves.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kframe_kraft.disk.names import segments_in, snapshots_in
from kframe_kraft.live import open_observer
from kframe_kraft.replay.image import image_of
from kframe_kraft.sources.paths import read_image
from kframe_kraft.time_travel.history import open_history

from kframe.plugin.live import ClusterHistory
from kframe.testing.waiting import PATIENCE_S, wait_until
from verification.kraft.kafka_nodes import KraftCluster, KraftNode, KraftOptions
from verification.kraft.kafka_tools import KafkaTools
from verification.kraft.metadata_facts import metadata_facts
from verification.zookeeper.commands import RunningCommand, kframe_json

pytestmark = pytest.mark.real

_SETTINGS = {
    "internal.metadata.log.segment.bytes": "2048",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    # A node deletes old snapshots and segments once a minute.
    "metadata.max.retention.bytes": "1",
}


class FollowedCluster(NamedTuple):
    cluster: KraftCluster
    tools: KafkaTools
    folder: Path

    @property
    def controller(self) -> KraftNode:
        return self.cluster.nodes[3000]

    def create(self, topic: str, partitions: int = 1) -> None:
        self.cluster.admin(self.tools, "kafka-topics", "--create", "--topic", topic, "--partitions", partitions)

    def roll(self, topic: str) -> None:
        """Create topics until the log has two more segments."""
        first = max(segments_in(self.controller.metadata_log))
        for number in range(100):
            if len([base for base in segments_in(self.controller.metadata_log) if base > first]) >= 2:
                return
            self.create(f"{topic}-{number}", 10)
        raise AssertionError("the log does not roll")

    def follow(self, name: str, source: object) -> RunningCommand:
        command = RunningCommand(self.folder / name, "log", "show", source, "--follow", "-o", "jsonl")
        command.start()
        return command

    def log_start(self) -> int:
        return min(segments_in(self.controller.metadata_log))


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FollowedCluster]:
    folder = tmp_path_factory.mktemp("following")
    options = KraftOptions(combined=False, settings=_SETTINGS)
    with KafkaTools(folder / "tools") as tools, KraftCluster(folder / "nodes", options) as cluster:
        yield FollowedCluster(cluster, tools, folder)


def rows_of(command: RunningCommand) -> list[dict[str, Any]]:
    """The complete rows that a command has printed."""
    lines = command.log.splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]


def keys_of(command: RunningCommand) -> set[str]:
    return {row["key"] for row in rows_of(command)}


def await_key(command: RunningCommand, key: str) -> None:
    wait_until(lambda: key in keys_of(command), lambda: command.log)


def test_records_are_listed_while_the_log_rolls(live: FollowedCluster) -> None:
    sources = {
        "controller-directory": live.controller.log_dirs[0],
        "broker-directory": live.cluster.nodes[1].log_dirs[0],
        "controller": f"kraft://{live.controller.controller_address}",
        "broker": f"kraft://{live.cluster.address}",
    }
    commands = {name: live.follow(name, source) for name, source in sources.items()}
    try:
        live.create("first")
        for command in commands.values():
            await_key(command, "first")
        live.roll("rolled")
        live.create("last")
        for command in commands.values():
            await_key(command, "last-0")
    finally:
        codes = [command.stop(number=signal.SIGINT) for command in commands.values()]
    assert codes == [0] * len(commands)
    rows = {name: {row["offset"]: row for row in rows_of(command)} for name, command in commands.items()}
    for name, command in commands.items():
        offsets = [row["offset"] for row in rows_of(command)]
        assert offsets == sorted(set(offsets)), name
        common = rows[name].keys() & rows["controller"].keys()
        assert {rows[name][offset]["key"] for offset in common} >= {"first", "last"}
        assert all(rows[name][offset] == rows["controller"][offset] for offset in common), name
        assert all(row["committed"] for row in rows[name].values()), name


def test_follower_before_log_start_fetches_snapshot(live: FollowedCluster) -> None:
    """FetchSnapshot after the start of the log has moved: by a new observer, by a slow observer, and by commands."""
    live.create("before")
    slow_observer = open_observer(f"kraft://{live.controller.controller_address}", {})
    commands = {
        name: live.follow(f"frozen-{name}", source)
        for name, source in (
            ("quorum", f"kraft://{live.controller.controller_address}"),
            ("directory", live.controller.log_dirs[0]),
        )
    }
    new_observer = open_observer(f"kraft://{live.controller.controller_address}", {})
    try:
        slow_observer.catch_up()
        generation, end = slow_observer.generation, slow_observer.log.end
        for command in commands.values():
            await_key(command, "before-0")
            command.pause()
        live.roll("meanwhile")
        wait_until(lambda: live.log_start() > end, lambda: str(sorted(live.controller.metadata_log.iterdir())))
        slow_observer.catch_up()
        new_observer.catch_up()
        assert (slow_observer.generation, new_observer.generation) == (generation + 1, 1)
        for observer in (slow_observer, new_observer):
            history = observer.history()
            assert history.snapshot_id.offset > end
            on_disk = read_image(live.controller.log_dirs[0], history.log.end)
            assert metadata_facts(image_of(history).metadata) == metadata_facts(on_disk.metadata)
        summary = kframe_json("log", "at", f"kraft://{live.controller.controller_address}")
        assert summary["topics"] == len(image_of(new_observer.history()).metadata.topics.index_by_name)
        live.create("after")
        for command in commands.values():
            command.resume()
            await_key(command, "after-0")
            assert "were deleted before they were read" in command.log
    finally:
        slow_observer.close()
        new_observer.close()
        codes = [command.stop() for command in commands.values()]
    assert codes == [0, 0]
    assert snapshots_in(live.controller.metadata_log)


def test_history_is_extended_until_segments_are_deleted(live: FollowedCluster) -> None:
    directory = live.controller.log_dirs[0]

    def longer(history: ClusterHistory) -> ClusterHistory:
        """The history to the present end, opened again where segments were deleted."""
        result = history.extended() or open_history(directory)
        assert result is not None
        return result

    def state(history: ClusterHistory, end: int) -> tuple[Sequence[str], list[int]]:
        snapshot = history.snapshot(history.point(str(end - 1)))
        return snapshot.topics.names, snapshot.known_leaders().tolist()

    history = open_history(directory)
    assert history is not None
    live.roll("extended")
    live.create("longest", 3)
    end = time.monotonic() + PATIENCE_S
    while "longest" not in state(history, history.point("end").end)[0]:
        assert time.monotonic() < end
        history = longer(history)
    fresh = open_history(directory)
    assert fresh is not None
    ends = {point.end for point in history.points(50)} & {point.end for point in fresh.points(1_000_000)}
    states = {end: state(history, end) for end in ends}
    assert len(states) >= 5
    assert states == {end: state(fresh, end) for end in ends}
    live.roll("deleted")
    wait_until(lambda: history.extended() is None, lambda: str(sorted(live.controller.metadata_log.iterdir())))
    assert states == {end: state(history, end) for end in ends}, "open files remain"
