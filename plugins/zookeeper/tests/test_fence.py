"""The fence closes by the local clock, and nothing passes a closed fence."""

from __future__ import annotations

import pytest
from kframe_zookeeper.session.fence import TRUSTED_PART, Fence
from kframe_zookeeper.session.requests import END, MultiRead, MultiWrite, get_data, set_data

from kframe.model.events import Event
from kframe.plugin.store import Claim, Load, WriteStates
from kframe.testing.clusters import StateSpec, change_of
from kframe.testing.store_fixture import FIRST_ID, codes, small_cluster
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.stores import opened


class Clock:
    """A clock. It advances only on request."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fence(clock: Clock) -> Fence:
    """Open now, for ten seconds."""
    fence = Fence(clock)
    fence.timeout_s = 10.0
    fence.contact(clock.now_s)
    return fence


def test_fence_is_closed_before_the_first_answer(clock: Clock) -> None:
    fence = Fence(clock)
    fence.timeout_s = 10.0
    assert not fence.is_open()


def test_fence_closes_before_the_session_timeout(clock: Clock, fence: Fence) -> None:
    clock.now_s += 10 * TRUSTED_PART - 0.01
    assert fence.is_open()
    clock.now_s += 0.02
    assert not fence.is_open()
    fence.contact(clock.now_s - 5.0)
    assert fence.is_open(), "a response on the same session proves that it lives"
    assert fence.remaining_s() == pytest.approx(10 * TRUSTED_PART - 5.0)


def test_older_response_does_not_shorten_the_fence(clock: Clock, fence: Fence) -> None:
    remaining_s = fence.remaining_s()
    fence.contact(clock.now_s - 8.0)
    assert fence.remaining_s() == remaining_s


def test_fence_stays_closed_after_the_session(clock: Clock, fence: Fence) -> None:
    fence.end()
    fence.contact(clock.now_s)
    assert not fence.is_open()


def test_closed_fence_drops_writes_and_sends_reads(clock: Clock, fence: Fence) -> None:
    write, read = MultiWrite(set_data("/x", b"1"), 1, fence), MultiRead(get_data("/x"), 1, fence)
    assert write.serialize() == set_data("/x", b"1") + END
    clock.now_s += 10.0
    assert write.serialize() == END
    assert read.serialize() == get_data("/x") + END


def test_fence_counts_from_the_sending_of_the_request(clock: Clock, fence: Fence) -> None:
    read = MultiRead(get_data("/x"), 1, fence)
    clock.now_s += 4.0
    read.serialize()
    clock.now_s += 4.0
    read.deserialize(END, 0)
    assert fence.remaining_s() == pytest.approx(10 * TRUSTED_PART - 4.0)


def test_write_with_closed_fence_waits_for_a_response(make_fixture: FixtureFactory) -> None:
    """The request is sent without operations. After its response proves that the session lives, it is sent again."""
    fixture, events = make_fixture(small_cluster()), list[Event]()
    store = opened(fixture, events=events)
    assert store.perform(Claim(FIRST_ID)) == 1
    cluster = store.perform(Load())
    fixture.settle()
    events.clear()
    connection = store._connection
    assert connection is not None
    fence, empty = connection.session.fence, list[bool]()
    awake_s, is_open = fence.now_s, fence.is_open
    fence.now_s = lambda: awake_s() + 1000.0

    def check_once() -> bool:
        empty.append(not is_open())
        return is_open()

    fence.is_open = check_once  # type: ignore[method-assign]
    assert not store.may_act()
    empty.clear()
    change = change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1)
    assert codes(store.perform(WriteStates(cluster, change))) == ["OK"]
    assert empty[:2] == [True, False]
    assert store.may_act()
    assert (events, store._connection) == ([], connection)
