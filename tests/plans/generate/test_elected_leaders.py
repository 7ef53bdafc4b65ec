"""Preferred leaders by a leader selector: those that it elects while all brokers are alive and all replicas in sync."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from kframe.errors import InputError, PluginError
from kframe.model.arrays import Int32, Ragged
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import plan
from kframe.plans.generate.report import report_document
from kframe.plans.generate.review import PlanReview
from kframe.registry.leader_placement import AvoidBrokers, PreferRacks
from kframe.snapshot import Snapshot, Source
from tests.plans.generate.clusters import lists_of, snapshot_of
from tests.whatif.kraft_samples import metadata_with, partition

RACKS: Final[dict[int, str | None]] = {1: "a", 2: "b", 3: "c", 4: None}


@dataclass(frozen=True)
class Position:
    """Elects the candidate at a position of each list, or the broker of this index if the position is -1."""

    position: int
    broker: int = -1
    name: str = "position"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        for index in range(len(batch)):
            leader[index] = batch.candidates[index][self.position] if self.position >= 0 else self.broker


@dataclass(frozen=True)
class Broken:
    """Raises an error."""

    name: str = "broken"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        raise ValueError("no rule")


NONE: Final = "leader selector position elects none of its replicas"


@pytest.mark.parametrize(
    ("lists", "selector", "goals", "after", "reasons"),
    [
        ([[1, 2, 3], [2, 1]], AvoidBrokers(frozenset({1})), {}, [[2, 1, 3], [2, 1]], []),
        ([[1, 2, 3], [1, 2]], PreferRacks(frozenset({"c"})), {}, [[3, 1, 2], [1, 2]], []),
        ([[1, 4]], AvoidBrokers(frozenset({1})), {}, [[4, 1]], []),
        ([[1, 2, 3]], AvoidBrokers(frozenset({1})), {"exclude_brokers": (2,)}, [[3, 1, 2]], []),
        # The election is of the replicas before the plan, so that the plan has one result.
        ([[1, 2, 3], [3, 2, 1]], Position(2), {}, [[3, 1, 2], [1, 3, 2]], []),
        ([[1, 2]], Position(-1), {}, [[1, 2]], [NONE]),
        ([[1, 2]], Position(-1, broker=2), {}, [[1, 2]], [NONE]),
        ([[1, 2]], Position(-1, broker=77), {}, [[1, 2]], [NONE]),
        ([[1, 2]], Position(0), {"exclude_brokers": (1,)}, [[1, 2]], [NONE]),
    ],
)
def test_elected_replica_is_first_and_the_others_keep_their_order(
    lists: list[list[int]],
    selector: LeaderSelector,
    goals: dict[str, Any],
    after: list[list[int]],
    reasons: list[str],
) -> None:
    proposal = plan(snapshot_of({"t": lists}, RACKS, dead=(3,)), leaders_only=True, leader_selector=selector, **goals)
    document = report_document(proposal)
    assert (lists_of(proposal), proposal.moves) == (after, 0)
    assert [row.reason for row in document.unmet] == reasons
    assert all(row.lacks == ["leader"] for row in document.unmet)
    assert document.targets_met == (not reasons)
    assert any(f"those that {selector.name} elects" in note for note in document.notes)


def test_only_topics_in_scope_and_partitions_that_are_not_reassigned_change() -> None:
    snapshot = snapshot_of({"other": [[1, 2]], "t": [[1, 2], [1, 2, 3]]}, RACKS)
    removing = Ragged.of([[], [], [3]])
    snapshot = replace(snapshot, partitions=replace(snapshot.partitions, removing_replicas=removing))
    proposal = plan(snapshot, leaders_only=True, leader_selector=AvoidBrokers(frozenset({1})), topics=("t",))
    assert lists_of(proposal) == [[1, 2], [2, 1], [1, 2, 3]]
    assert [(row.partition, row.reason) for row in report_document(proposal).unmet] == [
        (1, "a reassignment to 1,2 is in progress")
    ]


def test_observer_is_not_elected() -> None:
    snapshot = snapshot_of({"t": [[1, 2, 3]]}, RACKS)
    snapshot = replace(snapshot, partitions=replace(snapshot.partitions, observers=Ragged.of([[3]])))
    proposal = plan(snapshot, leaders_only=True, leader_selector=PreferRacks(frozenset({"c", "b"})))
    assert lists_of(proposal) == [[2, 1, 3]]


def test_leaders_of_kraft_cluster() -> None:
    partitions = tuple(partition(number, (1, 2), (1, 2)) for number in range(3))
    snapshot = Snapshot.from_metadata(metadata_with(partitions), source=Source("kraft", "sample"))
    proposal = plan(snapshot, leaders_only=True, leader_selector=AvoidBrokers(frozenset({1})))
    assert (lists_of(proposal), proposal.leader_changes) == ([[2, 1]] * 3, 3)


def test_page_names_the_selector() -> None:
    snapshot = snapshot_of({"t": [[1, 2]]}, RACKS)
    proposal = plan(snapshot, leaders_only=True, leader_selector=AvoidBrokers(frozenset({1})))
    review = PlanReview.of_proposal(proposal, resolve_plan(proposal.plan, snapshot))
    assert ("leader selector", "avoid-brokers") in list(review.request_rows())


@pytest.mark.parametrize(
    ("goals", "error", "message"),
    [
        (
            {"leader_selector": Position(0), "rebalance": True},
            InputError,
            "leader_selector: found a plan that may",
        ),
        ({"leader_selector": Position(0), "leaders_only": True, "demote_brokers": (1,)}, InputError, "another goal"),
        ({"leader_selector": Broken(), "leaders_only": True}, PluginError, "raised an exception: ValueError: no rule"),
    ],
)
def test_unusable_selector_is_refused(goals: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plan(snapshot_of({"t": [[1, 2]]}, RACKS), **goals)
