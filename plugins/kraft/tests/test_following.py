"""``kframe log show --follow``: a log that a node is writing, and a quorum of scripted controllers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kframe_kraft.batches import BatchPosition, encode_data_batch
from kframe_kraft.disk import SnapshotId, read_history
from kframe_kraft.disk.following import DirectoryFollower
from kframe_kraft.errors import LogError
from kframe_kraft.live import QuorumFollower, QuorumObserver, spooled_history
from kframe_kraft.time_travel.entries import EntryFilter
from kframe_kraft.time_travel.following import LogFollower, followed_entries

from kframe.plugin.kraft import RecordAndVersion, records
from verification.kraft.scripted_quorum import ScriptedController, ScriptedState, connect
from verification.kraft.written_log import START_MS, WrittenLog, batch, change, small_cluster, write_snapshot

Step = Callable[[], object]
COMMAND = [sys.executable, "-m", "kframe.cli", "log", "show"]


class Steps:
    """Takes the next step in each wait, and stops after the last."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self._ended = False

    def __bool__(self) -> bool:
        return self._ended

    def wait(self, _timeout_s: float) -> bool:
        if self._steps:
            self._steps.pop(0)()
        else:
            self._ended = True
        return self._ended


def follow(log: WrittenLog, *steps: Step, first: int = 9, boundaries: bool = False) -> tuple[list[Any], list[str]]:
    """Offset and state of the rows from ``first`` on while the steps are taken, and the reports."""
    history, reports = read_history(log.log, from_oldest=True), list[str]()
    follower = DirectoryFollower(log.log, history)
    chosen = EntryFilter(start=first, boundaries=boundaries)
    rows = followed_entries(history, follower, chosen, Steps(*steps), reports.append)
    return [(row["offset"], row["key"]) for row in rows if row is not None], reports


