"""Topic deletion (Kafka 3.9 ``TopicDeletionManager``; ``spec/controller.md`` section 10).

A topic is *queued* until all of its replicas have confirmed their deletion, *started* once its partitions are
NonExistent, and *halted* while something keeps it from going on: a dead broker, a failed replica, a reassignment.
The three stand as columns of the topics.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import NAMES_LOGGED
from kframe.core.state_machines import partition_state_machine, replica_state_machine
from kframe.core.state_machines.replica_state_machine import Replicas
from kframe.core.topics.stored_reassignments import forget_stored
from kframe.errors import ErrorCode
from kframe.model.asks import DeleteTopics, DropDeletions, ReadDeletions, ReadTopicNames
from kframe.model.columns import Int32
from kframe.model.config import STRICT_MOVES
from kframe.model.events import StopReplicaAnswered
from kframe.model.ids import PartitionState, ReplicaState
from kframe.model.log_entries import Message, TopicNames
from kframe.model.requests import Occasion

_DELETION = Occasion.DELETION
#: Why a deletion is halted while its topic moves.
REASSIGNING = "topic reassignment in progress"


def enabled(context: Context) -> bool:
    """Whether topics can be deleted at all (``delete.topic.enable``)."""
    return bool(context.config["delete.topic.enable"])


def initialise(context: Context) -> Operation[None]:
    """At failover: queue what is marked; topics with an offline replica or, unless asked, a running reassignment are
    halted.

    A mark without a topic is the end of a deletion that a controller did not live to see: its settings go, then the
    mark (Kafka 3.9 completes such a topic, having no replica to wait for). A topic that cannot be read stays marked.
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
        moving = bool(context.cluster.partitions.reassigning[rows].any()) and not context.config[STRICT_MOVES]
        topics.deletion_halted[index] = moving or bool(offline.any())
        context.gauges.touch_topics([index])
    _report_marked(context, tuple(sorted(marked)))
    gone = yield from _gone(context, marked)
    if gone:  # what is left of those that are not there any more
        yield from ask(DeleteTopics(gone))


def _report_marked(context: Context, marked: tuple[str, ...]) -> None:
    """Report the deletions that were found (Kafka 3.9 ``fetchTopicDeletionsInProgress``). Kafka calls any topic with an
    offline replica ineligible; here those alone are named that are to be deleted."""
    topics = context.cluster.topics
    known = [(name, topics.find(name)) for name in marked]
    halted = tuple(name for name, index in known if index is not None and topics.deletion_halted[index])
    context.log.add(Message.TOPICS_TO_DELETE, topics=marked)
    context.log.add(Message.TOPICS_INELIGIBLE, topics=halted)


def _gone(context: Context, marked: frozenset[str]) -> Operation[tuple[str, ...]]:
    """Which of the marked topics are not there. Those that are there and not known cannot be read: it is remembered
    that they are to be deleted."""
    unknown = frozenset(name for name in marked if name not in context.cluster.topics)
    there = (yield from ask(ReadTopicNames())) if unknown else unknown
    context.term.unreadable_deletions |= unknown & there
    return tuple(sorted(unknown - there))


def deletions_marked(context: Context) -> Operation[None]:
    """Topics were marked for deletion: take away marks of topics that do not exist, queue the others and begin."""
    topics = context.cluster.topics
    marked = yield from ask(ReadDeletions())
    unknown = yield from _gone(context, marked)
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
    indexes = np.array([topics.find(name) for name in known], np.int32)
    _halt_reassigning(context, indexes)
    topics.deleting[indexes] = 1
    context.gauges.touch_topics(indexes)
    yield from resume(context)


def resume_topics(context: Context, indexes: Iterable[int]) -> Operation[None]:
    """What halted these topics has passed: let those that are queued go on."""
    topics = context.cluster.topics
    queued = [index for index in indexes if topics.deleting[index]]
    if queued and enabled(context):
        topics.deletion_halted[queued] = 0
        context.gauges.touch_topics(queued)
        yield from resume(context)


def halt(context: Context, indexes: Iterable[int], reason: str) -> None:
    """Keep those of these topics that are queued from being deleted."""
    topics = context.cluster.topics
    queued = [index for index in indexes if topics.deleting[index]]
    if queued:
        topics.deletion_halted[queued] = 1
        context.gauges.touch_topics(queued)
        names = tuple(topics.names[index] for index in queued)
        context.log.add(Message.DELETION_HALTED, topics=names, reason=reason)


def fail_replicas(context: Context, replicas: Replicas) -> Operation[None]:
    """Replicas could not be deleted: their topics wait until something changes."""
    kept = _of_queued(context, replicas)
    if len(kept):
        yield from replica_state_machine.transition(context, kept, ReplicaState.DELETION_INELIGIBLE, _DELETION)
        halt(context, _topics_of(context, kept), "replica deletion failure")
        yield from resume(context)


def replicas_stopped(context: Context, answer: StopReplicaAnswered) -> Operation[None]:
    """A broker answered the deletion of replicas: mark what failed, complete what was confirmed.

    One that says that it has registered anew since is passed over: that is an event of its own, upon which the deletion
    begins again, or has begun already. Kafka halts the topic, and nothing lets it go on.
    """
    cluster = context.cluster
    if answer.controller_epoch != context.controller_epoch or answer.error is ErrorCode.STALE_BROKER_EPOCH:
        return
    broker = cluster.brokers.find(answer.broker_id)
    started = cluster.topics.deletion_started[cluster.partitions.topic[answer.rows]] != 0
    rows = answer.rows[(cluster.partitions.topic[answer.rows] >= 0) & started]
    if broker is None or len(rows) == 0:
        return
    replicas = replica_state_machine.replicas_of_broker(context, broker, rows)
    failed = np.isin(replicas.rows, _rows_in_error(context, answer))
    if answer.error is not ErrorCode.NONE:
        failed[:] = True
    yield from fail_replicas(context, replicas.where(failed))
    done = replicas.where(~failed)
    if len(done):
        yield from replica_state_machine.transition(
            context, _of_queued(context, done), ReplicaState.DELETION_SUCCESSFUL, _DELETION
        )
        yield from resume(context)


