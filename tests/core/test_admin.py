"""Admin requests from event to response: each request receives exactly one response."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kframe.core.operations.config_changes import ConfigsResponse
from kframe.core.operations.dispatch import OPERATIONS, REFUSALS
from kframe.core.operations.topic_requests import TopicsResponse
from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model import events
from kframe.model.admin import ConfigChange, FeatureUpdate, NewPartitions, NewTopic
from kframe.model.arrays import Ragged
from kframe.model.effects import Reply
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    Event,
    SessionExpired,
)
from kframe.model.tables import RequestedPartitions, Targets
from kframe.ports import store_requests
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, quiet

NONE, NOT_CONTROLLER = ErrorCode.NONE, ErrorCode.NOT_CONTROLLER
WAITING = {event for event in OPERATIONS if "token" in event.__struct_fields__}
NOTHING = np.empty(0, np.int32)

#: A request of every kind, for a token. Requests for topics have two.
REQUESTS: dict[type[Event], Callable[[int], Event]] = {
    events.ControlledShutdownRequested: lambda token: events.ControlledShutdownRequested(1, -1, token),
    events.ElectionRequested: lambda token: events.ElectionRequested(events.ElectionType.PREFERRED, (("t", 0),), token),
    events.AlterPartitionRequested: lambda token: events.AlterPartitionRequested(
        1, 0, 3, RequestedPartitions.of([]), NOTHING, NOTHING, NOTHING.astype(np.uint8), Ragged.of([]), token
    ),
    events.CreateTopicsRequested: lambda token: CreateTopicsRequested(
        (NewTopic("new", 1, 1), NewTopic("newer", 1, 1)), 9, token=token
    ),
    events.CreatePartitionsRequested: lambda token: CreatePartitionsRequested(
        (NewPartitions("t", 9), NewPartitions("nowhere", 9)), 9, token=token
    ),
    events.DeleteTopicsRequested: lambda token: DeleteTopicsRequested(("t", "new-less"), 9, token),
    events.ReassignmentRequested: lambda token: events.ReassignmentRequested(Targets.of([(("t", 0), (2,))]), token),
    events.ListReassignmentsRequested: lambda token: events.ListReassignmentsRequested(None, token),
    events.ProducerIdsRequested: lambda token: events.ProducerIdsRequested(1, 0, token),
    events.AlterConfigsRequested: lambda token: events.AlterConfigsRequested(
        (ConfigChange("t", ()), ConfigChange(None, ())), token=token
    ),
    events.UpdateFeaturesRequested: lambda token: events.UpdateFeaturesRequested(
        (FeatureUpdate("metadata.version", 1),), token
    ),
    events.InspectionRequested: events.InspectionRequested,
}


def make_driver() -> Driver:
    return quiet({"t": [healthy(1, 2), healthy(2, 1)], "new-less": [PartitionSpec((9,))]}, (1, 2, 3))


def test_every_request_event_has_operation_and_refusal() -> None:
    """controller 1: requests with a token get a response, active or not."""
    assert set(REFUSALS) == set(REQUESTS) == WAITING


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_active_controller_completes_each_request_once(kind: type[Event]) -> None:
    """controller 2: each request gets one response."""
    driver = make_driver()
    driver.handle(REQUESTS[kind](5))
    driver.clock.advance(1)
    driver.follow()
    assert set(driver.replies) == {5}
    assert type(driver.replies[5]) is type(REFUSALS[kind](REQUESTS[kind](5)))


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("cause", ["inactive", "preempted"])
def test_inactive_controller_refuses_request(kind: type[Event], cause: str) -> None:
    """controller 1: preempt responses. Wire: 41 (ControlledShutdown: 11).
    controller 1: NOT_CONTROLLER at the top.
    controller 13.1: not active 41.
    controller 15: 41.
    elections 4: event preempted.
    """
    driver = make_driver()
    if cause == "inactive":
        driver.handle(SessionExpired())
        driver.handle(REQUESTS[kind](5))
    else:
        (reply,) = driver.controller.preempt(REQUESTS[kind](5))
        assert isinstance(reply, Reply)
        driver.replies[reply.token] = reply.response
        assert driver.controller.active
    response = driver.replies[5]
    expected = NOT_CONTROLLER
    if kind is events.ControlledShutdownRequested:
        expected = ErrorCode.STALE_CONTROLLER_EPOCH
    if isinstance(response, TopicsResponse | ConfigsResponse):
        assert list(response.codes.values()) == [expected] * 2
    elif kind is events.InspectionRequested:
        assert response is False
    else:
        assert response.error is expected
        assert [len(getattr(response, column, ())) for column in ("codes", "rows")] == [0, 0]


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_request_without_token_gets_no_reply(kind: type[Event]) -> None:
    """controller 2: an event without token has no response."""
    driver = make_driver()
    driver.handle(REQUESTS[kind](events.NO_TOKEN))
    assert driver.replies == {}
    driver.handle(SessionExpired())
    driver.handle(REQUESTS[kind](events.NO_TOKEN))
    assert driver.replies == {}


# -- creation


@pytest.mark.parametrize(
    "start, shift, expected", [(0, 0, [(1, 2), (2, 3)]), (1, 0, [(2, 3), (3, 1)]), (0, 1, [(1, 3), (2, 1)])]
)
def test_automatic_assignment_uses_start_index_and_shift(
    start: int, shift: int, expected: list[tuple[int, ...]]
) -> None:
    """wire 9: start and shift are random numbers in the event."""
    driver = make_driver()
    request = CreateTopicsRequested((NewTopic("new", 2, 2),), 1_000, False, start, shift, 1)
    assert driver.ask(request).codes == {"new": NONE}
    assert [driver.stored(f"new-{number}").replicas for number in (0, 1)] == expected


def test_manual_assignments_are_ordered_by_partition() -> None:
    """wire 9: assignments by index, in any order."""
    driver = make_driver()
    new = NewTopic("new", assignments=((1, (3, 1)), (0, (2, 3))))
    assert driver.ask(CreateTopicsRequested((new,), 1_000, token=1)).codes == {"new": NONE}
    assert [driver.stored(f"new-{number}").replicas for number in (0, 1)] == [(2, 3), (3, 1)]


def test_created_topics_are_online_before_response() -> None:
    """wire 9: the controller stores settings first, then the topic. Then every partition has a leader."""
    driver = make_driver()
    new = NewTopic("new", 3, 2, config={"unclean.leader.election.enable": "true", "min.insync.replicas": "2"})
    driver.handle(CreateTopicsRequested((new,), 1_000, token=1))
    names = [type(effect).__name__ for effect in driver.effects]
    assert names.index("CreateTopics") < names.index("WriteStates") < names.index("Send") < names.index("Reply")
    topics = driver.cluster.topics
    index = topics.find("new")
    assert (int(topics.unclean[index]), int(topics.min_insync[index])) == (1, 2)
    driver.follow()
    assert len(driver.requests(Api.LEADER_AND_ISR)) == 3, "the watch finds nothing new"


def test_topics_of_request_are_created_in_one_write() -> None:
    """wire 9: each request makes one store call."""
    driver = make_driver()
    topics = tuple(NewTopic(name, 2, 1) for name in ("a", "b", "c"))
    driver.ask(CreateTopicsRequested(topics, 1_000, token=1))
    assert len([effect for effect in driver.effects if isinstance(effect, store_requests.CreateTopics)]) == 1
    assert len(driver.batches) == 1
