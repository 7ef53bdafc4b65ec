"""Claims of the role with rivals, older sessions and malformed znodes."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper.role.election import EPOCH_MAX
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.cluster import decode_controller, encode_controller

from kframe.errors import ControllerFenced, StoreError
from kframe.model.events import Event, Reelect, SessionExpired
from kframe.plugin.store import Claim, Holder, Load, OwnsRole, Prepare, ReadController, ReleaseRole, WriteStates
from kframe.testing.clusters import StateSpec, change_of, registration
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID, small_cluster
from kframe.testing.waiting import wait_until
from verification.zookeeper.proxy import MULTI, Break, BreakPoint, Link, Proxy
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.stores import opened
from verification.zookeeper.victims import build

#: Opcode of a sync: the server catches up with its leader.
SYNC = 9


@pytest.mark.smoke
def test_takeover_notifies_and_fences_the_old_controller(make_fixture: FixtureFactory) -> None:
    fixture, events = make_fixture(small_cluster()), list[Event]()
    first, second = opened(fixture, events=events), opened(fixture)
    assert first.perform(Claim(FIRST_ID)) == 1
    cluster = first.perform(Load())
    fixture.settle()
    events.clear()
    assert second.perform(Claim(SECOND_ID, takeover=True)) == 2
    fixture.settle()
    assert events == [Reelect()]
    assert (first.perform(ReadController()), second.perform(OwnsRole())) == (Holder(SECOND_ID, ours=False), True)
    with pytest.raises(ControllerFenced):
        first.perform(WriteStates(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1)))


def test_persistent_controller_znode_is_reported_and_not_replaced(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    fixture.operator.create(paths.CONTROLLER, b"")
    store = opened(fixture)
    assert (
        store.perform(Claim(FIRST_ID)),
        store.perform(ReadController()).controller_id,
        store.perform(OwnsRole()),
    ) == (None, -1, False)
    assert list(store.quarantined()) == [paths.CONTROLLER]
    assert fixture.operator.get(paths.CONTROLLER)[0] == b""
    fixture.operator.delete(paths.CONTROLLER)
    assert (store.perform(Claim(FIRST_ID)), store.perform(ReadController()).controller_id, store.quarantined()) == (
        1,
        FIRST_ID,
        {},
    )


def test_controller_znode_of_earlier_session_is_foreign(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    older, newer = opened(fixture), opened(fixture)
    assert older.perform(Claim(FIRST_ID)) == 1
    assert newer.perform(Claim(FIRST_ID)) is None
    assert (newer.perform(ReadController()).controller_id, newer.perform(OwnsRole())) == (FIRST_ID, False)
    with pytest.raises(ControllerFenced):
        newer.perform(Prepare())


@pytest.mark.parametrize("epoch", [b"", b"seven", b"-3", b"2147483647"])
def test_malformed_or_exhausted_controller_epoch_stops_the_claim(make_fixture: FixtureFactory, epoch: bytes) -> None:
    fixture = make_fixture(small_cluster())
    fixture.operator.create(paths.CONTROLLER_EPOCH, epoch)
    store = opened(fixture)
    with pytest.raises(StoreError):
        store.perform(Claim(FIRST_ID))
    assert fixture.operator.get(paths.CONTROLLER_EPOCH)[0] == epoch
    assert fixture.operator.exists(paths.CONTROLLER) is None


@pytest.mark.parametrize("written", [b"50", b"1", b"no number"], ids=["higher", "same value", "nonsense"])
def test_foreign_write_of_the_controller_epoch_makes_the_controller_resign(
    make_fixture: FixtureFactory, written: bytes
) -> None:
    """Otherwise all writes would be fenced. No controller could be elected while ``/controller`` exists."""
    fixture, events = make_fixture(small_cluster(), session_timeout_ms=4000), list[Event]()
    store = opened(fixture, events=events)
    assert store.perform(Claim(FIRST_ID)) == 1
    cluster, before = store.perform(Load()), store._connection
    fixture.operator.set(paths.CONTROLLER_EPOCH, written)
    with pytest.raises(ControllerFenced):
        store.perform(WriteStates(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1)))
    wait_until(lambda: events[-2:] == [SessionExpired(), Reelect()])
    assert store._connection is not before
    assert fixture.operator.exists(paths.CONTROLLER) is None
    if written.isdigit():
        assert store.perform(Claim(FIRST_ID)) == int(written) + 1
        store.perform(Prepare())


@pytest.mark.parametrize(
    "change_epoch",
    [
        lambda operator: operator.set(paths.CONTROLLER_EPOCH, b"3"),
        lambda operator: operator.delete(paths.CONTROLLER_EPOCH),
    ],
    ids=["lowered", "deleted"],
)
@pytest.mark.parametrize("claimant", ["former controller", "standby"])
def test_lowered_controller_epoch_is_not_followed(
    make_fixture: FixtureFactory, change_epoch: Callable[[KazooClient], object], claimant: str
) -> None:
    """Brokers remember the higher epoch, and ignore requests with a lower one."""
    fixture = make_fixture(small_cluster(), session_timeout_ms=4000)
    fixture.operator.create(paths.CONTROLLER_EPOCH, b"40")
    first, second = opened(fixture), opened(fixture)
    assert first.perform(Claim(FIRST_ID)) == 41
    before = first._connection
    wait_until(lambda: second._highest_epoch == 41)
    change_epoch(fixture.operator)
    wait_until(lambda: first._connection is not before)
    assert (first if claimant == "former controller" else second).perform(Claim(SECOND_ID)) == 42
    assert fixture.operator.get(paths.CONTROLLER_EPOCH)[0] == b"42"


def test_exhausted_controller_epoch_is_logged_and_ends_the_claim(
    make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture
) -> None:
    fixture = make_fixture(small_cluster())
    fixture.operator.create(paths.CONTROLLER_EPOCH, str(EPOCH_MAX - 1).encode())
    controller, loop = build(FIRST_ID, fixture.connect())
    with caplog.at_level(logging.ERROR, "kframe"):
        controller.open()
        loop.start()
        wait_until(lambda: controller.status().controller_epoch == EPOCH_MAX)
        fixture.drop_controller()
        wait_until(lambda: any("no higher controller epoch can be sent" in message for message in caplog.messages))
        assert not controller.status().active
        controller.stop()
    assert fixture.operator.get(paths.CONTROLLER_EPOCH)[0] == str(EPOCH_MAX).encode()
    assert fixture.operator.exists(paths.CONTROLLER) is None


def elect_broker(operator: KazooClient, broker_id: int) -> None:
    """Elect a registered broker in the session that owns its registration, as Kafka does."""
    operator.ensure_path(paths.CONTROLLER_EPOCH)
    epoch, stat = operator.get(paths.CONTROLLER_EPOCH)
    transaction = operator.transaction()
    transaction.create(paths.CONTROLLER, encode_controller(broker_id, 0), ephemeral=True)
    transaction.set_data(paths.CONTROLLER_EPOCH, str(int(epoch or b"0") + 1).encode(), version=stat.version)
    assert not [result for result in transaction.commit() if isinstance(result, Exception)]


def test_standby_claims_once_per_notification(make_fixture: FixtureFactory) -> None:
    fixture, events = make_fixture(small_cluster()), list[Event]()
    active, standby = opened(fixture), opened(fixture, events=events)
    assert active.perform(Claim(FIRST_ID)) == 1
    assert standby.perform(ReadController()).controller_id == FIRST_ID
    standby.contend(SECOND_ID)
    active.perform(ReleaseRole())
    wait_until(lambda: Reelect() in events)
    # ``Claim`` was not requested: the notification sent the request, which the server has perhaps not executed yet.
    wait_until(lambda: fixture.operator.exists(paths.CONTROLLER) is not None)
    assert decode_controller(fixture.operator.get(paths.CONTROLLER)[0]).brokerid == SECOND_ID
    assert fixture.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"
    assert (standby.perform(ReadController()), standby.may_act()) == (Holder(-1, ours=False), False)
    assert standby.perform(Claim(SECOND_ID)) == 2
    assert (standby.perform(ReadController()), standby.may_act()) == (Holder(SECOND_ID, ours=True), True)
    standby.perform(Prepare())
    assert active.perform(Claim(FIRST_ID)) is None


def test_two_standbys_use_single_controller_epoch(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    events = [list[Event]() for _ in range(3)]
    active, *standbys = (opened(fixture, events=events) for events in events)
    assert active.perform(Claim(FIRST_ID)) == 1
    for number, store in enumerate(standbys):
        assert store.perform(ReadController()).controller_id == FIRST_ID
        store.contend(SECOND_ID + number)
    fixture.drop_controller()
    wait_until(lambda: all(Reelect() in events for events in events))
    assert sorted(str(store.perform(Claim(SECOND_ID + number))) for number, store in enumerate(standbys)) == [
        "2",
        "None",
    ]
    assert fixture.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"


def test_lost_early_claim_changes_nothing(make_fixture: FixtureFactory) -> None:
    """The known epoch is outdated, because a broker was elected first. The store contends for the next election."""
    fixture, events = make_fixture(small_cluster()), list[Event]()
    active, standby = opened(fixture), opened(fixture, events=events)
    assert active.perform(Claim(FIRST_ID)) == 1
    assert standby.perform(ReadController()).controller_id == FIRST_ID
    standby.contend(SECOND_ID)
    fixture.operator.set(paths.CONTROLLER_EPOCH, b"7")
    fixture.drop_controller()
    wait_until(lambda: Reelect() in events)
    assert fixture.operator.exists(paths.CONTROLLER) is None
    assert (standby.perform(ReadController()).controller_id, standby.perform(OwnsRole())) == (-1, False)
    assert standby.perform(Claim(SECOND_ID)) == 8


def test_early_claim_that_is_not_used_ends_the_session(make_fixture: FixtureFactory) -> None:
    fixture, events = make_fixture(small_cluster(), session_timeout_ms=2000), list[Event]()
    active, standby = opened(fixture), opened(fixture, events=events)
    assert active.perform(Claim(FIRST_ID)) == 1
    assert standby.perform(ReadController()).controller_id == FIRST_ID
    standby.contend(SECOND_ID)
    fixture.drop_controller()
    wait_until(lambda: events[-2:] == [SessionExpired(), Reelect()])
    assert fixture.operator.exists(paths.CONTROLLER) is None
    assert standby.perform(Claim(SECOND_ID)) == 3


def test_takeover_from_brokers_does_not_affect_other_instances(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    first, second = opened(fixture), opened(fixture)
    assert first.perform(Claim(FIRST_ID)) == 1
    assert second.perform(Claim(SECOND_ID, brokers_only=True, takeover=True)) is None
    first.announce(registration(FIRST_ID))
    wait_until(lambda: fixture.operator.exists(paths.broker_path(FIRST_ID)) is not None)
    assert second.perform(Claim(SECOND_ID, brokers_only=True, takeover=True)) is None
    assert (first.perform(OwnsRole()), fixture.operator.get(paths.CONTROLLER_EPOCH)[0]) == (True, b"1")
    first.perform(ReleaseRole())
    assert first.perform(Claim(1)) == 2, "under the id of a broker that another session has registered"
    assert second.perform(Claim(SECOND_ID, brokers_only=True, takeover=True)) is None
    first.perform(ReleaseRole())
    elect_broker(fixture.operator, 1)
    assert second.perform(Claim(SECOND_ID, brokers_only=True, takeover=True)) == 4
    assert second.perform(OwnsRole())


def test_takeover_from_failed_broker_does_not_affect_successor(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    """Another instance is elected between the read and the write of the takeover."""
    fixture = make_fixture(small_cluster())
    successor, slow = opened(fixture), opened(fixture, proxy)
    elect_broker(fixture.operator, 1)

    def succeed(_: Link) -> None:
        fixture.drop_controller()
        assert successor.perform(Claim(FIRST_ID)) == 2

    proxy.script(Break(BreakPoint.BEFORE_REQUEST, 1, MULTI, succeed))
    assert slow.perform(Claim(SECOND_ID, brokers_only=True, takeover=True)) is None
    assert (successor.perform(OwnsRole()), fixture.operator.get(paths.CONTROLLER_EPOCH)[0]) == (True, b"2")


def test_claim_syncs_with_a_lagging_server(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    """The server shows a deleted ``/controller`` until it syncs."""
    fixture = make_fixture(small_cluster())
    fixture.operator.create(paths.CONTROLLER, b'{"version":1,"brokerid":7,"timestamp":"0"}')

    def catch_up(_: Link) -> None:
        fixture.operator.delete(paths.CONTROLLER)

    caught_up = Break(BreakPoint.BEFORE_REQUEST, opcode=SYNC, action=catch_up)
    proxy.script(caught_up)
    assert opened(fixture, proxy).perform(Claim(FIRST_ID)) == 1
    assert caught_up.happened.is_set()
