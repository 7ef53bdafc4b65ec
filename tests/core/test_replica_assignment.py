"""Operations on assignments (``controller.md`` section 4): examples and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.topics.replica_assignment import (
    Assignments,
    assign,
    current,
    reassigned_to,
)
from kframe.model.arrays import Ragged
from kframe.model.ids import ReplicaFlag
from kframe.testing.clusters import PartitionSpec
from tests.core.driver import Driver, quiet

Lists = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

ALL = tuple(range(1, 7))
MOVING = PartitionSpec((4, 5, 6, 1, 2, 3), 1, (1, 2, 3), adding_replicas=(4, 5, 6), removing_replicas=(1, 2, 3))
RESTED = PartitionSpec((1, 2, 3), 1, (1, 2, 3))
OVERLAP = PartitionSpec((3, 4, 2, 1), 1, (1, 2, 3), adding_replicas=(4,), removing_replicas=(1,))

#: (case, current assignment, target, result): replicas, adding, removing.
TABLE: list[tuple[str, PartitionSpec, tuple[int, ...], Lists]] = [
    ("all new", RESTED, (4, 5, 6), ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))),
    ("one new", RESTED, (3, 4, 2), ((3, 4, 2, 1), (4,), (1,))),
    ("override", MOVING, (3, 4, 2), ((3, 4, 2, 1), (4,), (1,))),
    ("back to the origin", MOVING, (1, 2, 3), ((1, 2, 3), (), ())),
    ("back to the origin, whose order is lost", OVERLAP, (3, 2, 1), ((3, 2, 1), (), ())),
    ("order only", RESTED, (2, 1, 3), ((2, 1, 3), (), ())),
    ("the same", RESTED, (1, 2, 3), ((1, 2, 3), (), ())),
    ("fewer", RESTED, (2,), ((2, 1, 3), (), (1, 3))),
    ("more", RESTED, (1, 2, 3, 4), ((1, 2, 3, 4), (4,), ())),
    ("another target while adding", MOVING, (6, 1), ((6, 1, 2, 3), (6,), (2, 3))),
]


def as_lists(driver: Driver, assignments: Assignments, position: int = 0) -> Lists:
    """Return the broker ids of one assignment: replicas, adding, removing."""
    part = assignments.take(np.array([position]))
    ids, flags = part.replicas.values, part.flags
    named = [ids, ids[flags & ReplicaFlag.ADDING != 0], ids[flags & ReplicaFlag.REMOVING != 0]]
    replicas, adding, removing = (tuple(driver.cluster.brokers.ids_of(indices)) for indices in named)
    return replicas, adding, removing


def target_lists(driver: Driver, *targets: tuple[int, ...]) -> Ragged:
    lists = Ragged.of(list(targets))
    return Ragged(lists.offsets, driver.cluster.brokers.index_of(lists.values))


@pytest.mark.parametrize("start, target, expected", [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_reassigned_to_lists_target_then_origin(start: PartitionSpec, target: tuple[int, ...], expected: Lists) -> None:
    """controller 4: reassignTo puts the target first, then the rest of the origin."""
    driver = quiet({"t": [start]}, ALL)
    assert as_lists(driver, reassigned_to(driver.context, driver.rows("t-0"), target_lists(driver, target))) == expected


def test_repeated_broker_counts_once() -> None:
    """controller 4: reassignTo makes distinct any broker that storage lists twice (7.6: storage is not validated)."""
    driver = quiet({"t": [RESTED]}, ALL)
    changed = reassigned_to(driver.context, driver.rows("t-0"), target_lists(driver, (4, 4, 1)))
    assert as_lists(driver, changed) == ((4, 1, 2, 3), (4,), (2, 3))


distinct = st.lists(st.sampled_from(ALL), min_size=1, max_size=6, unique=True).map(tuple)


@given(distinct, distinct, distinct)
def test_assignment_invariants(origin: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """controller 4: the origin outlives overriding. The target is the requested list. Cancelling restores the
    origin."""
    driver = quiet({"t": [PartitionSpec(origin, origin[0], origin)]}, ALL)
    rows, context = driver.rows("t-0"), driver.context
    p = driver.cluster.partitions
    for target in (first, second):
        change = reassigned_to(context, rows, target_lists(driver, target))
        assign(p, rows, change)
        replicas, adding, removing = as_lists(driver, current(p, rows))
        assert as_lists(driver, change.target())[0] == target
        assert set(as_lists(driver, change.origin())[0]) == set(origin)
        assert replicas[: len(target)] == target
        assert (set(adding), set(removing)) == (set(target) - set(origin), set(origin) - set(target))
    cancelled = reassigned_to(context, rows, current(p, rows).origin().replicas)
    assert as_lists(driver, cancelled)[1:] == ((), ())
    assert set(as_lists(driver, cancelled)[0]) == set(origin)
