"""Topics that are created or deleted in a KRaft cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from kframe.whatif.engines.kraft.controller import KraftController
from kframe.whatif.engines.kraft.responses import refused
from kframe.whatif.engines.requests import PartitionsCreation, TopicCreation
from kframe.whatif.engines.script import Script
from kframe.whatif.results.outcome import ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.results.topic_results import TopicResult, TopicStatus


class KraftCreation(Script):
    """The creation of a topic in a KRaft cluster, or of partitions of a topic."""

    def __init__(
        self,
        controller: KraftController,
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
        self._notes: tuple[str, ...] = ()
        self._results: list[TopicResult] = []

    @staticmethod
    def of_topic(controller: KraftController, request: TopicCreation) -> KraftCreation:
        """A new topic."""
        context, partitions = controller.context, request.partitions
        lists = tuple((number, tuple(replicas)) for number, replicas in enumerate(request.assignments or ()))
        topic = CreatableTopic(request.name, partitions, request.replication_factor, lists)
        count = len(lists) or (context.settings.num_partitions if partitions == DEFAULT else partitions)
        return KraftCreation(
            controller,
            Operation(Verb.CREATE, partitions=count, topics=(request.name,)),
            "the topic is created",
            request.seed,
            lambda: controller_apis.create_topics(context, [topic], _new_id(controller)),
        )

    @staticmethod
    def of_partitions(controller: KraftController, request: PartitionsCreation) -> KraftCreation:
        """New partitions of a topic."""
        name, assignments = request.name, request.assignments
        topic = CreatePartitionsTopic(
            name, request.count, None if assignments is None else tuple(map(tuple, assignments))
        )
        script = KraftCreation(
            controller,
            Operation(Verb.CREATE_PARTITIONS, partitions=request.count, topics=(name,)),
            "the partitions are created",
            request.seed,
            lambda: controller_apis.create_partitions(controller.context, [topic]),
        )
        script._notes = tuple(_factor_notes(controller, name))
        return script

    def _create(self) -> ControllerResponse:
        (name,) = self.operation.topics
        metadata = self._controller.context.metadata
        partitions, replicas = _size(metadata, name)
        self._controller.context.random = JavaRandom(self._seed)
        try:
            (result,) = self._controller.decide(self._request).response
        except RequestRefused as refusal:
            self._results.append(TopicResult(name, TopicStatus.REFUSED, refusal.error, 0, 0, reason=refusal.message))
            return refused(refusal)
        status = TopicStatus.COMPLETED if result.error is ErrorCode.NONE else TopicStatus.REFUSED
        partitions_after, replicas_after = _size(metadata, name)
        growth = partitions_after - partitions, replicas_after - replicas
        self._results.append(TopicResult(name, status, result.error, *growth, reason=result.message))
        return _response([result])

    def complete(self, outcome: Outcome) -> Outcome:
        """See ``Script``."""
        return replace(outcome, topics=tuple(self._results), notes=(*outcome.notes, *self._notes))


class KraftDeletion(Script):
    """The deletion of topics in a KRaft cluster.

    The controller removes the metadata at once; brokers delete the logs later.
    """

    def __init__(self, controller: KraftController, names: tuple[str, ...]) -> None:
        super().__init__(Operation(Verb.DELETE, topics=names), [("the topics are deleted", self._delete)])
        self._controller = controller
        self._names = names
        self._results: list[TopicResult] = []

    def _delete(self) -> ControllerResponse:
        context = self._controller.context
        sizes = {name: _size(context.metadata, name) for name in self._names}
        response = self._controller.decide(lambda: controller_apis.delete_topics(context, self._names)).response
        results_by_topic = {result.topic: result for result in response}
        for name in self._names:
            result = results_by_topic[name]
            deleted = result.error is ErrorCode.NONE
            status = TopicStatus.COMPLETED if deleted else TopicStatus.REFUSED
            size = sizes[name] if deleted else (0, 0)
            self._results.append(TopicResult(name, status, result.error, *size, reason=result.message))
        return _response([results_by_topic[name] for name in self._names])

    def complete(self, outcome: Outcome) -> Outcome:
        """See ``Script``."""
        return replace(outcome, topics=tuple(self._results))


def _factor_notes(controller: KraftController, name: str) -> Iterator[str]:
    """Which replication factor the new partitions get if those of the topic differ."""
    metadata = controller.context.metadata
    topic = metadata.topics.index_by_name.get(name)
    if topic is None:
        return
    stored = np.unique(metadata.partitions.replica_count[metadata.topics.rows_of(topic)])
    if len(stored) > 1:
        factor, *others = possible_factors(controller.context, topic, knows_epochs=controller.knows_partition_epochs)
        text = f"the partitions of {name} have replication factors {', '.join(map(str, stored.tolist()))}: new ones"
        text += f" get {factor}, that of the first partition in Kafka's hash table"
        if others:
            text += f"; {others[0]} if its order differs, which depends on the changes since the controller started"
        yield text


def _new_id(controller: KraftController) -> Callable[[str], UUID]:
    """The id of a topic by its name: equal what-ifs draw equal ids."""
    return lambda name: uuid5(
        NAMESPACE_OID, f"{controller.snapshot.source.name}/{name}/{len(controller.cluster.topics)}"
    )


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
