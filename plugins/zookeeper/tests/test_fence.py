"""The fence shuts by our own clock, and lets nothing through once it is shut."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kframe_zookeeper.fence import TRUSTED_PART, Fence
from kframe_zookeeper.requests import END, MultiRead, MultiWrite, get_data, set_data
from kframe_zookeeper.settings import settings_of_url
from kframe_zookeeper.testing.servers import ServerHandle
from kframe_zookeeper.testing.store_world import ZooKeeperWorld

from kframe.model.events import Event
from kframe.testing.clusters import StateSpec, change_of
from kframe.testing.store_world import ONE, codes, small_cluster


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fence(clock: Clock) -> Fence:
    """In contact now, for ten seconds."""
    fence = Fence(clock)
    fence.timeout_s = 10.0
    fence.contact(clock.now_s)
    return fence


def test_it_is_shut_before_the_first_contact(clock: Clock) -> None:
    fence = Fence(clock)
    fence.timeout_s = 10.0
    assert not fence.is_open()


def test_it_shuts_before_the_timeout_has_passed_since_the_last_answered_request_was_sent(
    clock: Clock, fence: Fence
) -> None:
    clock.now_s += 10 * TRUSTED_PART - 0.01
    assert fence.is_open()
    clock.now_s += 0.02
    assert not fence.is_open()
    fence.contact(clock.now_s - 5.0)
    assert fence.is_open(), "an answer on the same session proves that it lives"
    assert fence.left_s() == pytest.approx(10 * TRUSTED_PART - 5.0)


def test_an_old_answer_takes_nothing_back(clock: Clock, fence: Fence) -> None:
    left_s = fence.left_s()
    fence.contact(clock.now_s - 8.0)
    assert fence.left_s() == left_s


def test_it_never_opens_after_the_end(clock: Clock, fence: Fence) -> None:
    fence.end()
    fence.contact(clock.now_s)
    assert not fence.is_open()


def test_writes_are_left_out_at_the_moment_of_sending_and_reads_are_not(clock: Clock, fence: Fence) -> None:
    write, read = MultiWrite(set_data("/x", b"1"), 1, fence), MultiRead(get_data("/x"), 1, fence)
    assert write.serialize() == set_data("/x", b"1") + END
    clock.now_s += 10.0
    assert write.serialize() == END
    assert read.serialize() == get_data("/x") + END


def test_an_answer_counts_from_when_its_request_was_sent(clock: Clock, fence: Fence) -> None:
    read = MultiRead(get_data("/x"), 1, fence)
    clock.now_s += 4.0
    read.serialize()
    clock.now_s += 4.0
    read.deserialize(END, 0)
    assert fence.left_s() == pytest.approx(10 * TRUSTED_PART - 4.0)


@pytest.fixture
def world(zookeeper: ServerHandle) -> Iterator[ZooKeeperWorld]:
    made = ZooKeeperWorld(settings_of_url(f"zookeeper://{zookeeper.address}"), small_cluster())
    yield made
    made.close()


def test_behind_a_shut_fence_a_write_waits_until_the_server_has_answered(world: ZooKeeperWorld) -> None:
    """The request leaves without operations, and once more when its answer has proven that the session lives."""
    heard: list[Event] = []
    store = world.connect()
    store.open(heard.append)
    assert store.claim(ONE) == 1
    cluster = store.load()
    world.settle()
    heard.clear()
    connection = store._connection
    assert connection is not None
    fence, empty = connection.session.fence, list[bool]()
    awake_s, is_open = fence.now_s, fence.is_open
    fence.now_s = lambda: awake_s() + 1000.0

    def looked_at() -> bool:
        empty.append(not is_open())
        return is_open()

    fence.is_open = looked_at  # type: ignore[method-assign]
    assert not store.may_act()
    empty.clear()
    change = change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1)
    assert codes(store.write_states(cluster, change)) == ["OK"]
    assert empty[:2] == [True, False]
    assert store.may_act()
    assert (heard, store._connection) == ([], connection)
