"""CreateTopics, CreatePartitions and DeleteTopics complete once live brokers have responded to UpdateMetadata."""

from __future__ import annotations

from typing import Any

import pytest

from kframe.embedded import Api, EmbeddedBrokers, VirtualClock
from kframe.embedded.brokers import SILENT
from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.effects import CancelTimer, SetTimer
from kframe.model.events import (
    BrokersChanged,
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    ResignRequested,
    SessionExpired,
    UpdateMetadataResponseReceived,
)
from kframe.testing.clusters import cluster_of, healthy
from tests.core.driver import Driver

NONE, TIMED_OUT, NOT_CONTROLLER = ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER
TIMEOUT_MS = 1_000

REQUESTS = [
    pytest.param(CreateTopicsRequested((NewTopic("new", 2, 2),), TIMEOUT_MS, token=1), "new", id="create topics"),
    pytest.param(CreatePartitionsRequested((NewPartitions("t", 4),), TIMEOUT_MS, token=1), "t", id="create partitions"),
    pytest.param(DeleteTopicsRequested(("t",), TIMEOUT_MS, token=1), "t", id="delete topics"),
]


@pytest.fixture
def driver() -> Driver:
    """A controller whose brokers are silent. The test sends the responses."""
    quiet, brokers = {"auto.leader.rebalance.enable": False}, EmbeddedBrokers(VirtualClock())
    for broker_id in (1, 2, 3, 5):
        brokers.respond_with(broker_id, SILENT)
    driver = Driver(cluster_of({"t": [healthy(1, 2)]}, (1, 2, 3)), quiet, transport=brokers)
    driver.adopt()
    driver.forget()
    return driver


def request(driver: Driver, event: Any) -> None:
    """Handle a request and all events that it causes."""
    driver.handle(event)
    driver.follow()


def respond(driver: Driver, *brokers: int, batch: int | None = None, error: ErrorCode = NONE, epoch: int = 1) -> None:
    """Respond to UpdateMetadata as brokers. The default batch is the newest."""
    newest = driver.context.term.acknowledgements.next_batch - 1
    for broker in brokers:
        driver.handle(UpdateMetadataResponseReceived(broker, error, epoch, newest if batch is None else batch))
        driver.follow()


def codes(driver: Driver) -> dict[str, ErrorCode] | None:
    response = driver.replies.get(1)
    return None if response is None else dict(response.codes)


def pass_time(driver: Driver, milliseconds: float) -> None:
    driver.clock.advance(milliseconds / 1000, driver.follow)
    driver.follow()


@pytest.mark.parametrize(("event", "topic"), REQUESTS)
def test_request_completes_after_last_live_broker_responds(driver: Driver, event: Any, topic: str) -> None:
    request(driver, event)
    assert driver.requests(Api.UPDATE_METADATA), "the change has been announced"
    respond(driver, 1, 2)
    assert codes(driver) is None
    respond(driver, 3)
    assert codes(driver) == {topic: NONE}
    pass_time(driver, 2 * TIMEOUT_MS)
    assert len(driver.replies) == 1


@pytest.mark.parametrize(("event", "topic"), REQUESTS)
def test_request_without_broker_responses_times_out(driver: Driver, event: Any, topic: str) -> None:
    request(driver, event)
    pass_time(driver, TIMEOUT_MS - 1)
    assert codes(driver) is None
    pass_time(driver, 1)
    assert codes(driver) == {topic: TIMED_OUT}


@pytest.mark.parametrize(("event", "topic"), REQUESTS)
def test_unresponsive_broker_delays_response_by_half_of_timeout(driver: Driver, event: Any, topic: str) -> None:
    """Kafka waits only for the controller's own broker, so that one slow broker fails no request."""
    request(driver, event)
    respond(driver, 1, 2)
    pass_time(driver, TIMEOUT_MS / 2 - 1)
    assert codes(driver) is None
    pass_time(driver, 1)
    assert codes(driver) == {topic: NONE}
    pass_time(driver, TIMEOUT_MS)
    assert len(driver.replies) == 1


@pytest.mark.parametrize(("event", "topic"), REQUESTS)
def test_failed_broker_does_not_delay_response(driver: Driver, event: Any, topic: str) -> None:
    request(driver, event)
    respond(driver, 1, 2)
    driver.ensemble.unregister_brokers([3])
    request(driver, BrokersChanged())
    assert codes(driver) == {topic: NONE}


def test_reregistered_broker_acknowledges_all_metadata(driver: Driver) -> None:
    """Requests queued for the earlier registration are dropped. A later batch announces all partitions."""
    request(driver, CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, token=1))
    created = driver.context.term.acknowledgements.next_batch - 1
    respond(driver, 1, 2)
    respond(driver, 3, error=ErrorCode.STALE_BROKER_EPOCH)
    driver.ensemble.unregister_brokers([3])
    driver.register_brokers(3)
    request(driver, BrokersChanged())
    assert driver.context.term.acknowledgements.next_batch - 1 > created
    assert codes(driver) is None
    respond(driver, 3)
    assert codes(driver) == {"new": NONE}


