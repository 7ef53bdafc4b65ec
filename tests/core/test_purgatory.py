"""Topic requests complete when live brokers have the metadata, or after the timeout (``wire.md`` 9 to 11)."""

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
from kframe.ports.store_requests import ReadTopicNames
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from tests.core.driver import Driver, quiet

NONE, TIMED_OUT, NOT_CONTROLLER = ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER
TIMEOUT_MS = 1_000
ON_5 = ((0, (5,)),)


def requests(timeout_ms: int, validate_only: bool = False) -> list[tuple[Any, str]]:
    """A request of each kind that can be delayed, and its topic."""
    return [
        (CreateTopicsRequested((NewTopic("new", 2, 2),), timeout_ms, validate_only, token=1), "new"),
        (CreatePartitionsRequested((NewPartitions("t", 4),), timeout_ms, validate_only, token=1), "t"),
        (DeleteTopicsRequested(("t",), timeout_ms, token=1), "t"),
    ]


KINDS = ["create topics", "create partitions", "delete topics"]
each_request = pytest.mark.parametrize(("event", "topic"), requests(TIMEOUT_MS), ids=KINDS)


@pytest.fixture
def driver() -> Driver:
    """A controller whose brokers are silent. The test sends the responses."""
    config, brokers = {"auto.leader.rebalance.enable": False}, EmbeddedBrokers(VirtualClock())
    for broker_id in (1, 2, 3, 5):
        brokers.respond_with(broker_id, SILENT)
    driver = Driver(cluster_of({"t": [healthy(1, 2)]}, (1, 2, 3)), config, transport=brokers)
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


@each_request
def test_request_completes_after_last_live_broker_responds(driver: Driver, event: Any, topic: str) -> None:
    request(driver, event)
    assert driver.requests(Api.UPDATE_METADATA), "the change has been announced"
    respond(driver, 1, 2)
    assert codes(driver) is None
    respond(driver, 3)
    assert codes(driver) == {topic: NONE}
    pass_time(driver, 2 * TIMEOUT_MS)
    assert len(driver.replies) == 1


@each_request
def test_request_without_broker_responses_times_out(driver: Driver, event: Any, topic: str) -> None:
    request(driver, event)
    pass_time(driver, TIMEOUT_MS - 1)
    assert codes(driver) is None
    pass_time(driver, 1)
    assert codes(driver) == {topic: TIMED_OUT}


@each_request
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


@each_request
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


def test_response_cancels_timer(driver: Driver) -> None:
    """A timer is a thread in production. Thousands of requests must not keep one each until the timeout."""
    request(driver, CreateTopicsRequested((NewTopic("new", 1, 1),), TIMEOUT_MS, token=1))
    respond(driver, 1, 2, 3)
    (timer,) = driver.performed(SetTimer)
    assert CancelTimer(timer.name) in driver.effects
    assert not driver.clock.pending


# -- a transport without acknowledgements: leaders decide


def make_driver() -> Driver:
    """Broker 5 is not registered. A partition assigned only to broker 5 has no leader until broker 5 starts."""
    return quiet({"t": [healthy(1, 2)], "stuck": [PartitionSpec((5,))]}, (1, 2))


def creation(timeout_ms: int, token: int = 1, *other_topics: NewTopic) -> CreateTopicsRequested:
    return CreateTopicsRequested((NewTopic("late", assignments=ON_5), *other_topics), timeout_ms, token=token)


def responses(driver: Driver) -> dict[int, dict[str, ErrorCode]]:
    return {token: response.codes for token, response in driver.replies.items()}


def test_response_describes_topic_as_created() -> None:
    """The id and size are those of the creation: another topic may have the name when the response is due."""
    driver = make_driver()
    driver.handle(creation(TIMEOUT_MS))
    driver.handle(CreatePartitionsRequested((NewPartitions("late", 3, ((1,), (1,))),), TIMEOUT_MS, token=2))
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
    driver.handle(creation(TIMEOUT_MS, 1, NewTopic("soon", 1, 1), NewTopic("t")))
    pass_time(driver, TIMEOUT_MS - 1)
    assert responses(driver) == {}
    pass_time(driver, 1)
    assert responses(driver) == {1: {"late": TIMED_OUT, "soon": NONE, "t": ErrorCode.TOPIC_ALREADY_EXISTS}}
    assert "late" in driver.store.perform(ReadTopicNames())


def test_delayed_requests_have_separate_timeouts() -> None:
    """wire 9: several requests wait at the same time."""
    driver = make_driver()
    driver.handle(creation(TIMEOUT_MS, 1))
    driver.handle(CreatePartitionsRequested((NewPartitions("stuck", 2),), TIMEOUT_MS // 2, token=2))
    pass_time(driver, TIMEOUT_MS // 2)
    assert responses(driver) == {2: {"stuck": TIMED_OUT}}
    driver.register_brokers(5)
    driver.follow()
    assert responses(driver) == {2: {"stuck": TIMED_OUT}, 1: {"late": NONE}}


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize("kind", range(3), ids=KINDS)
def test_timeout_zero_reports_request_timed_out(kind: int, timeout_ms: int) -> None:
    """wire 9, 10 and 11: timeoutMs <= 0 returns error 7 for valid topics, complete or not. The change is made."""
    driver = make_driver()
    event, topic = requests(timeout_ms)[kind]
    assert driver.ask(event).codes == {topic: TIMED_OUT}
    assert not driver.performed(SetTimer)
    assert topic in driver.store.perform(ReadTopicNames())


@pytest.mark.parametrize("kind", range(2), ids=KINDS[:2])
def test_validate_only_completes_immediately(kind: int) -> None:
    """wire 9: validateOnly gets a response at once."""
    event, topic = requests(TIMEOUT_MS, validate_only=True)[kind]
    assert make_driver().ask(event).codes == {topic: NONE}


def test_refused_request_completes_immediately() -> None:
    """wire 9: a request without any accepted topic."""
    codes = make_driver().ask(CreateTopicsRequested((NewTopic("t"),), TIMEOUT_MS, token=1)).codes
    assert codes == {"t": ErrorCode.TOPIC_ALREADY_EXISTS}


@pytest.mark.parametrize("cause", ["session", "resignation", "abandoned"])
def test_resignation_answers_delayed_requests_with_not_controller(cause: str) -> None:
    """controller 1: pending requests at resignation get NOT_CONTROLLER."""
    driver = make_driver()
    driver.handle(creation(TIMEOUT_MS, 1))
    driver.handle(CreateTopicsRequested((NewTopic("too", assignments=ON_5),), TIMEOUT_MS, token=2))
    if cause == "session":
        driver.handle(SessionExpired())
    elif cause == "resignation":
        driver.handle(ResignRequested())
    else:
        driver._settle(driver.controller.abandon("a test"))
    assert {token: set(codes.values()) for token, codes in responses(driver).items()} == {
        1: {NOT_CONTROLLER},
        2: {NOT_CONTROLLER},
    }
    pass_time(driver, 2 * TIMEOUT_MS)
    assert len(driver.replies) == 2
