"""Topics appear and vanish (``spec/controller.md`` section 9), or can be read after all.

What could not be read when this controller took over has a state, perhaps, moves, and is marked for deletion: it is
taken over late as a failover would have taken it.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import NAMES_LOGGED, sample_of
from kframe.core.reassignment import partition_reassignment, protocols
from kframe.core.state_machines import leader_election, partition_state_machine, replica_state_machine
from kframe.core.topics import topic_metadata
from kframe.model.asks import ReadTopicNames, ReadTopics
from kframe.model.columns import Int32
from kframe.model.effects import Enqueue
from kframe.model.events import DeletionsMarked
from kframe.model.ids import PartitionState, ReplicaState
from kframe.model.log_entries import Message, TopicAssignments
from kframe.model.tables import TopicTable

_NO_ROWS = np.empty(0, np.int32)


def topics_changed(context: Context) -> Operation[None]:
    """Compare the topics that exist with those known: forget the vanished, bring the new ones online."""
    cluster = context.cluster
    names = yield from ask(ReadTopicNames())
    known = {name for name in cluster.topics.names if name in cluster.topics}
    table = yield from ask(ReadTopics(tuple(sorted(names - known))))
    deleted = tuple(sorted(known - names))
    gone = (cluster.topics.find(name) for name in deleted)
    context.forget_topics([index for index in gone if index is not None])
    if len(table):
        yield from _add(context, table, deleted)
    elif deleted:
        _report(context, table, deleted)
    yield from _look_at_marks(context, names)


def topic_modified(context: Context, name: str) -> Operation[None]:
    """A topic's record was written. One that is not known could not be read before, if it can be now."""
    if name in context.cluster.topics:
        yield from topic_metadata.topic_modified(context, name)
        return
    table = yield from ask(ReadTopics((name,)))
    if len(table):
        yield from _add(context, table)
        yield from _look_at_marks(context, frozenset(context.term.unreadable_deletions))


def _add(context: Context, table: TopicTable, deleted: tuple[str, ...] = ()) -> Operation[None]:
    """Take topics over and bring their partitions online. Topics that are ``deleted`` are reported with them."""
    cluster = context.cluster
    first = len(cluster.topics)
    rows = cluster.add_table(table)
    yield from topic_metadata.give_ids(context, np.arange(first, len(cluster.topics), dtype=np.int32))
    yield from topic_metadata.read_settings(context, table.names)
    topic_metadata.note_reassigning(context, rows)
    yield from topic_metadata.keep_to_brokers(context, rows)
    _report(context, table, deleted, rows)
    yield from topic_metadata.bring_up(context, rows)
    yield from _take_over(context, rows[cluster.partitions.state[rows] == PartitionState.NEW])


def _report(context: Context, new: TopicTable, deleted: tuple[str, ...], rows: Int32 = _NO_ROWS) -> None:
    """Report which topics came and went (Kafka 3.9 ``processTopicChange``)."""
    ids = dict(zip(new.names, new.topic_ids, strict=True))
    assignments = TopicAssignments(sample_of(context.cluster, rows, NAMES_LOGGED), ids)
    context.log.add(Message.TOPICS_CHANGED, new=new.names, deleted=deleted, assignments=assignments)


def _take_over(context: Context, rows: Int32) -> Operation[None]:
    """Take over those of ``rows``, which could not begin, that storage has a state for.

    Leaders get a new leader epoch: what they have proposed of a topic that nobody knew was refused for good, and they
    propose nothing else under the old one (Kafka 3.9 ``Partition.handleAlterPartitionError``).
    """
    rows, _ = yield from context.refresh(rows)
    if len(rows) == 0:
        return
    p = context.cluster.partitions
    replicas = replica_state_machine.replicas_of(context, rows)
    hosts, brokers = p.replica[replicas.slots(p)], context.cluster.brokers
    online = replica_state_machine.are_online(context, replicas)
    led = partition_reassignment.led_by_target(context, rows)
    p.state[rows] = np.where(led, PartitionState.ONLINE, PartitionState.OFFLINE)
    context.gauges.touch(rows)
    # Whoever is shutting down hears of all that it hosts, too, before it is stopped there.
    yield from replica_state_machine.transition(
        context, replicas.where(brokers.registered[hosts] != 0), ReplicaState.ONLINE
    )
    yield from replica_state_machine.transition(context, replicas.where(~online), ReplicaState.OFFLINE)
    yield from partition_reassignment.announce(context, rows[led])
    yield from partition_state_machine.transition(context, rows[~led], PartitionState.ONLINE, leader_election.OFFLINE)
    yield from protocols.protocol_of(context).resume(context, rows[p.reassigning[rows] != 0])


def _look_at_marks(context: Context, names: frozenset[str]) -> Operation[None]:
    """Of topics that were marked for deletion while they could not be read, some are known now, or gone."""
    settled = {
        name for name in context.term.unreadable_deletions if name in context.cluster.topics or name not in names
    }
    if settled:
        context.term.unreadable_deletions -= settled
        yield Enqueue(DeletionsMarked())
