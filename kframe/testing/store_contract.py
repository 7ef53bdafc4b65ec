"""What every store must do, as tests that a plugin's author runs.

::

    class TestMyStore(StoreContract):
        @pytest.fixture
        def make_world(self):
            return MyWorld          # a callable: cluster -> StoreWorld

``MyWorld(cluster)`` prepares a storage that holds ``cluster`` (topics, states, delete markers, the registered brokers),
in which no controller has ever been. Clusters are compared by names and broker ids: a store may number them as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import pytest

from kframe.errors import ControllerFenced, StoreError
from kframe.model.brokers import Registration
from kframe.model.changes import WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.events import BrokerModified, BrokersChanged, ControllerChanged, Elect, Event, SessionExpired
from kframe.model.ids import NO_STATE, RecoveryState
from kframe.model.ports import Store
from kframe.testing.clusters import (
    PartitionSpec,
    StateSpec,
    change_of,
    cluster_of,
    described,
    healthy,
    registration,
    rows_of,
)


class StoreWorld(Protocol):
    """The storage that the suite plays with, and what befalls it from outside."""

    def connect(self) -> Store:
        """A store for one more controller, not open yet."""

    def expire(self, store: Any) -> None:
        """End the session of a store that is open; return when it has another one."""

    def drop_controller(self) -> None:
        """Delete the record of who is controller; its holder's session goes on."""

    def register_brokers(self, registrations: Iterable[Registration]) -> tuple[int, ...]:
        """Register brokers in one instant; return the broker epochs that they got."""

    def unregister_brokers(self, broker_ids: Iterable[int]) -> None:
        """Let registrations vanish in one instant."""

    def bounce_brokers(self, broker_ids: Iterable[int]) -> tuple[int, ...]:
        """Replace registrations in one instant; return the new broker epochs."""

    def modify_broker(self, registration: Registration) -> None:
        """Replace the content of a registration."""

    def write_state(self, topic: str, partition: int, *, isr: Sequence[int]) -> int:
        """Write another ISR as a broker does, past the controller; return the version that the state now has."""

    def settle(self) -> None:
        """Return when all that has happened has been notified."""


WorldFactory: TypeAlias = Callable[[ClusterState], StoreWorld]

ONE, TWO = 101, 102  # controller ids


def small_cluster() -> ClusterState:
    """Three registered brokers and one that is only named; a topic with states, one without, one being deleted."""
    cluster = cluster_of(
        {
            "orders": [
                PartitionSpec((1, 2, 3), leader=1, isr=(3, 1, 2), leader_epoch=4, controller_epoch=2, partition_epoch=7),
                PartitionSpec((2, 3, 4, 1), leader=2, isr=(2,), adding_replicas=(2, 3), removing_replicas=(1,)),
                PartitionSpec((3, 1), leader=None, isr=(3,), leader_epoch=9, recovery=RecoveryState.RECOVERING),
            ],
            "empty.topic": [PartitionSpec((1, 2)), PartitionSpec((2, 1))],
            "leaving_topic": [healthy(2, 1)],
        },
        registered=[registration(1, rack="Zürich-ⅱ"), registration(2), registration(3)],
    )
    cluster.topics.deleting[2] = 1
    cluster.topics.unclean[:] = [1, -1, 0]
    cluster.topics.min_insync[:] = [2, -1, 1]
    return cluster


