"""Random and small clusters for plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from kframe.errors import InputError
from kframe.model.arrays import Ragged
from kframe.plans.generate import PlanProposal, plan
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
        draw(st.permutations(range(1, used + 1)))[: draw(st.integers(1, 3))]
        for _ in range(draw(st.integers(1, partitions_max)))
    ]
    middle = draw(st.integers(0, len(lists) - 1))
    return snapshot_of({"a": lists[:middle], "b": lists[middle:]} if middle else {"b": lists}, names, dead)
