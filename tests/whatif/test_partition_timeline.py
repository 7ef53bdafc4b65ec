"""The timeline of one partition, and plans that move partitions from some brokers to others."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import pytest

from kframe.errors import InputError
from kframe.model.cluster import PartitionView
from kframe.model.plan import Plan
from kframe.plans.generate.broker_replacement import replacement_brokers, replacement_plan
from kframe.snapshot import Snapshot
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.whatif import TopicStatus, WhatIf
from kframe.whatif.engines.zookeeper.engine import ZookeeperEngine
from kframe.whatif.engines.zookeeper.partition_timeline import PartitionTimeline, describe_change
from kframe.whatif.engines.zookeeper.start import ZookeeperStart
from tests.whatif.samples import small

#: Assigned, adding and removing.
Lists: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def six_brokers() -> ZookeeperEngine:
    """Six brokers in racks a, b, c. t-0 and u-0 are on 1, 2, 3; t-1 also on another broker; t-2 has no leader."""
    specs = [healthy(1, 2, 3), healthy(2, 4), PartitionSpec((1, 2), leader=None, isr=(1,))]
    brokers = [registration(broker_id, "abc"[(broker_id - 1) % 3]) for broker_id in (1, 2, 3, 4, 5, 6)]
    return ZookeeperEngine(
        ZookeeperStart.of(Snapshot.from_cluster(cluster_of({"t": specs, "u": [healthy(3, 1)]}, brokers)))
    )


def lines(timeline: PartitionTimeline) -> list[tuple[object, ...]]:
    views = ((entry.description, entry.view) for entry in timeline.entries)
    return [
        (text, view.replicas, view.adding_replicas, view.removing_replicas, view.isr, view.leader)
        for text, view in views
    ]


def test_timeline_of_reassignment() -> None:
    engine = six_brokers()
    timeline = engine.follow("t", 0)
    WhatIf.of(engine).reassign(Plan.of([(("t", 0), (4, 5, 6))]))
    assignment = ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert lines(timeline) == [
        ("present state", (1, 2, 3), (), (), (1, 2, 3), 1),
        ("reassignment begins", *assignment, (1, 2, 3), 1),
        ("higher leader epoch", *assignment, (1, 2, 3), 1),
        ("4,5,6 in sync", *assignment, (1, 2, 3, 4, 5, 6), 1),
        ("4 leads", *assignment, (1, 2, 3, 4, 5, 6), 4),
        ("1 out of the ISR", *assignment, (2, 3, 4, 5, 6), 4),
        ("2 out of the ISR", *assignment, (3, 4, 5, 6), 4),
        ("3 out of the ISR", *assignment, (4, 5, 6), 4),
        ("reassignment done", (4, 5, 6), (), (), (4, 5, 6), 4),
    ]


@pytest.mark.parametrize(
    "description, before, after",
    [
        ("reassignment begins", ((1, 2), (), ()), ((3, 2, 1), (3,), (1,))),
        ("reassignment replaced", ((3, 2, 1), (3,), (1,)), ((4, 2, 1), (4,), (1,))),
        ("reassignment cancelled", ((3, 2, 1), (3,), (1,)), ((1, 2), (), ())),
        ("reassignment done", ((3, 2, 1), (3,), (1,)), ((3, 2), (), ())),
        ("another assignment", ((1, 2), (), ()), ((2, 1), (), ())),
        ("", ((3, 2, 1), (3,), (1,)), ((3, 2, 1), (3,), (1,))),
    ],
)
def test_description_of_assignment_changes(description: str, before: Lists, after: Lists) -> None:
    view = six_brokers().cluster["t", 0]

    def with_lists(lists: Lists) -> PartitionView:
        return replace(view, replicas=lists[0], adding_replicas=lists[1], removing_replicas=lists[2])

    assert describe_change(with_lists(before), with_lists(after)) == description


def test_timeline_ignores_other_partitions() -> None:
    engine = ZookeeperEngine(ZookeeperStart.of(small()))
    timeline, other = engine.follow("t", 3), engine.follow("t", 4)
    WhatIf.of(engine).fail([1])
    assert [text for text, *_ in lines(timeline)] == ["present state", "no leader"]
    assert len(other.entries) == 1


def test_topic_deletion_ends_timeline() -> None:
    engine = six_brokers()
    timeline = engine.follow("u", 0)
    WhatIf.of(engine).delete(["u"])
    assert timeline.entries[0].view.topic == "u"
    assert all(entry.view.replicas == (3, 1) for entry in timeline.entries)


def test_unknown_partition_cannot_be_followed() -> None:
    with pytest.raises(InputError, match="found t-9"):
        six_brokers().follow("t", 9)


def test_replacement_broker_is_in_same_rack_if_possible() -> None:
    whatif = WhatIf.of(six_brokers())
    assert replacement_brokers(whatif.cluster, (3, 1)) == {3: 6, 1: 4}
    assert replacement_brokers(whatif.cluster, (1, 4)) == {1: 2, 4: 3}, "their rack has no other: the first ones left"
    assert replacement_brokers(whatif.cluster, (1, 2, 3, 4, 5)) == {1: 6}, "only one is left"
    whatif.fail([4])
    assert replacement_brokers(whatif.cluster, (1,)) == {1: 2}


def test_replacement_plan_moves_partitions_only_on_replaced_brokers() -> None:
    whatif = WhatIf.of(six_brokers())
    plan = replacement_plan(whatif.cluster, {1: 4, 2: 5, 3: 6})
    targets = {plan.partition_name(index): plan.targets.replicas[index].tolist() for index in range(len(plan))}
    assert targets == {"t-0": [4, 5, 6], "u-0": [6, 4]}
    outcome = whatif.reassign(plan)
    assert outcome.reassignment is not None
    assert [outcome.reassignment.status(index) for index in range(len(plan))] == [
        TopicStatus.COMPLETED,
        TopicStatus.COMPLETED,
    ]
    assert whatif.cluster["u", 0].replicas == (6, 4)
    assert len(replacement_plan(whatif.cluster, {1: 4})) == 0
