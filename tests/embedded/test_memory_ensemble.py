"""MemoryEnsemble beyond the contract of stores: registrations, broker epochs and other records."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kframe.embedded import MemoryEnsemble, MemoryStore
from kframe.errors import ControllerFenced, InputError, StoreError
from kframe.model.events import BrokersChanged, ControllerChanged, Event, Reelect, SessionExpired
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.ports.store_requests import Claim, Load, Prepare, ReadBrokers, ReadController
from kframe.testing.clusters import cluster_of, healthy, registration


@pytest.fixture
def ensemble() -> MemoryEnsemble:
    return MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1, 2)]}, registered=[1, 2]))


def opened(ensemble: MemoryEnsemble, notified: list[Event] | None = None) -> MemoryStore:
    store = ensemble.connect()
    store.open(([] if notified is None else notified).append)
    return store


def test_stored_broker_epochs_remain_and_new_ones_are_higher() -> None:
    cluster = cluster_of({}, registered=[registration(1, broker_epoch=901), registration(2, broker_epoch=20)])
    ensemble = MemoryEnsemble.from_cluster(cluster)
    assert [registration.broker_epoch for registration in ensemble.registrations()] == [901, 20]
    (new,) = ensemble.register_brokers([registration(3)])
    (bounced,) = ensemble.bounce_brokers([2])
    assert 901 < new < bounced
    assert ensemble.register_brokers([registration(4, broker_epoch=7), registration(5)]) == (7, bounced + 1)


def test_brokers_registered_together_share_the_zxid(ensemble: MemoryEnsemble) -> None:
    first, second = ensemble.register_brokers([registration(8), registration(9)])
    assert first == second == ensemble.records.zxid
    first, second = ensemble.bounce_brokers([8, 9])
    assert first == second == ensemble.records.zxid


Act = Callable[[MemoryEnsemble], object]
#: The operation, and the location and cause in its error message.
IMPOSSIBLE: list[tuple[str, Act, tuple[str, str]]] = [
    (
        "register twice",
        lambda e: e.register_brokers([registration(3), registration(2)]),
        ("/brokers/ids/2", "a registration"),
    ),
    (
        "register one twice",
        lambda e: e.register_brokers([registration(3), registration(3)]),
        ("/brokers/ids/3", "a registration"),
    ),
    ("unregister an unknown broker", lambda e: e.unregister_brokers([1, 3]), ("/brokers/ids/3", "none")),
    ("bounce an unknown broker", lambda e: e.bounce_brokers([1, 3]), ("/brokers/ids/3", "none")),
    ("modify an unknown broker", lambda e: e.modify_broker(registration(3)), ("/brokers/ids/3", "none")),
    ("depose a missing controller", lambda e: e.drop_controller(), ("/controller", "no controller")),
    ("write an unknown topic", lambda e: e.write_state("u", 0, isr=[1]), ("u-0", "no such partition")),
    ("write an unknown partition", lambda e: e.write_state("t", 1, isr=[1]), ("t-1", "no such partition")),
]


@pytest.mark.parametrize("act, named", [row[1:] for row in IMPOSSIBLE], ids=[row[0] for row in IMPOSSIBLE])
def test_invalid_operations_report_path_and_change_nothing(
    ensemble: MemoryEnsemble, act: Act, named: tuple[str, str]
) -> None:
    notified: list[Event] = []
    opened(ensemble, notified).perform(Load())
    before = ensemble.registrations()
    with pytest.raises(InputError) as refused:
        act(ensemble)
    assert (refused.value.where, refused.value.actual) == named
    assert ensemble.registrations() == before
    assert notified == []


def test_prepare_settles_features_and_drops_notifications(ensemble: MemoryEnsemble) -> None:
    """controller 3.2: step 0 and step 3.
    controller 14: at failover the feature record is created where it is missing.
    """
    records = ensemble.records
    operator = records.open_session(lambda _event: None)
    records.create(operator, "/isr_change_notification/isr_change_", b"{}", sequential=True)
    records.create(operator, "/isr_change_notification/isr_change_", b"{}", sequential=True)
    records.create(operator, "/log_dir_event_notification/log_dir_event_", b"{}", sequential=True)
    store = opened(ensemble)
    store.perform(Claim(1000))
    for _ in "twice":
        store.perform(Prepare())
    assert records.children(operator, "/isr_change_notification") == []
    assert records.children(operator, "/log_dir_event_notification") == []
    assert records.get(operator, "/feature")[0] == b'{"version":2,"status":1,"features":{}}'


def test_prepare_is_fenced(ensemble: MemoryEnsemble) -> None:
    """Kafka 3.9 writes ``/feature`` regardless of the active controller (``docs/explanation/safety.md`` X4)."""
    store = opened(ensemble)
    store.perform(Claim(1000))
    ensemble.drop_controller()
    opened(ensemble).perform(Claim(1001))
    with pytest.raises(ControllerFenced):
        store.perform(Prepare())
    assert ensemble.records.exists(ensemble.records.open_session(lambda _event: None), "/feature") is None


def test_order_of_events_when_the_controller_expires(ensemble: MemoryEnsemble) -> None:
    notified: list[tuple[str, Event]] = []
    first, second = ensemble.connect(), ensemble.connect()
    first.open(lambda event: notified.append(("first", event)))
    second.open(lambda event: notified.append(("second", event)))
    first.perform(Claim(1))
    assert notified == [("first", ControllerChanged()), ("second", ControllerChanged())], (
        "the winner hears of itself, too"
    )
    second.perform(ReadController())
    notified.clear()
    ensemble.expire(first)
    assert notified == [("second", Reelect()), ("first", SessionExpired()), ("first", Reelect())]


def test_new_session_after_expiry_has_no_watches_until_read(ensemble: MemoryEnsemble) -> None:
    notified: list[Event] = []
    store = opened(ensemble, notified)
    store.perform(Load())
    ensemble.expire(store)
    notified.clear()
    ensemble.unregister_brokers([1])
    assert notified == []
    store.perform(ReadBrokers())
    ensemble.unregister_brokers([2])
    assert notified == [BrokersChanged()]


def test_store_is_opened_once(ensemble: MemoryEnsemble) -> None:
    store = opened(ensemble)
    with pytest.raises(StoreError):
        store.open(lambda _event: None)
    store.close()
    store.open(lambda _event: None)
    assert store.perform(Claim(5)) == 1


def test_load_returns_registered_and_unregistered_brokers() -> None:
    ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1, 2, 9)]}, registered=[1, 2]))
    ensemble.unregister_brokers([1])
    brokers = opened(ensemble).perform(Load()).brokers
    broker_rows = {
        int(broker_id): (bool(brokers.registered[n]), int(brokers.broker_epoch[n]), brokers.registrations[n])
        for n, broker_id in enumerate(brokers.ids)
    }
    (second,) = ensemble.registrations()
    assert broker_rows == {
        1: (False, NO_BROKER_EPOCH, None),
        2: (True, second.broker_epoch, second),
        9: (False, NO_BROKER_EPOCH, None),
    }
