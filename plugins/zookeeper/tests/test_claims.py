"""Who has the role: rivals, older sessions, records that make no sense."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper import paths
from kframe_zookeeper.role import EPOCH_MOST
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import opened, until
from kframe_zookeeper.testing.victims import build

from kframe.errors import ControllerFenced, StoreError
from kframe.model.events import Elect, Event, SessionExpired
from kframe.testing.clusters import StateSpec, change_of
from kframe.testing.store_world import ONE, TWO, small_cluster


def test_a_takeover_is_told_to_the_one_who_loses_and_fences_it(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world, heard = worlds(small_cluster()), list[Event]()
    first, second = opened(world, heard=heard), opened(world)
    assert first.claim(ONE) == 1
    cluster = first.load()
    world.settle()
    heard.clear()
    assert second.take_over(TWO) == 2
    world.settle()
    assert heard == [Elect()]
    assert (first.owns_role(), first.controller(), second.owns_role()) == (False, TWO, True)
    with pytest.raises(ControllerFenced):
        first.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))


def test_nobodys_controller_record_is_reported_and_left_alone(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    world.operator.create(paths.CONTROLLER, b"")
    store = opened(world)
    assert (store.claim(ONE), store.controller(), store.owns_role()) == (None, -1, False)
    assert list(store.quarantined()) == [paths.CONTROLLER]
    assert world.operator.get(paths.CONTROLLER)[0] == b""
    world.operator.delete(paths.CONTROLLER)
    assert (store.claim(ONE), store.controller(), store.quarantined()) == (1, ONE, {})


def test_our_broker_id_in_the_record_of_an_older_session_is_not_ours(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    older, newer = opened(world), opened(world)
    assert older.claim(ONE) == 1
    assert newer.claim(ONE) is None
    assert (newer.controller(), newer.owns_role()) == (ONE, False)
    with pytest.raises(ControllerFenced):
        newer.prepare()


@pytest.mark.parametrize("epoch", [b"", b"seven", b"-3", b"2147483647"])
def test_a_controller_epoch_that_nobody_can_follow_stops_the_claim(
    worlds: Callable[..., ZooKeeperWorld], epoch: bytes
) -> None:
    world = worlds(small_cluster())
    world.operator.create(paths.CONTROLLER_EPOCH, epoch)
    store = opened(world)
    with pytest.raises(StoreError):
        store.claim(ONE)
    assert world.operator.get(paths.CONTROLLER_EPOCH)[0] == epoch
    assert world.operator.exists(paths.CONTROLLER) is None


@pytest.mark.parametrize("written", [b"50", b"1", b"no number"], ids=["ahead", "the same again", "nonsense"])
def test_who_writes_the_controller_epoch_without_the_role_makes_us_resign(
    worlds: Callable[..., ZooKeeperWorld], written: bytes
) -> None:
    """Nobody's writes would pass any more, and nobody could be elected as long as ours is the record."""
    world, heard = worlds(small_cluster(), session_timeout_ms=4000), list[Event]()
    store = opened(world, heard=heard)
    assert store.claim(ONE) == 1
    cluster, before = store.load(), store._connection
    world.operator.set(paths.CONTROLLER_EPOCH, written)
    with pytest.raises(ControllerFenced):
        store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
    until(lambda: heard[-2:] == [SessionExpired(), Elect()])
    assert store._connection is not before
    assert world.operator.exists(paths.CONTROLLER) is None
    if written.isdigit():
        assert store.claim(ONE) == int(written) + 1
        store.prepare()


@pytest.mark.parametrize(
    "falls",
    [
        lambda operator: operator.set(paths.CONTROLLER_EPOCH, b"3"),
        lambda operator: operator.delete(paths.CONTROLLER_EPOCH),
    ],
    ids=["lowered", "deleted"],
)
@pytest.mark.parametrize("who", ["who had the role", "who stood by"])
def test_a_controller_epoch_that_falls_is_not_followed(
    worlds: Callable[..., ZooKeeperWorld], falls: Callable[[KazooClient], object], who: str
) -> None:
    """Brokers remember the higher one, and would do nothing that is asked of them under a lower one."""
    world = worlds(small_cluster(), session_timeout_ms=4000)
    world.operator.create(paths.CONTROLLER_EPOCH, b"40")
    first, second = opened(world), opened(world)
    assert first.claim(ONE) == 41
    before = first._connection
    until(lambda: second._highest_epoch == 41)
    falls(world.operator)
    until(lambda: first._connection is not before)
    assert (first if who == "who had the role" else second).claim(TWO) == 42
    assert world.operator.get(paths.CONTROLLER_EPOCH)[0] == b"42"


def test_a_controller_stops_and_says_so_where_the_controller_epochs_end(
    worlds: Callable[..., ZooKeeperWorld], caplog: pytest.LogCaptureFixture
) -> None:
    world = worlds(small_cluster())
    world.operator.create(paths.CONTROLLER_EPOCH, str(EPOCH_MOST - 1).encode())
    controller, loop = build(ONE, world.connect())
    with caplog.at_level(logging.ERROR, "kframe"):
        controller.open()
        loop.start()
        until(lambda: controller.status().controller_epoch == EPOCH_MOST)
        world.drop_controller()
        until(lambda: any("no higher controller epoch can be sent" in one for one in caplog.messages))
        assert not controller.status().active
        controller.stop()
    assert world.operator.get(paths.CONTROLLER_EPOCH)[0] == str(EPOCH_MOST).encode()
    assert world.operator.exists(paths.CONTROLLER) is None
