"""Reassignment: both phases, their cost, and partitions that cannot be reassigned with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from kframe.embedded import Api
from kframe.errors import InputError
from kframe.model.plan import Plan
from kframe.snapshot import Snapshot
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.whatif import ElectionHeld, Outcome, RequestsSent, StatesWritten, TopicsWritten, WhatIf
from kframe.whatif.results.reassignment_result import ReassignmentTopic
from tests.whatif.samples import requests_by_broker


def new_whatif(*partitions: PartitionSpec, deleting: bool = False) -> WhatIf:
    """Brokers 1 to 6 are registered, 7 is not. Topic t has these partitions."""
    up = [registration(broker_id, broker_epoch=10 + broker_id) for broker_id in range(1, 7)]
    cluster = cluster_of({"t": partitions, "u": [healthy(7, 1)], "gone": [healthy(1, 2)]}, up)
    cluster.topics.deleting[2] = deleting
    return WhatIf(Snapshot.from_cluster(cluster, controller_id=1, controller_epoch=7))


def reassign_to(whatif: WhatIf, *targets: tuple[str, int, tuple[int, ...]]) -> Outcome:
    return whatif.reassign(Plan.of([((topic, partition), replicas) for topic, partition, replicas in targets]))


def problems(outcome: Outcome) -> dict[tuple[str, int], tuple[str, str, str]]:
    assert outcome.reassignment is not None
    return {
        (problem.topic, problem.partition): (problem.status, problem.error, problem.reason)
        for problem in outcome.reassignment.problems()
    }


def brokers(outcome: Outcome, *columns: str) -> dict[int, tuple[int, ...]]:
    assert outcome.reassignment is not None
    return {row.broker_id: tuple(getattr(row, name) for name in columns) for row in outcome.reassignment.broker_rows()}


def test_replacing_all_replicas() -> None:
    whatif = new_whatif(healthy(1, 2, 3))
    outcome = reassign_to(whatif, ("t", 0, (4, 5, 6)))
    view = whatif.cluster["t", 0]
    assert (view.replicas, view.adding_replicas, view.removing_replicas) == ((4, 5, 6), (), ())
    # A1 and the election increment the leader epoch once each; so does each replica that leaves the ISR.
    assert (view.leader, view.isr, view.leader_epoch) == (4, (4, 5, 6), 5)
    begun, caught_up, completed = (step.events for step in outcome.steps)
    assert [type(event).__name__ for event in begun] == [
        "TopicsWritten",
        "StatesWritten",
        "RequestsSent",
        "RequestsSent",
        "RequestsSent",
        "RequestsSent",
    ]
    assert begun[0] == TopicsWritten(begun[0].action, 1, adding=3, removing=3)  # type: ignore[union-attr]
    grown, to_all = caught_up
    assert grown == StatesWritten(1, created=0, elected=0, shrunk=0, leaderless=0, refused=0, grown=1)
    assert isinstance(to_all, RequestsSent)
    assert (to_all.api, to_all.brokers) == (Api.UPDATE_METADATA, 6)
    elections = [event for event in completed if isinstance(event, ElectionHeld)]
    assert [(event.kind.name, event.elected) for event in elections] == [("REASSIGN", 1)]
    shrunk = [event for event in completed if isinstance(event, StatesWritten) and event.shrunk]
    assert len(shrunk) == 3
    assert outcome.reassignment is not None
    assert outcome.reassignment.totals() == {
        "partitions": 1,
        "completed": 1,
        "waiting": 0,
        "refused": 0,
        "replicas_copied": 3,
        "replicas_deleted": 3,
        "replicas_before": 7,
        "replicas_peak": 10,
        "replicas_after": 7,
    }
    assert requests_by_broker(outcome, Api.STOP_REPLICA) == {1: (2, 2), 2: (2, 2), 3: (2, 2)}


def test_replicas_and_leaders_gained_and_lost_by_brokers() -> None:
    whatif = new_whatif(healthy(1, 2), healthy(2, 1))
    outcome = reassign_to(whatif, ("t", 0, (3, 2)), ("t", 1, (2, 3, 4)))
    assert brokers(outcome, "copied", "deleted", "replicas_before", "replicas_peak", "replicas_after") == {
        1: (0, 2, 4, 4, 2),
        2: (0, 0, 3, 3, 3),
        3: (2, 0, 0, 2, 2),
        4: (1, 0, 0, 1, 1),
        5: (0, 0, 0, 0, 0),
        6: (0, 0, 0, 0, 0),
        7: (0, 0, 1, 1, 1),
    }
    gains = brokers(outcome, "leaders_gained")
    # Leader 1 of t-0 is removed, and the first replica of its target leads. t-1 keeps its leader.
    assert {broker_id: gained for broker_id, (gained,) in gains.items() if gained} == {1: -1, 3: 1}
    assert outcome.impact.leaders_moved == 1
    assert outcome.reassignment is not None
    (topic,) = outcome.reassignment.topic_rows()
    assert topic == ReassignmentTopic("t", partitions=2, copied=3, deleted=2, completed=2, waiting=0, refused=0)


def test_reordered_replicas_complete_at_once() -> None:
    whatif = new_whatif(healthy(1, 2, 3))
    outcome = reassign_to(whatif, ("t", 0, (3, 1, 2)))
    assert whatif.cluster["t", 0].replicas == (3, 1, 2)
    assert whatif.cluster["t", 0].leader == 1
    assert [len(step.events) > 0 for step in outcome.steps] == [True, False, False]
    (row,) = outcome.changes.records()
    assert (row["replicas_before"], row["replicas_after"]) == ([1, 2, 3], [3, 1, 2])


def test_isr_proposals_of_all_leaders_merge_into_single_step() -> None:
    whatif = new_whatif(healthy(1, 2), healthy(2, 1), healthy(3, 1))
    outcome = reassign_to(whatif, ("t", 0, (1, 4)), ("t", 1, (2, 4)), ("t", 2, (4, 3)))
    grown, metadata = outcome.steps[1].events
    assert isinstance(grown, StatesWritten)
    assert isinstance(metadata, RequestsSent)
    # One AlterPartition per leader; each causes requests to all six brokers.
    assert (grown.partitions, grown.grown, metadata.requests, metadata.brokers) == (3, 3, 18, 6)
    assert metadata.partitions == 3
    assert outcome.impact.requests == sum(
        event.requests for step in outcome.steps for event in step.events if isinstance(event, RequestsSent)
    )


def test_retained_out_of_sync_followers_catch_up() -> None:
    whatif = new_whatif(PartitionSpec((1, 2, 3), leader=1, isr=(1,)))
    outcome = reassign_to(whatif, ("t", 0, (1, 2, 4)))
    assert problems(outcome) == {}
    assert whatif.cluster["t", 0].isr == (1, 2, 4)


def test_health_between_phases_counts_caught_up_replicas() -> None:
    whatif = new_whatif(PartitionSpec((1, 2), leader=1, isr=(1,)), healthy(2, 1))
    outcome = reassign_to(whatif, ("t", 0, (1, 2, 3)), ("t", 1, (2, 3)))
    # An adding replica does not make a partition under-replicated.
    assert outcome.before.counts()["under_replicated"] == 1
    assert [step.counts["under_replicated"] for step in outcome.steps] == [1, 0, 0]


#: (partition, target, result).
NOT_COMPLETED: list[tuple[PartitionSpec, tuple[int, ...], tuple[str, str, str]]] = [
    (healthy(1, 2), (), ("refused", "INVALID_REPLICA_ASSIGNMENT", "an empty replica list")),
    (healthy(1, 2), (3, 3), ("refused", "INVALID_REPLICA_ASSIGNMENT", "a broker named twice")),
    (healthy(1, 2), (-1, 3), ("refused", "INVALID_REPLICA_ASSIGNMENT", "a negative broker id")),
    (healthy(1, 2), (1, 7), ("refused", "INVALID_REPLICA_ASSIGNMENT", "not live: 7")),
    (healthy(1, 2), (8, 9), ("refused", "INVALID_REPLICA_ASSIGNMENT", "not live: 8, 9")),
    (PartitionSpec((1, 7), leader=1, isr=(1,)), (2, 7), ("waiting", "NONE", "not in sync, being down: 7")),
    (
        PartitionSpec((7, 1), leader=None, isr=(7,)),
        (1, 2),
        ("waiting", "NONE", "no live leader adds the new replicas to the ISR"),
    ),
    (PartitionSpec((1, 2)), (3, 4), ("refused", "UNKNOWN_SERVER_ERROR", "the partition never had a leader")),
]


@pytest.mark.parametrize("spec, target, expected", NOT_COMPLETED)
def test_incomplete_reassignment_states_reason(
    spec: PartitionSpec, target: tuple[int, ...], expected: tuple[str, str, str]
) -> None:
    # Another partition of the same request continues.
    whatif = new_whatif(spec, healthy(1, 2))
    outcome = reassign_to(whatif, ("t", 0, target), ("t", 1, (3, 4)))
    assert problems(outcome) == {("t", 0): expected}
    assert whatif.cluster["t", 1].replicas == (3, 4)


def test_unknown_partitions_are_refused_by_name() -> None:
    whatif = new_whatif(healthy(1, 2), deleting=True)
    outcome = reassign_to(whatif, ("t", 1, (1,)), ("t", -1, (1,)), ("nope", 0, (1,)), ("gone", 0, (1,)))
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert problems(outcome) == {
        ("t", 1): ("refused", unknown, "no such partition"),
        ("t", -1): ("refused", unknown, "no such partition"),
        ("nope", 0): ("refused", unknown, "no such topic, or it is being deleted"),
        ("gone", 0): ("refused", unknown, "no such topic, or it is being deleted"),
    }
    response = outcome.steps[0].response
    assert response is not None
    assert (response.counts(), response.named) == ({unknown: 4}, ("t-1", "t--1", "nope-0", "gone-0"))
    assert len(outcome.changes) == 0


def test_waiting_reassignment_copies_live_replicas() -> None:
    whatif = new_whatif(PartitionSpec((1, 7), leader=1, isr=(1,)))
    outcome = reassign_to(whatif, ("t", 0, (2, 3, 7)))
    view = whatif.cluster["t", 0]
    assert (view.replicas, view.adding_replicas, view.isr) == ((2, 3, 7, 1), (2, 3), (1, 2, 3))
    assert outcome.reassignment is not None
    totals = outcome.reassignment.totals()
    assert (totals["replicas_copied"], totals["replicas_deleted"], totals["waiting"]) == (2, 0, 1)


def test_ongoing_reassignment_is_replaced() -> None:
    running = PartitionSpec((3, 4, 1, 2), leader=1, isr=(1, 2, 3), adding_replicas=(3, 4), removing_replicas=(1, 2))
    whatif = new_whatif(running)
    outcome = reassign_to(whatif, ("t", 0, (3, 5)))
    view = whatif.cluster["t", 0]
    assert (view.replicas, view.adding_replicas, view.isr) == ((3, 5), (), (3, 5))
    assert outcome.reassignment is not None
    assert brokers(outcome, "copied", "deleted", "replicas_peak") == {
        1: (0, 1, 3),
        2: (0, 1, 2),
        3: (1, 0, 1),
        4: (0, 1, 1),
        5: (1, 0, 1),
        6: (0, 0, 0),
        7: (0, 0, 1),
    }


def test_reassignment_continues_from_previous_state() -> None:
    whatif = new_whatif(healthy(1, 2))
    reassign_to(whatif, ("t", 0, (3, 4)))
    back = reassign_to(whatif, ("t", 0, (1, 2)))
    assert whatif.cluster["t", 0].replicas == (1, 2)
    assert back.reassignment is not None
    assert back.reassignment.totals()["completed"] == 1
    failed = whatif.fail([1])
    assert whatif.cluster["t", 0].leader == 2
    assert failed.reassignment is None


@pytest.mark.parametrize(
    "targets, message",
    [
        ([], "plan: found no partition, expected at least one to reassign"),
        (
            [("t", 0, (1,)), ("u", 0, (1,)), ("t", 0, (2,))],
            r"plan partitions\[2\]: found partition t-0 again, expected each partition once",
        ),
    ],
)
def test_invalid_plan_raises_input_error(targets: list[Any], message: str) -> None:
    whatif = new_whatif(healthy(1, 2))
    with pytest.raises(InputError, match=message):
        reassign_to(whatif, *targets)
    assert whatif.cluster["t", 0].leader_epoch == 0
