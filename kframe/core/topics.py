"""Topics and partitions appear, vanish and grow (``spec/controller.md`` section 9)."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from kframe.core import leadership, outsiders, partition_machine, replica_machine
from kframe.core.assignment import table_of
from kframe.core.context import ATTEMPTS_MAX, Context, Operation, ask
from kframe.model.asks import GiveTopicIds, ReadTopicNames, ReadTopics, ReadTopicSettings, WriteAssignments
from kframe.model.changes import WriteCode
from kframe.model.columns import Int32
from kframe.model.ids import PartitionState, ReplicaFlag, ReplicaState
from kframe.model.tables import TopicTable
from kframe.model.topics import ZERO_TOPIC_ID

_log = logging.getLogger("kframe.controller")


def topics_changed(context: Context) -> Operation[None]:
    """Compare the topics that exist with those known: forget the vanished, bring the new ones online."""
    cluster = context.cluster
    names = yield from ask(ReadTopicNames())
    known = {name for name in cluster.topics.names if name in cluster.topics}
    table = yield from ask(ReadTopics(tuple(sorted(names - known))))
    gone = (cluster.topics.find(name) for name in sorted(known - names))
    context.forget_topics([index for index in gone if index is not None])
    if len(table):
        yield from add_topics(context, table)


def add_topics(context: Context, table: TopicTable) -> Operation[None]:
    """Take new topics over and bring their partitions online."""
    cluster = context.cluster
    first = len(cluster.topics)
    rows = cluster.add_table(table)
    yield from give_ids(context, np.arange(first, len(cluster.topics), dtype=np.int32))
    yield from read_settings(context, table.names)
    note_reassigning(context, rows)
    yield from keep_to_brokers(context, rows)
    yield from bring_up(context, rows)


def give_ids(context: Context, topics: Int32) -> Operation[None]:
    """Give an id to each of ``topics`` that has none, where the inter-broker protocol has ids."""
    columns = context.cluster.topics
    bare = topics[~columns.ids[topics].any(axis=1)]
    if len(bare) and context.config.protocol.topic_ids:
        given = yield from ask(GiveTopicIds(tuple(columns.names[topic] for topic in bare)))
        for topic, topic_id in zip(bare, given, strict=True):
            columns.set_id(int(topic), topic_id)


def read_settings(context: Context, names: tuple[str, ...]) -> Operation[None]:
    """Read the settings of these topics that a controller acts on."""
    topics = context.cluster.topics
    settings = yield from ask(ReadTopicSettings(names))
    for name, one in zip(names, settings, strict=True):
        index = topics.find(name)
        if index is not None:
            topics.unclean[index], topics.min_insync[index] = one.unclean, one.min_insync


def note_reassigning(context: Context, rows: Int32) -> None:
    """Mark those rows whose assignment says that a reassignment is under way."""
    p = context.cluster.partitions
    moving = np.uint8(ReplicaFlag.ADDING | ReplicaFlag.REMOVING)
    if not (p.replica_flags & moving).any():
        return  # mostly so, and told by a pass over bytes
    slots, counts = p.slots_of(rows), p.replica_count[rows]
    flagged = np.repeat(rows, counts)[(p.replica_flags[slots] & moving) != 0]
    p.reassigning[flagged] = 1


def keep_to_brokers(context: Context, rows: Int32) -> Operation[None]:
    """Before ``rows``, which have no state yet, come online: what is no broker is taken out of their assignments."""
    changed = outsiders.expel(context, rows)
    if len(changed):
        yield from store(context, changed)


def bring_up(context: Context, rows: Int32) -> Operation[None]:
    """Take new partitions from nothing to Online (``onNewPartitionCreation``): four bulk moves."""
    replicas = replica_machine.of_rows(context, rows)
    yield from partition_machine.move(context, rows, PartitionState.NEW)
    yield from replica_machine.move(context, replicas, ReplicaState.NEW)
    yield from partition_machine.move(context, rows, PartitionState.ONLINE, leadership.OFFLINE)
    yield from replica_machine.move(context, replicas, ReplicaState.ONLINE)


def store(context: Context, rows: Int32) -> Operation[None]:
    """Write the assignments of the topics of ``rows``. One that a broker has written meanwhile is read first, so that
    partitions that it added are not lost (``reliability.md`` X3)."""
    cluster = context.cluster
    remaining = np.unique(cluster.partitions.topic[rows])
    for _ in range(ATTEMPTS_MAX):
        if len(remaining) == 0:
            break
        codes = yield from ask(WriteAssignments(table_of(cluster, remaining)))
        remaining = remaining[np.array(codes) == WriteCode.STALE]
        for index in remaining.tolist():
            yield from topic_modified(context, cluster.topics.names[index])


def topic_modified(context: Context, name: str) -> Operation[None]:
    """A topic's assignment was written: new partitions come up; other changes are not the controller's to follow.

    A topic that is being deleted does not grow: what was there before is written back.
    """
    cluster = context.cluster
    table = yield from ask(ReadTopics((name,)))
    topic = cluster.topics.find(name)
    if topic is None or len(table) == 0:
        return
    yield from _restore_id(context, topic, table)
    known = int(cluster.topics.partition_count[topic])
    added = np.arange(known, int(table.partition_counts[0]))
    if len(added) == 0:
        return
    if cluster.topics.deleting[topic]:
        _log.warning("%s is being deleted: %d new partitions are taken back", name, len(added))
        yield from ask(WriteAssignments(table_of(cluster, np.array([topic]))))
        return
    rows = cluster.grow_topic(topic, table.replicas.take(added))
    yield from keep_to_brokers(context, rows)
    yield from bring_up(context, rows)


def _restore_id(context: Context, topic: int, table: TopicTable) -> Operation[None]:
    """Write back the id of a topic that somebody has stored without it, an old tool perhaps, with what he stored.

    The next Kafka controller would give it another one, and the topic would go dark (``reliability.md`` X5).
    """
    known = context.cluster.topics.ids[topic].tobytes()
    if table.topic_ids[0] is None and known != ZERO_TOPIC_ID and context.config["kframe.topic.id.restore"]:
        _log.warning("%s was stored without its topic id, which is written back", table.names[0])
        yield from ask(WriteAssignments(replace(table, topic_ids=(known,))))
