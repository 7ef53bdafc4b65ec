"""Topics in storage: their ids, settings and assignments, and the creation of partitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kframe.core.context import ATTEMPTS_MAX, Context, Operation, ask
from kframe.core.event_log import NAMES_LOGGED, names_of, sample_of
from kframe.core.state_machines import leader_election, partition_state_machine, replica_state_machine
from kframe.core.topics import unknown_brokers
from kframe.core.topics.replica_assignment import Assignments, table_of, table_with
from kframe.model.arrays import Int32
from kframe.model.changes import WriteCode
from kframe.model.ids import PartitionState, ReplicaFlag, ReplicaState
from kframe.model.lists import distinct_rows, without_values
from kframe.model.log_entries import Message
from kframe.model.tables import TopicTable
from kframe.model.topics import ZERO_TOPIC_ID
from kframe.ports.store_requests import AssignTopicIds, ReadTopics, ReadTopicSettings, WriteAssignments

_NONE = np.empty(0, np.int32)


def assign_topic_ids(context: Context, topics: Int32) -> Operation[None]:
    """Store an id for each of ``topics`` without one, if the inter-broker protocol has topic ids."""
    columns = context.cluster.topics
    without_id = topics[~columns.ids[topics].any(axis=1)]
    if len(without_id) and context.config.protocol.topic_ids:
        topic_ids = yield from ask(AssignTopicIds(tuple(columns.names[topic] for topic in without_id)))
        for topic, topic_id in zip(without_id, topic_ids, strict=True):
            columns.set_id(int(topic), topic_id)


def read_settings(context: Context, names: tuple[str, ...]) -> Operation[None]:
    """Read the settings of these topics that the controller uses."""
    topics = context.cluster.topics
    settings = yield from ask(ReadTopicSettings(names))
    for name, topic_settings in zip(names, settings, strict=True):
        index = topics.find(name)
        if index is not None:
            topics.unclean[index], topics.min_insync[index] = topic_settings.unclean, topic_settings.min_insync


def mark_reassigning(context: Context, rows: Int32) -> None:
    """Mark the rows whose assignment shows a reassignment in progress."""
    p = context.cluster.partitions
    reassigning = np.uint8(ReplicaFlag.ADDING | ReplicaFlag.REMOVING)
    if not (p.replica_status & reassigning).any():
        return  # the usual case, known after one pass over bytes
    slots, counts = p.slots_of(rows), p.replica_count[rows]
    p.set_reassigning(np.repeat(rows, counts)[p.are_flagged(slots, reassigning)], True)


def replace_unknown_brokers(context: Context, rows: Int32) -> Operation[None]:
    """Remove unknown brokers from the assignments of ``rows``, which have no state yet, and store them."""
    changed = unknown_brokers.replace_in_memory(context, rows)
    if len(changed):
        yield from store(context, changed)


def create_partitions(context: Context, rows: Int32) -> Operation[None]:
    """Bring new partitions and their replicas online (Kafka 3.9 ``onNewPartitionCreation``)."""
    if len(rows):
        context.log.add(Message.PARTITIONS_CREATED, partitions=names_of(context.cluster, rows))
    replicas = replica_state_machine.replicas_of(context, rows)
    yield from partition_state_machine.transition(context, rows, PartitionState.NEW)
    yield from replica_state_machine.transition(context, replicas, ReplicaState.NEW)
    yield from partition_state_machine.transition(context, rows, PartitionState.ONLINE, leader_election.OFFLINE)
    yield from replica_state_machine.transition(context, replicas, ReplicaState.ONLINE)


def store(context: Context, rows: Int32, assignments: Assignments | None = None) -> Operation[Int32]:
    """Store the assignments of the topics of ``rows``. Return the rows whose topic storage refuses.

    ``assignments`` replace the present assignments of ``rows`` in storage, not in memory. Without it the assignments in
    memory are stored, and a refused topic is stored once its record becomes readable. A topic that a broker has
    written meanwhile is read first, so that added partitions are not lost.
    """
    cluster = context.cluster
    refused, remaining = _NONE, distinct_rows(cluster.partitions.topic[rows], len(cluster.topics))
    for _ in range(ATTEMPTS_MAX):
        if len(remaining) == 0:
            break
        table = (
            table_of(cluster, remaining) if assignments is None else table_with(cluster, remaining, rows, assignments)
        )
        codes = np.fromiter((yield from ask(WriteAssignments(table))), np.uint8, len(remaining))
        lost = remaining[(codes != WriteCode.OK) & (codes != WriteCode.STALE)]
        remaining = remaining[codes == WriteCode.STALE]
        unread = []
        for index in remaining.tolist():
            readable = yield from topic_modified(context, cluster.topics.names[index])
            unread += [] if readable else [index]
        refused = np.concatenate([refused, lost, np.array(unread, np.int32)])
        remaining = without_values(remaining, unread).astype(np.int32)
    refused = np.concatenate([refused, remaining])
    if assignments is None:
        context.term.unsaved_topics.update(cluster.topics.names[index] for index in refused.tolist())
    failed = rows[np.isin(cluster.partitions.topic[rows], refused)] if len(refused) else rows[:0]
    context.log_refused("Assignment of", failed, "is not stored: its topic is deleted or unreadable")
    return failed


def topic_modified(context: Context, name: str) -> Operation[bool]:
    """A known topic's record was written: create added partitions; return whether it is readable.

    A topic queued for deletion does not grow: its previous assignment is written back. An assignment that could not
    be stored while the record was unreadable is stored now.
    """
    cluster = context.cluster
    table = yield from ask(ReadTopics((name,)))
    topic = cluster.topics.find(name)
    if topic is None or len(table) == 0:
        return False
    yield from _restore_id(context, topic, table)
    known = int(cluster.topics.partition_count[topic])
    added = np.arange(known, int(table.partition_counts[0]))
    if len(added) and cluster.topics.deleting[topic]:
        context.log.add(Message.PARTITIONS_SKIPPED, partitions=tuple(added.tolist()), topic=name)
        yield from ask(WriteAssignments(table_of(cluster, np.array([topic]))))
    elif len(added):
        rows = cluster.grow_topic(topic, table.replicas.take(added))
        yield from replace_unknown_brokers(context, rows)
        context.log.add(Message.PARTITIONS_ADDED, assignments=sample_of(cluster, rows, NAMES_LOGGED))
        yield from create_partitions(context, rows)
    if name in context.term.unsaved_topics:
        context.term.unsaved_topics.discard(name)
        yield from store(context, cluster.topics.rows_of(topic))
    return True


def _restore_id(context: Context, topic: int, table: TopicTable) -> Operation[None]:
    """Restore the id of a topic whose record was written without it, for example by an old tool.

    The next Kafka controller would assign another id, and brokers would refuse the topic.
    """
    known = context.cluster.topics.ids[topic].tobytes()
    if table.topic_ids[0] is None and known != ZERO_TOPIC_ID and context.config["kframe.topic.id.restore"]:
        context.log.add(Message.TOPIC_ID_RESTORED, topic=table.names[0])
        yield from ask(WriteAssignments(replace(table, topic_ids=(known,))))
