"""What if these topics were deleted? Their replicas are stopped, the brokers confirm, and the topics are removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from kframe.core.operations.topic_requests import TopicsResponse
from kframe.errors import ErrorCode, ParameterError
from kframe.model.events import DeleteTopicsRequested, StopReplicaResponseReceived
from kframe.model.ids import ReplicaState
from kframe.model.lists import distinct_values
from kframe.whatif.create import response_of, with_reasons
from kframe.whatif.outcome import ControllerResponse, Operation, Outcome, StepReport, Verb
from kframe.whatif.refusals import deletion_reason
from kframe.whatif.timeline import MergedTimeline
from kframe.whatif.topic_results import TopicResult, TopicStatus
from kframe.whatif.zookeeper import REQUEST_TIMEOUT_MS, ZookeeperWhatIf


def requested_topics(names: Iterable[str]) -> tuple[str, ...]:
    """The topics to delete. Raises InputError for an empty list, or a repeated topic."""
    topics = tuple(names)
    if not topics:
        raise ParameterError("topics", "no topic", "at least one")
    for position, name in enumerate(topics):
        if name in topics[:position]:
            raise ParameterError("topics", f"topic {name} twice", "each topic once")
    return topics


def play_deletion(whatif: ZookeeperWhatIf, names: Iterable[str]) -> Outcome:
    """Delete topics in ZooKeeper mode. Every registered broker confirms; topics with a replica on an unregistered
    broker wait for it."""
    topics = requested_topics(names)
    deletion = _Deletion(whatif, topics)
    outcome = whatif.play(Operation(Verb.DELETE, topics=topics), [
        ("the replicas are stopped", deletion.begin),
        ("the brokers confirm", deletion.confirm),
    ])  # fmt: skip
    return replace(outcome, topics=tuple(deletion.results()))


class _Deletion:
    """A deletion that is being played."""

    def __init__(self, whatif: ZookeeperWhatIf, names: tuple[str, ...]) -> None:
        self._whatif = whatif
        self._names = names
        self._codes: dict[str, ErrorCode] = {}
        self._reasons: dict[str, str] = {}
        self._sizes = {name: self._size(name) for name in names}

    def begin(self) -> ControllerResponse:
        """The request."""
        response: TopicsResponse = self._whatif.call(
            lambda token: DeleteTopicsRequested(self._names, REQUEST_TIMEOUT_MS, token)
        )
        cluster = self._whatif.cluster
        reasons = [deletion_reason(cluster, name, code) for name, code in response.codes.items()]
        response = with_reasons(response, *reasons)
        self._codes, self._reasons = dict(response.codes), response.messages
        return response_of(response)

    def confirm(self) -> StepReport:
        """Let each broker confirm the deletion of its replicas."""
        whatif, timeline = self._whatif, MergedTimeline()
        cluster = whatif.cluster
        p = cluster.partitions
        rows = np.flatnonzero(np.append(cluster.topics.deleting, 0)[p.topic]).astype(np.int32)
        slots, owner = p.slots_of(rows), np.repeat(rows, p.replica_count[rows])
        started = p.replica_state[slots] == ReplicaState.DELETION_STARTED
        broker, owner = p.replica[slots][started], owner[started]
        brokers = distinct_values(broker).tolist()
        for done, index in enumerate(brokers, 1):
            rows = owner[broker == index]
            whatif.notify(
                StopReplicaResponseReceived(
                    int(cluster.brokers.ids[index]), ErrorCode.NONE, (), whatif.controller_epoch, rows
                ),
                timeline,
            )  # fmt: skip
            whatif.step_progress(done, len(brokers))
        return StepReport(events=timeline.events())

    def results(self) -> Iterator[TopicResult]:
        """The result of each topic."""
        topics = self._whatif.cluster.topics
        for name in self._names:
            error, (partitions, replicas) = self._codes[name], self._sizes[name]
            if name not in topics and error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                yield TopicResult(name, TopicStatus.COMPLETED, error, partitions, replicas)
            elif error in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
                yield TopicResult(name, TopicStatus.WAITING, error, partitions, replicas, self._pending_brokers(name))
            else:
                yield TopicResult(name, TopicStatus.REFUSED, error, 0, 0, reason=self._reasons.get(name))

    def _size(self, name: str) -> tuple[int, int]:
        cluster = self._whatif.cluster
        index = cluster.topics.find(name)
        if index is None:
            return 0, 0
        rows = cluster.topics.rows_of(index)
        return len(rows), int(cluster.partitions.replica_count[rows].sum())

    def _pending_brokers(self, name: str) -> tuple[int, ...]:
        """Brokers (ids) with a replica of a topic. They have not confirmed its deletion."""
        cluster = self._whatif.cluster
        index = cluster.topics.find(name)
        if index is None:
            return ()
        p = cluster.partitions
        slots = p.slots_of(cluster.topics.rows_of(index))
        pending = p.replica_state[slots] != ReplicaState.DELETION_SUCCESSFUL
        return tuple(sorted(cluster.brokers.ids_of(distinct_values(p.replica[slots][pending]))))
