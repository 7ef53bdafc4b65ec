"""Who has the role: rivals, older sessions, records that make no sense."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper import paths
from kframe_zookeeper.role import EPOCH_MOST
from kframe_zookeeper.testing.proxy import MULTI, Break, Link, Moment, Proxy
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import opened, until
from kframe_zookeeper.testing.victims import build
from kframe_zookeeper.znodes import decode_controller, encode_controller

from kframe.errors import ControllerFenced, StoreError
from kframe.model.events import Elect, Event, SessionExpired
from kframe.testing.clusters import StateSpec, change_of, registration
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


def elect_broker(operator: KazooClient, broker_id: int) -> None:
    """Have a registered broker claim the role, in the session that owns its registration, as brokers do."""
    operator.ensure_path(paths.CONTROLLER_EPOCH)
    epoch, stat = operator.get(paths.CONTROLLER_EPOCH)
    transaction = operator.transaction()
    transaction.create(paths.CONTROLLER, encode_controller(broker_id, 0), ephemeral=True)
    transaction.set_data(paths.CONTROLLER_EPOCH, str(int(epoch or b"0") + 1).encode(), version=stat.version)
    assert not [one for one in transaction.commit() if isinstance(one, Exception)]


def test_a_standby_claims_at_the_notification_and_hands_the_claim_out_once(
    worlds: Callable[..., ZooKeeperWorld],
) -> None:
    world, heard = worlds(small_cluster()), list[Event]()
    active, standby = opened(world), opened(world, heard=heard)
    assert active.claim(ONE) == 1
    assert standby.controller() == ONE
    standby.contend(TWO)
    active.release()
    until(lambda: Elect() in heard)
    # Nobody has called claim.
    assert decode_controller(world.operator.get(paths.CONTROLLER)[0]).brokerid == TWO
    assert world.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"
    assert (standby.controller(), standby.owns_role(), standby.may_act()) == (-1, False, False)
    assert standby.claim(TWO) == 2
    assert (standby.controller(), standby.owns_role(), standby.may_act()) == (TWO, True, True)
    standby.prepare()
    assert active.claim(ONE) is None


def test_of_two_standbys_one_claims_at_one_epoch(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    heard = [list[Event]() for _ in range(3)]
    active, *standbys = (opened(world, heard=events) for events in heard)
    assert active.claim(ONE) == 1
    for number, store in enumerate(standbys):
        assert store.controller() == ONE
        store.contend(TWO + number)
    world.drop_controller()
    until(lambda: all(Elect() in events for events in heard))
    assert sorted(str(store.claim(TWO + number)) for number, store in enumerate(standbys)) == ["2", "None"]
    assert world.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"


def test_an_early_claim_that_lost_leaves_no_trace(worlds: Callable[..., ZooKeeperWorld]) -> None:
    """The epoch that was known is not that of the broker that was first; the next election is contended for anew."""
    world, heard = worlds(small_cluster()), list[Event]()
    active, standby = opened(world), opened(world, heard=heard)
    assert active.claim(ONE) == 1
    assert standby.controller() == ONE
    standby.contend(TWO)
    world.operator.set(paths.CONTROLLER_EPOCH, b"7")
    world.drop_controller()
    until(lambda: Elect() in heard)
    assert world.operator.exists(paths.CONTROLLER) is None
    assert (standby.controller(), standby.owns_role()) == (-1, False)
    assert standby.claim(TWO) == 8


def test_a_role_that_was_won_and_is_not_taken_goes_with_the_session(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world, heard = worlds(small_cluster(), session_timeout_ms=2000), list[Event]()
    active, standby = opened(world), opened(world, heard=heard)
    assert active.claim(ONE) == 1
    assert standby.controller() == ONE
    standby.contend(TWO)
    world.drop_controller()
    until(lambda: heard[-2:] == [SessionExpired(), Elect()])
    assert world.operator.exists(paths.CONTROLLER) is None
    assert standby.claim(TWO) == 3


def test_a_takeover_from_brokers_spares_other_instances(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    first, second = opened(world), opened(world)
    assert first.claim(ONE) == 1
    assert second.take_over(TWO, brokers_only=True) is None
    first.announce(registration(ONE))
    until(lambda: world.operator.exists(paths.broker_path(ONE)) is not None)
    assert second.take_over(TWO, brokers_only=True) is None
    assert (first.owns_role(), world.operator.get(paths.CONTROLLER_EPOCH)[0]) == (True, b"1")
    first.release()
    assert first.claim(1) == 2, "under the id of a broker that another session has registered"
    assert second.take_over(TWO, brokers_only=True) is None
    first.release()
    elect_broker(world.operator, 1)
    assert second.take_over(TWO, brokers_only=True) == 4
    assert second.owns_role()


def test_a_takeover_from_a_broker_that_has_just_gone_spares_its_successor(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    """The instance that follows the broker claims between the read and the write of the takeover."""
    world = worlds(small_cluster())
    successor, late = opened(world), opened(world, proxy)
    elect_broker(world.operator, 1)

    def succeed(_: Link) -> None:
        world.drop_controller()
        assert successor.claim(ONE) == 2

    proxy.script(Break(Moment.BEFORE_REQUEST, 1, MULTI, succeed))
    assert late.take_over(TWO, brokers_only=True) is None
    assert (successor.owns_role(), world.operator.get(paths.CONTROLLER_EPOCH)[0]) == (True, b"2")