def resume(context: Context) -> Operation[None]:
    """Look at every queued topic: complete it, retry what failed, or begin (``resumeDeletions``)."""
    topics, p = context.cluster.topics, context.cluster.partitions
    queued = np.flatnonzero(topics.deleting).astype(np.int32)
    if len(queued) == 0:
        return
    context.log.add(Message.DELETIONS_HANDLED, topics=_names(context, queued))
    having = context.gauges.deleting_replicas.of(queued)
    done = having[:, ReplicaState.DELETION_SUCCESSFUL] == having.sum(axis=1)
    idle = ~done & (having[:, ReplicaState.DELETION_STARTED] == 0)
    retry = queued[idle & (having[:, ReplicaState.DELETION_INELIGIBLE] > 0)]
    begin = queued[idle & (topics.deletion_halted[queued] == 0)]
    if done.any():
        yield from _complete(context, queued[done])
    if len(retry):
        replicas = replica_state_machine.replicas_of(context, _rows(context, retry))
        failed = p.replica_state[replicas.slots(p)] == ReplicaState.DELETION_INELIGIBLE
        yield from replica_state_machine.transition(context, replicas.where(failed), ReplicaState.OFFLINE, _DELETION)
    if len(begin):
        yield from _begin(context, begin)


def _begin(context: Context, indexes: Int32) -> Operation[None]:
    """(Re)start deletions: stop all replicas that can be reached, then delete them (``onTopicDeletion``)."""
    cluster = context.cluster
    topics, p = cluster.topics, cluster.partitions
    context.log.add(Message.DELETION_RESTARTED, each_topic=_names(context, indexes))
    fresh = indexes[topics.deletion_started[indexes] == 0]
    if len(fresh):
        rows = _rows(context, fresh)
        yield from partition_state_machine.transition(context, rows, PartitionState.OFFLINE)
        yield from partition_state_machine.transition(context, rows, PartitionState.NON_EXISTENT)
        topics.deletion_started[fresh] = 1
        context.gauges.touch_topics(fresh)
    everyone = context.registered()
    yield from context.announce(everyone, _rows(context, indexes), _DELETION)
    replicas = replica_state_machine.replicas_of(context, _rows(context, indexes))
    # Replicas of a move that was stored and could not begin, since its partition never had a leader, go like others.
    unborn = replicas.where(p.replica_state[replicas.slots(p)] == ReplicaState.NON_EXISTENT)
    replica_state_machine.set_new(context, unborn)
    online = replica_state_machine.are_online(context, replicas)
    dead = replicas.where(~online)
    alive = replicas.where(online & (p.replica_state[replicas.slots(p)] != ReplicaState.DELETION_SUCCESSFUL))
    yield from replica_state_machine.transition(context, dead, ReplicaState.DELETION_INELIGIBLE, _DELETION)
    yield from replica_state_machine.transition(context, alive, ReplicaState.OFFLINE, _DELETION)
    yield from replica_state_machine.transition(context, alive, ReplicaState.DELETION_STARTED, _DELETION)
    halt(context, _topics_of(context, dead), "offline replicas")


def _complete(context: Context, indexes: Int32) -> Operation[None]:
    """All replicas of these topics are gone: forget the topics, in storage first."""
    names = tuple(context.cluster.topics.names[index] for index in indexes.tolist())
    p, rows = context.cluster.partitions, _rows(context, indexes)
    replicas = replica_state_machine.replicas_of(context, rows)
    yield from replica_state_machine.transition(context, replicas, ReplicaState.NON_EXISTENT, _DELETION)
    moving = rows[p.reassigning[rows] != 0]
    if len(moving):  # else what is left of their moves would bar the way to every other, up to the next failover
        yield from forget_stored(context, moving, only_if_reached=False)
    yield from ask(DeleteTopics(names))
    context.log.add(Message.DELETION_COMPLETED, each_topic=_names(context, indexes))
    context.forget_topics(indexes.tolist())


def _halt_reassigning(context: Context, indexes: Int32) -> None:
    """Kafka asks this before the topics are queued, so that it halts only those that were queued before. Once asked,
    no deletion waits for a move."""
    if context.config[STRICT_MOVES]:
        return
    p, rows = context.cluster.partitions, _rows(context, indexes)
    busy = np.isin(indexes, p.topic[rows[p.reassigning[rows] != 0]])
    halt(context, indexes[busy].tolist(), REASSIGNING)


def _names(context: Context, indexes: Int32) -> TopicNames:
    names = context.cluster.topics.names
    return TopicNames(tuple(names[index] for index in indexes[:NAMES_LOGGED].tolist()), len(indexes))


def _rows(context: Context, indexes: Int32) -> Int32:
    """Rows of these topics, ascending."""
    return np.sort(context.cluster.topics.rows_of_all(indexes))


def _of_queued(context: Context, replicas: Replicas) -> Replicas:
    cluster = context.cluster
    return replicas.where(cluster.doomed(replicas.rows))


def _topics_of(context: Context, replicas: Replicas) -> list[int]:
    found: list[int] = np.unique(context.cluster.partitions.topic[replicas.rows]).tolist()
    return found


def _rows_in_error(context: Context, answer: StopReplicaAnswered) -> list[int]:
    rows = (context.cluster.row(*partition) for partition, _ in answer.partition_errors)
    return [row for row in rows if row is not None]
