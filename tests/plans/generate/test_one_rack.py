"""Partitions whose replicas are all to be in one rack: which rack, what moves, what no plan can do, and the claims."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any, Final

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kframe.errors import InputError
from kframe.plans.check.findings import Check
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import plan
from kframe.plans.generate.bounds import Shortage
from kframe.plans.generate.report import report_document
from kframe.snapshot import Snapshot
from tests.plans.generate.clusters import (
    FEWER_EXAMPLES,
    assert_within_caps,
    lists_of,
    plan_again,
    planned,
    sampled_term,
    snapshot_of,
    snapshots,
)
from tests.plans.generate.optimum import optimum
from tests.plans.generate.test_unmet_requests import reassigning

#: Brokers 1 to 4 are in rack a, 5 to 8 in b, 9 to 12 in c.
TWO: Final[dict[int, str | None]] = {broker: "ab"[(broker - 1) // 4] for broker in range(1, 9)}
THREE: Final[dict[int, str | None]] = {broker: "abc"[(broker - 1) // 4] for broker in range(1, 13)}
#: Rack a has a single broker.
NARROW: Final[dict[int, str | None]] = {1: "a", 5: "b", 6: "b", 7: "b"}
ALL: Final[dict[str, Any]] = {"one_rack": ("t",)}
UNEVEN: Final = "spread less evenly than possible"


def racks_after(lists: list[list[int]], racks: dict[int, str | None]) -> list[str]:
    return ["".join(sorted(str(racks[broker]) for broker in replicas)) for replicas in lists]


@pytest.mark.parametrize(
    ("lists", "racks", "goals", "moves", "expected"),
    [
        # The rack with the most replicas, then that of the preferred leader.
        ([[1, 5, 6]], TWO, {}, 1, ["bbb"]),
        ([[5, 1, 2], [1, 2, 5]], TWO, {}, 2, ["aaa", "aaa"]),
        ([[1, 5], [5, 1], [6, 2], [2, 6]], TWO, {}, 4, ["aa", "bb", "bb", "aa"]),
        ([[1, 2, 3]], TWO, {}, 0, ["aaa"]),
        ([[1]], TWO, {}, 0, ["a"]),
        # Leaders in one rack would overload it, so that each rack gets its share.
        ([[1, 5, 9]] * 6, THREE, {}, 12, ["aaa", "aaa", "bbb", "bbb", "ccc", "ccc"]),
        # Only a rack with enough brokers that can have a replica.
        ([[1, 5]], NARROW, {}, 1, ["bb"]),
        ([[1, 5, 6]], TWO, {"exclude_brokers": (7, 8)}, 2, ["aaa"]),
        ([[5, 6, 1]], TWO, {"exclude_brokers": (5, 8)}, 1, ["bbb"]),
        # Broker 1 receives nothing but retains its replica, so that rack a has two brokers for the partition.
        ([[1, 5]], {1: "a", 2: "a", 5: "b"}, {"exclude_brokers": (1,)}, 1, ["aa"]),
        # A replica that must move or is new stays in the rack; without a request it is spread.
        ([[1, 2]], TWO, {"remove_brokers": (1,)}, 1, ["aa"]),
        ([[1, 2]], TWO, {"replication_factors": {"t": 4}}, 2, ["aaaa"]),
        ([[1, 5, 6]], TWO, {"replication_factors": {"t": 2}}, 0, ["bb"]),
        ([[1, 2]], TWO, {"evacuate_racks": ("a",)}, 2, ["bb"]),
        ([[1, 2]], TWO, {"replace": {1: 5}}, 1, ["aa"]),
        ([[1, 2]] * 2, TWO, {"rebalance": True}, 2, ["aa", "aa"]),
        # A full rack is passed over.
        ([[1, 5], [1, 6]], TWO, {"broker_caps": {2: 0, 3: 0, 4: 0}}, 2, ["bb", "bb"]),
    ],
)
def test_replicas_go_to_the_rack_that_needs_the_fewest_moves(
    lists: list[list[int]], racks: dict[int, str | None], goals: dict[str, Any], moves: int, expected: list[str]
) -> None:
    proposal = plan(snapshot_of({"t": lists}, {**racks}), **ALL, **goals)
    assert sorted(racks_after(lists_of(proposal), racks)) == sorted(expected)
    assert (proposal.moves, proposal.meets_request) == (moves, True)
    assert proposal.bound <= moves
    assert proposal.crowded(proposal.after) == 0


def test_only_named_topics_are_in_one_rack_and_fix_racks_spreads_the_others() -> None:
    snapshot = snapshot_of({"logs-a": [[1, 5]], "logs-b": [[1, 5]], "spread": [[1, 2]]}, TWO)
    proposal = plan(snapshot, one_rack=("logs-*",), fix_racks=True, exclude_topics=("logs-b",))
    assert racks_after(lists_of(proposal), TWO) == ["bb", "ab", "ab"]
    assert (proposal.moves, proposal.bound, proposal.meets_request) == (2, 2, True)
    assert msgspec.to_builtins(report_document(proposal))["racks"] == {"crowded_before": 2, "crowded_after": 0}


@pytest.mark.parametrize(
    ("lists", "racks", "goals", "reasons"),
    [
        (
            [[1, 5, 6], [1, 5]],
            NARROW | {7: None},
            {},
            {"t-0": "replication factor 3, but no rack has more than 2 brokers that can have a replica"},
        ),
        (
            [[1, 5]],
            NARROW,
            {"exclude_brokers": (6, 7)},
            {
                "t-0": "replication factor 2, but no rack has more than 1 broker that can have a replica"
                " (broker 6 is excluded; broker 7 is excluded)"
            },
        ),
        (
            [[1, 5]],
            NARROW,
            {"replication_factors": {"t": 5}},
            {"t-0": "replication factor 5, but only 4 brokers"},
        ),
        (
            [[1, 5], [5, 6]],
            NARROW,
            {"broker_caps": {6: 1, 7: 0}},
            {
                "t-0": "too few brokers of b have room:"
                " broker 6 has 1 of at most 1 replica, broker 7 has 0 of at most 0 replicas"
            },
        ),
    ],
)
def test_partition_that_no_rack_can_hold_is_unmet_with_its_reason(
    lists: list[list[int]], racks: dict[int, str | None], goals: dict[str, Any], reasons: dict[str, str]
) -> None:
    proposal = plan(snapshot_of({"t": lists}, {**racks}), **ALL, **goals)
    document = msgspec.to_builtins(report_document(proposal))
    assert {f"{row['topic']}-{row['partition']}": row["reason"] for row in document["unmet"]} == reasons
    assert all("one-rack" in row["lacks"] for row in document["unmet"])
    assert (document["targets_met"], document["moves"]["gap"]) == (False, None)
    assert "1 partition in more than one rack" in document["summary"]
    assert lists_of(proposal)[0] == lists[0]


def test_reassignment_in_progress_counts_as_completed() -> None:
    snapshot = reassigning(snapshot_of({"t": [[1, 2, 5], [1, 5, 6]]}, TWO), [[2], [6]], [[5], [5]])
    document = report_document(plan(snapshot, **ALL))
    assert [(row.partition, row.lacks, row.reason) for row in document.unmet] == [
        (1, ["one-rack"], "a reassignment to 1,6 is in progress")
    ]


@pytest.mark.parametrize(
    ("racks", "goals", "message"),
    [
        (dict.fromkeys(range(1, 9)), {}, "one_rack: found no broker with a known rack, expected racks"),
        (TWO, {"one_rack": ("x*",)}, "one_rack: found 'x\\*', expected the name of a topic"),
        (TWO, {"fix_racks": True}, "fix_racks: found each partition to be in one rack"),
        (TWO, {"leader_racks": ("a",)}, "leader_racks: found a goal that moves replicas"),
        (TWO, {"demote_racks": ("a",)}, "demote_racks: found a goal that moves replicas"),
        (TWO, {"leaders_only": True}, "leaders_only: found a goal that moves replicas"),
    ],
)
def test_contradiction_is_refused(racks: dict[int, str | None], goals: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(snapshot_of({"t": [[1, 5]]}, racks), **(ALL | goals))


@pytest.mark.parametrize("excluded", [False, True])
def test_topic_with_placement_constraints_is_refused_unless_excluded(excluded: bool) -> None:
    snapshot = snapshot_of({"c": [[1, 5]], "t": [[1, 5]]}, TWO)
    text = '{"version":1,"replicas":[{"count":1,"constraints":{"rack":"a"}},{"count":1,"constraints":{"rack":"b"}}]}'
    topics = replace(snapshot.topics, configs={0: {"confluent.placement.constraints": text}})
    snapshot = replace(snapshot, topics=topics)
    if excluded:
        assert plan(snapshot, one_rack=("*",), exclude_topics=("c",)).moves == 1
        return
    with pytest.raises(InputError, match="one_rack: found topic c with placement constraints"):
        plan(snapshot, one_rack=("*",))


@pytest.mark.parametrize(
    ("one_rack", "details"),
    [
        ((), {"s-1": f"racks a, a: {UNEVEN}", "t-0": f"racks a, a: {UNEVEN}"}),
        (("t",), {"s-1": f"racks a, a: {UNEVEN}", "t-1": "racks a, b: expected one rack"}),
        (("*",), {"s-0": "racks a, b: expected one rack", "t-1": "racks a, b: expected one rack"}),
    ],
)
def test_check_expects_one_rack_of_named_topics_only(one_rack: tuple[str, ...], details: dict[str, str]) -> None:
    lists = {"s": [[1, 6], [1, 3]], "t": [[1, 4], [1, 7]]}
    snapshot, target = snapshot_of({"s": [[1, 5]] * 2, "t": [[1, 5]] * 2}, TWO), snapshot_of(lists, TWO)
    proposal = plan(snapshot, rebalance=True)
    planned_lists = replace(proposal, after=replace_brokers(proposal.problem.brokers.ids, target))
    report = PlanReport.of(planned_lists.plan, resolve_plan(planned_lists.plan, snapshot, one_rack=one_rack))
    rows = [row for row in report.rows() if row.check == Check.RACKS]
    assert {f"{row.topic}-{row.partition}": row.detail for row in rows} == details


def replace_brokers(ids: Any, target: Snapshot) -> Any:
    """The lists of a snapshot as broker indexes."""
    lists = target.partitions.replicas
    return replace(lists, values=np.searchsorted(ids, lists.values).astype(np.int32))


@st.composite
def requests(draw: st.DrawFn) -> tuple[Snapshot, dict[str, Any]]:
    """A small cluster and a request for one rack, alone or with another goal, caps, sizes and balance."""
    snapshot = draw(snapshots(partitions_max=8))
    brokers = [broker.broker_id for broker in snapshot.brokers]
    request: dict[str, Any] = {"one_rack": draw(st.sampled_from([("b",), ("*",)])), "seed": draw(st.integers(0, 3))}
    request |= draw(
        st.sampled_from(
            [{}, {}, {"remove_brokers": (1,)}, {"replication_factors": {"b": 2}}, {"replication_factors": {"b": 3}}]
        )
    )
    if request["one_rack"] == ("b",) and "a" in snapshot.topics.names and draw(st.booleans()):
        request["fix_racks"] = True
    if draw(st.integers(0, 3)) == 0:
        request["exclude_brokers"] = (draw(st.sampled_from(brokers)),)
    if draw(st.integers(0, 2)) == 0:
        request["broker_caps"] = {None: draw(st.integers(1, 6))}
    if draw(st.integers(0, 2)) == 0:
        request["rebalance"] = True
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(0, 100), min_size=len(snapshot), max_size=len(snapshot)))
        request |= {"weights": np.array(sizes, np.int64), "tolerance": 30.0}
    return snapshot, request


#: A case in which another choice of racks costs less than the optimum of the chosen ones.
CHEAPER: Final[tuple[Snapshot, dict[str, Any]]] = (
    snapshot_of(
        {"a": [[1, 4, 2, 3]], "b": [[4, 2, 3], [4, 1], [4, 1, 3, 2]]}, {1: "r1", 2: "r1", 3: "r1", 4: "r0", 5: "r0"}
    ),
    {
        "one_rack": ("*",),
        "seed": 2,
        "replication_factors": {"b": 2},
        "exclude_brokers": (1,),
        "broker_caps": {None: 5},
        "rebalance": True,
        "weights": np.array([74, 30, 70, 70], np.int64),
        "tolerance": 30.0,
    },
)


@FEWER_EXAMPLES
@example(case=CHEAPER, exact=False)
@given(case=requests(), exact=st.booleans())
def test_claims_hold_for_every_choice_of_racks(case: tuple[Snapshot, dict[str, Any]], exact: bool) -> None:
    """The independent optimum chooses racks freely: no bound exceeds it, and what is called the optimum equals it."""
    pytest.importorskip("highspy")
    snapshot, request = case
    proposal = planned(snapshot, request | {"exact": exact})
    assert_within_caps(proposal)
    assert proposal.bound <= proposal.cost or not proposal.reached
    best, lacks = optimum(proposal), astuple(proposal.shortage)
    if not proposal.reached:
        assert not proposal.exact
        return
    assert best is not None
    if best.staying <= lacks[0] and best.missing_racks <= lacks[1]:
        assert proposal.bound <= best.cost
    if not {"broker_caps", "rebalance"} & request.keys():
        assert (proposal.shortage, proposal.cost, proposal.bound) == (Shortage(), best.cost, best.cost)
    if proposal.exact and (best.staying, best.missing_racks) == lacks:
        assert proposal.cost == best.cost


@FEWER_EXAMPLES
@given(requests())
def test_second_plan_is_empty_and_unmet_partitions_are_reported(case: tuple[Snapshot, dict[str, Any]]) -> None:
    snapshot, request = case
    proposal = planned(snapshot, request)
    second = plan_again(proposal, request)
    assert second is None or len(second.rows) == 0
    racks = proposal.problem.racks
    requested = "ab" if request["one_rack"] == ("*",) else "b"
    expected = {
        name
        for name, replicas in zip(
            map(snapshot.topics.name_of_row, range(len(snapshot))), lists_of(proposal), strict=True
        )
        if name[0] in requested and len({racks[broker] or broker for broker in replicas}) > 1
    }
    rows = report_document(proposal).unmet
    assert {f"{row.topic}-{row.partition}" for row in rows if "one-rack" in row.lacks} == expected
    assert all(row.reason for row in rows)


@FEWER_EXAMPLES
@given(snapshots(), st.integers(0, 20))
def test_cost_terms_move_no_partition_out_of_its_rack(snapshot: Snapshot, seed: int) -> None:
    proposal = planned(snapshot, {"one_rack": ("*",), "cost_terms": (sampled_term(seed),)})
    assert proposal.bound <= proposal.cost
    one_rack = proposal.problem.one_rack
    assert one_rack is not None
    assert (one_rack.rack[proposal.unmet.rows] < 0).all()
