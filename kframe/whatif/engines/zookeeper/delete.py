"""What if these topics were deleted? Their replicas are stopped, the brokers confirm, and the topics are removed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kframe.core.operations.topic_requests import TopicsResponse
from kframe.errors import ErrorCode
from kframe.model.events import DeleteTopicsRequested, StopReplicaResponseReceived
from kframe.model.ids import ReplicaState
from kframe.model.lists import distinct_values
from kframe.whatif.engines.script import Script
from kframe.whatif.engines.zookeeper.controller import REQUEST_TIMEOUT_MS, ZookeeperController
from kframe.whatif.engines.zookeeper.create import response_of, with_reasons
from kframe.whatif.engines.zookeeper.refusals import deletion_reason
from kframe.whatif.results.outcome import ControllerResponse, Operation, StepReport, Verb
from kframe.whatif.results.timeline import MergedTimeline
from kframe.whatif.results.topic_results import TopicResult, TopicStatus


class ZookeeperDeletion(Script):
    """A deletion in ZooKeeper mode. Every registered broker confirms; topics with a replica on an unregistered broker
    wait for it."""

    def __init__(self, controller: ZookeeperController, names: tuple[str, ...]) -> None:
        super().__init__(
            Operation(Verb.DELETE, topics=names),
            [
                ("the replicas are stopped", self._begin),
                ("the brokers confirm", self._confirm),
            ],
        )
        self._controller = controller
        self._names = names
        self._response = TopicsResponse({})
        self._sizes = {name: self._size(name) for name in names}

    def _begin(self) -> ControllerResponse:
        """The request."""
        response: TopicsResponse = self._controller.call(
            lambda token: DeleteTopicsRequested(self._names, REQUEST_TIMEOUT_MS, token)
        )
        cluster = self._controller.cluster
        reasons = [deletion_reason(cluster, name, code) for name, code in response.codes.items()]
        self._response = with_reasons(response, *reasons)
        return response_of(self._response)

    def _confirm(self) -> StepReport:
        """Let each broker confirm the deletion of its replicas."""
        controller, timeline = self._controller, MergedTimeline()
        cluster = controller.cluster
        p = cluster.partitions
        rows = np.flatnonzero(np.append(cluster.topics.deleting, 0)[p.topic]).astype(np.int32)
        slots, owner = p.slots_of(rows), np.repeat(rows, p.replica_count[rows])
        started = p.replica_states(slots) == ReplicaState.DELETION_STARTED
        broker, owner = p.replica[slots][started], owner[started]
        brokers = distinct_values(broker).tolist()
        for done, index in enumerate(brokers, 1):
            rows = owner[broker == index]
            controller.notify(
                StopReplicaResponseReceived(
                    int(cluster.brokers.ids[index]), ErrorCode.NONE, (), controller.controller_epoch, rows
                ),
                timeline,
            )
            self.progress(done, len(brokers))
        self.topics += self._results()
        return StepReport(events=timeline.events())

    def _results(self) -> Iterator[TopicResult]:
        """The result of each topic."""
        topics = self._controller.cluster.topics
        for name in self._names:
            error, (partitions, replicas) = self._response.codes[name], self._sizes[name]
            if name not in topics and error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                yield TopicResult(name, TopicStatus.COMPLETED, error, partitions, replicas)
            elif error in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
                yield TopicResult(name, TopicStatus.WAITING, error, partitions, replicas, self._pending_brokers(name))
            else:
                yield TopicResult(name, TopicStatus.REFUSED, error, 0, 0, reason=self._response.messages.get(name))

    def _size(self, name: str) -> tuple[int, int]:
        cluster = self._controller.cluster
        index = cluster.topics.find(name)
        if index is None:
            return 0, 0
        rows = cluster.topics.rows_of(index)
        return len(rows), int(cluster.partitions.replica_count[rows].sum())

    def _pending_brokers(self, name: str) -> tuple[int, ...]:
        """Brokers (ids) with a replica of a topic. They have not confirmed its deletion."""
        cluster = self._controller.cluster
        index = cluster.topics.find(name)
        if index is None:
            return ()
        p = cluster.partitions
        slots = p.slots_of(cluster.topics.rows_of(index))
        pending = p.replica_states(slots) != ReplicaState.DELETION_SUCCESSFUL
        return tuple(sorted(cluster.brokers.ids_of(distinct_values(p.replica[slots][pending]))))
