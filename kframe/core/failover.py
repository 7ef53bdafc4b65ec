"""Taking over as controller, in Kafka's order (3.9 ``onControllerFailover``; ``spec/controller.md`` section 3.2)."""

from __future__ import annotations

import numpy as np

from kframe import kernels
from kframe.core import (
    deletion,
    elections,
    moves,
    outsiders,
    partition_machine,
    rebalance,
    replica_machine,
    strays,
    topics,
    unseen,
    vouching,
)
from kframe.core.context import Context, Operation
from kframe.core.membership import broker_epochs
from kframe.model.effects import OpenChannels
from kframe.model.ids import ReplicaState
from kframe.model.log_entries import Message


def take_over(context: Context) -> Operation[None]:
    """Tell every broker who is registered, then derive and send all states, then elect what has no leader.

    Brokers must know each other's endpoints before the first LeaderAndIsr names a leader, hence the metadata first.
    Who was shutting down and which log dirs were offline is not known to a new controller.
    """
    registered = context.registered()
    _report_cluster(context)
    yield OpenChannels(tuple(int(index) for index in registered))
    topics.note_reassigning(context, np.flatnonzero(context.cluster.partitions.topic >= 0).astype(np.int32))
    everything = np.arange(len(context.cluster.topics), dtype=np.int32)
    yield from topics.give_ids(context, everything)
    yield from deletion.initialise(context)
    yield from topics.keep_to_brokers(context, outsiders.held(context)[0])
    context.log.add(Message.SENDING_METADATA)
    yield from context.announce(registered)
    vouching.take_over(context)
    yield from strays.expel_all(context)
    yield from unseen.expel_all(context)
    yield from replica_machine.startup(context)
    yield from partition_machine.startup(context)
    context.log.add(Message.READY, epoch=context.controller_epoch)
    yield from moves.resume_all(context)
    yield from moves.relieve(context)
    yield from deletion.resume(context)
    yield from elections.elect_stored(context)
    yield from rebalance.start(context)
    context.hosts.catch_up()  # brokers wait for nothing now


def _report_cluster(context: Context) -> None:
    """Report which brokers and topics were loaded (Kafka 3.9 ``initializeControllerContext``)."""
    epochs = broker_epochs(context)
    context.log.add(Message.BROKER_EPOCHS_INITIALIZED, epochs=epochs)
    context.log.add(Message.ACTIVE_BROKERS, brokers=tuple(epochs))
    context.log.add(Message.TOPIC_LIST, topics=context.cluster.topics.all_names())


def adopt(context: Context) -> Operation[None]:
    """Take a cluster as it stands, as the controller that has run it all along: nothing is elected, stored or sent.

    This is how a what-if starts: a failover would itself raise epochs and shrink ISRs.
    """
    brokers, p = context.cluster.brokers, context.cluster.partitions
    live = brokers.live
    kernels.initialize_partition_states(
        p.leader, p.partition_epoch, p.slot_start, p.replica_count, p.replica, p.replica_flags, live, p.state
    )
    kernels.initialize_replica_states(p.slot_start, p.replica_count, p.replica, p.replica_flags, live, p.replica_state)
    p.replica_state[p.replica_state == ReplicaState.DELETION_INELIGIBLE] = ReplicaState.OFFLINE
    topics.note_reassigning(context, np.flatnonzero(p.topic >= 0).astype(np.int32))
    yield from deletion.initialise(context)
    yield OpenChannels(tuple(int(index) for index in np.flatnonzero(brokers.registered)))
