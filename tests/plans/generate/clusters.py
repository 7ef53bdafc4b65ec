"""Random and small clusters for plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from kframe.errors import InputError
from kframe.model.arrays import Int64, Ragged
from kframe.model.placements import FORBIDDEN, PlacementBatch
from kframe.plans.generate import PlanProposal, plan
from kframe.registry.placements import CostTerm
from kframe.snapshot import Snapshot
from kframe.snapshot.facts import BrokerFacts, PartitionFacts, Source, TopicFacts
from verification.support.properties import examples

#: For properties of plans by sizes, each of which is solved as a mixed-integer program.
FEWER_EXAMPLES = examples(0.3)


def snapshot_of(
    assignments: Mapping[str, Sequence[Sequence[int]]], racks: Mapping[int, str | None], dead: Sequence[int] = ()
) -> Snapshot:
    """A snapshot with these replicas by topic, whose leaders are preferred and whose replicas are in sync."""
    names = tuple(sorted(assignments))
    replicas = Ragged.of([list(lists) for name in names for lists in assignments[name]])
    leader = replicas.values[replicas.offsets[:-1]]
    brokers = tuple(BrokerFacts(broker, broker not in dead, 1, (), rack) for broker, rack in sorted(racks.items()))
    counts = np.array([len(assignments[name]) for name in names], np.int32)
    return Snapshot(brokers, TopicFacts(names, counts), PartitionFacts(replicas, leader, replicas), Source("test", "x"))


def applied(proposal: PlanProposal) -> Snapshot:
    """The snapshot after a plan, with the brokers that it adds."""
    problem, before = proposal.problem, proposal.problem.snapshot
    known = {facts.broker_id: facts for facts in before.brokers}
    brokers = tuple(known.get(broker, BrokerFacts(broker, True, 1, (), rack)) for broker, rack in problem.racks.items())
    lists = Ragged(proposal.after.offsets, problem.brokers.ids[proposal.after.values])
    partitions = PartitionFacts(lists, lists.values[lists.offsets[:-1]], lists)
    return Snapshot(brokers, before.topics, partitions, before.source)


def lists_of(proposal: PlanProposal) -> list[list[int]]:
    """The replicas of each partition after a plan, as broker ids."""
    ids = proposal.problem.brokers.ids
    return [ids[proposal.after[row]].tolist() for row in range(len(proposal.after))]


def planned(snapshot: Snapshot, request: Mapping[str, Any]) -> PlanProposal:
    """The plan, where the cluster can satisfy the request at all."""
    try:
        return plan(snapshot, **request)
    except InputError:
        assume(False)
        raise


def assert_within_caps(proposal: PlanProposal) -> None:
    """No broker has more replicas than its cap, unless it had them before."""
    brokers, lists = proposal.problem.brokers, proposal.problem.original
    before, after = (np.bincount(values, minlength=len(brokers)) for values in (lists.values, proposal.after.values))
    assert (after <= np.maximum(brokers.cap, before)).all()


def plan_again(proposal: PlanProposal, request: Mapping[str, Any]) -> PlanProposal | None:
    """The plan of the same request for the cluster after a plan, in which added brokers are no longer new.

    None if no other goal remains.
    """
    goals = dict(request)
    if proposal.loads()["received"][np.isin(proposal.problem.brokers.ids, goals.get("add_brokers", ()))].any():
        with pytest.raises(InputError, match="add_brokers"):
            plan(applied(proposal), **goals)
        del goals["add_brokers"]
        if not (goals.get("rebalance") or goals.get("goal")):
            return None
    return plan(applied(proposal), **goals)


@st.composite
def snapshots(draw: st.DrawFn, partitions_max: int = 25) -> Snapshot:
    """At most 7 brokers, in up to 3 racks or none, some of them dead, with skewed replicas."""
    count = draw(st.integers(3, 7))
    racks = draw(st.sampled_from([0, 2, 3]))
    names = {broker: f"r{draw(st.integers(0, racks - 1))}" if racks else None for broker in range(1, count + 1)}
    dead = [broker for broker in names if draw(st.integers(0, 9)) == 9][: count - 3]
    used = draw(st.integers(3, count))
    lists = [
        draw(st.permutations(range(1, used + 1)))[: draw(st.integers(1, 4))]
        for _ in range(draw(st.integers(1, partitions_max)))
    ]
    middle = draw(st.integers(0, len(lists) - 1))
    return snapshot_of({"a": lists[:middle], "b": lists[middle:]} if middle else {"b": lists}, names, dead)


@st.composite
def goals(draw: st.DrawFn) -> dict[str, Any]:
    """A goal, or two of them, and constraints."""
    chosen: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"rebalance": True},
                {"remove_brokers": (1,)},
                {"remove_brokers": (2,), "rebalance": True},
                {"add_brokers": (8, 9)},
                {"add_brokers": (8,), "rebalance": True},
                {"fix_racks": True},
                {"replace": {1: 8}},
                {"fix_racks": True, "rebalance": True},
                {"replication_factors": {"b": 3}},
                {"replication_factors": {"*": 1}},
                {"leaders_only": True},
                {"demote_brokers": (1,)},
                {"demote_brokers": (2,), "leaders_only": True},
                {"remove_brokers": (1,), "fix_racks": True},
                {"replace": {1: 2}},
                {"remove_brokers": (1,), "replication_factors": {"*": 1}},
                {"rebalance": True, "replication_factors": {"*": 1}},
            ]
        )
    )
    if draw(st.integers(0, 3)) == 0:
        chosen = {**chosen, "topics": ("b",)}
    if draw(st.integers(0, 3)) == 0:
        chosen = {**chosen, "exclude_brokers": (3,)}
    if draw(st.integers(0, 3)) == 0:
        chosen = {**chosen, "broker_caps": {None: draw(st.integers(3, 20))}}
    return {**chosen, "racks": {8: "r0", 9: "r1"}, "seed": draw(st.integers(0, 3))}


def sampled_term(seed: int, forbidden: float = 0.15) -> CostTerm:
    """A term that depends on the topic, the partition and the broker only, so that a second plan has equal costs."""

    def costs(batch: PlacementBatch) -> Int64:
        table = np.random.default_rng(seed).integers(0, 6, (2, 40, 20)).astype(np.int64)
        table[np.random.default_rng(seed + 1).random(table.shape) < forbidden] = FORBIDDEN
        topic = np.array([batch.topic_names[number] == "b" for number in batch.topic.tolist()], np.int64)
        return table[topic.reshape(-1, 1), batch.partition.reshape(-1, 1), batch.broker_ids.reshape(1, -1)]

    return CostTerm("drawn", costs)


@st.composite
def requests(draw: st.DrawFn, partitions_max: int = 25, *, has_terms: bool = False) -> tuple[Snapshot, dict[str, Any]]:
    """A cluster, goals, sometimes sizes of partitions, and sometimes one or two cost terms."""
    snapshot, request = draw(snapshots(partitions_max)), draw(goals())
    if draw(st.booleans()) and not {"leaders_only", "demote_brokers"} & request.keys():
        sizes = draw(st.lists(st.integers(1, 1000), min_size=len(snapshot), max_size=len(snapshot)))
        request |= {"weights": np.array(sizes, np.int64), "tolerance": draw(st.sampled_from([1.0, 10.0, 40.0]))}
    if has_terms or draw(st.booleans()):
        request["cost_terms"] = tuple(sampled_term(draw(st.integers(0, 99))) for _ in range(draw(st.integers(1, 2))))
    return snapshot, request