class LiveSegments:
    """Writes to the files of a log as a node does."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.written = small_cluster(folder, **options)
        self.log = self.written.log
        self.segment = self.log / f"{0:020}.log"

    def append(self, content: bytes) -> None:
        with self.segment.open("ab") as file:
            file.write(content)

    def roll(self, base: int) -> None:
        self.segment = self.log / f"{base:020}.log"
        self.segment.touch()


@pytest.fixture
def live(tmp_path: Path) -> LiveSegments:
    return LiveSegments(tmp_path)


def test_appended_records_are_listed(live: LiveSegments) -> None:
    listed, reports = follow(
        live.written,
        lambda: live.append(batch(9, "a")),
        lambda: live.append(batch(10, "b") + batch(11, "c")),
        first=8,
    )
    assert listed[1:] == [
        (7, "orders-0"),
        (8, "orders-1"),
        (9, "broker default"),
        (10, "broker default"),
        (11, "broker default"),
    ]
    assert reports == []


def test_batch_is_listed_when_complete(live: LiveSegments) -> None:
    content = batch(9, "a")
    steps = [partial(live.append, content[begin : begin + 10]) for begin in range(0, len(content), 10)]
    listed, reports = follow(live.written, *steps)
    assert (listed, reports) == ([(9, "broker default")], [])


def test_log_roll_is_followed(live: LiveSegments) -> None:
    listed, reports = follow(
        live.written,
        lambda: live.append(batch(9, "a")),
        lambda: live.roll(10),
        lambda: live.append(batch(10, "b")),
        lambda: live.append(batch(11, "c")),
        lambda: live.roll(12),
        lambda: live.append(batch(12, "d")),
        (live.log / f"{0:020}.log").unlink,
        lambda: live.append(batch(13, "e")),
    )
    assert [offset for offset, _ in listed] == [9, 10, 11, 12, 13]
    assert reports == []


def test_names_of_new_topics_are_known(live: LiveSegments) -> None:
    topic = records.TopicRecord(name="later", topic_id=UUID(int=77))
    removal = records.RemoveTopicRecord(topic_id=UUID(int=77))
    listed, _ = follow(live.written, lambda: live.written.append(topic), lambda: live.written.append(removal))
    assert listed == [(9, "later"), (10, "later")]


def test_transactions_end_when_their_marker_is_listed(live: LiveSegments) -> None:
    topic = records.TopicRecord(name="t", topic_id=UUID(int=77))
    log = live.written
    log.append(records.BeginTransactionRecord(name="work"), topic)
    history = read_history(log.log)
    follower = DirectoryFollower(log.log, history)
    steps = Steps(lambda: log.append(records.AbortTransactionRecord(reason="failover")), lambda: log.append(topic))
    rows = followed_entries(history, follower, EntryFilter(start=9, boundaries=True), steps, print)
    states = [(row["type"], row["transaction"]) for row in rows if row is not None and row["type"] != "Batch"]
    assert states == [("BeginTransaction", "open"), ("Topic", "open"), ("AbortTransaction", "aborted"), ("Topic", None)]


@pytest.mark.parametrize("rolled", [False, True])
def test_truncated_records_are_reported_and_their_replacements_listed(live: LiveSegments, rolled: bool) -> None:
    complete = live.segment.read_bytes()

    def append() -> None:
        live.append(batch(9, "a"))
        if rolled:
            live.roll(10)
        live.append(batch(10, "b") + batch(11, "c"))

    def truncate() -> None:
        if rolled:
            live.segment.unlink()
            live.segment = live.log / f"{0:020}.log"
        live.segment.write_bytes(complete + batch(9, "a") + batch(10, "other", epoch=2))

    listed, reports = follow(live.written, append, lambda: None, truncate, lambda: live.append(batch(11, "d", epoch=2)))
    assert [offset for offset, _ in listed] == [9, 10, 11, 10, 11]
    assert reports == ["offsets 10 to 11 were truncated: they were not committed"]


def test_truncated_log_is_reported(live: LiveSegments) -> None:
    complete = live.segment.read_bytes()
    listed, reports = follow(
        live.written,
        lambda: live.append(batch(9, "a")),
        lambda: live.segment.write_bytes(complete),
        lambda: live.append(batch(9, "b", epoch=2)),
    )
    assert [offset for offset, _ in listed] == [9, 9]
    assert reports == ["offsets 9 to 9 were truncated: they were not committed"]


def test_deleted_offsets_are_reported_and_the_snapshot_names_their_topics(live: LiveSegments) -> None:
    topic = UUID(int=88)

    def replace() -> None:
        new_topic = RecordAndVersion(records.TopicRecord(name="new", topic_id=topic), 0)
        write_snapshot(live.log, SnapshotId(20, 1), new_topic, timestamp=START_MS)
        live.segment.unlink()
        live.roll(20)

    removal = encode_data_batch(
        [RecordAndVersion(records.RemoveTopicRecord(topic_id=topic), 0)], BatchPosition(20, 1, START_MS)
    )
    listed, reports = follow(live.written, replace, lambda: live.append(removal))
    assert listed == [(20, "new")]
    assert reports == ["offsets 9 to 19 were deleted before they were read"]


def test_damage_before_the_tail_is_an_error(live: LiveSegments) -> None:
    damaged = bytearray(batch(9, "a"))
    damaged[-1] ^= 1
    with pytest.raises(LogError, match=rf"{live.segment.name}, byte \d+: found CRC"):
        follow(live.written, lambda: live.append(bytes(damaged) + batch(10, "b")), lambda: None)


def test_another_log_is_an_error(live: LiveSegments) -> None:
    other = b"".join(batch(offset, "other") for offset in range(20))
    with pytest.raises(LogError, match="another log"):
        follow(live.written, lambda: live.segment.write_bytes(other), lambda: None)


def test_records_of_a_single_voter_are_committed_and_those_of_several_unknown(tmp_path: Path) -> None:
    for voters, expected in (((1,), True), ((1, 2, 3), None)):
        live = LiveSegments(tmp_path / str(len(voters)), voters=voters)
        history = read_history(live.log)
        steps = Steps(partial(live.append, batch(9, "a")))
        rows = followed_entries(history, DirectoryFollower(live.log, history), EntryFilter(start=9), steps, print)
        assert [row["committed"] for row in rows if row is not None] == [expected]


class TestQuorums:
    @pytest.fixture
    def state(self) -> ScriptedState:
        return ScriptedState(batches=[batch(offset, f"c{offset}") for offset in range(4)], high_watermark=3)

    @pytest.fixture
    def observer(self, state: ScriptedState) -> Iterator[QuorumObserver]:
        with ScriptedController(1, state) as first, ScriptedController(2, state) as second:
            self.controllers = (first, second)
            observer = QuorumObserver([first.address, second.address], connect, pause=lambda _seconds: None)
            yield observer
            observer.close()

    @staticmethod
    def follow(observer: QuorumObserver, *steps: Step) -> tuple[list[int], list[str]]:
        history, reports = spooled_history(observer), list[str]()
        follower: LogFollower = QuorumFollower(observer, history, reports.append)
        rows = followed_entries(history, follower, EntryFilter(), Steps(*steps), reports.append)
        return [row["offset"] for row in rows if row is not None], reports

    def test_records_are_listed_when_they_are_committed(self, observer: QuorumObserver, state: ScriptedState) -> None:
        def commit(end: int) -> None:
            state.batches += [batch(offset, "new") for offset in range(len(state.batches), end + 1)]
            state.high_watermark = end

        listed, reports = self.follow(observer, lambda: commit(4), lambda: commit(6), lambda: None)
        assert (listed, reports) == ([0, 1, 2, 3, 4, 5], [])

    def test_lost_quorum_is_reported_once(self, observer: QuorumObserver) -> None:
        def stop() -> None:
            for controller in self.controllers:
                controller.stop()

        listed, reports = self.follow(observer, stop, lambda: None, lambda: None)
        assert listed == [0, 1, 2]
        assert len(reports) == 1
        assert reports[0].endswith("retrying")

    def test_snapshot_replaces_deleted_offsets(
        self, observer: QuorumObserver, state: ScriptedState, tmp_path: Path
    ) -> None:
        topic = UUID(int=88)

        def replace() -> None:
            new_topic = RecordAndVersion(records.TopicRecord(name="new", topic_id=topic), 0)
            path = write_snapshot(tmp_path, SnapshotId(9, 1), new_topic)
            state.snapshot_id, state.snapshot = SnapshotId(9, 1), path.read_bytes()
            state.batches, state.high_watermark = [batch(9, "later")], 10

        listed, reports = self.follow(observer, replace, lambda: None)
        assert listed == [0, 1, 2, 9]
        assert reports == ["offsets 3 to 8 were deleted before they were read"]


class TestCommand:
    @pytest.fixture
    def start(self) -> Iterator[Callable[..., subprocess.Popen[str]]]:
        started: list[subprocess.Popen[str]] = []

        def run(*arguments: object) -> subprocess.Popen[str]:
            command = [*COMMAND, *map(str, arguments)]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            return started[-1]

        yield run
        for process in started:
            process.kill()
            process.communicate()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_follow_flushes_each_record_and_ends_on_signal(
        self, live: LiveSegments, start: Callable[..., subprocess.Popen[str]], number: signal.Signals
    ) -> None:
        process = start(live.log.parent, "--follow", "--from", "8", "-o", "jsonl")
        assert process.stdout is not None
        assert [json.loads(process.stdout.readline())["offset"] for _ in range(3)] == [6, 7, 8]
        for offset in (9, 10):
            live.append(batch(offset, "a"))
            assert json.loads(process.stdout.readline())["offset"] == offset
        process.send_signal(number)
        assert process.stderr is not None
        assert (process.stdout.read(), process.stderr.read(), process.wait()) == ("", "", 0)

    def test_table_begins_with_the_first_rows(
        self, live: LiveSegments, start: Callable[..., subprocess.Popen[str]]
    ) -> None:
        process = start(live.log.parent, "--follow", "--from", "9")
        live.append(batch(9, "a"))
        assert process.stdout is not None
        lines = [process.stdout.readline().split()[:1] for _ in range(2)]
        assert lines == [["OFFSET"], ["9"]]

    def test_follow_ends_on_closed_pipe_without_new_records(
        self, live: LiveSegments, start: Callable[..., subprocess.Popen[str]]
    ) -> None:
        process = start(live.log.parent, "--follow", "-o", "jsonl")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert (process.wait(), process.stderr.read()) == (141, "")

    def test_json_is_a_complete_document(self, live: LiveSegments, start: Callable[..., subprocess.Popen[str]]) -> None:
        process = start(live.log.parent, "--follow", "-o", "json", "--from", "7")
        assert process.stdout is not None
        begun = process.stdout.readline() + process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        document = json.loads(begun + process.stdout.read())
        assert [row["offset"] for row in document["rows"]][:1] == [6]
        assert process.wait() == 0

    @pytest.mark.parametrize(
        "arguments, reason",
        [(("--follow", "--to", "5"), "--follow and --to"), (("--follow",), "--follow needs the directory")],
    )
    def test_unusable_arguments_are_named(
        self, live: LiveSegments, start: Callable[..., subprocess.Popen[str]], arguments: tuple[str, ...], reason: str
    ) -> None:
        process = start(live.segment, *arguments)
        _, errors = process.communicate()
        assert process.returncode == 2
        assert reason in errors


def test_change_rows_name_the_topic(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    listed, _ = follow(log, lambda: log.append(change(0, isr=(1, 2))))
    assert listed == [(9, "orders-0")]
