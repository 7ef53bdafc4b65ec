"""The store contract, part 3: registrations of brokers and their watches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kframe.model.events import BrokerModified, BrokersChanged, Event
from kframe.ports.store_requests import Claim, Load, ReadBrokers, ReleaseRole
from kframe.testing.clusters import registration
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID, StorageFixture, StoreSuite, opened


class RegistrationsContract(StoreSuite):
    """Registrations and their watches."""

    def test_registrations_are_read_completely(self, storage: StorageFixture) -> None:
        store = opened(storage)
        registrations = (registration(7, rack="küche/Ω"), replace(registration(5), endpoints=()))
        broker_epochs = storage.register_brokers(registrations)
        read = {broker.broker_id: broker for broker in store.perform(ReadBrokers())}
        assert sorted(read) == [1, 2, 3, 5, 7]
        for expected, broker_epoch in zip(registrations, broker_epochs, strict=True):
            assert read[expected.broker_id] == replace(expected, broker_epoch=broker_epoch)
        loaded = store.perform(Load()).brokers
        assert loaded.registrations[loaded.index_of([7])[0]] == read[7]
        assert int(loaded.broker_epoch[loaded.index_of([7])[0]]) == broker_epochs[0]

    def test_broker_watch_fires_once_until_read_rearms_it(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store = opened(storage, notified)
        store.perform(ReadBrokers())
        storage.register_brokers([registration(5)])
        storage.unregister_brokers([5])
        storage.settle()
        assert notified == [BrokersChanged()]
        assert [broker.broker_id for broker in store.perform(ReadBrokers())] == [1, 2, 3]
        storage.unregister_brokers([2])
        storage.settle()
        assert notified == [BrokersChanged(), BrokersChanged()]

    @pytest.mark.parametrize(
        ("change", "remaining"),
        [
            (lambda storage: storage.unregister_brokers([1, 3]), [2]),
            (lambda storage: storage.register_brokers([registration(8), registration(9)]), [1, 2, 3, 8, 9]),
            (lambda storage: storage.bounce_brokers([2, 1]), [1, 2, 3]),
        ],
        ids=["failure", "startup", "bounce"],
    )
    def test_simultaneous_broker_changes_notify_once(
        self, storage: StorageFixture, change: Callable[[StorageFixture], object], remaining: list[int]
    ) -> None:
        notified: list[Event] = []
        store = opened(storage, notified)
        store.perform(Load())
        change(storage)
        storage.settle()
        assert notified == [BrokersChanged()]
        assert sorted(broker.broker_id for broker in store.perform(ReadBrokers())) == remaining

    def test_bounce_raises_broker_epoch(self, storage: StorageFixture) -> None:
        store = opened(storage)
        before = {broker.broker_id: broker for broker in store.perform(ReadBrokers())}
        (broker_epoch,) = storage.bounce_brokers([2])
        after = {broker.broker_id: broker for broker in store.perform(ReadBrokers())}
        assert after == before | {2: replace(before[2], broker_epoch=broker_epoch)}
        assert broker_epoch > before[2].broker_epoch

    def test_broker_modification_event_names_broker(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store = opened(storage, notified)
        before = {broker.broker_id: broker for broker in store.perform(ReadBrokers())}
        storage.modify_broker(registration(3, rack="moved"))
        storage.settle()
        assert notified == [BrokerModified(3)]
        after = {broker.broker_id: broker for broker in store.perform(ReadBrokers())}
        assert after == before | {3: replace(before[3], rack="moved")}, "the registration stays the same"

    def test_brokers_are_not_followed_after_release(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store = opened(storage, notified)
        store.perform(Claim(FIRST_ID))
        store.perform(Load())
        store.perform(ReleaseRole())
        storage.settle()
        notified.clear()
        storage.unregister_brokers([1])
        storage.modify_broker(registration(2, rack="moved"))
        storage.settle()
        assert notified == []

    def test_closed_store_sends_no_events(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store, other = opened(storage, notified), opened(storage)
        store.perform(Load())
        store.close()
        other.perform(Claim(SECOND_ID))
        storage.unregister_brokers([1])
        storage.settle()
        assert notified == []
