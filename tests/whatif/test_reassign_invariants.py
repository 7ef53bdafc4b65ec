"""On random clusters and plans, completed reassignments equal the plan, and counts equal a recount in plain loops."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kframe.model.plan import Plan
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.file.read import load_plan
from kframe.snapshot import Health, Snapshot, generate, read_snapshot
from kframe.whatif import WhatIf
from tests.architecture.source import ROOT
from verification.support.properties import examples

CLUSTER = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers"


@dataclass(frozen=True, slots=True)
class Case:
    """Draw a cluster, its failed brokers, and the targets."""

    snapshot: Snapshot
    failed: tuple[int, ...]
    targets: dict[tuple[str, int], tuple[int, ...]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    brokers = draw(st.integers(2, 7))
    share = st.sampled_from([0.0, 0.4])
    snapshot = generate(
        draw(st.integers(1, 25)),
        brokers,
        draw(st.integers(1, min(brokers, 3))),
        partitions_per_topic=6,
        seed=draw(st.integers(0, 999)),
        health=Health(draw(share), draw(share)),
    )
    names = [snapshot.topics.name_of_row(row).rpartition("-") for row in range(len(snapshot))]
    existing = [(topic, int(number)) for topic, _, number in names]
    # Broker ``brokers`` and partition 99 do not exist.
    any_list = st.lists(st.integers(0, brokers), max_size=4).map(tuple)
    valid_list = st.lists(st.integers(0, brokers - 1), min_size=1, max_size=4, unique=True).map(tuple)
    partitions = st.sampled_from([*existing, (existing[0][0], 99), ("nope", 0)])
    targets = draw(st.dictionaries(partitions, st.one_of(valid_list, valid_list, any_list), min_size=1, max_size=12))
    failed = draw(st.lists(st.integers(0, brokers - 1), max_size=brokers - 1, unique=True))
    return Case(snapshot, tuple(failed), targets)


def played(case: Case) -> WhatIf:
    whatif = WhatIf(case.snapshot)
    if case.failed:
        whatif.fail(case.failed)
    return whatif


@given(cases())
def test_completed_reassignments_equal_plan(case: Case) -> None:
    whatif = played(case)
    before = {(view.topic, view.partition): view for view in whatif.cluster}
    outcome = whatif.reassign(Plan.of(list(case.targets.items())))
    result = outcome.reassignment
    assert result is not None
    after = {(view.topic, view.partition): view for view in whatif.cluster}
    incomplete = {(problem.topic, problem.partition): problem for problem in result.problems()}
    live = set(whatif.registered)
    copied, deleted = Counter[int](), Counter[int]()
    for key, targets in case.targets.items():
        if key in incomplete and incomplete[key].status == "refused":
            assert after.get(key) == before.get(key) or incomplete[key].error == "UNKNOWN_SERVER_ERROR"
            continue
        view = after[key]
        copied.update(set(targets) - set(before[key].replicas))
        deleted.update(set(before[key].replicas) - set(view.replicas))
        assert set(view.isr) <= set(view.replicas)
        if key in incomplete:
            assert view.adding_replicas or view.removing_replicas or not set(targets) <= set(view.isr)
            assert before[key].leader not in live or not set(targets) <= live
        else:
            assert (view.replicas, view.adding_replicas, view.removing_replicas) == (targets, (), ())
            # Without added or removed replicas the reassignment completes at once.
            assert set(targets) <= set(view.isr) or set(targets) == set(before[key].replicas)
            assert view.leader in targets or not live & set(targets) & set(view.isr)
    rows = {row.broker_id: row for row in result.broker_rows()}
    assert {broker_id: row.copied for broker_id, row in rows.items() if row.copied} == dict(copied)
    assert {broker_id: row.deleted for broker_id, row in rows.items() if row.deleted} == dict(deleted)
    for broker_id, row in rows.items():
        assert row.replicas_after == sum(broker_id in view.replicas for view in after.values())
        assert row.replicas_peak == row.replicas_before + row.copied
        assert row.replicas_after == row.replicas_before + row.copied - row.deleted
        assert row.leaders_after == sum(view.leader == broker_id for view in after.values())
    untouched = set(before) - set(case.targets)
    assert {key: after[key] for key in untouched} == {key: before[key] for key in untouched}


@examples(1.2)
@given(cases())
def test_check_predicts_refusals_of_controller(case: Case) -> None:
    whatif = WhatIf(case.snapshot)
    plan = Plan.of(list(case.targets.items()))
    checked = resolve_plan(plan, case.snapshot)
    report = PlanReport.of(plan, checked)
    outcome = whatif.reassign(plan)
    assert outcome.reassignment is not None
    refused = outcome.reassignment.refused
    assert (~checked.valid).tolist() == refused.tolist()
    assert report.valid == (not refused.any())
    moves = report.document().moves
    assert moves is not None
    rows = {row.broker_id: row for row in outcome.reassignment.broker_rows()}
    assert outcome.reassignment.waiting.sum() == 0
    for broker in moves.brokers:
        for name in ("copied", "deleted", "replicas_before", "replicas_after"):
            assert getattr(rows[broker.broker_id], name) == getattr(broker, name)


def test_recorded_plan_on_recorded_cluster() -> None:
    whatif = WhatIf(read_snapshot(CLUSTER / "healthy.zookeeper.jsonl.gz"))
    plan = load_plan(CLUSTER / "reassignment.json")
    outcome = whatif.reassign(plan)
    result = outcome.reassignment
    assert result is not None
    totals = result.totals()
    assert (totals["partitions"], totals["completed"], totals["replicas_copied"]) == (24, 24, 36)
    for position in range(len(plan)):
        view = whatif.cluster[plan.targets.names[plan.targets.topic[position]], int(plan.targets.partition[position])]
        assert view.replicas == tuple(plan.targets.replicas[position].tolist())
        assert set(view.isr) == set(view.replicas)
    assert {row.broker_id: row.copied - row.deleted for row in result.broker_rows()} == {
        1: 12,
        2: 12,
        3: 12,
        4: -12,
        5: -12,
        6: -12,
    }
    assert outcome.after.replica_skew.max == 324


def test_reassignment_with_dead_broker_waits_only_for_leaders() -> None:
    # The reassignment had started when broker 4 was killed. If requested again, it can complete where a leader exists.
    whatif = WhatIf(read_snapshot(CLUSTER / "broker-4-dead.zookeeper.jsonl.gz"))
    outcome = whatif.reassign(load_plan(CLUSTER / "reassignment.json"))
    assert outcome.reassignment is not None
    assert {problem.reason for problem in outcome.reassignment.problems()} <= {
        "no live leader adds the new replicas to the ISR"
    }
