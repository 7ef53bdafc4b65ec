"""Live sources: refreshes, failures, what changed, and a log that grows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kframe_console.sources.differences import differences_between
from kframe_console.sources.live import CapturingReader, FollowingReader, LiveSource, reader_of
from kframe_console.sources.logged import LoggedSource
from kframe_console.sources.refresh import Refresher
from kframe_kraft.batches import read_batches
from kframe_kraft.sources.snapshots import write_snapshot

from kframe import build_registry
from kframe.plugin import ParameterError, StoreError
from kframe.plugin.columns import Ragged
from kframe.plugin.kraft import records
from kframe.plugin.live import Difference
from kframe.plugin.snapshot import BrokerFacts, PartitionFacts, Snapshot, Source, TopicFacts, open_history
from verification.console.client import console_of
from verification.kraft.scripted_quorum import ScriptedController, ScriptedState
from verification.kraft.written_log import ORDERS, WrittenLog, change, register, small_cluster


def unchanged(snapshot: Snapshot) -> Snapshot:
    return snapshot


Partitions = dict[tuple[str, int], tuple[int, tuple[int, ...]]]


def snapshot_of(partitions: Partitions, brokers: Sequence[int] = (1, 2, 3)) -> Snapshot:
    """Topics whose partitions have these leaders and ISRs. Replicas are 1, 2 and 3."""
    names = tuple(sorted({topic for topic, _ in partitions}))
    counts = np.array([sum(topic == name for topic, _ in partitions) for name in names], np.int32)
    states = [partitions[key] for key in sorted(partitions)]
    return Snapshot(
        tuple(BrokerFacts(broker_id, broker_id in brokers, 5) for broker_id in (1, 2, 3)),
        TopicFacts(names, counts),
        PartitionFacts(
            Ragged.of([[1, 2, 3]] * len(states)),
            np.array([leader for leader, _ in states], np.int32),
            Ragged.of([isr for _, isr in states]),
        ),
        Source("test", "cluster"),
    )


class ScriptedCluster:
    """A reader that returns these snapshots, one after another, or raises."""

    def __init__(self, *states: Snapshot | Exception | None) -> None:
        self.states = list(states)
        self.is_closed = False
        self.was_read = threading.Event()

    def read(self) -> Snapshot | None:
        state = self.states.pop(0) if self.states else None
        if not self.states:
            self.was_read.set()
        if isinstance(state, Exception):
            raise state
        return state

    def close(self) -> None:
        self.is_closed = True


BEFORE: Partitions = {("a", 0): (1, (1, 2, 3)), ("a", 1): (2, (2, 3)), ("b", 0): (3, (3,))}
AFTER: Partitions = {("a", 0): (2, (2, 3)), ("a", 1): (2, (2, 3)), ("c", 0): (1, (1,))}


def test_refresh_replaces_the_reading_and_sums_up_changes() -> None:
    cluster = ScriptedCluster(snapshot_of(BEFORE), None, snapshot_of(AFTER, (1, 2)), snapshot_of(BEFORE))
    source = LiveSource("live", cluster, unchanged, 1.0)
    first = source.reading("")
    source.refresh()
    assert source.reading("").number == first.number
    assert source.reading("").read_at >= first.read_at
    assert source.reading("").summary is first.summary
    source.refresh()
    second = source.reading("")
    assert (second.number, source.reading("1").snapshot) == (2, first.snapshot)
    changes = source.changes(second)
    assert changes is not None
    assert changes.counts == {
        "broker registered": 1,
        "partition isr": 1,
        "partition leader": 1,
        "topic created": 1,
        "topic deleted": 1,
    }
    assert Difference("partition", "a-0", "leader", 1, 2, "a") in changes.examples
    source.refresh()
    third = source.changes(source.reading(""))
    assert third is not None
    assert third.counts["partition leader"] == 2
    with pytest.raises(ParameterError, match="at: found '1', expected the number of a retained reading: 2 or 3"):
        source.reading("1")


def test_changes_of_more_than_an_hour_ago_are_left_out() -> None:
    source = LiveSource("live", ScriptedCluster(snapshot_of(BEFORE), snapshot_of(AFTER)), unchanged, 1.0)
    source.refresh()
    reading = source.reading("")
    later = source.changes(replace(reading, read_at=reading.read_at + timedelta(hours=2)))
    assert later is not None
    assert later.counts == {}


def test_failed_refresh_keeps_the_reading_and_is_shown() -> None:
    cluster = ScriptedCluster(snapshot_of(BEFORE), StoreError("no broker answers"), RuntimeError("defect"), None)
    source = LiveSource("live", cluster, unchanged, 3600.0)
    with console_of(source) as console:
        client = console.client
        for problem in ("no broker answers", "an error in kframe: RuntimeError"):
            source._refresher.attempt()
            assert client.get("/reading").json()["problem"] == problem
            assert problem in client.get("/").text
        source._refresher.attempt()
        assert client.get("/reading").json()["problem"] is None
        assert client.get("/").status_code == 200
    assert cluster.is_closed


def test_first_reading_that_fails_is_an_error_of_the_start() -> None:
    with pytest.raises(StoreError, match="unreachable"):
        LiveSource("live", ScriptedCluster(StoreError("unreachable")), unchanged, 1.0)


def test_capture_without_a_change_is_no_new_reading() -> None:
    states = [snapshot_of(BEFORE), snapshot_of(BEFORE), snapshot_of(AFTER)]

    class Captured:
        def capture(self) -> Snapshot:
            return states.pop(0)

    reader = CapturingReader(Captured())  # type: ignore[arg-type]
    assert [reader.read() is None for _ in range(3)] == [False, True, False]


def test_thread_refreshes_while_pages_are_served() -> None:
    cluster = ScriptedCluster(snapshot_of(BEFORE), *([snapshot_of(AFTER), snapshot_of(BEFORE)] * 10))
    with console_of(LiveSource("live", cluster, unchanged, 0.001)) as console:
        assert cluster.was_read.wait(60)
        content = console.client.get("/partitions?format=json")
        assert content.status_code == 200
        assert int(content.headers["kframe-reading"]) >= 20
    assert cluster.is_closed


def test_readings_that_need_much_cpu_time_are_made_less_often() -> None:
    refresher = Refresher(lambda: None, 0.5)
    assert [refresher.pause_s(cpu_s) for cpu_s in (0.0, 0.25, 2.0)] == [0.5, 0.5, 4.0]


STATE = st.tuples(st.sampled_from([-1, 1, 2, 3]), st.lists(st.sampled_from([1, 2, 3]), unique=True).map(tuple))
CLUSTERS = st.fixed_dictionaries({}, optional={topic: st.lists(STATE, min_size=1, max_size=3) for topic in "abc"})


@given(CLUSTERS, CLUSTERS)
def test_differences_are_those_of_plain_python(before: Any, after: Any) -> None:
    old, new = (
        {(topic, number): state for topic, states in cluster.items() for number, state in enumerate(states)}
        for cluster in (before, after)
    )
    expected: Counter[str] = Counter()
    expected["topic created"] = len(set(after) - set(before))
    expected["topic deleted"] = len(set(before) - set(after))
    for key in old.keys() & new.keys():
        expected["partition leader"] += old[key][0] != new[key][0]
        expected["partition isr"] += old[key][1] != new[key][1]
    result = differences_between(datetime.now(UTC), snapshot_of(old), snapshot_of(new))
    assert result.counts == +expected
    assert len(result.examples) == min(sum(expected.values()), 50)
    for difference in result.examples:
        if difference.kind == "partition":
            key = (difference.name[0], int(difference.name[2:]))
            column = ("leader", "isr").index(difference.change)
            states = [list(state) if column else state for state in (old[key][column], new[key][column])]
            assert [difference.before, difference.after] == states


def contents(log: WrittenLog) -> list[bytes]:
    """The batches of a log."""
    return [batch.content.tobytes() for batch in read_batches(log.data)]


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[tuple[WrittenLog, ScriptedState, str]]:
    written = small_cluster(tmp_path / "node")
    state = ScriptedState(high_watermark=written.offset, batches=contents(written))
    with ScriptedController(1, state) as controller:
        yield written, state, f"kraft://127.0.0.1:{controller.address[1]}"


def test_quorum_is_followed_by_its_log(quorum: tuple[WrittenLog, ScriptedState, str]) -> None:
    written, state, url = quorum
    reader = reader_of(build_registry().open_cluster(url))
    assert isinstance(reader, FollowingReader)
    source = LiveSource(url, reader, unchanged, 3600.0)
    assert source.reading("").snapshot.known_leaders().tolist() == [1, 2]
    written.append(change(0, isr=(2, 3), leader=2))
    written.append(records.TopicRecord(name="late", topic_id=ORDERS.__class__(int=7)), register(4))
    state.batches, state.high_watermark = contents(written), written.offset
    for _ in range(1_000):  # A poll waits a little for batches.
        source.refresh()
        if source.reading("").number == 3:
            break
    reading = source.reading("")
    captured = build_registry().open_cluster(url).capture()
    assert reading.snapshot.digest() == captured.digest()
    changes = source.changes(reading)
    assert changes is not None
    assert changes.counts["partition leader"] == changes.counts["topic created"] == 1
    source.close()


def test_directory_of_a_running_node_is_followed(tmp_path: Path) -> None:
    written = small_cluster(tmp_path / "node")
    opened: list[int] = []

    def reopen() -> Any:
        opened.append(1)
        return open_history(tmp_path / "node")

    history = open_history(tmp_path / "node")
    assert history is not None
    source = LoggedSource("node", history, unchanged, tmp_path / "node", reopen)
    source.refresh()
    first = source.reading("")
    assert first.number == 1, "its files are the same"
    written.append(change(0, isr=(2, 3), leader=2))
    source.refresh()
    second = source.reading("")
    assert second.number != first.number
    assert first.point is not None
    assert second.snapshot.known_leaders().tolist() == [2, 2]
    assert source.reading(str(first.point.end - 1)) is first
    assert source.points[-1] == second.point
    written.segment.rename(written.segment.with_name(f"{0:020}.log.deleted"))
    write_snapshot(second.snapshot, written.log / f"{written.offset:020}-{1:010}.checkpoint", force=False)
    written.roll()
    written.append(change(1, isr=(3,), leader=3))
    assert opened == []
    source.refresh()
    assert opened == [1], "the slider begins at the snapshot"
    assert [point.end for point in source.points] == [written.offset - 1, written.offset]
    assert source.reading("").snapshot.known_leaders().tolist() == [2, 3]
    assert source.reading(str(written.offset - 2)).snapshot.known_leaders().tolist() == [2, 2]


def test_slider_has_the_positions_of_the_history(tmp_path: Path) -> None:
    small_cluster(tmp_path / "node")
    history = open_history(tmp_path / "node")
    assert history is not None
    with console_of(LoggedSource("node", history, unchanged)) as console:
        text = console.client.get("/?at=4").text
        last = len(history.points(500)) - 1
        assert f'id="position" min="0" max="{last}" value="{last - 1}"' in text
        assert f'value="{last}"' in console.client.get("/").text
