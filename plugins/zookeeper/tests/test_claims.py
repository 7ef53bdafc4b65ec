"""Who has the role: rivals, older sessions, records that make no sense."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import opened

from kframe.errors import ControllerFenced, StoreError
from kframe.model.events import Elect, Event
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
