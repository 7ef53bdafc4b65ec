"""Topics that are created or deleted in a KRaft cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from uuid import NAMESPACE_OID, UUID, uuid5

import numpy as np

from kframe.core.kraft import admin_requests
from kframe.core.kraft.decision import RequestRefused
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.topics import DEFAULT, CreatableTopic, CreatableTopicResult
from kframe.errors import ErrorCode, InputError
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.whatif.delete import requested_topics
from kframe.whatif.kraft.player import KraftPlayer
from kframe.whatif.outcome import ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.topic_results import TopicResult, TopicStatus


def play_creation(
    study: KraftPlayer, name: str, partitions: int, replication_factor: int,
    assignments: Sequence[Sequence[int]] | None, seed: int,
) -> Outcome:  # fmt: skip
    """Create a topic; ``seed`` seeds Java's random numbers, from which Kafka's placer draws."""
    context = study.context
    for number, replicas in enumerate(assignments or ()):
        for broker_id in replicas:
            if context.metadata.brokers.find(broker_id) is None:
                raise InputError(f"assignments[{number}]", f"broker {broker_id}", "brokers that the snapshot knows")
    lists = tuple((number, tuple(replicas)) for number, replicas in enumerate(assignments or ()))
    topic = CreatableTopic(name, partitions, replication_factor, lists)
    count = context.settings.num_partitions if partitions == DEFAULT else partitions
    results: list[TopicResult] = []

    def act() -> ControllerResponse:
        context.random = JavaRandom(seed)
        try:
            result = study.decide(lambda: admin_requests.create_topics(context, [topic], _new_id(study)))
        except RequestRefused as refusal:
            results.append(TopicResult(name, TopicStatus.REFUSED, refusal.error, 0, 0))
            return study.refused(refusal)
        (created,) = result.response
        if created.error is ErrorCode.NONE:
            results.append(TopicResult(name, TopicStatus.COMPLETED, created.error, *_size(context.metadata, name)))
        else:
            results.append(TopicResult(name, TopicStatus.REFUSED, created.error, 0, 0))
        return _answer([created])

    operation = Operation(Verb.CREATE, partitions=len(lists) or count, topics=(name,))
    outcome = study.play(operation, [("the topic is created", act)])
    return replace(outcome, topics=tuple(results))


def play_deletion(study: KraftPlayer, names: Iterable[str]) -> Outcome:
    """Delete topics. Raises InputError for an empty list, or a repeated topic."""
    topics = requested_topics(names)
    metadata = study.context.metadata
    results: list[TopicResult] = []

    def act() -> ControllerResponse:
        sizes = {name: _size(metadata, name) for name in topics}
        response = study.decide(lambda: admin_requests.delete_topics(study.context, topics)).response
        answers = {result.topic: result for result in response}
        for name in topics:
            deleted = answers[name].error is ErrorCode.NONE
            status = TopicStatus.COMPLETED if deleted else TopicStatus.REFUSED
            results.append(TopicResult(name, status, answers[name].error, *(sizes[name] if deleted else (0, 0))))
        return _answer([answers[name] for name in topics])

    outcome = study.play(Operation(Verb.DELETE, topics=topics), [("the topics are deleted", act)])
    return replace(outcome, topics=tuple(results))


def _new_id(study: KraftPlayer) -> Callable[[str], UUID]:
    """The id of a topic by its name: equal what-ifs draw equal ids."""
    return lambda name: uuid5(NAMESPACE_OID, f"{study.snapshot.source.name}/{name}/{len(study.cluster.topics)}")


def _size(metadata: ClusterMetadata, name: str) -> tuple[int, int]:
    """Partitions and replicas of a topic; (0, 0) of an unknown one."""
    index = metadata.topics.index_by_name.get(name)
    rows = np.empty(0, np.int32) if index is None else metadata.topics.rows_of(index)
    return len(rows), int(metadata.partitions.replica_count[rows].sum())


def _answer(results: Sequence[CreatableTopicResult]) -> ControllerResponse:
    codes = np.array([result.error for result in results], np.int16)
    wrong = tuple(
        result.topic if result.message is None else f"{result.topic} ({result.message})"
        for result in results
        if result.error is not ErrorCode.NONE
    )
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), codes, wrong, "topics")
