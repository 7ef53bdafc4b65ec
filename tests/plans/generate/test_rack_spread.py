"""Replicas are spread evenly over racks, also where a partition has more of them than there are racks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.model.arrays import Ragged
from kframe.model.plan import Plan
from kframe.plans.check.rack_rules import HostChanges, even_rules, uneven_replicas
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import plan
from kframe.plans.generate.report import report_document
from tests.plans.generate.clusters import lists_of, snapshot_of

#: Brokers 1 to 4 are in rack a, 5 to 8 in b, 9 to 12 in c.
TWO: Final[dict[int, str | None]] = {broker: "ab"[(broker - 1) // 4] for broker in range(1, 9)}
THREE: Final[dict[int, str | None]] = {broker: "abc"[(broker - 1) // 4] for broker in range(1, 13)}
#: Rack a has a single broker.
NARROW: Final[dict[int, str | None]] = {1: "a", 5: "b", 6: "b", 7: "b", 8: "b"}

#: Lists, racks of brokers, goals, moves, and the replicas in each rack after the plan.
CASES: Final[list[tuple[list[list[int]], dict[int, str | None], dict[str, Any], int, list[str]]]] = [
    ([[1, 2, 3, 5]], TWO, {"fix_racks": True}, 1, ["aabb"]),
    ([[1, 2, 3, 4]], TWO, {"fix_racks": True}, 2, ["aabb"]),
    ([[5, 6, 7, 1], [1, 2, 5, 6]], TWO, {"fix_racks": True}, 1, ["aabb", "aabb"]),
    ([[1, 2, 3, 5, 6]], TWO, {"fix_racks": True}, 0, ["aaabb"]),
    ([[1, 2, 3, 4, 5]], TWO, {"fix_racks": True}, 1, ["aaabb"]),
    ([[1, 2, 3, 5, 9]], THREE, {"fix_racks": True}, 1, ["aabbc", "aabcc"]),
    ([[1, 2, 3, 5, 6]], THREE, {"fix_racks": True}, 1, ["aabbc"]),
    # Two in each of two racks are at most two in a rack, but a rack has none.
    ([[1, 2, 5, 6]], THREE, {"fix_racks": True}, 1, ["aabc", "abbc"]),
    ([[1, 2, 3, 5, 6, 7]], THREE, {"fix_racks": True}, 2, ["aabbcc"]),
    ([[1, 2, 3, 4, 5, 9]], THREE, {"fix_racks": True}, 2, ["aabbcc"]),
    # Three and three of seven leave one: more even are three, two and two.
    ([[1, 2, 3, 5, 6, 7, 9]], THREE, {"fix_racks": True}, 1, ["aaabbcc", "aabbbcc"]),
    # Rack a has one broker, so that one and three are even.
    ([[1, 5, 6, 7]], NARROW, {"fix_racks": True}, 0, ["abbb"]),
    ([[5, 6, 7, 8]], NARROW, {"fix_racks": True}, 1, ["abbb"]),
    # A replica that must move, or is new, goes where the partition has fewer.
    ([[1, 2, 3, 5]], TWO, {"remove_brokers": (1,)}, 1, ["aabb"]),
    ([[1, 2, 5, 6]], TWO, {"remove_brokers": (1,)}, 1, ["aabb"]),
    ([[1, 2, 3, 5]], TWO, {"remove_brokers": (5,)}, 1, ["aaab"]),
    ([[1, 2, 3, 5]], TWO, {"remove_brokers": (5,), "fix_racks": True}, 2, ["aabb"]),
    ([[1, 5]], TWO, {"replication_factors": {"t": 4}}, 2, ["aabb"]),
    ([[1, 5, 6]], TWO, {"replication_factors": {"t": 4}}, 1, ["aabb"]),
    ([[1, 2]], THREE, {"replication_factors": {"t": 6}}, 4, ["aabbcc"]),
    # A smaller replication factor drops what a rack has too many of.
    ([[1, 2, 3, 5, 6]], TWO, {"replication_factors": {"t": 4}}, 0, ["aabb"]),
    ([[1, 2, 3, 5]], TWO, {"replication_factors": {"t": 2}}, 0, ["ab"]),
    # A rack is evacuated, and the others share its replicas.
    ([[1, 2, 5, 6, 9, 10]], THREE, {"evacuate_racks": ("c",)}, 2, ["aaabbb"]),
    # A replacement of another rack may not make the spread worse.
    ([[1, 2, 5, 6]], TWO | {20: "b"}, {"replace": {1: 20}}, 1, ["aabb"]),
    ([[1, 2, 3, 5]], TWO | {20: "b"}, {"replace": {1: 20}}, 1, ["aabb"]),
]


@pytest.mark.parametrize("mode", ["zookeeper", "kraft"])
@pytest.mark.parametrize("lists, racks, goals, moves, after", CASES)
def test_plan_spreads_replicas_evenly(
    lists: list[list[int]], racks: dict[int, str | None], goals: dict[str, Any], moves: int, after: list[str], mode: str
) -> None:
    snapshot = snapshot_of({"t": lists}, racks)
    proposal = plan(snapshot if mode == "zookeeper" else snapshot.with_mode("kraft"), **goals)
    assert (proposal.moves, proposal.bound, proposal.meets_request) == (moves, moves, True)
    spread = ["".join(sorted(str(racks[broker]) for broker in replicas)) for replicas in lists_of(proposal)]
    assert spread[0] in after
    assert spread[1:] == after[1:] or len(spread) == 1


@given(st.lists(st.sampled_from([[1, 2, 5, 6], [1, 3, 5, 7], [2, 3, 5, 6, 7], [1, 5]]), min_size=1, max_size=12))
def test_balance_keeps_an_even_spread(lists: list[list[int]]) -> None:
    proposal = plan(snapshot_of({"t": lists}, TWO), rebalance=True)
    assert (proposal.reached, proposal.crowded(proposal.after)) == (True, 0)
    assert proposal.bound <= proposal.moves


def test_balance_does_not_make_an_uneven_spread_worse() -> None:
    # All replicas of rack b are on broker 5, those of rack a on three others.
    proposal = plan(snapshot_of({"t": [[1, 2, 3, 5]] * 8}, TWO), rebalance=True)
    assert all(sum(broker <= 4 for broker in replicas) <= 3 for replicas in lists_of(proposal))
    assert proposal.reached


def test_report_counts_uneven_partitions() -> None:
    snapshot = snapshot_of({"t": [[1, 2, 3, 5], [1, 2, 5, 6], [1, 2]]}, TWO)
    report = report_document(plan(snapshot, fix_racks=True))
    assert (report.racks.crowded_before, report.racks.crowded_after, report.moves.replicas) == (2, 0, 2)


def test_uneven_partition_without_room_has_a_reason() -> None:
    snapshot = snapshot_of({"t": [[1, 2, 3, 5]]}, TWO)
    proposal = plan(snapshot, fix_racks=True, broker_caps={6: 0, 7: 0, 8: 0})
    (row,) = report_document(proposal).unmet
    assert (row.lacks, proposal.moves) == (["racks"], 0)
    assert row.reason.startswith("too few brokers have room: broker 6 has 0 of at most 0 replicas")
    assert "1 partition less evenly spread over racks than possible" in report_document(proposal).summary


@pytest.mark.parametrize(
    "target, racks, expected",
    [
        ((1, 2, 5, 6), TWO, []),
        ((1, 2, 3, 5), TWO, ["racks a, a, a, b: spread less evenly than possible"]),
        ((1, 2, 5, 6), THREE, ["racks a, a, b, b: spread less evenly than possible"]),
        ((1, 5, 6, 7), NARROW, []),
    ],
)
def test_check_names_uneven_targets(target: tuple[int, ...], racks: dict[int, str | None], expected: list[str]) -> None:
    snapshot = snapshot_of({"t": [[5, 6, 7, 8]]}, racks)
    made = Plan.of([(("t", 0), target)])
    rows = PlanReport.of(made, resolve_plan(made, snapshot)).rows()
    assert [row.detail for row in rows if row.check == "racks"] == expected


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.data())
def test_uneven_replicas_are_the_fewest_moves_to_the_most_even_list(hosts: list[int], data: st.DataObject) -> None:
    counts = [data.draw(st.integers(0, number)) for number in hosts]
    rack = np.repeat(np.arange(len(hosts), dtype=np.int32), hosts)
    brokers = [
        int(broker) for number, count in enumerate(counts) for broker in np.flatnonzero(rack == number)[:count].tolist()
    ]
    total, even = sum(counts), [0] * len(hosts)
    for _ in range(total):  # Each replica to the rack with fewest that has room.
        even[min((n for n in range(len(hosts)) if even[n] < hosts[n]), key=lambda n: even[n])] += 1
    level = max(even, default=0)
    lists, arrays = Ragged.of([brokers]), (rack, np.array(hosts, np.int32))
    lower, upper = ([min(number, bound) for number in hosts] for bound in (max(level - 1, 0), level))
    deficit = sum(max(low - count, 0) for low, count in zip(lower, counts, strict=True))
    excess = sum(max(count - high, 0) for high, count in zip(upper, counts, strict=True))
    assert uneven_replicas(lists, *arrays).tolist() == [max(deficit, excess)]


def test_rules_respect_other_brokers_of_a_partition() -> None:
    # Partition 1 has no broker in rack 0, and partition 2 has one more in rack 1.
    changes = HostChanges(*(np.array(column) for column in ([1, 2], [0, 1], [2, 1], [0, 2])))
    rules = even_rules(np.array([4, 3, 4], np.int32), np.array([2, 1, 3], np.int32), changes)
    assert rules.rule.tolist() == [1, 1, 1]
    assert rules.possible.tolist() == [[3, 5], [2, 3], [3, 6]]
