"""Topic deletion: replicas stop, brokers confirm, and conditions that halt a deletion."""

from __future__ import annotations

import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode, InputError
from kframe.snapshot import Snapshot
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.whatif import TopicAction, TopicResult, TopicStatus, TopicsWritten, WhatIf
from tests.whatif.samples import requests_by_broker


def new_whatif() -> WhatIf:
    """Brokers 1 to 3 are registered, 4 is not. Topic w waits for broker 4 and has an offline partition."""
    cluster = cluster_of(
        {
            "t": [healthy(1, 2), healthy(2, 3)],
            "v": [healthy(3)],
            "w": [healthy(1, 2), PartitionSpec((4, 1), leader=None, isr=(4,))],
        },
        [registration(number, broker_epoch=10 + number) for number in (1, 2, 3)],
    )
    return WhatIf(Snapshot.from_cluster(cluster, controller_id=1, controller_epoch=7))


def names(whatif: WhatIf) -> set[str]:
    return {view.topic for view in whatif.cluster}


def test_deletion_stops_replicas_and_waits_for_confirmation() -> None:
    whatif = new_whatif()
    outcome = whatif.delete(["t"])
    assert names(whatif) == {"v", "w"}
    assert outcome.topics == (TopicResult("t", TopicStatus.COMPLETED, ErrorCode.NONE, 2, 4),)
    assert outcome.steps[0].events[0] == TopicsWritten(TopicAction.MARKED, 1)
    assert outcome.steps[1].events == (TopicsWritten(TopicAction.DELETED, 1),)
    # One request to stop, one to delete.
    assert requests_by_broker(outcome, Api.STOP_REPLICA) == {1: (2, 2), 2: (2, 4), 3: (2, 2)}
    rows = list(outcome.changes.records())
    assert [(row["topic"], row["partition"], row["replicas_before"], row["replicas_after"]) for row in rows] == [
        ("t", 0, [1, 2], []),
        ("t", 1, [2, 3], []),
    ]
    assert (outcome.before.replicas - outcome.after.replicas).tolist() == [1, 2, 1, 0]
    assert outcome.impact.newly_offline == 0


def test_deletion_of_topic_on_dead_broker_waits() -> None:
    whatif = new_whatif()
    outcome = whatif.delete(["w", "v"])
    assert outcome.topics == (
        TopicResult("w", TopicStatus.WAITING, ErrorCode.NONE, 2, 4, (4,)),
        TopicResult("v", TopicStatus.COMPLETED, ErrorCode.NONE, 1, 1),
    )
    assert names(whatif) == {"t", "w"}
    # Topics under deletion do not count as offline, and not as online again.
    assert (outcome.before.counts()["offline"], outcome.after.counts()["offline"]) == (1, 0)
    assert outcome.impact.back_online == 0
    assert not any(row["came_online"] for row in outcome.changes.records())


def test_topic_can_be_recreated_after_deletion() -> None:
    whatif = new_whatif()
    for _ in range(2):
        whatif.create("new", assignments=[[1], [2]])
        assert whatif.delete(["new"]).topics[0].status is TopicStatus.COMPLETED
    assert names(whatif) == {"t", "v", "w"}
    assert whatif.fail([3]).impact.newly_offline == 1


@pytest.mark.parametrize(
    "topics, message",
    [([], "topics: found no topic, expected at least one"), (["t", "v", "t"], "topics: found topic t twice")],
)
def test_invalid_deletion_request_raises_input_error(topics: list[str], message: str) -> None:
    whatif = new_whatif()
    with pytest.raises(InputError, match=message):
        whatif.delete(topics)
    assert names(whatif) == {"t", "v", "w"}
