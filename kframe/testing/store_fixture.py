"""The storage on which the store contract runs, and helpers of its tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import pytest

from kframe.model.arrays import Ragged
from kframe.model.brokers import Registration
from kframe.model.changes import WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.events import Event
from kframe.model.ids import RecoveryState
from kframe.model.tables import TopicTable
from kframe.ports.storage import ExternalChanges
from kframe.ports.store import Store
from kframe.ports.store_requests import Claim, Load, Prepare, ReleaseRole
from kframe.testing.clusters import PartitionSpec, StateSpec, cluster_of, healthy, registration


class StorageFixture(ExternalChanges, Protocol):
    """Storage for tests, and changes to it that do not come from the controller."""

    def expire(self, store: Any) -> None:
        """Expire an open store's session. Return when it has a new session."""

    def modify_broker(self, registration: Registration) -> None:
        """Replace the data of a registration."""


StorageFactory: TypeAlias = Callable[[ClusterState], StorageFixture]

#: Ids of controllers.
FIRST_ID, SECOND_ID = 101, 102


def small_cluster() -> ClusterState:
    """Three registered brokers and an unregistered one. Topics with states, without, and being deleted."""
    cluster = cluster_of(
        {
            "orders": [
                PartitionSpec(
                    (1, 2, 3), leader=1, isr=(3, 1, 2), leader_epoch=4, controller_epoch=2, partition_epoch=7
                ),
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


class StoreSuite:
    """The fixtures of every part of the contract."""

    @pytest.fixture
    def make_storage(self) -> StorageFactory:
        """Supplied by the tests of the plugin."""
        raise NotImplementedError("the subclass supplies the fixture make_storage")

    @pytest.fixture
    def storage(self, make_storage: StorageFactory) -> StorageFixture:
        """Storage with ``small_cluster``."""
        return make_storage(small_cluster())


def opened(storage: StorageFixture, notified: list[Event] | None = None) -> Store:
    """An open store. ``notified`` receives its events."""
    store = storage.connect()
    store.open(([] if notified is None else notified).append)
    return store


def controller_of(storage: StorageFixture, notified: list[Event] | None = None) -> tuple[Store, ClusterState]:
    """A store whose controller is active, and the cluster that it loaded. ``notified`` receives later events."""
    store = opened(storage, notified)
    assert store.perform(Claim(FIRST_ID)) == 1
    store.perform(Prepare())
    cluster = store.perform(Load())
    storage.settle()
    if notified is not None:
        notified.clear()
    return store, cluster


def table_as_read(table: TopicTable) -> dict[str, list[tuple[tuple[int, ...], ...]]]:
    """(replicas, adding replicas, removing replicas) of each partition of each topic, in the order of the table."""
    topics: dict[str, list[tuple[tuple[int, ...], ...]]] = {}
    first = 0
    for name, count in zip(table.names, table.partition_counts.tolist(), strict=True):
        rows = range(first, first + count)
        topics[name] = [tuple(tuple(lists[row].tolist()) for lists in _lists(table)) for row in rows]
        first += count
    return topics


def _lists(table: TopicTable) -> tuple[Ragged, Ragged, Ragged]:
    return table.replicas, table.adding, table.removing


def end_role(storage: StorageFixture, store: Store, cause: str) -> None:
    """End the term of the controller on ``store``."""
    match cause:
        case "release":
            store.perform(ReleaseRole())
        case "close":
            store.close()
        case "expire":
            storage.expire(store)
        case "drop":
            storage.drop_controller()


def codes(result: WriteResult) -> list[str]:
    """The name of each row's WriteCode."""
    return [WriteCode(code).name for code in result.codes.tolist()]


def as_written(before: dict[str, Any], state: StateSpec, partition_epoch: int) -> dict[str, Any]:
    """A described partition after the first controller has stored ``state`` for it."""
    return before | {
        "leader": state.leader,
        "isr": list(state.isr),
        "leader_epoch": state.leader_epoch,
        "controller_epoch": 1,
        "leader_recovery_state": state.recovery,
        "partition_epoch": partition_epoch,
    }


def settings(cluster: ClusterState) -> dict[str, tuple[int, int]]:
    """unclean.leader.election.enable and min.insync.replicas of each topic."""
    topics = cluster.topics
    columns = zip(topics.unclean.tolist(), topics.min_insync.tolist(), strict=True)
    return dict(zip(topics.names, columns, strict=True))
