"""Topic deletion (Kafka 3.9 ``TopicDeletionManager``).

A topic is *queued* until all of its replicas have confirmed their deletion. It is *started* once its partitions are
NonExistent. It is *halted* while a dead broker, a failed replica or a reassignment blocks it. All three are columns.
"""

from __future__ import annotations

import numpy as np

from kframe import kernels
from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import NAMES_LOGGED
from kframe.core.state_machines import partition_state_machine, replica_state_machine
from kframe.core.state_machines.replica_state_machine import PartitionReplicas
from kframe.core.topics.stored_reassignments import forget_stored
from kframe.errors import ErrorCode
from kframe.model.arrays import Int32
from kframe.model.config import STRICT_REASSIGNMENT
from kframe.model.events import StopReplicaResponseReceived
from kframe.model.ids import PartitionState, ReplicaState
from kframe.model.lists import distinct_values
from kframe.model.log_entries import Message, TopicNames
from kframe.ports.store_requests import DeleteTopics, DropDeletions, ReadDeletions, ReadTopicNames

#: Kafka's reason for halting a deletion during a reassignment.
REASSIGNING = "topic reassignment in progress"


def enabled(context: Context) -> bool:
    """Whether topics can be deleted (``delete.topic.enable``)."""
    return bool(context.config["delete.topic.enable"])


def initialise(context: Context) -> Operation[None]:
    """At failover: queue marked topics, and halt those with an offline replica.

    Without ``STRICT_REASSIGNMENT`` a running reassignment halts them, too. A mark without a topic is a deletion that
    another controller did not complete: its settings are deleted, then the mark, as Kafka 3.9 does. Unreadable topics
    stay marked.
    """
    topics = context.cluster.topics
    marked = yield from ask(ReadDeletions())
    if not enabled(context):
        context.log.add(Message.DELETIONS_DISABLED, topics=tuple(sorted(marked)))
        yield from ask(DropDeletions(tuple(sorted(marked))))
        return
    for name in sorted(marked):
        index = topics.find(name)
        if index is None:
            continue
        topics.deleting[index] = 1
        rows = topics.rows_of(index)
        offline = ~replica_state_machine.are_online(context, replica_state_machine.replicas_of(context, rows))
        reassigning = (
            bool(context.cluster.partitions.reassigning(rows).any()) and not context.config[STRICT_REASSIGNMENT]
        )
        topics.deletion_halted[index] = reassigning or bool(offline.any())
        context.gauges.touch_topics([index])
    _report_marked(context, tuple(sorted(marked)))
    deleted = yield from _nonexistent(context, marked)
    if deleted:
        yield from ask(DeleteTopics(deleted))


def _report_marked(context: Context, marked: tuple[str, ...]) -> None:
    """Log the marked topics (Kafka 3.9 ``fetchTopicDeletionsInProgress``).

    Kafka logs every topic with an offline replica as ineligible; this controller logs only marked ones.
    """
    topics = context.cluster.topics
    known = [(name, topics.find(name)) for name in marked]
    halted = tuple(name for name, index in known if index is not None and topics.deletion_halted[index])
    context.log.add(Message.TOPICS_TO_DELETE, topics=marked)
    context.log.add(Message.TOPICS_INELIGIBLE, topics=halted)


def _nonexistent(context: Context, marked: frozenset[str]) -> Operation[tuple[str, ...]]:
    """The marked topics that do not exist. Marked topics that exist and are unknown are recorded as unreadable."""
    unknown = frozenset(name for name in marked if name not in context.cluster.topics)
    existing = (yield from ask(ReadTopicNames())) if unknown else unknown
    context.term.unreadable_deletions |= unknown & existing
    return tuple(sorted(unknown - existing))


def deletions_marked(context: Context) -> Operation[None]:
    """Topics were marked for deletion: remove marks of topics that do not exist, queue and start the others."""
    topics = context.cluster.topics
    marked = yield from ask(ReadDeletions())
    unknown = yield from _nonexistent(context, marked)
    if unknown:
        context.log.add(Message.DELETIONS_IGNORED, topics=unknown)
        yield from ask(DropDeletions(unknown))
    known = sorted(name for name in marked if name in topics)
    if not known:
        return
    if not enabled(context):
        context.log.add(Message.DELETIONS_DISABLED, topics=tuple(known))
        yield from ask(DropDeletions(tuple(known)))
        return
    context.log.add(Message.DELETIONS_STARTING, topics=tuple(known))
    indexes = topics.find_all(known)
    _halt_reassigning(context, indexes)
    topics.deleting[indexes] = 1
    context.gauges.touch_topics(indexes)
    yield from resume(context)


