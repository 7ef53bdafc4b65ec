"""The store contract, part 1: election of the controller, and fencing."""

from __future__ import annotations

from typing import Any

import pytest

from kframe.errors import ControllerFenced, StoreError
from kframe.model.events import ControllerChanged, Event, Reelect, SessionExpired
from kframe.model.ids import NO_STATE
from kframe.ports.store import Store
from kframe.ports.store_requests import (
    Claim,
    Holder,
    Load,
    OwnsRole,
    Prepare,
    ReadBrokers,
    ReadController,
    ReadStates,
    ReleaseRole,
    StoreRequest,
    WriteStates,
)
from kframe.testing.clusters import StateSpec, change_of, described, rows_of
from kframe.testing.store_fixture import (
    FIRST_ID,
    SECOND_ID,
    StorageFixture,
    StoreSuite,
    codes,
    controller_of,
    end_role,
    opened,
    small_cluster,
)


class RoleContract(StoreSuite):
    """Claiming and losing the role of the controller; fencing."""

    def test_is_a_store(self, storage: StorageFixture) -> None:
        assert isinstance(storage.connect(), Store)

    def test_valid_storage_has_no_quarantined_records(self, storage: StorageFixture) -> None:
        store = opened(storage)
        store.perform(Claim(FIRST_ID))
        store.perform(Load())
        assert store.quarantined() == {}

    def test_open_store_is_connected(self, storage: StorageFixture) -> None:
        store = storage.connect()
        assert not store.connected()
        store.open(lambda _event: None)
        assert store.connected()
        store.close()
        assert not store.connected()

    def test_refused_claim_keeps_controller_and_epoch(self, storage: StorageFixture) -> None:
        first, second = opened(storage), opened(storage)
        assert first.perform(ReadController()).controller_id == -1
        assert first.perform(Claim(FIRST_ID)) == 1
        assert [second.perform(Claim(SECOND_ID)) for _ in range(3)] == [None, None, None]
        assert [store.perform(ReadController()).controller_id for store in (first, second)] == [FIRST_ID, FIRST_ID]
        first.perform(ReleaseRole())
        assert second.perform(Claim(SECOND_ID)) == 2

    def test_every_claim_raises_the_controller_epoch_by_1(self, storage: StorageFixture) -> None:
        first, second = opened(storage), opened(storage)
        for expected in (1, 3, 5):
            assert first.perform(Claim(FIRST_ID)) == expected
            first.perform(ReleaseRole())
            assert second.perform(Claim(SECOND_ID)) == expected + 1
            second.perform(ReleaseRole())

    def test_takeover_deposes_controller(self, storage: StorageFixture) -> None:
        first, _ = controller_of(storage)
        second = opened(storage)
        assert second.perform(Claim(SECOND_ID, takeover=True)) == 2
        assert (second.perform(ReadController()), first.perform(OwnsRole())) == (Holder(SECOND_ID, ours=True), False)
        assert second.perform(OwnsRole())
        with pytest.raises(ControllerFenced):
            first.perform(Prepare())

    def test_takeover_of_a_free_role_is_a_claim(self, storage: StorageFixture) -> None:
        store = opened(storage)
        assert store.perform(Claim(SECOND_ID, takeover=True)) == 1
        assert store.perform(OwnsRole())

    def test_takeover_from_brokers_leaves_a_standalone_controller(self, storage: StorageFixture) -> None:
        first, _ = controller_of(storage)
        second = opened(storage)
        assert second.perform(Claim(SECOND_ID, takeover=True, brokers_only=True)) is None
        assert (second.perform(ReadController()), first.perform(OwnsRole())) == (Holder(FIRST_ID, ours=False), True)
        assert not second.perform(OwnsRole())
        first.perform(Prepare())
        first.perform(ReleaseRole())
        assert second.perform(Claim(SECOND_ID, takeover=True, brokers_only=True)) == 2

    @pytest.mark.parametrize("end", ["release", "close", "expire", "drop"])
    def test_released_role_notifies_contenders_once(self, storage: StorageFixture, end: str) -> None:
        notified: list[Event] = []
        first, second = opened(storage), opened(storage, notified)
        first.perform(Claim(FIRST_ID))
        assert second.perform(Claim(SECOND_ID)) is None
        storage.settle()
        notified.clear()
        end_role(storage, first, end)
        storage.settle()
        assert notified == [Reelect()]
        assert second.perform(ReadController()).controller_id == -1
        assert second.perform(Claim(SECOND_ID)) == 2

    def test_contender_is_notified_once_of_new_controller(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        first, second = opened(storage), opened(storage, notified)
        assert second.perform(ReadController()).controller_id == -1
        first.perform(Claim(FIRST_ID))
        first.perform(ReleaseRole())
        first.perform(Claim(FIRST_ID))
        storage.settle()
        assert notified == [ControllerChanged()], "a watch is one-shot until controller() or claim() arms it again"
        assert second.perform(ReadController()).controller_id == FIRST_ID

    @pytest.mark.parametrize("rearm", ["claim", "controller"])
    def test_reading_controller_rearms_watch(self, storage: StorageFixture, rearm: str) -> None:
        notified: list[Event] = []
        first, second = opened(storage), opened(storage, notified)
        first.perform(Claim(FIRST_ID))
        storage.settle()
        if rearm == "claim":
            assert second.perform(Claim(SECOND_ID)) is None
        else:
            assert second.perform(ReadController()).controller_id == FIRST_ID
        first.perform(ReleaseRole())
        storage.settle()
        assert notified[-1] == Reelect()

    def test_release_by_a_standby_changes_nothing(self, storage: StorageFixture) -> None:
        first, second = opened(storage), opened(storage)
        first.perform(Claim(FIRST_ID))
        second.perform(ReleaseRole())
        assert second.perform(ReadController()).controller_id == FIRST_ID

    def test_release_by_deposed_controller_keeps_successor(self, storage: StorageFixture) -> None:
        first, second = opened(storage), opened(storage)
        first.perform(Claim(FIRST_ID))
        storage.drop_controller()
        assert second.perform(Claim(SECOND_ID)) == 2
        first.perform(ReleaseRole())
        assert second.perform(ReadController()).controller_id == SECOND_ID

    def test_only_claimant_may_act(self, storage: StorageFixture) -> None:
        first, second = storage.connect(), opened(storage)
        assert not first.may_act()
        first.open(lambda _event: None)
        assert not first.may_act()
        first.perform(Claim(FIRST_ID))
        second.perform(Claim(SECOND_ID))
        assert (first.may_act(), second.may_act()) == (True, False)

    @pytest.mark.parametrize("end", ["release", "close", "expire", "drop", "takeover"])
    def test_controller_may_not_act_after_losing_role(self, storage: StorageFixture, end: str) -> None:
        first, second = opened(storage), opened(storage)
        first.perform(Claim(FIRST_ID))
        if end == "takeover":
            second.perform(Claim(SECOND_ID, takeover=True))
        else:
            end_role(storage, first, end)
        storage.settle()
        assert not first.may_act()
        if end not in ("close", "takeover"):
            assert first.perform(Claim(FIRST_ID)) == 2
            assert first.may_act()

    def test_expired_session_is_notified_and_may_claim(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store = opened(storage, notified)
        store.perform(Claim(FIRST_ID))
        storage.settle()
        notified.clear()
        storage.expire(store)
        storage.settle()
        assert SessionExpired() in notified
        assert notified[-1] == Reelect(), "once it is connected again it may try for the role"
        assert store.perform(Claim(FIRST_ID)) == 2

    def test_closed_store_refuses_all_calls_except_close(self, storage: StorageFixture) -> None:
        cluster = small_cluster()
        store = opened(storage)
        store.close()
        store.close()
        requests: tuple[StoreRequest[Any], ...] = (
            Load(),
            ReadBrokers(),
            ReadController(),
            Claim(FIRST_ID),
            ReadStates(cluster, rows_of(cluster, ["orders-0"])),
        )
        for request in requests:
            with pytest.raises(StoreError):
                store.perform(request)

    # -- fencing

    @pytest.mark.parametrize("end", ["release", "expire", "drop"])
    def test_writes_of_deposed_controller_are_fenced(self, storage: StorageFixture, end: str) -> None:
        first, second = opened(storage), opened(storage)
        first.perform(Claim(FIRST_ID))
        cluster = first.perform(Load())
        end_role(storage, first, end)
        assert second.perform(Claim(SECOND_ID)) == 2
        before = described(second.perform(Load()))
        change = change_of(
            cluster, {"orders-0": StateSpec(2, (2,), 5, 7), "empty.topic-0": StateSpec(1, (1,), 0, NO_STATE)}, 1
        )
        with pytest.raises(ControllerFenced):
            first.perform(WriteStates(cluster, change))
        with pytest.raises(ControllerFenced):
            first.perform(Prepare())
        assert described(second.perform(Load())) == before

    def test_write_after_expiry_is_refused_without_another_claim(self, storage: StorageFixture) -> None:
        store = opened(storage)
        store.perform(Claim(FIRST_ID))
        cluster = store.perform(Load())
        storage.expire(store)
        with pytest.raises((ControllerFenced, StoreError)):
            store.perform(WriteStates(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1)))
        assert described(opened(storage).perform(Load())) == described(cluster)

    def test_write_without_a_claim_is_fenced(self, storage: StorageFixture) -> None:
        store = opened(storage)
        cluster = store.perform(Load())
        with pytest.raises(ControllerFenced):
            store.perform(WriteStates(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1)))
        assert described(store.perform(Load())) == described(cluster)

    def test_new_controller_may_write(self, storage: StorageFixture) -> None:
        first, second = opened(storage), opened(storage)
        first.perform(Claim(FIRST_ID))
        storage.drop_controller()
        second.perform(Claim(SECOND_ID))
        second.perform(Prepare())
        cluster = second.perform(Load())
        result = second.perform(WriteStates(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 2)))
        assert codes(result) == ["OK"]