class StoreContract:
    """See the head of this module."""

    @pytest.fixture
    def make_world(self) -> WorldFactory:
        """To be supplied by the plugin's tests."""
        raise NotImplementedError("the subclass supplies the fixture make_world")

    @pytest.fixture
    def world(self, make_world: WorldFactory) -> StoreWorld:
        """A world that holds ``small_cluster``."""
        return make_world(small_cluster())

    # -- the role

    def test_is_a_store(self, world: StoreWorld) -> None:
        assert isinstance(world.connect(), Store)

    def test_first_claim_gets_controller_epoch_one(self, world: StoreWorld) -> None:
        store = _opened(world)
        assert store.controller() == -1
        assert store.claim(ONE) == 1
        assert store.controller() == ONE

    def test_second_claimant_is_refused_and_sees_who_holds_the_role(self, world: StoreWorld) -> None:
        first, second = _opened(world), _opened(world)
        assert first.claim(ONE) == 1
        assert second.claim(TWO) is None
        assert second.controller() == ONE

    def test_refused_claims_do_not_count(self, world: StoreWorld) -> None:
        first, second = _opened(world), _opened(world)
        assert first.claim(ONE) == 1
        assert [second.claim(TWO) for _ in range(3)] == [None, None, None]
        first.release()
        assert second.claim(TWO) == 2

    def test_every_claim_raises_the_controller_epoch_by_one(self, world: StoreWorld) -> None:
        first, second = _opened(world), _opened(world)
        for expected in (1, 3, 5):
            assert first.claim(ONE) == expected
            first.release()
            assert second.claim(TWO) == expected + 1
            second.release()

    @pytest.mark.parametrize("end", ["release", "close", "expire", "drop"])
    def test_role_is_free_again_and_contenders_hear_of_it_once(self, world: StoreWorld, end: str) -> None:
        heard: list[Event] = []
        first, second = _opened(world), _opened(world, heard)
        first.claim(ONE)
        assert second.claim(TWO) is None
        world.settle()
        heard.clear()
        _end_role(world, first, end)
        world.settle()
        assert heard == [Elect()]
        assert second.controller() == -1
        assert second.claim(TWO) == 2

    def test_contender_hears_of_a_new_controller_once(self, world: StoreWorld) -> None:
        heard: list[Event] = []
        first, second = _opened(world), _opened(world, heard)
        assert second.controller() == -1
        first.claim(ONE)
        first.release()
        first.claim(ONE)
        world.settle()
        assert heard == [ControllerChanged()], "a watch is one-shot until controller() or claim() arms it again"
        assert second.controller() == ONE

    @pytest.mark.parametrize("rearm", ["claim", "controller"])
    def test_reading_who_is_controller_arms_the_watch_again(self, world: StoreWorld, rearm: str) -> None:
        heard: list[Event] = []
        first, second = _opened(world), _opened(world, heard)
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
        first, second = _opened(world), _opened(world)
        first.claim(ONE)
        second.release()
        assert second.controller() == ONE

    def test_release_by_a_deposed_controller_leaves_its_successor(self, world: StoreWorld) -> None:
        first, second = _opened(world), _opened(world)
        first.claim(ONE)
        world.drop_controller()
        assert second.claim(TWO) == 2
        first.release()
        assert second.controller() == TWO

    def test_expired_session_is_told_and_may_elect_again(self, world: StoreWorld) -> None:
        heard: list[Event] = []
        store = _opened(world, heard)
        store.claim(ONE)
        world.settle()
        heard.clear()
        world.expire(store)
        world.settle()
        assert SessionExpired() in heard
        assert heard[-1] == Elect(), "once it is connected again it may try for the role"
        assert store.claim(ONE) == 2

    def test_closed_store_refuses_everything_but_another_close(self, world: StoreWorld) -> None:
        cluster = small_cluster()
        store = _opened(world)
        store.close()
        store.close()
        for call in (store.load, store.read_brokers, store.controller, lambda: store.claim(ONE),
                     lambda: store.read_states(cluster, rows_of(cluster, ["orders-0"]))):  # fmt: skip
            with pytest.raises(StoreError):
                call()

    # -- fencing

    @pytest.mark.parametrize("end", ["release", "expire", "drop"])
    def test_writes_of_a_former_controller_are_fenced_and_change_nothing(self, world: StoreWorld, end: str) -> None:
        first, second = _opened(world), _opened(world)
        first.claim(ONE)
        cluster = first.load()
        _end_role(world, first, end)
        assert second.claim(TWO) == 2
        before = described(second.load())
        change = change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7), "empty.topic-0": StateSpec(1, (1,), 0, NO_STATE)}, 1)
        with pytest.raises(ControllerFenced):
            first.write_states(cluster, change)
        with pytest.raises(ControllerFenced):
            first.prepare()
        assert described(second.load()) == before

    def test_write_after_expiry_is_refused_though_nobody_else_has_claimed(self, world: StoreWorld) -> None:
        store = _opened(world)
        store.claim(ONE)
        cluster = store.load()
        world.expire(store)
        with pytest.raises((ControllerFenced, StoreError)):
            store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
        assert described(_opened(world).load()) == described(cluster)

    def test_write_without_a_claim_is_fenced(self, world: StoreWorld) -> None:
        store = _opened(world)
        cluster = store.load()
        with pytest.raises(ControllerFenced):
            store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
        assert described(store.load()) == described(cluster)

    def test_new_controller_may_write(self, world: StoreWorld) -> None:
        first, second = _opened(world), _opened(world)
        first.claim(ONE)
        world.drop_controller()
        second.claim(TWO)
        second.prepare()
        cluster = second.load()
        result = second.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 2))
        assert _codes(result) == ["OK"]

    # -- reading and writing states

    def test_load_gives_what_is_stored(self, world: StoreWorld) -> None:
        cluster, expected = _opened(world).load(), small_cluster()
        assert described(cluster) == described(expected)
        assert _settings(cluster) == _settings(expected)
        assert cluster.brokers.registered_ids() == [1, 2, 3]
        assert 4 in cluster.brokers, "a broker that is only assigned is known by id"
        assert not cluster.brokers.shutting_down.any()

    def test_loaded_cluster_is_independent(self, world: StoreWorld) -> None:
        store = _opened(world)
        cluster = store.load()
        cluster.partitions.leader[:] = -1
        cluster.partitions.isr[:] = 0
        cluster.topics.deleting[:] = 1
        cluster.brokers.unregister(np.arange(len(cluster.brokers), dtype=np.int32))
        again = store.load()
        assert described(again) == described(small_cluster())
        assert _settings(again) == _settings(small_cluster())
        assert again.brokers.registered_ids() == [1, 2, 3]

    def test_codes_say_how_each_row_fared_and_rows_do_not_hinder_each_other(self, world: StoreWorld) -> None:
        store, cluster = _controller(world)
        before = described(cluster)
        states = {
            "orders-0": StateSpec(2, (2, 1), 5, expected=7),
            "orders-1": StateSpec(3, (3,), 1, expected=5),
            "orders-2": StateSpec(3, (3,), 10, expected=NO_STATE),
            "empty.topic-0": StateSpec(2, (2, 1), 0, expected=NO_STATE),
            "empty.topic-1": StateSpec(2, (2, 1), 0, expected=0),
            "leaving_topic-0": StateSpec(1, (1,), 1, expected=0),
        }
        result = store.write_states(cluster, change_of(cluster, states, 1))
        assert _codes(result) == ["OK", "STALE", "EXISTS", "OK", "MISSING", "OK"]
        assert result.partition_epoch[result.accepted].tolist() == [8, 0, 1]
        after = described(store.load())
        written = {"orders-0": 8, "empty.topic-0": 0, "leaving_topic-0": 1}
        for name, partition_epoch in written.items():
            assert after[name] == _as_written(before[name], states[name], partition_epoch)
        assert {name: after[name] for name in after if name not in written} == {
            name: before[name] for name in before if name not in written
        }

    def test_partition_that_storage_does_not_know_is_missing(self, world: StoreWorld) -> None:
        store, _ = _controller(world)
        elsewhere = cluster_of({"nowhere": [PartitionSpec((1, 2))], "orders": [healthy(1)] * 5}, registered=[1, 2])
        states = {
            "nowhere-0": StateSpec(1, (1,), 0, NO_STATE),
            "orders-4": StateSpec(1, (1,), 3, 3),
            "orders-0": StateSpec(1, (1,), 5, 7),
        }
        assert _codes(store.write_states(elsewhere, change_of(elsewhere, states, 1))) == ["MISSING", "MISSING", "OK"]

    def test_versions_count_writes_from_zero(self, world: StoreWorld) -> None:
        store, cluster = _controller(world)
        for expected in (NO_STATE, 0, 1, 2):
            state = {"empty.topic-1": StateSpec(2, (2, 1), expected + 1, expected)}
            result = store.write_states(cluster, change_of(cluster, state, 1))
            assert (_codes(result), result.partition_epoch.tolist()) == (["OK"], [expected + 1])
            assert _codes(store.write_states(cluster, change_of(cluster, state, 1))) in (["STALE"], ["EXISTS"])

    def test_nothing_to_write_and_nothing_to_read(self, world: StoreWorld) -> None:
        store, cluster = _controller(world)
        assert len(store.write_states(cluster, change_of(cluster, {}, 1)).codes) == 0
        stored = store.read_states(cluster, np.empty(0, np.int32))
        assert (len(stored.found), len(stored.isr)) == (0, 0)

    def test_read_finds_what_is_stored_in_the_order_asked_for(self, world: StoreWorld) -> None:
        store, cluster = _controller(world)
        rows = rows_of(cluster, ["empty.topic-1", "orders-2", "orders-0", "empty.topic-0", "orders-1"])
        stored = store.read_states(cluster, rows)
        assert stored.rows.tolist() == rows.tolist()
        assert stored.found.tolist() == [False, True, True, False, True]
        found = np.flatnonzero(stored.found)
        assert cluster.brokers.ids_of(stored.leader[found]) == [-1, 1, 2]
        assert stored.leader_epoch[found].tolist() == [9, 4, 0]
        assert stored.controller_epoch[found].tolist() == [0, 2, 0]
        assert stored.partition_epoch[found].tolist() == [0, 7, 0]
        assert stored.recovery[found].tolist() == [1, 0, 0]
        assert [cluster.brokers.ids_of(stored.isr[index]) for index in range(5)] == [[], [3], [3, 1, 2], [], [2]]

    def test_what_is_written_is_read_and_loaded(self, world: StoreWorld) -> None:
        store, cluster = _controller(world)
        states = {
            "orders-2": StateSpec(-1, (), 10, 0, recovery=0),
            "empty.topic-0": StateSpec(2, (4, 2, 3, 1), 0, NO_STATE, recovery=1),
        }
        change = change_of(cluster, states, 1)
        store.write_states(cluster, change)
        stored = store.read_states(cluster, change.rows)
        assert stored.found.all()
        assert cluster.brokers.ids_of(stored.leader) == [-1, 2]
        assert [cluster.brokers.ids_of(stored.isr[0]), cluster.brokers.ids_of(stored.isr[1])] == [[], [4, 2, 3, 1]]
        assert (stored.recovery.tolist(), stored.controller_epoch.tolist()) == ([0, 1], [1, 1])
        cluster.reload(stored)
        assert described(cluster) == described(store.load())

    def test_store_and_controller_may_number_topics_and_brokers_differently(self, world: StoreWorld) -> None:
        store, _ = _controller(world)
        other = cluster_of({"zero": [], "leaving_topic": [healthy(2, 1)], "orders": [healthy(3, 1)]}, registered=[9, 3, 1])
        state = {"orders-0": StateSpec(3, (3, 9, 1), 5, 7), "leaving_topic-0": StateSpec(1, (1,), 1, 0)}
        assert _codes(store.write_states(other, change_of(other, state, 1))) == ["OK", "OK"]
        loaded = described(store.load())
        assert (loaded["orders-0"]["leader"], loaded["orders-0"]["isr"]) == (3, [3, 9, 1])
        assert (loaded["leaving_topic-0"]["leader"], loaded["leaving_topic-0"]["isr"]) == (1, [1])
        world.write_state("orders", 0, isr=[2, 3])
        stored = store.read_states(other, rows_of(other, ["orders-0", "leaving_topic-0"]))
        assert other.brokers.ids_of(stored.leader) == [3, 1]
        assert other.brokers.ids_of(stored.isr[0]) == [2, 3]

    def test_write_of_a_broker_raises_the_version_and_ours_is_stale(self, world: StoreWorld) -> None:
        store, cluster = _controller(world)
        assert world.write_state("orders", 0, isr=[1, 2]) == 8
        state = {"orders-0": StateSpec(2, (2,), 5, 7)}
        assert _codes(store.write_states(cluster, change_of(cluster, state, 1))) == ["STALE"]
        stored = store.read_states(cluster, rows_of(cluster, state))
        assert (stored.partition_epoch.tolist(), stored.leader_epoch.tolist()) == ([8], [4])
        assert (cluster.brokers.ids_of(stored.isr[0]), stored.controller_epoch.tolist()) == ([1, 2], [2])
        cluster.reload(stored)
        assert described(cluster) == described(store.load())
        state = {"orders-0": StateSpec(2, (2,), 5, 8)}
        assert _codes(store.write_states(cluster, change_of(cluster, state, 1))) == ["OK"]

    def test_bulk_write_equals_the_same_rows_written_one_by_one(self, make_world: WorldFactory) -> None:
        partitions, loaded = 10_000, []
        specs = [healthy(1 + n % 5, 1 + (n + 1) % 5) if n % 3 else PartitionSpec((1 + n % 5, 6)) for n in range(partitions)]
        topics = {f"topic-{n:03}": specs[n : n + 100] for n in range(0, partitions, 100)}
        for at_once in (partitions, 1):
            store, cluster = _controller(make_world(cluster_of(topics, registered=[1, 2, 3, 4, 5])))
            states = {
                name: StateSpec(partition["replicas"][0], tuple(reversed(partition["replicas"])), 1, n % 4 - 1)
                for n, (name, partition) in enumerate(described(cluster).items())
            }
            change = change_of(cluster, states, 1)
            parts = [change.take(np.arange(n, n + at_once)) for n in range(0, partitions, at_once)]
            results = [store.write_states(cluster, part) for part in parts]
            loaded.append((described(store.load()), [code for result in results for code in _codes(result)]))
        assert set(loaded[0][1]) == {"OK", "STALE", "EXISTS", "MISSING"}
        assert loaded[0] == loaded[1]

    # -- brokers

    def test_registrations_are_read_whole(self, world: StoreWorld) -> None:
        store = _opened(world)
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
        heard: list[Event] = []
        store = _opened(world, heard)
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
        heard: list[Event] = []
        store = _opened(world, heard)
        store.load()
        happens(world)
        world.settle()
        assert heard == [BrokersChanged()]
        assert sorted(one.broker_id for one in store.read_brokers()) == left

    def test_bounce_gives_a_higher_broker_epoch(self, world: StoreWorld) -> None:
        store = _opened(world)
        before = {one.broker_id: one for one in store.read_brokers()}
        (broker_epoch,) = world.bounce_brokers([2])
        after = {one.broker_id: one for one in store.read_brokers()}
        assert after == before | {2: replace(before[2], broker_epoch=broker_epoch)}
        assert broker_epoch > before[2].broker_epoch

    def test_modification_is_notified_with_the_broker(self, world: StoreWorld) -> None:
        heard: list[Event] = []
        store = _opened(world, heard)
        before = {one.broker_id: one for one in store.read_brokers()}
        world.modify_broker(registration(3, rack="moved"))
        world.settle()
        assert heard == [BrokerModified(3)]
        after = {one.broker_id: one for one in store.read_brokers()}
        assert after == before | {3: replace(before[3], rack="moved")}, "the registration is the same: same broker epoch"

    def test_brokers_are_not_followed_after_release(self, world: StoreWorld) -> None:
        heard: list[Event] = []
        store = _opened(world, heard)
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
        heard: list[Event] = []
        store, other = _opened(world, heard), _opened(world)
        store.load()
        store.close()
        other.claim(TWO)
        world.unregister_brokers([1])
        world.settle()
        assert heard == []


