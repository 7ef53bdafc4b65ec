"""What if this topic, or partitions of it, were created in ZooKeeper mode?"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kframe.core.operations.topic_requests import TopicsResponse
from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.cluster import ClusterState
from kframe.model.events import CreatePartitionsRequested, CreateTopicsRequested, Event
from kframe.model.lists import distinct_values
from kframe.whatif.engines.script import Assignments, Script
from kframe.whatif.engines.zookeeper.controller import REQUEST_TIMEOUT_MS, ZookeeperController
from kframe.whatif.engines.zookeeper.refusals import creation_reason, growth_reason
from kframe.whatif.results.outcome import ControllerResponse, Operation, Verb
from kframe.whatif.results.topic_results import TopicResult, TopicStatus


class ZookeeperCreation(Script):
    """The creation of a topic in ZooKeeper mode, or of partitions of a topic."""

    def __init__(
        self,
        controller: ZookeeperController,
        operation: Operation,
        step: str,
        event: Callable[[int], Event],
        reason_of: Callable[[ErrorCode], str | None],
    ) -> None:
        """``event`` of a token is the request. ``reason_of`` an error is why the topic is refused."""
        super().__init__(operation, [(step, self._request)])
        self._controller = controller
        self._event = event
        self._reason_of = reason_of

    def _request(self) -> ControllerResponse:
        (name,) = self.operation.topics
        topics = self._controller.cluster.topics
        index = topics.find(name)
        first = 0 if index is None else len(topics.rows_of(index))
        response: TopicsResponse = self._controller.call(self._event)
        response = with_reasons(response, self._reason_of(response.codes[name]))
        result = _topic_result(self._controller.cluster, name, response.codes[name], first)
        self.topics.append(replace(result, reason=response.messages.get(name)))
        return response_of(response)


def topic_creation(
    controller: ZookeeperController,
    name: str,
    partitions: int,
    replication_factor: int,
    assignments: Assignments,
    seed: int,
) -> Script:
    """A new topic. The seed draws the two numbers that Kafka draws to place replicas."""
    lists = None if assignments is None else tuple((number, tuple(ids)) for number, ids in enumerate(assignments))
    topic = NewTopic(name, partitions, replication_factor, lists)
    count = topic.counts(controller.config)[0] if lists is None else len(lists)
    generator, limit = random.Random(seed), max(len(controller.registered), 1)
    start, shift = generator.randrange(limit), generator.randrange(limit)
    return ZookeeperCreation(
        controller,
        Operation(Verb.CREATE, partitions=count, topics=(name,)),
        "the topic is created",
        lambda token: CreateTopicsRequested((topic,), REQUEST_TIMEOUT_MS, start_index=start, shift=shift, token=token),
        lambda error: creation_reason(controller.cluster, controller.config, topic, error),
    )


def partitions_creation(controller: ZookeeperController, name: str, count: int, assignments: Assignments) -> Script:
    """New partitions of a topic."""
    topic = NewPartitions(name, count, None if assignments is None else tuple(map(tuple, assignments)))
    return ZookeeperCreation(
        controller,
        Operation(Verb.CREATE_PARTITIONS, partitions=count, topics=(name,)),
        "the partitions are created",
        lambda token: CreatePartitionsRequested((topic,), REQUEST_TIMEOUT_MS, token=token),
        lambda error: growth_reason(controller.cluster, topic, error),
    )


def with_reasons(response: TopicsResponse, *reasons: str | None) -> TopicsResponse:
    """The response with a reason for each refused topic that has no message of Kafka."""
    named = {name: reason for name, reason in zip(response.codes, reasons, strict=True) if reason is not None}
    return replace(response, messages=named | response.messages)


def response_of(response: TopicsResponse) -> ControllerResponse:
    """The response about topics. Those with an error are named."""
    codes = np.array(list(response.codes.values()), np.int16)
    messages = response.messages
    refused = tuple(
        f"{name} ({messages[name]})" if name in messages else name
        for name, code in response.codes.items()
        if code is not ErrorCode.NONE
    )
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), codes, refused, "topics")


def _topic_result(cluster: ClusterState, name: str, error: ErrorCode, first: int) -> TopicResult:
    """The result for the partitions from number ``first``.

    They exist once they are stored. The request times out if any partition of the topic has no leader.
    """
    index = cluster.topics.find(name)
    if index is None or error not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
        return TopicResult(name, TopicStatus.REFUSED, error, 0, 0)
    p, rows = cluster.partitions, cluster.topics.rows_of(index)
    down = distinct_values(p.replica[p.slots_of(rows[p.leader[rows] < 0])])
    status = TopicStatus.WAITING if len(down) else TopicStatus.COMPLETED
    waiting_for = tuple(sorted(cluster.brokers.ids_of(down)))
    rows = rows[p.partition[rows] >= first]
    return TopicResult(name, status, error, len(rows), int(p.replica_count[rows].sum()), waiting_for)
