"""The election strategy of each caller (``elections.md`` section 6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kframe.core.selectors.leader_selection import Selection
from kframe.model.admin import NewTopic
from kframe.model.arrays import Int32, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.events import (
    ControlledShutdownRequested,
    CreateTopicsRequested,
    ElectionRequested,
    ElectionType,
    PreferredElectionStored,
    ReassignmentRequested,
    RebalanceLeaders,
    Reelect,
    TopicPartition,
    TopicSettingsChanged,
)
from kframe.model.ids import NO_BROKER_EPOCH, ElectionKind
from kframe.model.tables import Targets
from kframe.ports.store_requests import ReadPreferredElection
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from tests.core.driver import Driver, active

UNCLEAN = {"unclean.leader.election.enable": "true"}


class RecordingSelection(Selection):
    """The built-in selectors with a record of their calls. It has the election kind and partitions."""

    def __init__(self) -> None:
        super().__init__({})
        self.elections: list[tuple[ElectionKind, list[str], list[int]]] = []

    def choose(self, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
        if len(rows):
            self.elections.append((kind, [cluster.name(row) for row in rows.tolist()], unclean_allowed.tolist()))
        return super().choose(cluster, kind, rows, unclean_allowed)


def fail_over(driver: Driver) -> None:
    driver.handle(Reelect())


def a_broker_starts(driver: Driver) -> None:
    driver.start_brokers(5)


def a_broker_fails(driver: Driver) -> None:
    driver.fail_brokers(1)


def ask_for(election_type: ElectionType) -> Callable[[Driver], None]:
    return lambda driver: driver.handle(ElectionRequested(election_type, None))


def two_shuts_down(driver: Driver) -> None:
    driver.handle(ControlledShutdownRequested(2, NO_BROKER_EPOCH))


def time_to_rebalance(driver: Driver) -> None:
    driver.handle(RebalanceLeaders())


def is_reassigned(driver: Driver) -> None:
    driver.handle(ReassignmentRequested(Targets.of([(("t", 2), (3,))])))


def allow_unclean(driver: Driver) -> None:
    driver.ensemble.configure_topic("t", UNCLEAN)
    driver.handle(TopicSettingsChanged("t"))


def leave_preferred(driver: Driver) -> None:
    driver.ensemble.request_preferred_election([("t", 3), ("nowhere", 0), ("t", 0)])
    driver.handle(PreferredElectionStored())


def fail_over_with_preferred_left(driver: Driver) -> None:
    driver.ensemble.request_preferred_election([("t", 2), ("t", 3)])
    driver.handle(Reelect())


def new_topic(driver: Driver) -> None:
    driver.handle(CreateTopicsRequested((NewTopic("u", 2, 1),)))


@pytest.mark.parametrize("partitions", [(("t", 3),), (), (("nowhere", 9),), (("t", 0),)])
def test_stored_preferred_election_is_always_deleted(partitions: tuple[TopicPartition, ...]) -> None:
    """controller 11.1: the record of a zk election is deleted in every case.
    controller 3.2: step 10, pending preferred elections.
    elections 6: preferred elections left in storage are deleted, and a new watch is set.
    """
    driver = active(PartitionSpec((1, 3)), healthy(1), healthy(2), PartitionSpec((3, 2), 2, (2, 3)))
    driver.ensemble.request_preferred_election(partitions)
    driver.events.clear()
    driver.handle(PreferredElectionStored())
    assert driver.store.perform(ReadPreferredElection()) is None
    assert driver.events == [PreferredElectionStored()]
    driver.handle(PreferredElectionStored())
    assert driver.events == [PreferredElectionStored()], "it does not go on for ever"


@pytest.mark.parametrize(
    "event, expected",
    [
        (fail_over, [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1"])]),
        (a_broker_starts, [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1"])]),
        (a_broker_fails, [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1", "t-2"])]),
        (ask_for(ElectionType.PREFERRED), [(ElectionKind.PREFERRED, ["t-3"])]),
        (ask_for(ElectionType.UNCLEAN), [(ElectionKind.OFFLINE, ["t-1"])]),
        (two_shuts_down, [(ElectionKind.CONTROLLED_SHUTDOWN, ["t-3"])]),
        (time_to_rebalance, [(ElectionKind.PREFERRED, ["t-3"])]),
        (is_reassigned, [(ElectionKind.REASSIGN, ["t-2"])]),
        (allow_unclean, [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1"])]),
        (leave_preferred, [(ElectionKind.PREFERRED, ["t-3"])]),
        (
            fail_over_with_preferred_left,
            [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1"]), (ElectionKind.PREFERRED, ["t-3"])],
        ),
        (new_topic, [(ElectionKind.INITIAL, ["u-0", "u-1"])]),
    ],
    ids=[
        "failover",
        "broker start",
        "broker failure",
        "preferred",
        "unclean",
        "controlled shutdown",
        "rebalance",
        "reassignment",
        "unclean enabled",
        "preferred left",
        "preferred left for a failover",
        "new topic",
    ],
)
def test_event_elects_by_strategy(
    event: Callable[[Driver], None], expected: list[tuple[ElectionKind, list[str]]]
) -> None:
    """controller 11.2: PREFERRED and UNCLEAN. 11.3: failover resume.
    elections 6: callers.
    """
    recording = RecordingSelection()
    specs = (
        PartitionSpec((1, 3)),
        PartitionSpec((9, 2), 9, (9, 2)),
        healthy(1, 3),
        PartitionSpec((3, 2), 2, (2, 3)),
        PartitionSpec((2,), 2, (2,)),
    )
    driver = Driver(cluster_of({"t": list(specs)}, (1, 2, 3)), selection=recording)
    if event not in (fail_over, fail_over_with_preferred_left):
        driver.adopt()
    event(driver)
    assert [(kind, names) for kind, names, _ in recording.elections] == expected


@pytest.mark.parametrize("deleting, flags", [(0, {0}), (1, set())], ids=["topic", "deleting topic"])
@pytest.mark.parametrize("event", [fail_over, a_broker_starts, a_broker_fails])
def test_broker_events_elect_cleanly_and_not_for_deleting_topic(
    event: Callable[[Driver], None], deleting: int, flags: set[int]
) -> None:
    """elections 6: only the operator sets allowUnclean; topic not being deleted."""
    recording = RecordingSelection()
    cluster = cluster_of({"t": [PartitionSpec((1, 2)), PartitionSpec((1, 2, 9), 9, (9,)), healthy(1, 2)]}, (1, 2))
    cluster.topics.deleting[0] = deleting
    driver = Driver(cluster, selection=recording)
    if event is not fail_over:
        driver.adopt()
    event(driver)
    assert {flag for _, _, allowed in recording.elections for flag in allowed} == flags
