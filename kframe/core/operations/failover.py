"""Controller failover, in the order of Kafka 3.9 ``onControllerFailover``."""

from __future__ import annotations

import numpy as np

from kframe import kernels
from kframe.core.context import Context, Operation
from kframe.core.operations import elect_leaders, leader_rebalance, reregistered_brokers, unassigned_isr_members
from kframe.core.operations.membership import broker_epochs
from kframe.core.reassignment import protocols
from kframe.core.state_machines import last_replica_hold, partition_state_machine, replica_state_machine
from kframe.core.topics import topic_deletion, topic_metadata, unknown_brokers
from kframe.model.effects import OpenChannels
from kframe.model.ids import ReplicaState
from kframe.model.log_entries import Message


def take_over(context: Context) -> Operation[None]:
    """Announce all registered brokers, then derive and send all states, then elect leaders.

    Brokers must know each other's endpoints before the first LeaderAndIsr names a leader. A new controller does not
    know which brokers were shutting down and which log directories were offline.
    """
    registered = context.registered()
    _report_cluster(context)
    yield OpenChannels(tuple(int(index) for index in registered))
    topic_metadata.mark_reassigning(context, np.flatnonzero(context.cluster.partitions.topic >= 0).astype(np.int32))
    all_topics = np.arange(len(context.cluster.topics), dtype=np.int32)
    yield from topic_metadata.assign_topic_ids(context, all_topics)
    yield from topic_deletion.initialise(context)
    yield from topic_metadata.replace_unknown_brokers(context, unknown_brokers.assigned_rows(context)[0])
    context.log.add(Message.SENDING_METADATA)
    yield from context.announce(registered)
    last_replica_hold.on_states_loaded(context, context.announced_rows())
    yield from unassigned_isr_members.remove_all(context)
    yield from reregistered_brokers.remove_all(context)
    yield from replica_state_machine.startup(context)
    yield from partition_state_machine.startup(context)
    context.log.add(Message.READY, epoch=context.controller_epoch)
    yield from protocols.resume_all(context)
    yield from protocols.reassign_from_unknown_brokers(context)
    yield from topic_deletion.resume(context)
    yield from elect_leaders.elect_stored(context)
    yield from leader_rebalance.start(context)
    context.replica_index.catch_up()


def _report_cluster(context: Context) -> None:
    """Report which brokers and topics were loaded (Kafka 3.9 ``initializeControllerContext``)."""
    epochs = broker_epochs(context)
    context.log.add(Message.BROKER_EPOCHS_INITIALIZED, epochs=epochs)
    context.log.add(Message.ACTIVE_BROKERS, brokers=tuple(epochs))
    context.log.add(Message.TOPIC_LIST, topics=context.cluster.topics.all_names())


def adopt(context: Context) -> Operation[None]:
    """Become the controller of a cluster as it is: no leader is elected, nothing is stored or sent.

    A what-if starts here, because a failover would raise epochs and shrink ISRs.
    """
    brokers, p = context.cluster.brokers, context.cluster.partitions
    live = brokers.live
    kernels.initialize_partition_states(
        p.leader, p.partition_epoch, p.slot_start, p.replica_count, p.replica, p.replica_status, live, p.status
    )
    kernels.initialize_replica_states(p.slot_start, p.replica_count, p.replica, live, p.replica_status)
    ineligible = np.flatnonzero(p.replica_states(slice(None)) == ReplicaState.DELETION_INELIGIBLE)
    p.set_replica_states(ineligible, ReplicaState.OFFLINE)
    topic_metadata.mark_reassigning(context, np.flatnonzero(p.topic >= 0).astype(np.int32))
    yield from topic_deletion.initialise(context)
    yield OpenChannels(tuple(int(index) for index in np.flatnonzero(brokers.registered)))
