"""Topic deletion (``controller.md`` section 10): operations that exclude a queued topic. Also DeleteTopics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions
from kframe.model.events import (
    ControlledShutdownRequested,
    CreatePartitionsRequested,
    DeleteTopicsRequested,
    ElectionRequested,
    ElectionType,
    ReassignmentRequested,
    RebalanceLeaders,
)
from kframe.model.tables import Targets
from kframe.ports.store_requests import ReadDeletions, WriteStates
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.deletion import (
    ALL,
    NONE,
    flags,
    make_driver,
    mark,
)
from tests.core.driver import Driver, quiet

# -- operations that exclude a queued topic


def queued() -> Driver:
    """Topic ``t`` is queued and halted, so that all its replicas still exist. Topic ``kept`` is not queued."""
    driver = quiet({"t": [healthy(1, 2)], "kept": [healthy(1, 2)]}, ALL)
    topics = driver.cluster.topics
    topics.deleting[topics.find("t")] = topics.deletion_halted[topics.find("t")] = 1
    driver.ensemble.write_state("t", 0, leader=2)
    driver.ensemble.write_state("kept", 0, leader=2)
    driver.cluster.partitions.leader[:] = driver.cluster.brokers.index_of([2])[0]
    driver.cluster.partitions.partition_epoch[:] = 1
    return driver


INVALID_TOPIC = ErrorCode.INVALID_TOPIC_EXCEPTION
GATES: list[tuple[str, Any, Callable[[Any], Any], Any]] = [
    (
        "elections",
        ElectionRequested(ElectionType.PREFERRED, (("t", 0),), 1),
        lambda r: r.codes.tolist(),
        [INVALID_TOPIC],
    ),
    (
        "reassignment",
        ReassignmentRequested(Targets.of([(("t", 0), (3,))]), 1),
        lambda r: r.codes.tolist(),
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ),
    (
        "growth",
        CreatePartitionsRequested((NewPartitions("t", 2),), 0, token=1),
        lambda r: r.codes,
        {"t": INVALID_TOPIC},
    ),
    ("controlled shutdown", ControlledShutdownRequested(2, -1, 1), lambda r: r.remaining.tolist(), []),
    ("auto rebalance", RebalanceLeaders(), lambda r: r, None),
]


@pytest.mark.parametrize("event, read, response", [row[1:] for row in GATES], ids=[row[0] for row in GATES])
def test_request_for_deleting_topic_is_refused(event: Any, read: Callable[[Any], Any], response: Any) -> None:
    """controller 10.5: isTopicQueuedUpForDeletion gates elections (17), reassignment (3), growth (17) and the rest."""
    driver = queued()
    before = driver.stored("t-0")
    driver.handle(event)
    assert read(driver.replies.get(1)) == response
    assert driver.stored("t-0") == before
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == []


def test_broker_failure_does_not_elect_for_deleting_topic() -> None:
    """controller 10.5: trigger-online and LeaderAndIsr on offline leave queued topics out. Others are elected."""
    driver = queued()
    driver.fail_brokers(2)
    assert (driver.stored("t-0").leader, driver.stored("kept-0").leader) == (2, 1)
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == []


# -- DeleteTopics


@pytest.mark.parametrize(
    "names, codes",
    [
        (("t",), {"t": NONE}),
        (("nowhere",), {"nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}),
        (("t", "nowhere"), {"t": NONE, "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}),
        ((), {}),
    ],
)
def test_delete_topics_returns_error_code(names: tuple[str, ...], codes: dict[str, ErrorCode]) -> None:
    """wire 10: error 3 for topics that are not in metadata. The others are marked."""
    driver = make_driver()
    assert driver.ask(DeleteTopicsRequested(names, 1_000, 1)).codes == codes
    assert driver.store.perform(ReadDeletions()) == {name for name, code in codes.items() if code is NONE}


def test_delete_topics_returns_topic_deletion_disabled() -> None:
    """wire 10: delete.topic.enable=false 73."""
    driver = make_driver(delete_topic_enable=False)
    assert driver.ask(DeleteTopicsRequested(("t",), 1_000, 1)).codes == {"t": ErrorCode.TOPIC_DELETION_DISABLED}
    assert (driver.store.perform(ReadDeletions()), flags(driver)) == (frozenset(), set())


def test_repeated_delete_topics_succeeds_until_announced() -> None:
    """wire 10: an existing mark is treated as success. Once the deletion was announced, the topic is unknown."""
    driver = make_driver((1, 3))
    driver.ensemble.mark_for_deletion(["t"])
    assert driver.ask(DeleteTopicsRequested(("t",), 1_000, 1)).codes == {"t": NONE}
    unknown = {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert driver.ask(DeleteTopicsRequested(("t",), 1_000, 2)).codes == unknown


def test_delete_topics_of_unannounced_topic_is_unknown() -> None:
    """wire 10: error 3, since no partition ever had a leader. The topic is not in metadata."""
    driver = quiet({"t": [PartitionSpec((9,))]}, ALL)
    unknown = {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert driver.ask(DeleteTopicsRequested(("t",), 1_000, 1)).codes == unknown


def test_election_does_not_write_deleting_topic() -> None:
    """controller 10.5: nothing but the shrinking of ISRs is written once the topic is queued."""
    driver = make_driver()
    mark(driver, "t")
    rows = np.concatenate([effect.change.rows for effect in driver.effects if isinstance(effect, WriteStates)])
    assert set(rows.tolist()) == set(driver.rows("t-0", "t-1").tolist())
    assert all((change.leader_epoch > 0).all() for change in driver.writes())
