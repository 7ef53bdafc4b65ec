"""Partitions without replicas: an operator may store an empty list, and no rule may read the next row's replicas.

Kafka 3.9 reads the head of such a list and fails. In kframe such a partition has no leader, and other partitions are
not affected.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions
from kframe.model.events import (
    CreatePartitionsRequested,
    DeletionsMarked,
    ElectionRequested,
    ElectionType,
    ListReassignmentsRequested,
    ReassignmentRequested,
    ReassignmentsStored,
    RebalanceLeaders,
    Reelect,
)
from kframe.model.tables import Targets
from kframe.snapshot import Snapshot
from kframe.snapshot.summary import conditions_of, loads_of
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from kframe.whatif import WhatIf
from tests.core.driver import Driver, assigned, elected, quiet, state_of

#: Partitions without replicas: without a state; with an unassigned leader; and with a state but without a leader.
BARE: Final = (PartitionSpec(()), PartitionSpec((), 1, (1, 2)), PartitionSpec((), None, (2,)))
#: Empty partitions come before and after others. An access to a wrong slot reads another row or exceeds the array.
TOPICS: Final = {"t": (*BARE, healthy(1, 2), PartitionSpec((2, 1), 1, (1, 2)), *BARE)}
LED_BY_1: Final = ("t-1", "t-6")


def make_driver(**config: object) -> Driver:
    return quiet(TOPICS, (1, 2, 3), **config)


def untouched(driver: Driver) -> bool:
    """Whether no partition without replicas was written."""
    bare = {f"t-{number}" for number in (0, 1, 2, 5, 6, 7)}
    return not bare & {name for names in driver.written() for name in names}


# -- start and failover, brokers


def test_failover_skips_partitions_without_replicas() -> None:
    driver = elected(TOPICS, (2, 3))
    assert driver.controller.active
    assert [driver.known(f"t-{number}").leader for number in range(8)] == [None, 1, -1, 2, 2, None, 1, -1]
    assert untouched(driver)
    assert driver.controller.gauges()["PreferredReplicaImbalanceCount"] == 1


def test_broker_failure_and_restart() -> None:
    driver = make_driver()
    driver.fail_brokers(1)
    assert [state_of(driver.known(name)) for name in ("t-3", "t-4")] == [(2, (2,), 1)] * 2
    driver.start_brokers(1)
    assert untouched(driver)
    assert {name for name in LED_BY_1 if driver.known(name).leader == 1} == set(LED_BY_1)


# -- elections


@pytest.mark.parametrize(
    "kind, codes",
    [
        (ElectionType.PREFERRED, [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE] * 3),
        (
            ElectionType.UNCLEAN,
            [
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                ErrorCode.ELECTION_NOT_NEEDED,
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            ],
        ),
    ],
)
def test_election_without_replicas_elects_no_leader(kind: ElectionType, codes: list[ErrorCode]) -> None:
    """An online leader needs no unclean election, assigned or not."""
    driver = make_driver()
    response = driver.ask(ElectionRequested(kind, tuple(("t", number) for number in (0, 1, 2, 5, 6, 7)), token=1))
    assert response.codes.tolist() == codes * 2
    assert untouched(driver)


def test_rebalance_skips_partitions_without_preferred_replica() -> None:
    """Broker 2 leads one of the two partitions with replicas, so that the imbalance is at least one half."""
    driver = make_driver(leader_imbalance_per_broker_percentage=99)
    driver.handle(RebalanceLeaders())
    assert driver.written() == [["t-4"]]
    assert state_of(driver.known("t-4")) == (2, (1, 2), 1)


# -- reassignment


def test_stored_empty_target_is_removed() -> None:
    """The replicas and their data remain, as in Kafka (golden trace ``reassign-znode-empty``), also after a
    failover."""
    driver = quiet({"t": [healthy(1, 2)], "u": [healthy(1, 2)]})
    driver.ensemble.request_reassignments(Targets.of([(("t", 0), ()), (("u", 0), (2, 1))]))
    driver.handle(ReassignmentsStored())
    driver.follow()
    halfway = ((1, 2), (), (1, 2))
    assert assigned(driver.known("t-0")) == assigned(driver.stored("t-0")) == halfway
    assert assigned(driver.known("u-0")) == ((2, 1), (), ())
    assert driver.requests(Api.STOP_REPLICA) == []
    driver.ensemble.drop_controller()
    driver.handle(Reelect())
    driver.follow()
    assert (assigned(driver.known("t-0")), driver.known("t-0").isr) == (halfway, (1, 2))


def test_cancellation_completes_reassignment_to_no_replicas() -> None:
    driver = quiet({"t": [healthy(1, 2)]})
    driver.ensemble.request_reassignments(Targets.of([(("t", 0), ())]))
    driver.handle(ReassignmentsStored())
    driver.follow()
    assert driver.ask(ReassignmentRequested(Targets.of([(("t", 0), None)]), 1)).codes.tolist() == [0]
    assert assigned(driver.stored("t-0")) == ((1, 2), (), ())


@pytest.mark.parametrize("number", [0, 1, 2, 7])
def test_partition_without_replicas_cannot_be_reassigned(number: int) -> None:
    """Kafka 3.9 ``maybeTriggerPartitionReassignment``: such a partition does not exist."""
    driver = make_driver()
    response = driver.ask(ReassignmentRequested(Targets.of([(("t", number), (1, 2))]), 1))
    assert response.codes.tolist() == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    driver.ensemble.request_reassignments(Targets.of([(("t", number), (1, 2))]))
    driver.handle(ReassignmentsStored())
    assert assigned(driver.known(f"t-{number}")) == assigned(driver.stored(f"t-{number}")) == ((), (), ())
    assert driver.ask(ListReassignmentsRequested(None, 2)).rows.tolist() == []


# -- topics


@pytest.mark.parametrize(
    "assignments, code",
    [
        (None, ErrorCode.UNKNOWN_SERVER_ERROR),
        (((),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (((1,),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_topic_with_partition_without_replicas_cannot_grow(
    assignments: tuple[tuple[int, ...], ...] | None, code: ErrorCode
) -> None:
    driver = make_driver()
    response = driver.ask(CreatePartitionsRequested((NewPartitions("t", 9, assignments),), token=1))
    assert response.codes == {"t": code}


def test_deletion_of_partitions_without_replicas() -> None:
    driver = quiet({"t": BARE, "kept": [healthy(1, 2)]})
    driver.ensemble.mark_for_deletion(["t"])
    driver.handle(DeletionsMarked())
    driver.follow()
    assert "t" not in driver.cluster.topics
    assert assigned(driver.known("kept-0")) == ((1, 2), (), ())


# -- columns, what-ifs


def study() -> WhatIf:
    return WhatIf(Snapshot.from_cluster(cluster_of(TOPICS, (1, 2, 3)), controller_id=1000, controller_epoch=1))


def test_what_if_of_broker_failure() -> None:
    whatif = study()
    outcome = whatif.fail([1])
    assert [view.leader for view in whatif.cluster] == [None, 1, -1, 2, 2, None, 1, -1]
    assert [health.counts()["offline"] for health in (outcome.before, outcome.after)] == [4, 6]


def test_summary_of_a_snapshot() -> None:
    snapshot = study().snapshot
    assert loads_of(snapshot).preferred.tolist() == [1, 1, 0]
    preferred_replica_imbalance = conditions_of(snapshot).preferred_replica_imbalance
    assert preferred_replica_imbalance is not None
    assert np.flatnonzero(preferred_replica_imbalance).tolist() == [4]
