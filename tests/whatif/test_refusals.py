"""The reasons of refused requests, in ZooKeeper mode and for KRaft clusters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kframe.model.events import ElectionType
from kframe.snapshot import Snapshot, read_snapshot
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.whatif import WhatIf
from kframe.whatif.document import summary_document
from kframe.whatif.results.outcome import Outcome

COLLIDING = Path(__file__).parents[1] / "snapshot" / "texts" / "colliding-names.txt"


def cluster(*, racks: bool = False) -> Snapshot:
    """Brokers 1, 2 and 3, of which 3 has a rack if ``racks``; 5 is not registered. Partition ``moving-1`` moves."""
    moving = PartitionSpec((3, 1, 2), leader=1, isr=(1, 2), adding_replicas=(3,), removing_replicas=(2,))
    topics = {
        "a.b": [healthy(1, 2)],
        "moving": [healthy(1, 2), moving],
        "offline": [PartitionSpec((5,), leader=None, isr=(5,)), PartitionSpec((5, 1), leader=1, isr=(1,))],
        "gone": [healthy(1, 2)],
    }
    brokers = [registration(1), registration(2), registration(3, rack="r" if racks else None)]
    state = cluster_of(topics, brokers)
    state.topics.deleting[state.topics.find("gone")] = 1
    return Snapshot.from_cluster(state)


#: The request, Kafka's error, and the reason.
CASES: dict[str, tuple[Callable[[WhatIf], Outcome], str, str]] = {
    "name in metrics": (
        lambda w: w.create("a_b", 1, 1),
        "INVALID_TOPIC_EXCEPTION",
        "a_b (its name in metrics, a_b, is that of topic a.b)",
    ),
    "name": (
        lambda w: w.create("a b", 1, 1),
        "INVALID_TOPIC_EXCEPTION",
        "a b (expected a topic name: 1 to 249 of the characters",
    ),
    "existing topic": (lambda w: w.create("a.b", 1, 1), "TOPIC_ALREADY_EXISTS", "a.b (topic a.b exists)"),
    "deleted topic": (lambda w: w.create("gone", 1, 1), "TOPIC_ALREADY_EXISTS", "gone (topic gone is being deleted)"),
    "metadata log": (
        lambda w: w.create("__cluster_metadata", 1, 1),
        "INVALID_REQUEST",
        "is the topic of KRaft's metadata log)",
    ),
    "no partition": (lambda w: w.create("x", 0, 1), "INVALID_PARTITIONS", "x (0 partitions, expected at least 1)"),
    "factor": (
        lambda w: w.create("x", 1, 9),
        "INVALID_REPLICATION_FACTOR",
        "x (replication factor 9, and 3 registered: brokers 1, 2, 3)",
    ),
    "repeated broker": (
        lambda w: w.create("x", assignments=[[1, 2], [2, 2]]),
        "INVALID_REPLICA_ASSIGNMENT",
        "x (partition 1 has a broker twice: [2, 2])",
    ),
    "uneven lists": (
        lambda w: w.create("x", assignments=[[1, 2], [2]]),
        "INVALID_REPLICA_ASSIGNMENT",
        "x (partition 1 has 1 replica, expected 2)",
    ),
    "no replica": (
        lambda w: w.create("x", assignments=[[1], []]),
        "INVALID_REPLICA_ASSIGNMENT",
        "x (partition 1 has no replica)",
    ),
    "growth of no topic": (lambda w: w.create_partitions("x", 3), "UNKNOWN_TOPIC_OR_PARTITION", "x (no such topic)"),
    "growth of deleted topic": (
        lambda w: w.create_partitions("gone", 3),
        "INVALID_TOPIC_EXCEPTION",
        "gone (topic gone is being deleted)",
    ),
    "growth of moving topic": (
        lambda w: w.create_partitions("moving", 3),
        "REASSIGNMENT_IN_PROGRESS",
        "moving (a reassignment of moving-1 is in progress)",
    ),
    "no growth": (
        lambda w: w.create_partitions("a.b", 1),
        "INVALID_PARTITIONS",
        "a.b (found 1 partition, expected more than the 1 of topic a.b)",
    ),
    "growth with too many lists": (
        lambda w: w.create_partitions("a.b", 2, assignments=[[1, 2], [2, 1]]),
        "INVALID_REPLICA_ASSIGNMENT",
        "a.b (replicas of 2 partitions, expected of 1)",
    ),
    "growth on another broker": (
        lambda w: w.create_partitions("a.b", 2, assignments=[[1, 5]]),
        "INVALID_REPLICA_ASSIGNMENT",
        "a.b (partition 1 has replicas on broker 5, not registered)",
    ),
    "deletion of no topic": (lambda w: w.delete(["x"]), "UNKNOWN_TOPIC_OR_PARTITION", "x (no such topic)"),
    "deletion of deleted topic": (
        lambda w: w.delete(["gone"]),
        "UNKNOWN_TOPIC_OR_PARTITION",
        "gone (topic gone is being deleted)",
    ),
    "unclean election": (
        lambda w: w.elect(ElectionType.UNCLEAN, [("offline", 0)]),
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "offline-0 (none of its replicas is registered: broker 5)",
    ),
    "preferred election": (
        lambda w: w.elect(ElectionType.PREFERRED, [("offline", 1)]),
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "offline-1 (its preferred replica, broker 5, is not registered)",
    ),
    "no factor": (
        lambda w: w.create("x", 1, 0),
        "INVALID_REPLICATION_FACTOR",
        "x (replication factor 0, and 3 registered",
    ),
    "too many partitions": (lambda w: w.create("x", 2**31 - 1, 1), "POLICY_VIOLATION", "x ("),
    "no lists": (lambda w: w.create("x", assignments=[]), "INVALID_REPLICA_ASSIGNMENT", "x (no partition, expected"),
    "lists and counts": (lambda w: w.create("x", 1, assignments=[[1]]), "INVALID_REQUEST", "x (replicas are given, so"),
    "negative count": (lambda w: w.create_partitions("a.b", -1), "INVALID_PARTITIONS", "a.b (found -1 partition"),
    "too much growth": (lambda w: w.create_partitions("a.b", 2**31 - 1), "POLICY_VIOLATION", "a.b ("),
    "growth on a broker twice": (
        lambda w: w.create_partitions("a.b", 2, assignments=[[1, 1]]),
        "INVALID_REPLICA_ASSIGNMENT",
        "a.b (partition 1 has a broker twice: [1, 1])",
    ),
    "growth with another factor": (
        lambda w: w.create_partitions("a.b", 2, assignments=[[1]]),
        "INVALID_REPLICA_ASSIGNMENT",
        "a.b (partition 1 has 1 replica, expected 2)",
    ),
}


def named(outcome: Outcome, whatif: WhatIf) -> str:
    document = summary_document(outcome, whatif.snapshot, whatif.cluster)
    response = document.steps[0].response
    assert response is not None
    for topic in document.topics or ():
        assert topic.status == "refused"
        assert f"({topic.reason})" in str(response.named)
    return "; ".join(response.named)


@pytest.mark.parametrize("case", CASES)
def test_refusal_has_reason_and_changes_nothing(case: str) -> None:
    act, error, reason = CASES[case]
    whatif = WhatIf(cluster())
    before = list(whatif.cluster)
    outcome = act(whatif)
    assert reason in named(outcome, whatif)
    response = outcome.steps[0].response
    assert response is not None
    assert response.counts() == {error: 1}
    assert [(result.error.name, result.partitions, result.replicas) for result in outcome.topics] in (
        [],
        [(error, 0, 0)],
    )
    assert (list(whatif.cluster), outcome.changed) == (before, False)


def test_deletion_that_is_disabled() -> None:
    whatif = WhatIf(cluster(), {"delete.topic.enable": "false"})
    outcome = whatif.delete(["a.b"])
    assert named(outcome, whatif) == "a.b (delete.topic.enable is false)"
    assert (outcome.topics[0].error.name, outcome.changed) == ("TOPIC_DELETION_DISABLED", False)


@pytest.mark.parametrize("act", [lambda w: w.create("x", 1, 1), lambda w: w.create_partitions("a.b", 2)])
def test_brokers_of_which_some_have_a_rack_are_named(act: Callable[[WhatIf], Outcome]) -> None:
    whatif = WhatIf(cluster(racks=True))
    assert "(brokers 1, 2 without a rack beside broker 3 with one)" in named(act(whatif), whatif)


@pytest.mark.parametrize("mode", ["zookeeper", "kraft"])
def test_topic_of_colliding_name_is_named(mode: str) -> None:
    snapshot = read_snapshot(COLLIDING)
    whatif = WhatIf(snapshot if mode == "zookeeper" else snapshot.with_mode("kraft"))
    assert "billing.eu_orders" in named(whatif.create("billing_eu.orders", 1, 1), whatif)
