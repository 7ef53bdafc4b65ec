"""The timeline of one partition, and the plans that move partitions from some brokers to others."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import pytest

from kframe.errors import InputError
from kframe.model.cluster import PartitionView
from kframe.snapshot import Snapshot
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.whatif import Fate, Plan, WhatIf, delete, reassign
from kframe.whatif.exchange import exchange, stand_ins
from kframe.whatif.trail import Trail, told
from tests.whatif.samples import small

#: Assigned, adding and removing.
Lists: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def six() -> WhatIf:
    """Six brokers in racks a, b, c; t-0 and u-0 on 1, 2, 3; t-1 on one of the others too; t-2 without leader."""
    specs = [healthy(1, 2, 3), healthy(2, 4), PartitionSpec((1, 2), leader=None, isr=(1,))]
    brokers = [registration(one, "abc"[(one - 1) % 3]) for one in (1, 2, 3, 4, 5, 6)]
    return WhatIf(Snapshot.from_cluster(cluster_of({"t": specs, "u": [healthy(3, 1)]}, brokers)))


def lines(trail: Trail) -> list[tuple[object, ...]]:
    views = ((moment.what, moment.view) for moment in trail.moments)
    return [
        (what, view.replicas, view.adding_replicas, view.removing_replicas, view.isr, view.leader)
        for what, view in views
    ]


def test_a_reassignment_step_by_step() -> None:
    whatif = six()
    trail = whatif.follow("t", 0)
    reassign(whatif, Plan.of([(("t", 0), (4, 5, 6))]))
    both = ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert lines(trail) == [
        ("as it stands", (1, 2, 3), (), (), (1, 2, 3), 1),
        ("a move begins", *both, (1, 2, 3), 1),
        ("higher leader epoch", *both, (1, 2, 3), 1),
        ("4,5,6 in sync", *both, (1, 2, 3, 4, 5, 6), 1),
        ("4 leads", *both, (1, 2, 3, 4, 5, 6), 4),
        ("1 out of the ISR", *both, (2, 3, 4, 5, 6), 4),
        ("2 out of the ISR", *both, (3, 4, 5, 6), 4),
        ("3 out of the ISR", *both, (4, 5, 6), 4),
        ("the move is done", (4, 5, 6), (), (), (4, 5, 6), 4),
    ]


@pytest.mark.parametrize(
    "what, before, after",
    [
        ("a move begins", ((1, 2), (), ()), ((3, 2, 1), (3,), (1,))),
        ("the move goes elsewhere", ((3, 2, 1), (3,), (1,)), ((4, 2, 1), (4,), (1,))),
        ("the move is given up", ((3, 2, 1), (3,), (1,)), ((1, 2), (), ())),
        ("the move is done", ((3, 2, 1), (3,), (1,)), ((3, 2), (), ())),
        ("another assignment", ((1, 2), (), ()), ((2, 1), (), ())),
        ("", ((3, 2, 1), (3,), (1,)), ((3, 2, 1), (3,), (1,))),
    ],
)
def test_assignments_in_words(what: str, before: Lists, after: Lists) -> None:
    view = six().cluster["t", 0]

    def at(lists: Lists) -> PartitionView:
        return replace(view, replicas=lists[0], adding_replicas=lists[1], removing_replicas=lists[2])

    assert told(at(before), at(after)) == what


def test_failures_and_other_partitions() -> None:
    whatif = WhatIf(small())
    trail, other = whatif.follow("t", 3), whatif.follow("t", 4)
    whatif.fail([1])
    assert [what for what, *_ in lines(trail)] == ["as it stands", "no leader"]
    assert len(other.moments) == 1


def test_a_topic_that_goes_ends_its_trail() -> None:
    whatif = six()
    trail = whatif.follow("u", 0)
    delete(whatif, ["u"])
    assert trail.moments[0].view.topic == "u"
    assert all(moment.view.replicas == (3, 1) for moment in trail.moments)


def test_an_unknown_partition_cannot_be_followed() -> None:
    with pytest.raises(InputError, match="found t-9"):
        six().follow("t", 9)


def test_stand_ins_are_of_the_same_rack_where_they_can_be() -> None:
    whatif = six()
    assert stand_ins(whatif.cluster, (3, 1)) == {3: 6, 1: 4}
    assert stand_ins(whatif.cluster, (1, 4)) == {1: 2, 4: 3}, "their rack has no other: the first ones left"
    assert stand_ins(whatif.cluster, (1, 2, 3, 4, 5)) == {1: 6}, "only one is left"
    whatif.fail([4])
    assert stand_ins(whatif.cluster, (1,)) == {1: 2}


def test_an_exchange_moves_what_lies_on_these_brokers_alone() -> None:
    whatif = six()
    plan = exchange(whatif.cluster, {1: 4, 2: 5, 3: 6})
    moved = {plan.partition_name(at): plan.targets.replicas[at].tolist() for at in range(len(plan))}
    assert moved == {"t-0": [4, 5, 6], "u-0": [6, 4]}
    outcome = reassign(whatif, plan)
    assert outcome.reassignment is not None
    assert [outcome.reassignment.fate(at) for at in range(len(plan))] == [Fate.COMPLETED, Fate.COMPLETED]
    assert whatif.cluster["u", 0].replicas == (6, 4)
    assert len(exchange(whatif.cluster, {1: 4})) == 0
