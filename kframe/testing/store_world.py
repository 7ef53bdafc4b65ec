"""The storage that the store contract plays with: what a plugin's author supplies, and how the suite speaks of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import pytest

from kframe.model.brokers import Registration
from kframe.model.changes import WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.columns import Ragged
from kframe.model.events import Event
from kframe.model.ids import RecoveryState
from kframe.model.ports import Store
from kframe.model.surroundings import ClusterContext
from kframe.model.tables import TopicTable
from kframe.testing.clusters import PartitionSpec, StateSpec, cluster_of, healthy, registration


class StoreWorld(ClusterContext, Protocol):
    """The storage that the suite plays with, and what befalls it from outside."""

    def expire(self, store: Any) -> None:
        """End the session of a store that is open; return when it has another one."""

    def modify_broker(self, registration: Registration) -> None:
        """Replace the content of a registration."""


WorldFactory: TypeAlias = Callable[[ClusterState], StoreWorld]

ONE, TWO = 101, 102  # controller ids


def small_cluster() -> ClusterState:
    """Three registered brokers and one that is only named; a topic with states, one without, one being deleted."""
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
    def make_world(self) -> WorldFactory:
        """To be supplied by the plugin's tests."""
        raise NotImplementedError("the subclass supplies the fixture make_world")

    @pytest.fixture
    def world(self, make_world: WorldFactory) -> StoreWorld:
        """A world that holds ``small_cluster``."""
        return make_world(small_cluster())


def opened(world: StoreWorld, heard: list[Event] | None = None) -> Store:
    """An open store; what it is notified of is added to ``heard``."""
    store = world.connect()
    store.open(([] if heard is None else heard).append)
    return store


def controller_of(world: StoreWorld, heard: list[Event] | None = None) -> tuple[Store, ClusterState]:
    """A store that holds the role, and the cluster as it has loaded it; ``heard`` begins after that."""
    store = opened(world, heard)
    assert store.claim(ONE) == 1
    store.prepare()
    cluster = store.load()
    world.settle()
    if heard is not None:
        heard.clear()
    return store, cluster


def table_as_read(table: TopicTable) -> dict[str, list[tuple[tuple[int, ...], ...]]]:
    """(replicas, adding replicas, removing replicas) of each partition of each topic, in the order of the table."""
    found: dict[str, list[tuple[tuple[int, ...], ...]]] = {}
    row = 0
    for name, count in zip(table.names, table.partition_counts.tolist(), strict=True):
        rows = range(row, row + count)
        found[name] = [tuple(tuple(lists[one].tolist()) for lists in _lists(table)) for one in rows]
        row += count
    return found


def _lists(table: TopicTable) -> tuple[Ragged, Ragged, Ragged]:
    return table.replicas, table.adding, table.removing


def end_role(world: StoreWorld, store: Store, how: str) -> None:
    """Let the controller on ``store`` lose its role."""
    match how:
        case "release":
            store.release()
        case "close":
            store.close()
        case "expire":
            world.expire(store)
        case "drop":
            world.drop_controller()


def codes(result: WriteResult) -> list[str]:
    """How each row fared, by name."""
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
