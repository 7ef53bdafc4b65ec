"""Topic creation: with Kafka's placement or given replicas, and the controller's errors."""

from __future__ import annotations

import pytest

from kframe.errors import ErrorCode, InputError
from kframe.snapshot import Snapshot
from kframe.testing.clusters import cluster_of, healthy, registration
from kframe.whatif import (
    StatesWritten,
    TopicAction,
    TopicResult,
    TopicStatus,
    TopicsWritten,
    WhatIf,
)


def new_whatif(config: dict[str, object] | None = None) -> WhatIf:
    """Brokers 1 to 3 are registered, in racks a, b, c; 4 is not. Topic a.b has two partitions."""
    up = [registration(number, rack, 10 + number) for number, rack in ((1, "a"), (2, "b"), (3, "c"))]
    cluster = cluster_of({"a.b": [healthy(1, 2), healthy(2, 4)]}, up)
    return WhatIf(Snapshot.from_cluster(cluster, controller_id=1, controller_epoch=7), config)


def assignment(whatif: WhatIf, topic: str) -> list[tuple[int, ...]]:
    return [view.replicas for view in whatif.cluster if view.topic == topic]


def test_replica_placement_depends_on_seed() -> None:
    placed = {}
    for seed in range(4):
        whatif = new_whatif()
        outcome = whatif.create("new", 3, 2, seed=seed)
        placed[seed] = assignment(whatif, "new")
        assert outcome.topics == (TopicResult("new", TopicStatus.COMPLETED, ErrorCode.NONE, 3, 6),)
        # Kafka's placement gives each broker one leader.
        assert sorted(replicas[0] for replicas in placed[seed]) == [1, 2, 3]
    repeated = new_whatif()
    repeated.create("new", 3, 2, seed=3)
    assert assignment(repeated, "new") == placed[3]
    assert len({tuple(replicas) for replicas in placed.values()}) > 1


def test_create_with_assignments_reports_events_and_changes() -> None:
    whatif = new_whatif()
    outcome = whatif.create("new", assignments=[[3, 1], [2, 3]])
    assert assignment(whatif, "new") == [(3, 1), (2, 3)]
    written, election, stored, *requests = outcome.steps[0].events
    assert written == TopicsWritten(TopicAction.CREATED, 1)
    assert stored == StatesWritten(partitions=2, created=2, elected=0, shrunk=0, leaderless=0, refused=0)
    assert (type(election).__name__, len(requests)) == ("ElectionHeld", 2)
    rows = list(outcome.changes.records())
    assert [(row["topic"], row["partition"], row["leader_before"], row["leader_after"]) for row in rows] == [
        ("new", 0, -1, 3),
        ("new", 1, -1, 2),
    ]
    assert [(row["replicas_before"], row["replicas_after"]) for row in rows] == [([], [3, 1]), ([], [2, 3])]
    assert (outcome.after.replicas - outcome.before.replicas).tolist() == [1, 1, 2, 0]
    assert (outcome.impact.leaders_moved, outcome.impact.newly_offline) == (0, 0)


def test_partitions_and_replication_factor_default_to_configuration() -> None:
    whatif = new_whatif({"num.partitions": 4, "default.replication.factor": 3})
    outcome = whatif.create("new")
    assert outcome.operation.text() == "create topic new with 4 partitions"
    assert [len(replicas) for replicas in assignment(whatif, "new")] == [3, 3, 3, 3]


def test_partition_on_dead_broker_waits_for_restart() -> None:
    whatif = new_whatif()
    outcome = whatif.create("new", assignments=[[1], [4]])
    assert outcome.topics == (TopicResult("new", TopicStatus.WAITING, ErrorCode.REQUEST_TIMED_OUT, 2, 2, (4,)),)
    assert (outcome.impact.newly_offline, outcome.count_of(next(iter(outcome.findings)))) == (1, 1)
    back = whatif.restart([4])
    assert back.impact.back_online >= 1
    assert whatif.cluster["new", 1].leader == 4


def test_later_operations_include_new_topic() -> None:
    whatif = new_whatif()
    whatif.create("new", assignments=[[1, 2]])
    outcome = whatif.fail([1])
    assert whatif.cluster["new", 0].leader == 2
    assert "new" in [row["topic"] for row in outcome.changes.records()]


def test_unknown_broker_raises_input_error() -> None:
    whatif = new_whatif()
    with pytest.raises(InputError, match=r"assignments\[1\]: found broker 9, expected brokers that the snapshot knows"):
        whatif.create("new", assignments=[[1], [2, 9]])
    assert "new" not in whatif.cluster.topics


def test_new_partitions_continue_pattern_of_partition_0() -> None:
    """Broker 4 is not registered, and partition 0 starts at broker 1 (Kafka 3.9 ``AdminZkClient.addPartitions``)."""
    whatif = new_whatif()
    outcome = whatif.create_partitions("a.b", 4)
    assert outcome.operation.text() == "expand topic a.b to 4 partitions"
    assert outcome.topics == (TopicResult("a.b", TopicStatus.COMPLETED, ErrorCode.NONE, 2, 4),)
    assert [view.replicas for view in whatif.cluster][2:] == [(3, 1), (1, 3)]
    assert [(row["topic"], row["partition"], row["replicas_before"]) for row in outcome.changes.records()] == [
        ("a.b", 2, []),
        ("a.b", 3, []),
    ]
    other = new_whatif()
    other.create_partitions("a.b", 4, seed=9)
    assert list(other.cluster) == list(whatif.cluster)


def test_new_partitions_accept_assignments() -> None:
    whatif = new_whatif()
    outcome = whatif.create_partitions("a.b", 3, assignments=[[3, 1]])
    assert outcome.topics == (TopicResult("a.b", TopicStatus.COMPLETED, ErrorCode.NONE, 1, 2),)
    assert whatif.cluster["a.b", 2].replicas == (3, 1)
    assert whatif.fail([3]).impact.leaders_moved == 1


def test_replication_factor_above_registered_brokers_is_refused() -> None:
    whatif = new_whatif()
    whatif.fail([2, 3])
    assert whatif.create_partitions("a.b", 3).topics[0].error is ErrorCode.INVALID_REPLICATION_FACTOR


def test_unknown_broker_of_new_partitions_raises_input_error() -> None:
    with pytest.raises(InputError, match=r"assignments\[0\]: found broker 9"):
        new_whatif().create_partitions("a.b", 3, assignments=[[1, 9]])
