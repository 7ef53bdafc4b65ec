"""Automatic replica assignment (``wire.md`` section 9; examples of Kafka's own AdminRackAwareTest and AdminTest)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.topics.replica_placement import AssignableBrokers, assign_automatically
from kframe.model.brokers import Brokers
from kframe.testing.clusters import registration


def brokers_in(racks: Mapping[int, str | None]) -> Brokers:
    brokers = Brokers()
    brokers.register([registration(broker_id, rack) for broker_id, rack in racks.items()])
    return brokers


def placed(brokers: Brokers, *arguments: int) -> list[tuple[int, ...]]:
    lists = assign_automatically(AssignableBrokers.of(brokers), *arguments)
    return [tuple(lists[partition].tolist()) for partition in range(len(lists))]


def without_racks(*broker_ids: int) -> Brokers:
    return brokers_in(dict.fromkeys(broker_ids))


#: Ten partitions with three replicas on brokers 0 to 4, start 0, shift 0.
FIVE = [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1), (0, 2, 3), (1, 3, 4), (2, 4, 0), (3, 0, 1), (4, 1, 2)]


def test_placement_on_five_brokers() -> None:
    """wire 9: n = 5, start 0, shift 0, three replicas."""
    assert placed(without_racks(0, 1, 2, 3, 4), 10, 3, 0, 0) == FIVE


@pytest.mark.parametrize(
    "start, shift, first_partition, expected",
    [
        (0, 0, 0, [(0, 1, 2), (1, 2, 3)]),
        (2, 0, 0, [(2, 3, 4), (3, 4, 0)]),
        (7, 0, 0, [(2, 3, 4), (3, 4, 0)]),
        (0, 1, 0, [(0, 2, 3), (1, 3, 4)]),
        (0, 5, 0, [(0, 2, 3), (1, 3, 4)]),
        (0, 0, 4, [(4, 0, 1), (0, 2, 3)]),
        (0, 0, 5, [(0, 2, 3), (1, 3, 4)]),
        (3, 3, 3, [(1, 0, 2), (2, 1, 3)]),
    ],
)
def test_placement_depends_on_start_shift_and_first_partition(
    start: int, shift: int, first_partition: int, expected: list[tuple[int, ...]]
) -> None:
    """wire 9: first = brokers[(p + start) mod n]. The shift grows whenever p is a multiple of n."""
    assignments = placed(without_racks(0, 1, 2, 3, 4), 2, 3, start, shift, first_partition)
    assert assignments == expected


def test_placement_on_single_broker() -> None:
    """wire 9: n = 1 with one replica never evaluates the follower formula."""
    assert placed(without_racks(7), 3, 1, 0, 0) == [(7,)] * 3


def test_assignable_brokers_are_registered_and_sorted_by_id() -> None:
    """wire 9: brokers sorted by id. Wire 17: real brokers only."""
    brokers = without_racks(9, 3, 5)
    brokers.index_of([1, 4])
    assert placed(brokers, 3, 2, 0, 0) == [(3, 5), (5, 9), (9, 3)]


#: Of AdminRackAwareTest.testGetRackAlternatedBrokerListAndAssignReplicasToBrokers: brokers in the order 0 3 1 5 4 2.
SIX = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_replicas_alternate_between_racks() -> None:
    """wire 9: racks in name order, round-robin taking their brokers by id."""
    assert placed(brokers_in(SIX), 7, 3, 0, 0) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


THREE = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}

#: (brokers' racks, partitions, replicas, start, first partition, fewest racks of a partition, evenly spread).
SPREADS = [
    ("even", THREE, 6, 3, 2, 0, 3, True),
    ("random start", THREE, 6, 3, 5, 0, 3, True),
    ("uneven replicas", THREE, 13, 3, 0, 0, 3, False),
    ("uneven racks", {0: "rack1", 1: "rack1", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}, 12, 3, 0, 0, 3, False),
    ("two replicas", THREE, 12, 2, 0, 0, 2, True),
    ("expansion", {6: "r1", 7: "r2", 8: "r2", 9: "r3", 10: "r3", 11: "r1"}, 12, 2, 0, 12, 2, True),
    ("six replicas in three racks", {n: f"r{n % 3}" for n in range(6)}, 6, 5, 0, 0, 3, False),
    ("one rack", dict.fromkeys(range(6), "rack1"), 6, 3, 0, 0, 1, True),
    ("skips a broker that has it", {0: "a", 1: "b", 2: "c", 3: "a", 4: "a"}, 5, 4, 0, 0, 3, False),
]


@pytest.mark.parametrize(
    "racks, partitions, factor, start, first, rack_count, even",
    [row[1:] for row in SPREADS],
    ids=[row[0] for row in SPREADS],
)
def test_replicas_are_spread_over_racks(
    racks: dict[int, str], partitions: int, factor: int, start: int, first: int, rack_count: int, even: bool
) -> None:
    """wire 9: no rack is used twice while another one is unused, and no broker is used twice."""
    assignments = placed(brokers_in(racks), partitions, factor, start, 0, first)
    assert len(assignments) == partitions
    assert {len(set(replicas)) for replicas in assignments} == {factor}
    assert {len({racks[broker] for broker in replicas}) for replicas in assignments} == {rack_count}
    if even:
        leaders = Counter(replicas[0] for replicas in assignments)
        hosted = Counter(broker for replicas in assignments for broker in replicas)
        assert set(leaders.values()) == {partitions // len(racks)}
        assert set(hosted.values()) == {partitions * factor // len(racks)}


@st.composite
def placements(draw: st.DrawFn) -> tuple[dict[int, str | None], int, int, int, int, int]:
    count = draw(st.integers(1, 8))
    ids = draw(st.lists(st.integers(0, 50), min_size=count, max_size=count, unique=True))
    named = draw(st.booleans())
    racks = {broker: draw(st.sampled_from("abc")) if named else None for broker in ids}
    factor = draw(st.integers(1, count))
    start, shift, first = (draw(st.integers(0, 20)) for _ in range(3))
    return racks, draw(st.integers(0, 12)), factor, start, shift, first


@given(placements())
def test_placement_invariants(placement: tuple[dict[int, str | None], int, int, int, int, int]) -> None:
    """wire 9: every partition has the requested number of distinct brokers. They are on as many racks as possible."""
    racks, partitions, factor, start, shift, first = placement
    assignments = placed(brokers_in(racks), partitions, factor, start, shift, first)
    assert [len(set(replicas)) for replicas in assignments] == [factor] * partitions
    assert all(set(replicas) <= racks.keys() for replicas in assignments)
    racks_max = min(factor, len(set(racks.values())))
    assert all(len({racks[broker] for broker in replicas}) == racks_max for replicas in assignments)
    leaders = Counter(replicas[0] for replicas in assignments)
    assert max(leaders.values(), default=0) - min((leaders[broker] for broker in racks), default=0) <= 1