def _opened(world: StoreWorld, heard: list[Event] | None = None) -> Store:
    store = world.connect()
    store.open(([] if heard is None else heard).append)
    return store


def _controller(world: StoreWorld) -> tuple[Store, ClusterState]:
    """A store that holds the role, and the cluster as it has loaded it."""
    store = _opened(world)
    assert store.claim(ONE) == 1
    store.prepare()
    return store, store.load()


def _end_role(world: StoreWorld, store: Store, how: str) -> None:
    match how:
        case "release":
            store.release()
        case "close":
            store.close()
        case "expire":
            world.expire(store)
        case "drop":
            world.drop_controller()


def _codes(result: WriteResult) -> list[str]:
    return [WriteCode(code).name for code in result.codes.tolist()]


def _as_written(before: dict[str, Any], state: StateSpec, partition_epoch: int) -> dict[str, Any]:
    return before | {
        "leader": state.leader,
        "isr": list(state.isr),
        "leader_epoch": state.leader_epoch,
        "controller_epoch": 1,
        "leader_recovery_state": state.recovery,
        "partition_epoch": partition_epoch,
    }


def _settings(cluster: ClusterState) -> dict[str, tuple[int, int, int]]:
    topics = cluster.topics
    columns = zip(topics.deleting.tolist(), topics.unclean.tolist(), topics.min_insync.tolist(), strict=True)
    return dict(zip(topics.names, columns, strict=True))
