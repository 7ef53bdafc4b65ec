"""Topics that are created or deleted in a KRaft cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from kframe.whatif.engines.kraft.controller import WhatIfController
from kframe.whatif.engines.kraft.responses import refused, topics_response
from kframe.whatif.engines.script import Assignments, Script
from kframe.whatif.results.outcome import ControllerResponse, Operation, Verb
from kframe.whatif.results.topic_results import TopicResult, TopicStatus


class KraftCreation(Script):
    """The creation of a topic in a KRaft cluster, or of partitions of a topic."""

    def __init__(
        self,
        controller: WhatIfController,
        operation: Operation,
        step: str,
        seed: int,
        request: Callable[[], ControllerResult[Any]],
    ) -> None:
        """``seed`` seeds Java's random numbers, from which Kafka's placer draws."""
        super().__init__(operation, [(step, self._create)])
        self._controller = controller
        self._seed = seed
        self._request = request

    def _create(self) -> ControllerResponse:
        (name,) = self.operation.topics
        metadata = self._controller.context.metadata
        partitions, replicas = _size(metadata, name)
        self._controller.context.random = JavaRandom(self._seed)
        try:
            (result,) = self._controller.decide(self._request)
        except RequestRefused as refusal:
            self.topics.append(TopicResult(name, TopicStatus.REFUSED, refusal.error, 0, 0, reason=refusal.message))
            return refused(refusal)
        partitions_after, replicas_after = _size(metadata, name)
        self.topics.append(_topic_result(name, result, (partitions_after - partitions, replicas_after - replicas)))
        return topics_response([result])


def topic_creation(
    controller: WhatIfController,
    name: str,
    partitions: int,
    replication_factor: int,
    assignments: Assignments,
    seed: int,
) -> Script:
    """A new topic."""
    context = controller.context
    lists = tuple((number, tuple(replicas)) for number, replicas in enumerate(assignments or ()))
    topic = CreatableTopic(name, partitions, replication_factor, lists)
    count = len(lists) or (context.settings.num_partitions if partitions == DEFAULT else partitions)
    return KraftCreation(
        controller,
        Operation(Verb.CREATE, partitions=count, topics=(name,)),
        "the topic is created",
        seed,
        lambda: controller_apis.create_topics(context, [topic], _new_id(controller)),
    )


def partitions_creation(
    controller: WhatIfController, name: str, count: int, assignments: Assignments, seed: int
) -> Script:
    """New partitions of a topic."""
    topic = CreatePartitionsTopic(name, count, None if assignments is None else tuple(map(tuple, assignments)))
    script = KraftCreation(
        controller,
        Operation(Verb.CREATE_PARTITIONS, partitions=count, topics=(name,)),
        "the partitions are created",
        seed,
        lambda: controller_apis.create_partitions(controller.context, [topic]),
    )
    script.notes = tuple(_factor_notes(controller, name))
    return script


class KraftDeletion(Script):
    """The deletion of topics in a KRaft cluster.

    The controller removes the metadata at once; brokers delete the logs later.
    """

    def __init__(self, controller: WhatIfController, names: tuple[str, ...]) -> None:
        super().__init__(Operation(Verb.DELETE, topics=names), [("the topics are deleted", self._delete)])
        self._controller = controller

    def _delete(self) -> ControllerResponse:
        context, names = self._controller.context, self.operation.topics
        sizes = {name: _size(context.metadata, name) for name in names}
        response = self._controller.decide(lambda: controller_apis.delete_topics(context, names))
        results = {result.topic: result for result in response}
        self.topics += [_topic_result(name, results[name], sizes[name]) for name in names]
        return topics_response([results[name] for name in names])


def _topic_result(name: str, result: CreatableTopicResult, size: tuple[int, int]) -> TopicResult:
    """The result of a topic with so many partitions and replicas; a refused one has none."""
    if result.error is ErrorCode.NONE:
        return TopicResult(name, TopicStatus.COMPLETED, result.error, *size, reason=result.message)
    return TopicResult(name, TopicStatus.REFUSED, result.error, 0, 0, reason=result.message)


def _factor_notes(controller: WhatIfController, name: str) -> Iterator[str]:
    """Which replication factor the new partitions get if those of the topic differ."""
    metadata = controller.context.metadata
    topic = metadata.topics.index_by_name.get(name)
    if topic is None:
        return
    stored = np.unique(metadata.partitions.replica_count[metadata.topics.rows_of(topic)])
    if len(stored) > 1:
        factor, *others = possible_factors(controller.context, topic, knows_epochs=controller.known.epochs[1])
        text = f"the partitions of {name} have replication factors {', '.join(map(str, stored.tolist()))}: new ones"
        text += f" get {factor}, that of the first partition in Kafka's hash table"
        if others:
            text += f"; {others[0]} if its order differs, which depends on the changes since the controller started"
        yield text


def _new_id(controller: WhatIfController) -> Callable[[str], UUID]:
    """The id of a topic by its name: equal what-ifs draw equal ids."""
    return lambda name: uuid5(
        NAMESPACE_OID, f"{controller.snapshot.source.name}/{name}/{len(controller.cluster.topics)}"
    )


def _size(metadata: ClusterMetadata, name: str) -> tuple[int, int]:
    """Partitions and replicas of a topic; (0, 0) of an unknown one."""
    index = metadata.topics.index_by_name.get(name)
    rows = np.empty(0, np.int32) if index is None else metadata.topics.rows_of(index)
    return len(rows), int(metadata.partitions.replica_count[rows].sum())
