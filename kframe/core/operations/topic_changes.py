"""Topics are created or deleted in storage, or their records become readable.

A record that was unreadable at failover may belong to a topic with states, reassignments and a deletion mark. It is
processed late, as the failover would have processed it.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import NAMES_LOGGED, sample_of
from kframe.core.operations import reregistered_brokers, unassigned_isr_members
from kframe.core.reassignment import partition_reassignment, protocols
from kframe.core.state_machines import (
    last_replica_hold,
    leader_election,
    partition_state_machine,
    replica_state_machine,
)
from kframe.core.topics import topic_metadata
from kframe.model.arrays import Int32
from kframe.model.effects import Enqueue
from kframe.model.events import DeletionsMarked
from kframe.model.ids import PartitionState, ReplicaState
from kframe.model.log_entries import Message, TopicAssignments
from kframe.model.tables import TopicTable
from kframe.ports.store_requests import ReadTopicNames, ReadTopics

_NO_ROWS = np.empty(0, np.int32)


def topics_changed(context: Context) -> Operation[None]:
    """Compare the topics in storage with the known ones: forget deleted topics, bring new ones online."""
    cluster = context.cluster
    names = yield from ask(ReadTopicNames())
    known = {name for name in cluster.topics.names if name in cluster.topics}
    table = yield from ask(ReadTopics(tuple(sorted(names - known))))
    deleted = tuple(sorted(known - names))
    deleted_topics = (cluster.topics.find(name) for name in deleted)
    context.forget_topics([index for index in deleted_topics if index is not None])
    if len(table):
        yield from _add(context, table, deleted)
    elif deleted:
        _report(context, table, deleted)
    yield from _check_deletion_marks(context, names)


def topic_modified(context: Context, name: str) -> Operation[None]:
    """A topic's record was written. The record of an unknown topic was unreadable before."""
    if name in context.cluster.topics:
        yield from topic_metadata.topic_modified(context, name)
        return
    table = yield from ask(ReadTopics((name,)))
    if len(table):
        yield from _add(context, table)
        yield from _check_deletion_marks(context, frozenset(context.term.unreadable_deletions))


def _add(context: Context, table: TopicTable, deleted: tuple[str, ...] = ()) -> Operation[None]:
    """Add topics and bring their partitions online. ``deleted`` topics are logged with them."""
    cluster = context.cluster
    first = len(cluster.topics)
    rows = cluster.add_table(table)
    yield from topic_metadata.assign_topic_ids(context, np.arange(first, len(cluster.topics), dtype=np.int32))
    yield from topic_metadata.read_settings(context, table.names)
    topic_metadata.mark_reassigning(context, rows)
    yield from topic_metadata.replace_unknown_brokers(context, rows)
    _report(context, table, deleted, rows)
    yield from topic_metadata.create_partitions(context, rows)
    state = cluster.partitions.states_of(rows)
    is_online = state == PartitionState.ONLINE
    online = rows if is_online.all() else rows[is_online]
    yield from partition_reassignment.on_leaders_initialised(context, online)
    yield from _load_states(context, rows[state == PartitionState.NEW])


def _report(context: Context, new: TopicTable, deleted: tuple[str, ...], rows: Int32 = _NO_ROWS) -> None:
    """Log new and deleted topics (Kafka 3.9 ``processTopicChange``)."""
    ids = dict(zip(new.names, new.topic_ids, strict=True))
    assignments = TopicAssignments(sample_of(context.cluster, rows, NAMES_LOGGED), ids)
    context.log.add(Message.TOPICS_CHANGED, new=new.names, deleted=deleted, assignments=assignments)


def _load_states(context: Context, rows: Int32) -> Operation[None]:
    """Load the stored states of ``rows`` that are still New, with the checks of a failover.

    Leaders get a new leader epoch. The controller refused their proposals while it did not know the topic, and they
    propose no other ISR under the old epoch (Kafka 3.9 ``Partition.handleAlterPartitionError``).
    """
    if len(rows) == 0:
        return
    states = yield from context.read_states(rows)
    states = states.take(states.may_be_changed_in(context.controller_epoch))
    rows = states.rows
    if len(rows) == 0:
        return
    p = context.cluster.partitions
    last_replica_hold.on_states_loaded(context, rows)
    yield from unassigned_isr_members.remove(context, rows)
    yield from reregistered_brokers.remove(context, rows, states.zxid)
    replicas = replica_state_machine.replicas_of(context, rows)
    replica_brokers, brokers = p.replica[replicas.slots(p)], context.cluster.brokers
    online = replica_state_machine.are_online(context, replicas)
    led = partition_reassignment.is_led_by_target(context, rows)
    p.set_states(rows, np.where(led, PartitionState.ONLINE, PartitionState.OFFLINE))
    context.gauges.touch(rows)
    # Brokers that are shutting down receive their states, too, before their replicas stop.
    yield from replica_state_machine.transition(
        context, replicas.where(brokers.registered[replica_brokers] != 0), ReplicaState.ONLINE
    )
    yield from replica_state_machine.transition(context, replicas.where(~online), ReplicaState.OFFLINE)
    yield from partition_reassignment.announce(context, rows[led])
    yield from partition_state_machine.transition(context, rows[~led], PartitionState.ONLINE, leader_election.OFFLINE)
    yield from protocols.protocol_of(context).resume(context, rows[p.reassigning(rows)])


def _check_deletion_marks(context: Context, names: frozenset[str]) -> Operation[None]:
    """Process deletion marks of unreadable topics that are known or deleted now."""
    settled = {
        name for name in context.term.unreadable_deletions if name in context.cluster.topics or name not in names
    }
    if settled:
        context.term.unreadable_deletions -= settled
        yield Enqueue(DeletionsMarked())