def test_request_completes_by_a_later_merged_batch(driver: Driver) -> None:
    """A transport may merge requests. The response then names the newest batch in the merged request."""
    request(driver, CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, token=1))
    first = driver.context.term.acknowledgements.next_batch - 1
    request(driver, CreateTopicsRequested((NewTopic("newer", 1, 1),), 0, token=2))
    respond(driver, 1, 2, batch=first)
    assert codes(driver) is None
    respond(driver, 3)
    assert codes(driver) == {"new": NONE}


def test_split_request_acknowledges_batch_with_last_part(driver: Driver) -> None:
    request(driver, CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, token=1))
    respond(driver, 1, 2, 3, batch=0)
    assert codes(driver) is None


def test_response_of_earlier_controller_epoch_does_not_acknowledge(driver: Driver) -> None:
    request(driver, CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, token=1))
    respond(driver, 1, 2, 3, epoch=0)
    assert codes(driver) is None


def test_response_after_metadata_error_does_not_acknowledge(driver: Driver) -> None:
    request(driver, CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, token=1))
    refused = driver.context.term.acknowledgements.next_batch - 1
    respond(driver, 1, 2)
    respond(driver, 3, batch=refused, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    request(driver, CreateTopicsRequested((NewTopic("newer", 1, 1),), 0, token=2))
    respond(driver, 3)
    assert codes(driver) is None
    pass_time(driver, TIMEOUT_MS / 2)
    assert codes(driver) == {"new": NONE}, "two brokers know it"


def test_metadata_error_delays_response_by_half_of_timeout(driver: Driver) -> None:
    """Kafka's controller logs the error of a broker. The response depends on its own metadata cache."""
    request(driver, CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, token=1))
    respond(driver, 1, 2, 3, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    request(driver, CreateTopicsRequested((NewTopic("newer", 1, 1),), 0, token=2))
    respond(driver, 1, 2, 3)
    assert codes(driver) is None
    pass_time(driver, TIMEOUT_MS / 2)
    assert codes(driver) == {"new": NONE}


def test_topic_with_late_leader_waits_for_second_acknowledgement(driver: Driver) -> None:
    """The first announcement has no leader. The announcement with the leader must be acknowledged as well."""
    topics = (NewTopic("new", assignments=((0, (5,)),)), NewTopic("led", 1, 1), NewTopic("t"))
    request(driver, CreateTopicsRequested(topics, TIMEOUT_MS, token=1))
    respond(driver, 1, 2, 3)
    assert codes(driver) is None
    driver.register_brokers(5)
    request(driver, BrokersChanged())
    respond(driver, 1, 2, 3)
    assert codes(driver) is None
    respond(driver, 5)
    assert codes(driver) == {"new": NONE, "led": NONE, "t": ErrorCode.TOPIC_ALREADY_EXISTS}


def test_only_incomplete_topics_time_out(driver: Driver) -> None:
    topics = (NewTopic("new", assignments=((0, (5,)),)), NewTopic("led", 1, 1), NewTopic("t"))
    request(driver, CreateTopicsRequested(topics, TIMEOUT_MS, token=1))
    respond(driver, 1, 2, 3)
    pass_time(driver, TIMEOUT_MS)
    assert codes(driver) == {"new": TIMED_OUT, "led": NONE, "t": ErrorCode.TOPIC_ALREADY_EXISTS}


@pytest.mark.parametrize("ending", [ResignRequested(), SessionExpired()], ids=["resigned", "expired"])
def test_resignation_completes_delayed_request_once(driver: Driver, ending: Any) -> None:
    request(driver, CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, token=1))
    driver.handle(ending)
    assert codes(driver) == {"new": NOT_CONTROLLER}
    pass_time(driver, 2 * TIMEOUT_MS)
    assert len(driver.replies) == 1


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_request_with_zero_timeout_is_not_delayed(driver: Driver, timeout_ms: int) -> None:
    driver.handle(CreateTopicsRequested((NewTopic("new", 1, 1),), timeout_ms, token=1))
    assert codes(driver) == {"new": TIMED_OUT}


def test_validate_only_request_is_not_delayed(driver: Driver) -> None:
    driver.handle(CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, True, token=1))
    assert codes(driver) == {"new": NONE}


def test_response_cancels_timer(driver: Driver) -> None:
    """A timer is a thread in production. Thousands of requests must not keep one each until the timeout."""
    request(driver, CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, token=1))
    respond(driver, 1, 2, 3)
    (timer,) = driver.performed(SetTimer)
    assert CancelTimer(timer.name) in driver.effects
    assert not driver.clock.pending