def resume_topics(context: Context, indexes: Int32) -> Operation[None]:
    """These topics are not blocked any more: resume the deletion of the queued ones."""
    topics = context.cluster.topics
    queued = indexes[topics.deleting[indexes] != 0]
    if len(queued) and enabled(context):
        topics.deletion_halted[queued] = 0
        context.gauges.touch_topics(queued)
        yield from resume(context)


def halt(context: Context, indexes: Int32, reason: str) -> None:
    """Halt the deletion of those of these topics that are queued."""
    topics = context.cluster.topics
    queued = indexes[topics.deleting[indexes] != 0]
    if len(queued):
        topics.deletion_halted[queued] = 1
        context.gauges.touch_topics(queued)
        names = tuple(topics.names[index] for index in queued.tolist())
        context.log.add(Message.DELETION_HALTED, topics=names, reason=reason)


def fail_replicas(context: Context, replicas: PartitionReplicas) -> Operation[None]:
    """Replicas could not be deleted: halt their topics."""
    queued = _of_queued(context, replicas)
    if len(queued):
        yield from replica_state_machine.transition(context, queued, ReplicaState.DELETION_INELIGIBLE)
        halt(context, _topics_of(context, queued), "replica deletion failure")
        yield from resume(context)


def stop_replica_response_received(context: Context, response: StopReplicaResponseReceived) -> Operation[None]:
    """A broker responded to the deletion of replicas: fail or complete them.

    Responses of an earlier registration are ignored, and so is STALE_BROKER_EPOCH: the new registration of the broker
    restarts the deletion. Kafka halts the topic, and no event resumes it.
    """
    cluster = context.cluster
    if not context.is_current(response) or response.error is ErrorCode.STALE_BROKER_EPOCH:
        return
    broker = cluster.brokers.find(response.broker_id)
    started = np.empty(len(response.rows), np.uint8)
    started_count = kernels.mark_rows_of_topics(
        response.rows, cluster.partitions.topic, cluster.topics.deletion_started, started
    )
    rows = response.rows if started_count == len(response.rows) else response.rows[started != 0]
    if broker is None or len(rows) == 0:
        return
    if response.error is not ErrorCode.NONE or response.partition_errors:
        failed = np.isin(rows, _rows_in_error(context, response)) | (response.error is not ErrorCode.NONE)
        yield from fail_replicas(context, replica_state_machine.replicas_of_broker(context, broker, rows[failed]))
        rows = rows[~failed]
    if replica_state_machine.transition_on(context, broker, rows, ReplicaState.DELETION_SUCCESSFUL):
        yield from resume(context)


def resume(context: Context) -> Operation[None]:
    """Complete, retry or start the deletion of every queued topic (Kafka 3.9 ``resumeDeletions``)."""
    topics = context.cluster.topics
    queued = np.flatnonzero(topics.deleting).astype(np.int32)
    if len(queued) == 0:
        return
    context.log.add(Message.DELETIONS_HANDLED, topics=_names(context, queued))
    counts = context.gauges.deleting_replicas.counts()
    is_queued = topics.deleting != 0
    is_done = counts.by_state[ReplicaState.DELETION_SUCCESSFUL] == counts.sizes
    is_idle = is_queued & ~is_done & (counts.by_state[ReplicaState.DELETION_STARTED] == 0)
    done = np.flatnonzero(is_queued & is_done).astype(np.int32)
    retry = np.flatnonzero(is_idle & (counts.by_state[ReplicaState.DELETION_INELIGIBLE] > 0)).astype(np.int32)
    begin = np.flatnonzero(is_idle & (topics.deletion_halted == 0)).astype(np.int32)
    if len(done):
        yield from _complete(context, done)
    if len(retry):
        failed = replica_state_machine.replicas_of(context, _rows(context, retry))
        failed = replica_state_machine.in_states(context, failed, [ReplicaState.DELETION_INELIGIBLE])
        yield from replica_state_machine.transition(context, failed, ReplicaState.OFFLINE)
    if len(begin):
        yield from _begin(context, begin)


