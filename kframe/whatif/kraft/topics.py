"""Topics that are created or deleted in a KRaft cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import numpy as np

from kframe.core.kraft import controller_apis
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.topics.topic_requests import (
    DEFAULT,
    CreatableTopic,
    CreatableTopicResult,
    CreatePartitionsTopic,
    possible_factors,
)
from kframe.errors import ErrorCode
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.whatif.create import check_brokers
from kframe.whatif.delete import requested_topics
from kframe.whatif.kraft.whatif import KraftWhatIf
from kframe.whatif.modes import Assignments
from kframe.whatif.outcome import ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.topic_results import TopicResult, TopicStatus


def play_creation(
    whatif: KraftWhatIf, name: str, partitions: int, replication_factor: int,
    assignments: Assignments, seed: int,
) -> Outcome:  # fmt: skip
    """Create a topic; ``seed`` seeds Java's random numbers, from which Kafka's placer draws."""
    context = whatif.context
    check_brokers(whatif.snapshot, context.metadata.brokers.ids, assignments)
    lists = tuple((number, tuple(replicas)) for number, replicas in enumerate(assignments or ()))
    topic = CreatableTopic(name, partitions, replication_factor, lists)
    count = context.settings.num_partitions if partitions == DEFAULT else partitions
    return _play(
        whatif, Operation(Verb.CREATE, partitions=len(lists) or count, topics=(name,)), "the topic is created", seed,
        lambda: controller_apis.create_topics(context, [topic], _new_id(whatif)),
    )  # fmt: skip


def play_expansion(whatif: KraftWhatIf, name: str, count: int, assignments: Assignments, seed: int) -> Outcome:
    """Add partitions to a topic; ``seed`` as for a new topic."""
    check_brokers(whatif.snapshot, whatif.context.metadata.brokers.ids, assignments)
    topic = CreatePartitionsTopic(name, count, None if assignments is None else tuple(map(tuple, assignments)))
    notes = tuple(_factor_notes(whatif, name))
    outcome = _play(
        whatif, Operation(Verb.CREATE_PARTITIONS, partitions=count, topics=(name,)), "the partitions are created", seed,
        lambda: controller_apis.create_partitions(whatif.context, [topic]),
    )  # fmt: skip
    return replace(outcome, notes=(*outcome.notes, *notes))


def _factor_notes(whatif: KraftWhatIf, name: str) -> Iterator[str]:
    """Which replication factor the new partitions get if those of the topic differ."""
    metadata = whatif.context.metadata
    topic = metadata.topics.index_by_name.get(name)
    if topic is None:
        return
    stored = np.unique(metadata.partitions.replica_count[metadata.topics.rows_of(topic)])
    if len(stored) > 1:
        factor, *others = possible_factors(whatif.context, topic, knows_epochs=whatif.knows_partition_epochs)
        text = f"the partitions of {name} have replication factors {', '.join(map(str, stored.tolist()))}: new ones"
        text += f" get {factor}, that of the first partition in Kafka's hash table"
        if others:
            text += f"; {others[0]} if its order differs, which depends on the changes since the controller started"
        yield text


def _play(
    whatif: KraftWhatIf, operation: Operation, step: str, seed: int, request: Callable[[], ControllerResult[Any]]
) -> Outcome:
    """Play a request for a topic, which gets new partitions."""
    (name,) = operation.topics
    results: list[TopicResult] = []

    def act() -> ControllerResponse:
        metadata = whatif.context.metadata
        partitions, replicas = _size(metadata, name)
        whatif.context.random = JavaRandom(seed)
        try:
            (result,) = whatif.decide(request).response
        except RequestRefused as refusal:
            results.append(TopicResult(name, TopicStatus.REFUSED, refusal.error, 0, 0, reason=refusal.message))
            return whatif.refused(refusal)
        status = TopicStatus.COMPLETED if result.error is ErrorCode.NONE else TopicStatus.REFUSED
        partitions_after, replicas_after = _size(metadata, name)
        growth = partitions_after - partitions, replicas_after - replicas
        results.append(TopicResult(name, status, result.error, *growth, reason=result.message))
        return _response([result])

    outcome = whatif.play(operation, [(step, act)])
    return replace(outcome, topics=tuple(results))


def play_deletion(whatif: KraftWhatIf, names: Iterable[str]) -> Outcome:
    """Delete topics. Raises InputError for an empty list, or a repeated topic.

    The controller removes the metadata at once; brokers delete the logs later.
    """
    topics = requested_topics(names)
    metadata = whatif.context.metadata
    results: list[TopicResult] = []

    def act() -> ControllerResponse:
        sizes = {name: _size(metadata, name) for name in topics}
        response = whatif.decide(lambda: controller_apis.delete_topics(whatif.context, topics)).response
        results_by_topic = {result.topic: result for result in response}
        for name in topics:
            deleted = results_by_topic[name].error is ErrorCode.NONE
            status = TopicStatus.COMPLETED if deleted else TopicStatus.REFUSED
            result = results_by_topic[name]
            size = sizes[name] if deleted else (0, 0)
            results.append(TopicResult(name, status, result.error, *size, reason=result.message))
        return _response([results_by_topic[name] for name in topics])

    outcome = whatif.play(Operation(Verb.DELETE, topics=topics), [("the topics are deleted", act)])
    return replace(outcome, topics=tuple(results))


def _new_id(whatif: KraftWhatIf) -> Callable[[str], UUID]:
    """The id of a topic by its name: equal what-ifs draw equal ids."""
    return lambda name: uuid5(NAMESPACE_OID, f"{whatif.snapshot.source.name}/{name}/{len(whatif.cluster.topics)}")


def _size(metadata: ClusterMetadata, name: str) -> tuple[int, int]:
    """Partitions and replicas of a topic; (0, 0) of an unknown one."""
    index = metadata.topics.index_by_name.get(name)
    rows = np.empty(0, np.int32) if index is None else metadata.topics.rows_of(index)
    return len(rows), int(metadata.partitions.replica_count[rows].sum())


def _response(results: Sequence[CreatableTopicResult]) -> ControllerResponse:
    codes = np.array([result.error for result in results], np.int16)
    wrong = tuple(
        result.topic if result.message is None else f"{result.topic} ({result.message})"
        for result in results
        if result.error is not ErrorCode.NONE
    )
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), codes, wrong, "topics")
