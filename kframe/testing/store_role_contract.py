"""The store contract, first part: who is controller, and that nobody else writes."""

from __future__ import annotations

import pytest

from kframe.errors import ControllerFenced, StoreError
from kframe.model.events import ControllerChanged, Elect, Event, SessionExpired
from kframe.model.ids import NO_STATE
from kframe.model.ports import Store
from kframe.testing.clusters import (
    StateSpec,
    change_of,
    described,
    rows_of,
)
from kframe.testing.store_world import (
    ONE,
    TWO,
    StoreSuite,
    StoreWorld,
    codes,
    controller_of,
    end_role,
    opened,
    small_cluster,
)


class RoleContract(StoreSuite):
    """Claiming, keeping and losing the role; fencing."""

    def test_is_a_store(self, world: StoreWorld) -> None:
        """It has the methods of ``ports.Store``."""
        assert isinstance(world.connect(), Store)

    def test_nothing_of_a_sound_storage_is_quarantined(self, world: StoreWorld) -> None:
        """What is left out is what cannot be read, and that alone."""
        store = opened(world)
        store.claim(ONE)
        store.load()
        assert store.quarantined() == {}

    def test_a_store_is_connected_while_it_is_open(self, world: StoreWorld) -> None:
        """Whoever asks whether a controller could take over asks for that."""
        store = world.connect()
        assert not store.connected()
        store.open(lambda _event: None)
        assert store.connected()
        store.close()
        assert not store.connected()

    def test_first_claim_gets_controller_epoch_one(self, world: StoreWorld) -> None:
        """Controller epochs count from one (``spec/zookeeper.md`` 3.2)."""
        store = opened(world)
        assert store.controller() == -1
        assert store.claim(ONE) == 1
        assert store.controller() == ONE

    def test_second_claimant_is_refused_and_sees_who_holds_the_role(self, world: StoreWorld) -> None:
        """There is one controller at a time."""
        first, second = opened(world), opened(world)
        assert first.claim(ONE) == 1
        assert second.claim(TWO) is None
        assert second.controller() == ONE

    def test_refused_claims_do_not_count(self, world: StoreWorld) -> None:
        """A claim that fails leaves the controller epoch alone."""
        first, second = opened(world), opened(world)
        assert first.claim(ONE) == 1
        assert [second.claim(TWO) for _ in range(3)] == [None, None, None]
        first.release()
        assert second.claim(TWO) == 2

    def test_every_claim_raises_the_controller_epoch_by_one(self, world: StoreWorld) -> None:
        """Whoever wins gets the next controller epoch."""
        first, second = opened(world), opened(world)
        for expected in (1, 3, 5):
            assert first.claim(ONE) == expected
            first.release()
            assert second.claim(TWO) == expected + 1
            second.release()

    def test_takeover_takes_the_role_from_its_holder(self, world: StoreWorld) -> None:
        """The next controller epoch goes to the new one, and the old one writes nothing more."""
        first, _ = controller_of(world)
        second = opened(world)
        assert second.take_over(TWO) == 2
        assert (second.controller(), second.owns_role(), first.owns_role()) == (TWO, True, False)
        with pytest.raises(ControllerFenced):
            first.prepare()

    def test_takeover_of_a_free_role_is_a_claim(self, world: StoreWorld) -> None:
        """Nobody needs to be there to take over from."""
        store = opened(world)
        assert store.take_over(TWO) == 1
        assert store.owns_role()

    def test_takeover_from_brokers_spares_what_is_no_broker(self, world: StoreWorld) -> None:
        """A controller whose session owns no registration of a broker keeps the role and its controller epoch."""
        first, _ = controller_of(world)
        second = opened(world)
        assert second.take_over(TWO, True) is None
        assert (second.controller(), first.owns_role(), second.owns_role()) == (ONE, True, False)
        first.prepare()
        first.release()
        assert second.take_over(TWO, True) == 2

    @pytest.mark.parametrize("end", ["release", "close", "expire", "drop"])
    def test_role_is_free_again_and_contenders_hear_of_it_once(self, world: StoreWorld, end: str) -> None:
        """However a controller goes, the others are told Elect."""
        heard: list[Event] = []
        first, second = opened(world), opened(world, heard)
        first.claim(ONE)
        assert second.claim(TWO) is None
        world.settle()
        heard.clear()
        end_role(world, first, end)
        world.settle()
        assert heard == [Elect()]
        assert second.controller() == -1
        assert second.claim(TWO) == 2

    def test_contender_hears_of_a_new_controller_once(self, world: StoreWorld) -> None:
        """The watch on who is controller is one-shot."""
        heard: list[Event] = []
        first, second = opened(world), opened(world, heard)
        assert second.controller() == -1
        first.claim(ONE)
        first.release()
        first.claim(ONE)
        world.settle()
        assert heard == [ControllerChanged()], "a watch is one-shot until controller() or claim() arms it again"
        assert second.controller() == ONE

    @pytest.mark.parametrize("rearm", ["claim", "controller"])
    def test_reading_who_is_controller_arms_the_watch_again(self, world: StoreWorld, rearm: str) -> None:
        """So does a claim that was refused."""
        heard: list[Event] = []
        first, second = opened(world), opened(world, heard)
        first.claim(ONE)
        world.settle()
        if rearm == "claim":
            assert second.claim(TWO) is None
        else:
            assert second.controller() == ONE
        first.release()
        world.settle()
        assert heard[-1] == Elect()

    def test_release_by_one_who_is_not_controller_changes_nothing(self, world: StoreWorld) -> None:
        """Only the holder gives the role up."""
        first, second = opened(world), opened(world)
        first.claim(ONE)
        second.release()
        assert second.controller() == ONE

    def test_release_by_a_deposed_controller_leaves_its_successor(self, world: StoreWorld) -> None:
        """A late release does not depose the next controller."""
        first, second = opened(world), opened(world)
        first.claim(ONE)
        world.drop_controller()
        assert second.claim(TWO) == 2
        first.release()
        assert second.controller() == TWO

    def test_only_who_has_claimed_the_role_may_act(self, world: StoreWorld) -> None:
        """A claim that was refused is none."""
        first, second = world.connect(), opened(world)
        assert not first.may_act()
        first.open(lambda _event: None)
        assert not first.may_act()
        first.claim(ONE)
        second.claim(TWO)
        assert (first.may_act(), second.may_act()) == (True, False)

    @pytest.mark.parametrize("end", ["release", "close", "expire", "drop", "takeover"])
    def test_who_has_lost_the_role_may_not_act(self, world: StoreWorld, end: str) -> None:
        """However it went, and before anybody asks who is controller (``reliability.md`` I3)."""
        first, second = opened(world), opened(world)
        first.claim(ONE)
        if end == "takeover":
            second.take_over(TWO)
        else:
            end_role(world, first, end)
        world.settle()
        assert not first.may_act()
        if end not in ("close", "takeover"):
            assert first.claim(ONE) == 2
            assert first.may_act()

    def test_expired_session_is_told_and_may_elect_again(self, world: StoreWorld) -> None:
        """SessionExpired comes first, and Elect when there is a new session."""
        heard: list[Event] = []
        store = opened(world, heard)
        store.claim(ONE)
        world.settle()
        heard.clear()
        world.expire(store)
        world.settle()
        assert SessionExpired() in heard
        assert heard[-1] == Elect(), "once it is connected again it may try for the role"
        assert store.claim(ONE) == 2

    def test_closed_store_refuses_everything_but_another_close(self, world: StoreWorld) -> None:
        """A call on a closed store is a StoreError, not a wait."""
        cluster = small_cluster()
        store = opened(world)
        store.close()
        store.close()
        for call in (store.load, store.read_brokers, store.controller, lambda: store.claim(ONE),
                     lambda: store.read_states(cluster, rows_of(cluster, ["orders-0"]))):  # fmt: skip
            with pytest.raises(StoreError):
                call()

    # -- fencing

    @pytest.mark.parametrize("end", ["release", "expire", "drop"])
    def test_writes_of_a_former_controller_are_fenced_and_change_nothing(self, world: StoreWorld, end: str) -> None:
        """The fence of ``spec/zookeeper.md`` section 5."""
        first, second = opened(world), opened(world)
        first.claim(ONE)
        cluster = first.load()
        end_role(world, first, end)
        assert second.claim(TWO) == 2
        before = described(second.load())
        change = change_of(
            cluster, {"orders-0": StateSpec(2, (2,), 5, 7), "empty.topic-0": StateSpec(1, (1,), 0, NO_STATE)}, 1
        )
        with pytest.raises(ControllerFenced):
            first.write_states(cluster, change)
        with pytest.raises(ControllerFenced):
            first.prepare()
        assert described(second.load()) == before

    def test_write_after_expiry_is_refused_though_nobody_else_has_claimed(self, world: StoreWorld) -> None:
        """A claim does not survive its session."""
        store = opened(world)
        store.claim(ONE)
        cluster = store.load()
        world.expire(store)
        with pytest.raises((ControllerFenced, StoreError)):
            store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
        assert described(opened(world).load()) == described(cluster)

    def test_write_without_a_claim_is_fenced(self, world: StoreWorld) -> None:
        """Who never was controller writes nothing."""
        store = opened(world)
        cluster = store.load()
        with pytest.raises(ControllerFenced):
            store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
        assert described(store.load()) == described(cluster)

    def test_new_controller_may_write(self, world: StoreWorld) -> None:
        """The fence lets the present controller through."""
        first, second = opened(world), opened(world)
        first.claim(ONE)
        world.drop_controller()
        second.claim(TWO)
        second.prepare()
        cluster = second.load()
        result = second.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 2))
        assert codes(result) == ["OK"]
