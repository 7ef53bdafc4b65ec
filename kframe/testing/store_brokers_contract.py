"""The store contract, third part: who is registered, and how that is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kframe.model.events import BrokerModified, BrokersChanged, Event
from kframe.testing.clusters import (
    registration,
)
from kframe.testing.store_world import (
    ONE,
    TWO,
    StoreSuite,
    StoreWorld,
    opened,
)


class RegistrationsContract(StoreSuite):
    """Registrations and their watches."""

    def test_registrations_are_read_whole(self, world: StoreWorld) -> None:
        """Rack, endpoints and broker epoch, also in what is loaded."""
        store = opened(world)
        given = (registration(7, rack="küche/Ω"), replace(registration(5), endpoints=()))
        broker_epochs = world.register_brokers(given)
        read = {one.broker_id: one for one in store.read_brokers()}
        assert sorted(read) == [1, 2, 3, 5, 7]
        for one, broker_epoch in zip(given, broker_epochs, strict=True):
            assert read[one.broker_id] == replace(one, broker_epoch=broker_epoch)
        loaded = store.load().brokers
        assert loaded.registrations[loaded.index_of([7])[0]] == read[7]
        assert int(loaded.broker_epoch[loaded.index_of([7])[0]]) == broker_epochs[0]

    def test_broker_watch_is_one_shot_and_reading_arms_it_again(self, world: StoreWorld) -> None:
        """Two changes are one event until they are read."""
        heard: list[Event] = []
        store = opened(world, heard)
        store.read_brokers()
        world.register_brokers([registration(5)])
        world.unregister_brokers([5])
        world.settle()
        assert heard == [BrokersChanged()]
        assert [one.broker_id for one in store.read_brokers()] == [1, 2, 3]
        world.unregister_brokers([2])
        world.settle()
        assert heard == [BrokersChanged(), BrokersChanged()]

    @pytest.mark.parametrize(
        ("happens", "left"),
        [
            (lambda world: world.unregister_brokers([1, 3]), [2]),
            (lambda world: world.register_brokers([registration(8), registration(9)]), [1, 2, 3, 8, 9]),
            (lambda world: world.bounce_brokers([2, 1]), [1, 2, 3]),
        ],
        ids=["failure", "startup", "bounce"],
    )
    def test_several_brokers_at_once_are_notified_once(
        self, world: StoreWorld, happens: Callable[[StoreWorld], object], left: list[int]
    ) -> None:
        """Brokers that go, come or bounce in one instant are one event."""
        heard: list[Event] = []
        store = opened(world, heard)
        store.load()
        happens(world)
        world.settle()
        assert heard == [BrokersChanged()]
        assert sorted(one.broker_id for one in store.read_brokers()) == left

    def test_bounce_gives_a_higher_broker_epoch(self, world: StoreWorld) -> None:
        """A new registration is told from the old one by its broker epoch."""
        store = opened(world)
        before = {one.broker_id: one for one in store.read_brokers()}
        (broker_epoch,) = world.bounce_brokers([2])
        after = {one.broker_id: one for one in store.read_brokers()}
        assert after == before | {2: replace(before[2], broker_epoch=broker_epoch)}
        assert broker_epoch > before[2].broker_epoch

    def test_modification_is_notified_with_the_broker(self, world: StoreWorld) -> None:
        """A change of content keeps the broker epoch."""
        heard: list[Event] = []
        store = opened(world, heard)
        before = {one.broker_id: one for one in store.read_brokers()}
        world.modify_broker(registration(3, rack="moved"))
        world.settle()
        assert heard == [BrokerModified(3)]
        after = {one.broker_id: one for one in store.read_brokers()}
        assert after == before | {3: replace(before[3], rack="moved")}, "the registration is the same one"

    def test_brokers_are_not_followed_after_release(self, world: StoreWorld) -> None:
        """A former controller is not told of brokers."""
        heard: list[Event] = []
        store = opened(world, heard)
        store.claim(ONE)
        store.load()
        store.release()
        world.settle()
        heard.clear()
        world.unregister_brokers([1])
        world.modify_broker(registration(2, rack="moved"))
        world.settle()
        assert heard == []

    def test_nothing_is_notified_after_close(self, world: StoreWorld) -> None:
        """Whoever has closed the store hears nothing more."""
        heard: list[Event] = []
        store, other = opened(world, heard), opened(world)
        store.load()
        store.close()
        other.claim(TWO)
        world.unregister_brokers([1])
        world.settle()
        assert heard == []
