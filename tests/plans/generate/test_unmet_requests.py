"""Requests that a plan cannot meet: which partitions stay, why, and what the report says instead of a bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np
import pytest

from kframe.errors import InputError
from kframe.model.arrays import Ragged
from kframe.plans.generate import plan
from kframe.plans.generate.report import report_document
from kframe.snapshot import Snapshot
from tests.plans.generate.clusters import lists_of, snapshot_of

NO_RACKS: Final[dict[int, str | None]] = dict.fromkeys(range(1, 5))
#: Topic a has three replicas, topic everywhere four.
FOUR_BROKERS: Final = {"a": [[1, 2, 4], [2, 3, 4], [3, 1, 2]], "everywhere": [[4, 1, 2, 3], [1, 2, 3]]}


def unmet(snapshot: Snapshot, **goals: Any) -> dict[str, str]:
    """The partitions that are not as requested, with their reasons."""
    return {f"{row['topic']}-{row['partition']}": row["reason"] for row in document(snapshot, **goals)["unmet"]}


def document(snapshot: Snapshot, **goals: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(report_document(plan(snapshot, **goals)))
    return fields


def reassigning(snapshot: Snapshot, adding: list[list[int]], removing: list[list[int]]) -> Snapshot:
    partitions = replace(snapshot.partitions, adding_replicas=Ragged.of(adding), removing_replicas=Ragged.of(removing))
    return replace(snapshot, partitions=partitions)


def without_leaders(snapshot: Snapshot, rows: list[int]) -> Snapshot:
    assert snapshot.partitions.leader is not None
    leader = snapshot.partitions.leader.copy()
    leader[rows] = -1
    return replace(snapshot, partitions=replace(snapshot.partitions, leader=leader))


def test_replication_factor_above_remaining_brokers_leaves_only_that_partition() -> None:
    snapshot = snapshot_of(FOUR_BROKERS, NO_RACKS)
    proposal = plan(snapshot, remove_brokers=(4,))
    assert lists_of(proposal) == [[1, 2, 3], [2, 3, 1], [3, 1, 2], [4, 1, 2, 3], [1, 2, 3]]
    assert (proposal.moves, proposal.bound, proposal.meets_request) == (2, 2, False)
    assert unmet(snapshot, remove_brokers=(4,)) == {"everywhere-0": "replication factor 4, but 3 brokers would remain"}


@pytest.mark.parametrize(
    ("goals", "reasons"),
    [
        (
            {"remove_brokers": (3, 4)},
            {
                **dict.fromkeys(
                    ("a-0", "a-1", "a-2", "everywhere-1"), "replication factor 3, but 2 brokers would remain"
                ),
                "everywhere-0": "replication factor 4, but 2 brokers would remain",
            },
        ),
        (
            {"replication_factors": {"everywhere": 5}},
            dict.fromkeys(("everywhere-0", "everywhere-1"), "replication factor 5, but only 4 brokers"),
        ),
        (
            {"replication_factors": {"a": 4}, "exclude_brokers": (4,)},
            {"a-2": "replication factor 4, but 3 brokers can have a replica (broker 4 is excluded)"},
        ),
        (
            {"remove_brokers": (4,), "exclude_topics": ("everywhere",), "broker_caps": {None: 2}},
            {
                "a-0": "too few brokers have room: broker 3 has 4 of at most 2 replicas",
                "a-1": "too few brokers have room: broker 1 has 4 of at most 2 replicas",
            },
        ),
    ],
)
def test_each_unmet_partition_has_its_reason(goals: dict[str, Any], reasons: dict[str, str]) -> None:
    assert unmet(snapshot_of(FOUR_BROKERS, NO_RACKS), **goals) == reasons


@pytest.mark.parametrize("extra", [{}, {"rebalance": True}, {"fix_racks": True}, {"replication_factors": {"a": 2}}])
def test_summary_of_unmet_request_claims_no_bound(extra: dict[str, Any]) -> None:
    report = document(snapshot_of(FOUR_BROKERS, NO_RACKS), remove_brokers=(4,), **extra)
    assert (report["targets_met"], report["moves"]["gap"]) == (False, None)
    assert report["moves"]["bound"] <= report["moves"]["cost"]
    assert "the request is not met: broker 4 retains 1 replica: everywhere-0 (replication" in report["summary"]
    assert "no plan" not in report["summary"]


def test_partition_that_dead_broker_cannot_join_names_the_broker() -> None:
    snapshot = snapshot_of({"t": [[1, 2]]}, dict.fromkeys(range(1, 4)), dead=(3,))
    assert unmet(snapshot, remove_brokers=(2,)) == {
        "t-0": "replication factor 2, but 1 broker can have a replica (broker 3 is not registered)"
    }


#: t-0 is being reassigned to 4,2,1.
MOVING: Final = ([[4, 2, 1, 3], [4, 2, 3]], [[4], []], [[3], []])


@pytest.mark.parametrize(
    ("goals", "meets_request"),
    [
        ({"remove_brokers": (1,)}, False),
        ({"remove_brokers": (4,)}, False),
        # The reassignment itself empties broker 3 of t-0.
        ({"remove_brokers": (3,)}, True),
        ({"replace": {1: 5}}, False),
        ({"evacuate_racks": ("r1",)}, False),
        ({"replication_factors": {"t": 3}}, True),
        ({"replication_factors": {"t": 2}}, False),
        ({"rebalance": True}, True),
        ({"leaders_only": True}, True),
        ({"fix_racks": True}, False),
        ({"remove_brokers": (1,), "topics": ("other",)}, True),
    ],
)
def test_reassignment_in_progress_counts_as_completed(goals: dict[str, Any], meets_request: bool) -> None:
    lists, adding, removing = MOVING
    racks = {1: "r1", 2: "r2", 3: "r3", 4: "r2"}
    snapshot = reassigning(snapshot_of({"other": [[2]], "t": lists}, racks), [[], *adding], [[], *removing])
    report = document(snapshot, **goals)
    assert report["targets_met"] == meets_request
    moving = {row["partition"]: row["reason"] for row in report["unmet"] if row["topic"] == "t"}
    assert moving == ({} if meets_request else {0: "a reassignment to 4,2,1 is in progress"})


def test_replica_that_a_reassignment_removes_is_no_replica_outside_of_the_scope() -> None:
    lists, adding, removing = MOVING
    snapshot = reassigning(snapshot_of({"other": [[3, 2]], "t": lists}, NO_RACKS), [[], *adding], [[], *removing])
    notes = document(snapshot, remove_brokers=(3,), exclude_topics=("other",))["notes"]
    assert "1 replica leaves when reassignments in progress complete" in notes
    assert "1 replica outside of the scope stays on the brokers that the others leave" in notes


def test_removed_broker_retains_replicas_of_deleted_topic() -> None:
    snapshot = snapshot_of({"gone": [[1]], "t": [[1]]}, {1: None, 2: None})
    topics = replace(snapshot.topics, deleting=np.array([1, 0], np.uint8))
    snapshot = replace(snapshot, topics=topics)
    assert unmet(snapshot, remove_brokers=(1,)) == {"gone-0": "its topic is being deleted"}
    assert document(snapshot, rebalance=True)["targets_met"]


def test_unreachable_limits_name_brokers_outside_of_them() -> None:
    snapshot = snapshot_of({"t": [[1], [2]]}, {1: None, 2: None})
    report = document(snapshot, rebalance=True, weights=np.array([100, 10], np.int64))
    assert not report["targets_met"]
    (text,) = [warning for warning in report["warnings"] if "outside" in warning]
    assert text.startswith("outside of the limits, in bytes: broker 1 has 100, expected 54 to 56")


@pytest.mark.parametrize("goals", [{"replace": {1: 3}}, {"remove_brokers": (1,)}, {"replication_factors": {"t": 2}}])
def test_copies_without_a_leader_are_a_warning(goals: dict[str, Any]) -> None:
    snapshot = without_leaders(snapshot_of({"t": [[1], [1], [1]]}, dict.fromkeys(range(1, 4))), [0, 1])
    report = document(snapshot, **goals)
    assert (report["targets_met"], report["partitions"]["leaderless"]) == (True, 2)
    assert "2 partitions without a leader: nothing can be copied before they have one (t-0, t-1)" in report["warnings"]


def test_order_of_leaderless_partition_needs_no_warning() -> None:
    snapshot = without_leaders(snapshot_of({"t": [[1, 2], [1, 2]]}, {1: "a", 2: "b"}), [0, 1])
    assert document(snapshot, leaders_only=True)["warnings"] == []


def test_replica_that_cannot_go_to_replacement_has_a_reason() -> None:
    lists = {"t": [[4, 2, 3], [4, 1, 2], [4, 2, 5], [4, 1]]}
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "b", 4: "c", 5: "c", 6: "c"}
    rows = document(snapshot_of(lists, racks), replace={4: 3}, broker_caps={3: 2})["diverted"]
    assert [(row["partition"], row["receivers"], row["reason"]) for row in rows] == [
        (0, [5], "broker 3 has a replica already"),
        (1, [6], "with broker 3 it would be less evenly spread over racks"),
        (3, [6], "broker 3 has 2 of at most 2 replicas"),
    ]
    assert {(row["replaced"], row["replacement"]) for row in rows} == {(4, 3)}


@pytest.mark.parametrize(
    ("goals", "message"),
    [
        ({"replace": {1: 4}}, "broker 4, which is not registered"),
        ({"replace": {1: 3}, "exclude_brokers": (3,)}, "broker 3, which is excluded"),
        ({"replace": {1: 3}, "evacuate_racks": ("c",)}, "broker 3, which is in c, which is evacuated"),
        ({"add_brokers": (4,)}, "broker 4, which is not registered"),
        ({"add_brokers": (2,)}, "broker 2, which is in the cluster with 1 replica"),
        ({"add_brokers": (5,), "exclude_brokers": (5,)}, "broker 5"),
        ({"add_brokers": (3,), "racks": {3: "a"}}, "broker 3 in a, expected c, its rack in the snapshot"),
    ],
)
def test_new_broker_that_receives_nothing_is_refused(goals: dict[str, Any], message: str) -> None:
    snapshot = snapshot_of({"t": [[1, 2]]}, {1: "a", 2: "b", 3: "c", 4: "c"}, dead=(4,))
    with pytest.raises(InputError, match=message):
        plan(snapshot, **goals)


def test_broker_in_no_isr_whose_registration_is_unknown_receives_nothing() -> None:
    snapshot = snapshot_of({"t": [[1, 2], [1]]}, {1: None, 2: None, 3: None})
    brokers = tuple(replace(broker, registered=None if broker.broker_id == 2 else True) for broker in snapshot.brokers)
    with pytest.raises(InputError, match="broker 2, which is not known to run"):
        plan(replace(snapshot, brokers=brokers), replace={1: 2})
    # Without leaders and ISRs the snapshot cannot show which brokers run.
    unknown = tuple(replace(broker, registered=None) for broker in snapshot.brokers)
    partitions = replace(snapshot.partitions, leader=None, isr=None)
    assert plan(replace(snapshot, brokers=unknown, partitions=partitions), replace={1: 3}).moves == 2


@pytest.mark.parametrize(
    ("goals", "after"),
    [
        ({"replace": {3: 4}}, [[1, 4], [4, 1], [1, 4], [1, 4]]),
        ({"remove_brokers": (3,), "exclude_brokers": (2,)}, [[1, 4], [1, 4], [1, 4], [1, 4]]),
        ({"replication_factors": {"t": 3}, "exclude_brokers": (2,)}, [[1, 3, 4], [3, 1, 4], [1, 3, 4], [1, 3, 4]]),
    ],
)
def test_leader_that_stays_keeps_its_position(goals: dict[str, Any], after: list[list[int]]) -> None:
    snapshot = snapshot_of({"t": [[1, 3], [3, 1], [1, 3], [1, 3]]}, dict.fromkeys(range(1, 5)), dead=(3,))
    planned = lists_of(plan(snapshot, **goals))
    assert [planned[row] for row in (0, 2, 3)] == [after[row] for row in (0, 2, 3)]
    assert set(planned[1]) == set(after[1])


def test_replacement_takes_assumed_rack_and_says_so() -> None:
    report = document(snapshot_of({"t": [[1, 2]]}, {1: "a", 2: "b"}), replace={1: 7})
    assert "broker 7 is taken to be in a, the rack of broker 1" in report["notes"]


def test_unknown_racks_are_a_warning_and_no_count() -> None:
    report = document(snapshot_of({"t": [[1, 2]]}, {1: None, 2: None, 3: None}), remove_brokers=(2,))
    assert report["racks"] == {"crowded_before": None, "crowded_after": None}
    assert "racks unknown: rack rules not checked (--rack-map FILE gives racks)" in report["warnings"]


OVERLOAD = (
    "broker 1 gets 1.7 times its share of replicas (6 before, 12 after, share 7), because the rack rule spreads"
    " partitions over all racks, and only broker 1 in a can take replicas"
)


@pytest.mark.parametrize(
    ("goals", "partitions", "expected"),
    [
        ({"remove_brokers": (4,)}, [[1, 2, 3], [4, 5, 6]] * 6, [OVERLOAD]),
        ({"remove_brokers": (4,)}, [[2, 3], [4, 5]] * 6, []),  # two replicas need two of the three racks
        ({"remove_brokers": (4, 1)}, [[1, 2, 3], [4, 5, 6]] * 6, []),  # no broker of rack a is left
        ({"remove_brokers": (4,), "capacities": {1: 2.0}}, [[1, 2, 3], [4, 5, 6]] * 6, []),
        ({"rebalance": True}, [[1, 2, 3]] * 6, []),
    ],
)
def test_broker_that_the_rack_rule_overloads_is_noted(
    goals: dict[str, Any], partitions: list[list[int]], expected: list[str]
) -> None:
    snapshot = snapshot_of({"t": partitions}, {1: "a", 4: "a", 2: "b", 5: "b", 3: "c", 6: "c"})
    report = document(snapshot, **goals)
    assert [text for text in report["notes"] if "rack rule" in text] == expected


@pytest.mark.parametrize("goals", [{"replace": {1: 7}}, {"add_brokers": (7,)}])
def test_receiving_broker_that_the_snapshot_lacks_is_a_warning(goals: dict[str, Any]) -> None:
    snapshot = snapshot_of({"t": [[1], [1], [1]]}, {1: "a", 2: "a"})
    text = "broker 7 is not in the snapshot: start it before the plan is executed"
    assert text in document(snapshot, **goals)["warnings"]
    assert document(snapshot, remove_brokers=(1,))["warnings"] == []
