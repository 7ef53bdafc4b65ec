"""Topic requests get a response when the requested state is reached, or after the timeout (``wire.md`` 9 to 11)."""

from __future__ import annotations

from typing import Any

import pytest

from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.effects import SetTimer
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    SessionExpired,
)
from kframe.ports.store_requests import ReadTopicNames
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, quiet

NONE, LATE, GONE = ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER
ON_5 = ((0, (5,)),)
PATIENT_MS = 1_000


def make_driver() -> Driver:
    """Broker 5 is not registered. A partition assigned only to broker 5 has no leader until broker 5 starts."""
    return quiet({"t": [healthy(1, 2)], "stuck": [PartitionSpec((5,))]}, (1, 2))


def creation(timeout_ms: int, token: int = 1, *other_topics: NewTopic) -> CreateTopicsRequested:
    return CreateTopicsRequested((NewTopic("late", assignments=ON_5), *other_topics), timeout_ms, token=token)


def pass_time(driver: Driver, milliseconds: int) -> None:
    driver.clock.advance(milliseconds / 1000, driver.follow)
    driver.follow()


def responses(driver: Driver) -> dict[int, dict[str, ErrorCode]]:
    return {token: response.codes for token, response in driver.replies.items()}


def test_create_topics_completes_after_all_partitions_have_leaders() -> None:
    """wire 9: wait until every partition of the topic has a leader."""
    driver = make_driver()
    driver.handle(creation(PATIENT_MS))
    driver.follow()
    assert responses(driver) == {}
    driver.start_brokers(5)
    assert responses(driver) == {1: {"late": NONE}}
    pass_time(driver, 2 * PATIENT_MS)
    assert len(driver.replies) == 1, "the time that was set means nothing any more"


def test_response_describes_topic_as_created() -> None:
    """The id and size are those of the creation: another topic may have the name when the response is due."""
    driver = make_driver()
    driver.handle(creation(PATIENT_MS))
    driver.handle(CreatePartitionsRequested((NewPartitions("late", 3, ((1,), (1,))),), PATIENT_MS, token=2))
    driver.register_brokers(5)
    driver.follow()
    topics = driver.controller.cluster.topics
    index = topics.find("late")
    assert index is not None
    assert topics.partition_count[index] == 3
    assert driver.replies[1].created == {"late": (topics.ids[index].tobytes(), 1, 1)}


def test_delayed_request_completes_at_timeout() -> None:
    """wire 9: after the timeout, error 7 for the topics without a leader. Other topics keep their result."""
    driver = make_driver()
    driver.handle(creation(PATIENT_MS, 1, NewTopic("soon", 1, 1), NewTopic("t")))
    pass_time(driver, PATIENT_MS - 1)
    assert responses(driver) == {}
    pass_time(driver, 1)
    assert responses(driver) == {1: {"late": LATE, "soon": NONE, "t": ErrorCode.TOPIC_ALREADY_EXISTS}}
    assert "late" in driver.store.perform(ReadTopicNames())


def test_delayed_requests_have_separate_timeouts() -> None:
    """wire 9: several requests wait at the same time."""
    driver = make_driver()
    driver.handle(creation(PATIENT_MS, 1))
    driver.handle(CreatePartitionsRequested((NewPartitions("stuck", 2),), PATIENT_MS // 2, token=2))
    pass_time(driver, PATIENT_MS // 2)
    assert responses(driver) == {2: {"stuck": LATE}}
    driver.register_brokers(5)
    driver.follow()
    assert responses(driver) == {2: {"stuck": LATE}, 1: {"late": NONE}}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_timeout_zero_reports_incomplete_partitions(timeout_ms: int) -> None:
    """wire 9: timeoutMs <= 0, the topic is created anyway."""
    driver = make_driver()
    assert driver.ask(creation(timeout_ms)).codes == {"late": LATE}
    assert not driver.performed(SetTimer)
    assert "late" in driver.store.perform(ReadTopicNames())


NO_TIME = [
    pytest.param(CreateTopicsRequested((NewTopic("new", 1, 1),), 0, token=1), id="create topics"),
    pytest.param(CreatePartitionsRequested((NewPartitions("t", 2),), 0, token=1), id="create partitions"),
    pytest.param(DeleteTopicsRequested(("t",), 0, token=1), id="delete topics"),
]


@pytest.mark.parametrize("request_", NO_TIME)
def test_timeout_zero_reports_request_timed_out(request_: Any) -> None:
    """wire 9, 10 and 11: timeoutMs <= 0 returns error 7 for valid topics, complete or not."""
    assert set(make_driver().ask(request_).codes.values()) == {LATE}


def test_validate_only_completes_immediately() -> None:
    """wire 9: validateOnly gets a response at once."""
    driver = make_driver()
    request = CreateTopicsRequested((NewTopic("late", assignments=ON_5),), PATIENT_MS, True, token=1)
    assert driver.ask(request).codes == {"late": NONE}
    growth = CreatePartitionsRequested((NewPartitions("t", 2),), PATIENT_MS, True, token=2)
    assert driver.ask(growth).codes == {"t": NONE}


def test_refused_request_completes_immediately() -> None:
    """wire 9: a request without any accepted topic."""
    assert make_driver().ask(CreateTopicsRequested((NewTopic("t"),), PATIENT_MS, token=1)).codes == {
        "t": ErrorCode.TOPIC_ALREADY_EXISTS
    }


def test_delete_topics_completes_after_brokers_acknowledge() -> None:
    """wire 10: wait until the topic has left metadata, that is, until its deletion was announced."""
    driver = quiet({"t": [healthy(1, 2)], "moving": [
        PartitionSpec((3, 1), 1, (1,), adding_replicas=(3,), removing_replicas=(1,))]}, (1, 2))  # fmt: skip
    assert driver.ask(DeleteTopicsRequested(("t",), PATIENT_MS, token=1)).codes == {"t": NONE}
    assert "t" in driver.store.perform(ReadTopicNames()), "brokers have not confirmed yet"


@pytest.mark.parametrize("cause", ["session", "abandoned"])
def test_resignation_answers_delayed_requests_with_not_controller(cause: str) -> None:
    """controller 1: pending requests at resignation get NOT_CONTROLLER."""
    driver = make_driver()
    driver.handle(creation(PATIENT_MS, 1))
    driver.handle(CreateTopicsRequested((NewTopic("too", assignments=ON_5),), PATIENT_MS, token=2))
    if cause == "session":
        driver.handle(SessionExpired())
    else:
        driver._settle(driver.controller.abandon("a test"))
    assert {token: set(codes.values()) for token, codes in responses(driver).items()} == {1: {GONE}, 2: {GONE}}
    pass_time(driver, 2 * PATIENT_MS)
    assert len(driver.replies) == 2
