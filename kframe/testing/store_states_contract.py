"""The store contract, part 2: conditional bulk writes of partition states."""

from __future__ import annotations

import numpy as np
import pytest

from kframe.core.state.stored_states import reload
from kframe.errors import ControllerFenced
from kframe.model.ids import NO_STATE
from kframe.ports.store_requests import Claim, Load, ReadStates, WriteStates
from kframe.testing.clusters import PartitionSpec, StateSpec, change_of, cluster_of, described, healthy, rows_of
from kframe.testing.store_fixture import (
    SECOND_ID,
    StorageFactory,
    StorageFixture,
    StoreSuite,
    as_written,
    codes,
    controller_of,
    opened,
    settings,
    small_cluster,
)


class StatesContract(StoreSuite):
    """Reading and writing states."""

    bulk_rows = 2_000
    """Rows that are written in bulk, and one by one."""

    def test_load_returns_stored_cluster(self, storage: StorageFixture) -> None:
        cluster, expected = opened(storage).perform(Load()), small_cluster()
        assert described(cluster) == described(expected)
        assert settings(cluster) == settings(expected)
        assert not cluster.topics.deleting.any(), "marks are read by themselves"
        assert cluster.brokers.registered_ids() == [1, 2, 3]
        assert 4 in cluster.brokers, "a broker that is only assigned is known by id"
        assert not cluster.brokers.shutting_down.any()

    def test_loaded_cluster_is_independent(self, storage: StorageFixture) -> None:
        store = opened(storage)
        cluster = store.perform(Load())
        cluster.partitions.leader[:] = -1
        cluster.partitions.isr[:] = 0
        cluster.topics.deleting[:] = 1
        cluster.brokers.unregister(np.arange(len(cluster.brokers), dtype=np.int32))
        reloaded = store.perform(Load())
        assert described(reloaded) == described(small_cluster())
        assert settings(reloaded) == settings(small_cluster())
        assert reloaded.brokers.registered_ids() == [1, 2, 3]

    def test_state_write_times_precede_later_registrations(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        (before,) = storage.bounce_brokers([1])
        store.perform(WriteStates(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2, 1), 5, expected=7)}, 1)))
        (after,) = storage.bounce_brokers([2])
        loaded = store.perform(Load())
        if loaded.state_zxid is not None:
            assert len(loaded.state_zxid) == len(loaded)
            (row,) = rows_of(loaded, ["orders-0"])
            assert before <= loaded.state_zxid[row] < after
            stored = store.perform(ReadStates(loaded, np.array([row], np.int32)))
            assert stored.zxid is not None
            assert stored.zxid.tolist() == [loaded.state_zxid[row]]
            index = loaded.brokers.find(2)
            assert index is not None
            assert loaded.brokers.broker_epoch[index] == after

    def test_write_codes_are_independent_per_row(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        before = described(cluster)
        states = {
            "orders-0": StateSpec(2, (2, 1), 5, expected=7),
            "orders-1": StateSpec(3, (3,), 1, expected=5),
            "orders-2": StateSpec(3, (3,), 10, expected=NO_STATE),
            "empty.topic-0": StateSpec(2, (2, 1), 0, expected=NO_STATE),
            "empty.topic-1": StateSpec(2, (2, 1), 0, expected=0),
            "leaving_topic-0": StateSpec(1, (1,), 1, expected=0),
        }
        result = store.perform(WriteStates(cluster, change_of(cluster, states, 1)))
        assert codes(result) == ["OK", "STALE", "EXISTS", "OK", "MISSING", "OK"]
        assert result.partition_epoch[result.accepted].tolist() == [8, 0, 1]
        after = described(store.perform(Load()))
        written = {"orders-0": 8, "empty.topic-0": 0, "leaving_topic-0": 1}
        for name, partition_epoch in written.items():
            assert after[name] == as_written(before[name], states[name], partition_epoch)
        assert {name: after[name] for name in after if name not in written} == {
            name: before[name] for name in before if name not in written
        }

    @pytest.mark.parametrize(
        "requested",
        [
            ["orders-1", "orders-2"],
            ["orders-1", "orders-2", "leaving_topic-0"],
            ["orders-2"],
            ["leaving_topic-0"],
        ],
        ids=lambda requested: f"{len(requested)}-{requested[0]}",
    )
    @pytest.mark.parametrize("expected", [0, 5])
    def test_pipelined_write_equals_unpipelined_write(
        self, make_storage: StorageFactory, requested: list[str], expected: int
    ) -> None:
        states = {
            "orders-0": StateSpec(2, (2, 1), 5, expected=7),
            "orders-1": StateSpec(3, (3,), 1, expected=expected),
            "orders-2": StateSpec(1, (1,), 10, expected=0),
            "leaving_topic-0": StateSpec(1, (1,), 1, expected=0),
        }
        outcomes = []
        for pipelined in (["orders-1", "orders-2"], []):
            store, cluster = controller_of(make_storage(small_cluster()))
            first, following, second = (
                change_of(cluster, {name: states[name] for name in names}, 1)
                for names in (["orders-0"], pipelined, requested)
            )
            results = [
                store.perform(WriteStates(cluster, first, following if pipelined else None)),
                store.perform(WriteStates(cluster, second)),
            ]
            stored = described(store.perform(Load()))
            outcomes.append(
                [
                    [codes(result) for result in results],
                    [result.partition_epoch.tolist() for result in results],
                    {name: stored[name] for name in ("orders-0", *requested)},
                ]
            )
        assert outcomes[0] == outcomes[1]

    def test_lost_claim_fences_pipelined_writes(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        before, second = described(store.perform(Load())), opened(storage)
        assert second.perform(Claim(SECOND_ID, takeover=True)) == 2
        first = change_of(cluster, {"orders-0": StateSpec(2, (2, 1), 5, expected=7)}, 1)
        following = change_of(cluster, {"orders-2": StateSpec(1, (1,), 10, expected=0)}, 1)
        for _ in range(2):
            with pytest.raises(ControllerFenced):
                store.perform(WriteStates(cluster, first, following))
        assert described(second.perform(Load())) == before

    def test_partition_absent_from_storage_is_missing(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        other_cluster = cluster_of({"nowhere": [PartitionSpec((1, 2))], "orders": [healthy(1)] * 5}, registered=[1, 2])
        states = {
            "nowhere-0": StateSpec(1, (1,), 0, NO_STATE),
            "orders-4": StateSpec(1, (1,), 3, 3),
            "orders-0": StateSpec(1, (1,), 5, 7),
        }
        assert codes(store.perform(WriteStates(other_cluster, change_of(other_cluster, states, 1)))) == [
            "MISSING",
            "MISSING",
            "OK",
        ]

    def test_versions_count_writes_from_zero(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        for expected in (NO_STATE, 0, 1, 2):
            state = {"empty.topic-1": StateSpec(2, (2, 1), expected + 1, expected)}
            result = store.perform(WriteStates(cluster, change_of(cluster, state, 1)))
            assert (codes(result), result.partition_epoch.tolist()) == (["OK"], [expected + 1])
            assert codes(store.perform(WriteStates(cluster, change_of(cluster, state, 1)))) in (["STALE"], ["EXISTS"])

    def test_empty_write_and_empty_read(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        assert len(store.perform(WriteStates(cluster, change_of(cluster, {}, 1))).codes) == 0
        stored = store.perform(ReadStates(cluster, np.empty(0, np.int32)))
        assert (len(stored.exists), len(stored.isr)) == (0, 0)

    def test_read_states_keeps_requested_order(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        rows = rows_of(cluster, ["empty.topic-1", "orders-2", "orders-0", "empty.topic-0", "orders-1"])
        stored = store.perform(ReadStates(cluster, rows))
        assert stored.rows.tolist() == rows.tolist()
        assert stored.exists.tolist() == [False, True, True, False, True]
        stored_rows = np.flatnonzero(stored.exists)
        assert cluster.brokers.ids_of(stored.leader[stored_rows]) == [-1, 1, 2]
        assert stored.leader_epoch[stored_rows].tolist() == [9, 4, 0]
        assert stored.controller_epoch[stored_rows].tolist() == [0, 2, 0]
        assert stored.partition_epoch[stored_rows].tolist() == [0, 7, 0]
        assert stored.recovery[stored_rows].tolist() == [1, 0, 0]
        assert [cluster.brokers.ids_of(stored.isr[index]) for index in range(5)] == [[], [3], [3, 1, 2], [], [2]]

    def test_written_states_are_read_and_loaded(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        states = {
            "orders-2": StateSpec(-1, (), 10, 0, recovery=0),
            "empty.topic-0": StateSpec(2, (4, 2, 3, 1), 0, NO_STATE, recovery=1),
        }
        change = change_of(cluster, states, 1)
        store.perform(WriteStates(cluster, change))
        stored = store.perform(ReadStates(cluster, change.rows))
        assert stored.exists.all()
        assert cluster.brokers.ids_of(stored.leader) == [-1, 2]
        assert [cluster.brokers.ids_of(stored.isr[0]), cluster.brokers.ids_of(stored.isr[1])] == [[], [4, 2, 3, 1]]
        assert (stored.recovery.tolist(), stored.controller_epoch.tolist()) == ([0, 1], [1, 1])
        reload(cluster, stored)
        assert described(cluster) == described(store.perform(Load()))

    def test_store_and_controller_may_use_different_indexes(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        other = cluster_of(
            {"zero": [], "leaving_topic": [healthy(2, 1)], "orders": [healthy(3, 1)]}, registered=[9, 3, 1]
        )
        state = {"orders-0": StateSpec(3, (3, 9, 1), 5, 7), "leaving_topic-0": StateSpec(1, (1,), 1, 0)}
        assert codes(store.perform(WriteStates(other, change_of(other, state, 1)))) == ["OK", "OK"]
        loaded = described(store.perform(Load()))
        assert (loaded["orders-0"]["leader"], loaded["orders-0"]["isr"]) == (3, [3, 9, 1])
        assert (loaded["leaving_topic-0"]["leader"], loaded["leaving_topic-0"]["isr"]) == (1, [1])
        storage.write_state("orders", 0, isr=[2, 3])
        storage.settle()
        stored = store.perform(ReadStates(other, rows_of(other, ["orders-0", "leaving_topic-0"])))
        assert other.brokers.ids_of(stored.leader) == [3, 1]
        assert other.brokers.ids_of(stored.isr[0]) == [2, 3]

    def test_broker_write_makes_controller_write_stale(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        assert storage.write_state("orders", 0, isr=[1, 2]) == 8
        state = {"orders-0": StateSpec(2, (2,), 5, 7)}
        assert codes(store.perform(WriteStates(cluster, change_of(cluster, state, 1)))) == ["STALE"]
        stored = store.perform(ReadStates(cluster, rows_of(cluster, state)))
        assert (stored.partition_epoch.tolist(), stored.leader_epoch.tolist()) == ([8], [4])
        assert (cluster.brokers.ids_of(stored.isr[0]), stored.controller_epoch.tolist()) == ([1, 2], [2])
        reload(cluster, stored)
        assert described(cluster) == described(store.perform(Load()))
        state = {"orders-0": StateSpec(2, (2,), 5, 8)}
        assert codes(store.perform(WriteStates(cluster, change_of(cluster, state, 1)))) == ["OK"]

    def test_bulk_write_equals_single_writes(self, make_storage: StorageFactory) -> None:
        partitions, loaded = self.bulk_rows, []
        specs = [
            healthy(1 + n % 5, 1 + (n + 1) % 5) if n % 3 else PartitionSpec((1 + n % 5, 6)) for n in range(partitions)
        ]
        topics = {f"topic-{n:03}": specs[n : n + 100] for n in range(0, partitions, 100)}
        for batch_size in (partitions, 1):
            store, cluster = controller_of(make_storage(cluster_of(topics, registered=[1, 2, 3, 4, 5])))
            states = {
                name: StateSpec(partition["replicas"][0], tuple(reversed(partition["replicas"])), 1, n % 4 - 1)
                for n, (name, partition) in enumerate(described(cluster).items())
            }
            change = change_of(cluster, states, 1)
            parts = [change.take(np.arange(n, n + batch_size)) for n in range(0, partitions, batch_size)]
            results = [store.perform(WriteStates(cluster, part)) for part in parts]
            loaded.append((described(store.perform(Load())), [code for result in results for code in codes(result)]))
        assert set(loaded[0][1]) == {"OK", "STALE", "EXISTS", "MISSING"}
        assert loaded[0] == loaded[1]
