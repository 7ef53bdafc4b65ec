"""On random clusters, the report of a what-if equals a recount in plain Python loops."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kframe.model.cluster import PartitionView
from kframe.snapshot import Health, Snapshot, generate
from kframe.whatif import FailOn, WhatIf
from verification.support.properties import examples


@dataclass(frozen=True, slots=True)
class Case:
    """Draw a cluster, and the brokers that fail."""

    snapshot: Snapshot
    failed: tuple[int, ...]
    config: dict[str, object]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    brokers = draw(st.integers(2, 6))
    share = st.sampled_from([0.0, 0.3, 1.0])
    health = Health(draw(share), draw(share), draw(share), draw(st.sampled_from([None, 1, 2, 4])))
    snapshot = generate(
        draw(st.integers(1, 40)),
        brokers,
        draw(st.integers(1, min(brokers, 4))),
        partitions_per_topic=7,
        seed=draw(st.integers(0, 999)),
        health=health,
    )
    failed = draw(st.lists(st.integers(0, brokers - 1), min_size=1, unique=True))
    config: dict[str, object] = {"min.insync.replicas": draw(st.integers(1, 3))}
    return Case(snapshot, tuple(failed), config)


def expected_leader(view: PartitionView, dead: set[int], unclean: bool) -> tuple[int, bool]:
    """Return the leader by the offline rule, and whether the election was unclean."""
    if view.leader is not None and view.leader >= 0 and view.leader not in dead:
        return view.leader, False
    live = [broker_id for broker_id in view.replicas if broker_id not in dead]
    clean = [broker_id for broker_id in live if broker_id in view.isr]
    if clean:
        return clean[0], False
    return (live[0], True) if unclean and live else (-1, False)


def recount(whatif: WhatIf, default_min_isr: int) -> dict[str, int]:
    """Return the number of partitions in each condition."""
    topics, up = whatif.cluster.topics, set(whatif.registered)
    counts = dict.fromkeys(("offline", "under_min_isr", "at_min_isr", "under_replicated", "needs_unclean_election"), 0)
    for view in whatif.cluster:
        topic_min_isr = int(topics.min_insync[topics.names.index(view.topic)])
        min_isr = min(default_min_isr if topic_min_isr < 0 else topic_min_isr, len(view.replicas))
        offline = view.leader not in up
        counts["offline"] += offline
        counts["under_min_isr"] += offline or len(view.isr) < min_isr
        counts["at_min_isr"] += not offline and len(view.isr) == min_isr
        counts["under_replicated"] += len(view.isr) < len(view.replicas)
        counts["needs_unclean_election"] += offline and not up & set(view.isr) and bool(up & set(view.replicas))
    return counts


@examples(1.2)
@given(cases(), st.booleans())
def test_outcome_equals_recount(case: Case, together: bool) -> None:
    whatif = WhatIf(case.snapshot, case.config)
    before = {(view.topic, view.partition): view for view in whatif.cluster}
    counted_before = recount(whatif, int(str(case.config["min.insync.replicas"])))
    outcome = whatif.fail(case.failed, together=together)
    after = {(view.topic, view.partition): view for view in whatif.cluster}
    assert outcome.before.counts() == counted_before
    assert outcome.after.counts() == recount(whatif, int(str(case.config["min.insync.replicas"])))
    moved = [key for key, view in before.items() if view.leader != after[key].leader and (after[key].leader or 0) >= 0]
    assert outcome.impact.leaders_moved == len(moved)
    changed = {key for key, view in before.items() if (view.leader, view.isr) != (after[key].leader, after[key].isr)}
    rows = {(row["topic"], row["partition"]): row for row in outcome.changes.records()}
    assert changed <= set(rows)
    for key, row in rows.items():
        assert (row["leader_before"], tuple(row["isr_before"])) == (before[key].leader, before[key].isr)
        assert (row["leader_after"], tuple(row["isr_after"])) == (after[key].leader, after[key].isr)
        assert row["leader_epoch_after"] == after[key].leader_epoch > before[key].leader_epoch
    for index, broker in enumerate(outcome.broker_ids.tolist()):
        assert outcome.after.leaders[index] == sum(view.leader == broker for view in after.values())
        assert outcome.after.in_sync[index] == sum(broker in view.isr for view in after.values())
    up = [sum(view.leader == broker for view in after.values()) for broker in whatif.registered]
    assert outcome.after.leader_skew.max == max(up, default=0)
    assert outcome.after.leader_skew.deviation == round(statistics.pstdev(up), 3) if up else True


@examples(1.2)
@given(cases())
def test_leaders_follow_offline_election_rule(case: Case) -> None:
    whatif = WhatIf(case.snapshot, case.config)
    topics, dead = whatif.cluster.topics, set(case.failed)
    expected = {
        (view.topic, view.partition): expected_leader(view, dead, topics.unclean[topics.names.index(view.topic)] == 1)
        for view in whatif.cluster
    }
    outcome = whatif.fail(case.failed)
    assert {(view.topic, view.partition): view.leader for view in whatif.cluster} == {
        key: leader for key, (leader, _) in expected.items()
    }
    assert outcome.count_of(FailOn.DATA_LOSS) == sum(unclean for _, unclean in expected.values())


@examples(0.6)
@given(cases())
def test_sequential_failures_equal_separate_failures(case: Case) -> None:
    sequential, separate = WhatIf(case.snapshot, case.config), WhatIf(case.snapshot, case.config)
    outcome = sequential.fail(case.failed, together=False)
    sent = [separate.fail([broker]).impact for broker in case.failed]
    assert list(sequential.cluster) == list(separate.cluster)
    assert outcome.impact.requests == sum(event.requests for event in sent)
    assert outcome.impact.bytes == sum(event.bytes or 0 for event in sent)