def _begin(context: Context, indexes: Int32) -> Operation[None]:
    """Start or restart deletions. Stop all online replicas, then delete them (Kafka 3.9 ``onTopicDeletion``)."""
    topics = context.cluster.topics
    context.log.add(Message.DELETION_RESTARTED, each_topic=_names(context, indexes))
    new, rows = indexes[topics.deletion_started[indexes] == 0], _rows(context, indexes)
    if len(new):
        new_rows = rows if len(new) == len(indexes) else _rows(context, new)
        yield from partition_state_machine.transition(context, new_rows, PartitionState.OFFLINE)
        yield from partition_state_machine.transition(context, new_rows, PartitionState.NON_EXISTENT)
        topics.deletion_started[new] = 1
        context.gauges.touch_topics(new)
    yield from context.announce(context.registered(), rows)
    replicas = replica_state_machine.replicas_of(context, rows)
    # Added replicas of a reassignment that never began, because the partition had no leader, are deleted, too.
    nonexistent = replica_state_machine.in_states(context, replicas, [ReplicaState.NON_EXISTENT])
    replica_state_machine.set_new(context, nonexistent)
    online = replica_state_machine.are_online(context, replicas)
    dead = replicas.where(~online)
    not_deleted = set(ReplicaState) - {ReplicaState.DELETION_SUCCESSFUL}
    reachable = replica_state_machine.in_states(context, replicas.where(online), not_deleted)
    yield from replica_state_machine.transition(context, dead, ReplicaState.DELETION_INELIGIBLE)
    yield from replica_state_machine.transition(context, reachable, ReplicaState.OFFLINE)
    yield from replica_state_machine.transition(context, reachable, ReplicaState.DELETION_STARTED)
    halt(context, _topics_of(context, dead), "offline replicas")


def _complete(context: Context, indexes: Int32) -> Operation[None]:
    """All replicas of these topics are deleted. Delete the topics in storage, then forget them and their replicas."""
    names = tuple(context.cluster.topics.names[index] for index in indexes.tolist())
    p, rows = context.cluster.partitions, _rows(context, indexes)
    reassigning = rows[p.reassigning(rows)]
    if len(reassigning):  # a stored reassignment would block all others until the next failover
        yield from forget_stored(context, reassigning, only_if_reached=False)
    yield from ask(DeleteTopics(names))
    context.log.add(Message.DELETION_COMPLETED, each_topic=_names(context, indexes))
    context.forget_topics(indexes.tolist())


def _halt_reassigning(context: Context, indexes: Int32) -> None:
    """Halt topics that are being reassigned, unless ``STRICT_REASSIGNMENT``.

    Kafka checks before it queues the topics, so only topics that were queued before are halted.
    """
    if context.config[STRICT_REASSIGNMENT]:
        return
    p, rows = context.cluster.partitions, _rows(context, indexes)
    reassigning = np.isin(indexes, p.topic[rows[p.reassigning(rows)]])
    halt(context, indexes[reassigning], REASSIGNING)


def _names(context: Context, indexes: Int32) -> TopicNames:
    names = context.cluster.topics.names
    return TopicNames(tuple(names[index] for index in indexes[:NAMES_LOGGED].tolist()), len(indexes))


def _rows(context: Context, indexes: Int32) -> Int32:
    """Rows of these topics, ascending."""
    rows = context.cluster.topics.rows_of_all(indexes)
    return rows if bool((rows[1:] > rows[:-1]).all()) else np.sort(rows)


def _of_queued(context: Context, replicas: PartitionReplicas) -> PartitionReplicas:
    cluster = context.cluster
    return replicas.where(cluster.is_deleting(replicas.rows))


def _topics_of(context: Context, replicas: PartitionReplicas) -> Int32:
    return distinct_values(context.cluster.partitions.topic[replicas.rows])


def _rows_in_error(context: Context, response: StopReplicaResponseReceived) -> list[int]:
    rows = (context.cluster.row(*partition) for partition, _ in response.partition_errors)
    return [row for row in rows if row is not None]
