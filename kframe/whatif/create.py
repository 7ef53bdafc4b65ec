"""What if this topic, or partitions of it, were created? Replicas as Kafka places them, or as given."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kframe.core.operations.topic_requests import TopicsResponse
from kframe.errors import ErrorCode, ParameterError
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.columns import Int32
from kframe.model.events import CreatePartitionsRequested, CreateTopicsRequested, Event
from kframe.model.lists import distinct_values
from kframe.snapshot import Snapshot
from kframe.snapshot.controllers import node_text
from kframe.whatif.modes import Assignments
from kframe.whatif.outcome import ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.refusals import creation_reason, growth_reason
from kframe.whatif.topic_results import TopicResult, TopicStatus
from kframe.whatif.zookeeper import REQUEST_TIMEOUT_MS, ZookeeperWhatIf


def play_creation(
    whatif: ZookeeperWhatIf, name: str, partitions: int, replication_factor: int, assignments: Assignments, seed: int
) -> Outcome:
    """Create a topic in ZooKeeper mode; ``seed`` draws the two numbers that Kafka draws to place replicas."""
    check_brokers(whatif.snapshot, whatif.cluster.brokers.ids, assignments)
    lists = None if assignments is None else tuple((number, tuple(ids)) for number, ids in enumerate(assignments))
    topic = NewTopic(name, partitions, replication_factor, lists)
    count = topic.counts(whatif.config)[0] if lists is None else len(lists)
    start, shift = _placement_numbers(seed, len(whatif.registered))
    return _play(
        whatif, Operation(Verb.CREATE, partitions=count, topics=(name,)), "the topic is created",
        lambda token: CreateTopicsRequested((topic,), REQUEST_TIMEOUT_MS, start_index=start, shift=shift, token=token),
        lambda error: creation_reason(whatif.cluster, whatif.config, topic, error),
    )  # fmt: skip


def play_expansion(whatif: ZookeeperWhatIf, name: str, count: int, assignments: Assignments, _seed: int) -> Outcome:
    """Add partitions to a topic in ZooKeeper mode; nothing depends on a seed."""
    check_brokers(whatif.snapshot, whatif.cluster.brokers.ids, assignments)
    topic = NewPartitions(name, count, None if assignments is None else tuple(map(tuple, assignments)))
    return _play(
        whatif, Operation(Verb.CREATE_PARTITIONS, partitions=count, topics=(name,)), "the partitions are created",
        lambda token: CreatePartitionsRequested((topic,), REQUEST_TIMEOUT_MS, token=token),
        lambda error: growth_reason(whatif.cluster, topic, error),
    )  # fmt: skip


def check_brokers(snapshot: Snapshot, known: Int32, assignments: Assignments) -> None:
    """Raise InputError for a replica on a broker (id) that is not ``known``, or on an instance of kframe."""
    for number, replicas in enumerate(assignments or ()):
        for broker_id in replicas:
            if broker_id not in known or broker_id in snapshot.controllers:
                actual = node_text(snapshot, broker_id)
                raise ParameterError("assignments", actual, "brokers that the snapshot knows", f"[{number}]")


def _play(
    whatif: ZookeeperWhatIf, operation: Operation, step: str, request: Callable[[int], Event],
    reason_of: Callable[[ErrorCode], str | None],
) -> Outcome:  # fmt: skip
    """Play a request for a topic, which gets new partitions. ``reason_of`` an error is why the topic is refused."""
    (name,) = operation.topics
    results: list[TopicResult] = []

    def act() -> ControllerResponse:
        topics = whatif.cluster.topics
        index = topics.find(name)
        first = 0 if index is None else len(topics.rows_of(index))
        response: TopicsResponse = whatif.call(request)
        response = with_reasons(response, reason_of(response.codes[name]))
        result = _topic_result(whatif, name, response.codes[name], first)
        results.append(replace(result, reason=response.messages.get(name)))
        return response_of(response)

    outcome = whatif.play(operation, [(step, act)])
    return replace(outcome, topics=tuple(results))


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


def _placement_numbers(seed: int, brokers: int) -> tuple[int, int]:
    """Start index and shift, both below the number of brokers."""
    generator = random.Random(seed)
    limit = max(brokers, 1)
    return generator.randrange(limit), generator.randrange(limit)


def _topic_result(whatif: ZookeeperWhatIf, name: str, error: ErrorCode, first: int) -> TopicResult:
    """The result for the partitions from number ``first``.

    They exist once they are stored. The request times out if any partition of the topic has no leader.
    """
    cluster = whatif.cluster
    index = cluster.topics.find(name)
    if index is None or error not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
        return TopicResult(name, TopicStatus.REFUSED, error, 0, 0)
    p, rows = cluster.partitions, cluster.topics.rows_of(index)
    down = distinct_values(p.replica[p.slots_of(rows[p.leader[rows] < 0])])
    status = TopicStatus.WAITING if len(down) else TopicStatus.COMPLETED
    waiting_for = tuple(sorted(cluster.brokers.ids_of(down)))
    rows = rows[p.partition[rows] >= first]
    return TopicResult(name, status, error, len(rows), int(p.replica_count[rows].sum()), waiting_for)
