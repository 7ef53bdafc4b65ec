"""Broker registrations: startup, failure, a new broker epoch, and changed endpoints (Kafka 3.9 ``KafkaController``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe import kernels
from kframe.core.context import Context, Operation, ask
from kframe.core.reassignment import offline_log_dirs, partition_reassignment, protocols
from kframe.core.state_machines import last_replica_hold, partition_state_machine, replica_state_machine
from kframe.core.state_machines.replica_state_machine import PartitionReplicas
from kframe.core.topics import topic_deletion
from kframe.model.arrays import Int32, UInt8
from kframe.model.brokers import Registration
from kframe.model.effects import CloseChannels, OpenChannels
from kframe.model.ids import PartitionState, ReplicaFlag, ReplicaState
from kframe.model.lists import distinct_values
from kframe.model.log_entries import Message
from kframe.ports.store_requests import ReadBrokers


@dataclass(frozen=True, slots=True)
class BrokerChanges:
    """The registrations in storage compared with the brokers that the controller knows."""

    new: tuple[Registration, ...]
    bounced: tuple[Registration, ...]
    dead: tuple[int, ...]

    @staticmethod
    def between(context: Context, registrations: tuple[Registration, ...]) -> BrokerChanges:
        """Compare; a higher broker epoch under a known id is a bounce (Kafka 3.9 ``processBrokerChange``)."""
        brokers = context.cluster.brokers
        registered = np.flatnonzero(brokers.registered)
        known = dict(zip(brokers.ids[registered].tolist(), brokers.broker_epoch[registered].tolist(), strict=True))
        current = sorted(registrations, key=lambda registration: registration.broker_id)
        return BrokerChanges(
            new=tuple(broker for broker in current if broker.broker_id not in known),
            bounced=tuple(
                broker for broker in current if broker.broker_epoch > known.get(broker.broker_id, broker.broker_epoch)
            ),
            dead=tuple(sorted(known.keys() - {broker.broker_id for broker in current})),
        )


def brokers_changed(context: Context) -> Operation[None]:
    """Compare registrations with the known brokers, then process new, bounced and dead brokers in this order."""
    registrations = yield from ask(ReadBrokers())
    changes = BrokerChanges.between(context, registrations)
    brokers = context.cluster.brokers
    _report_changes(context, registrations, changes)
    if changes.new:
        yield from on_broker_startup(context, changes.new)
    if changes.bounced:
        yield from on_broker_failure(context, brokers.index_of([broker.broker_id for broker in changes.bounced]))
        yield from on_broker_startup(context, changes.bounced)
    if changes.dead:
        yield from on_broker_failure(context, brokers.index_of(changes.dead))
    if changes.new or changes.bounced or changes.dead:
        context.log.add(Message.BROKER_EPOCHS_UPDATED, epochs=broker_epochs(context))


def broker_epochs(context: Context) -> dict[int, int]:
    """Broker epochs of the live brokers, by id, ascending."""
    brokers = context.cluster.brokers
    live = np.flatnonzero(brokers.live)
    return dict(sorted(zip(brokers.ids[live].tolist(), brokers.broker_epoch[live].tolist(), strict=True)))


def _report_changes(context: Context, registrations: tuple[Registration, ...], changes: BrokerChanges) -> None:
    """Report all four lists even if nothing changed, as Kafka does (3.9 ``processBrokerChange``)."""
    context.log.add(
        Message.BROKERS_CHANGED,
        new=tuple(broker.broker_id for broker in changes.new),
        deleted=changes.dead,
        bounced=tuple(broker.broker_id for broker in changes.bounced),
        live=tuple(sorted(broker.broker_id for broker in registrations)),
    )


def broker_modified(context: Context, broker_id: int) -> Operation[None]:
    """A registration changed in place: send new endpoints to all brokers. A new rack alone sends nothing.

    A broker that the controller does not know had an unreadable registration before; it starts up now.
    """
    registrations = yield from ask(ReadBrokers())
    brokers = context.cluster.brokers
    index = brokers.find(broker_id)
    updated = next((broker for broker in registrations if broker.broker_id == broker_id), None)
    if updated is None:
        return
    if index is None or not brokers.registered[index]:
        yield from on_broker_startup(context, (updated,))
        return
    known = brokers.registrations[index]
    if known is not None and known.endpoints == updated.endpoints:
        return
    context.log.add(Message.BROKER_METADATA_UPDATED, old=known, new=updated)
    context.log.add(Message.BROKER_UPDATE, broker=broker_id)
    brokers.registrations[index] = updated
    yield from context.announce(context.registered())


def on_replicas_offline(context: Context, replicas: PartitionReplicas) -> Operation[None]:
    """Elect new leaders, then remove ``replicas`` from ISRs (Kafka 3.9 ``onReplicasBecomeOffline``).

    Elections cover every partition without an online leader, not only those of ``replicas``. If no request was sent,
    UpdateMetadata sends the remaining brokers to all of them.
    """
    cluster = context.cluster
    deleting = cluster.is_deleting(replicas.rows)
    remaining = replicas.where(~deleting)
    yield from partition_state_machine.transition(context, _rows_without_leader(context), PartitionState.OFFLINE)
    removals = replica_state_machine.plan_first_removals(context, remaining)
    result = yield from partition_state_machine.trigger_online(context, following=removals)
    yield from replica_state_machine.transition(context, remaining, ReplicaState.OFFLINE)
    if deleting.any():
        yield from topic_deletion.fail_replicas(context, replicas.where(deleting))
    if len(remaining) == 0 and len(result.elected) == 0:
        yield from context.announce(context.registered())


def _rows_without_leader(context: Context) -> Int32:
    """Rows with a state and without an online leader, ascending, except topics queued for deletion."""
    cluster, p = context.cluster, context.cluster.partitions
    rows = np.empty(len(cluster), np.int32)
    count = kernels.list_leaderless(
        p.topic,
        p.leader,
        p.partition_epoch,
        p.slot_start,
        p.replica_count,
        p.replica,
        p.replica_status,
        cluster.brokers.live,
        cluster.topics.deleting,
        rows,
    )
    return rows[:count].copy()


def on_broker_startup(context: Context, registrations: tuple[Registration, ...]) -> Operation[None]:
    """Brokers have registered (Kafka 3.9 ``onBrokerStartup``).

    The other brokers receive the new endpoints, and the new brokers all metadata and their replicas' states. Then
    partitions without a leader are elected, and waiting reassignments and deletions resume.
    """
    cluster = context.cluster
    context.log.add(Message.BROKER_STARTUP, brokers=tuple(sorted(broker.broker_id for broker in registrations)))
    indexes = cluster.brokers.register(registrations)
    last_replica_hold.on_broker_startup(context, indexes)
    yield OpenChannels(tuple(int(index) for index in indexes))
    new = context.mask(indexes)
    replicas = _reset_log_dirs(context, new)
    other_brokers = np.flatnonzero((cluster.brokers.registered != 0) & (new == 0)).astype(np.int32)
    yield from context.announce(other_brokers)
    yield from context.announce(indexes, context.announced_rows())
    yield from replica_state_machine.transition(context, replicas, ReplicaState.ONLINE)
    result = yield from partition_state_machine.trigger_online(context)
    yield from partition_reassignment.on_leaders_initialised(context, result.initialised)
    yield from partition_reassignment.resume_on(context, indexes)
    yield from protocols.reassign_from_unknown_brokers(context)
    yield from topic_deletion.resume_topics(context, distinct_values(cluster.partitions.topic[replicas.rows]))


def on_broker_failure(context: Context, indexes: Int32) -> Operation[None]:
    """Registrations were deleted (Kafka 3.9 ``onBrokerFailure``)."""
    brokers = context.cluster.brokers
    context.log.add(Message.BROKER_FAILURE, brokers=tuple(sorted(brokers.ids_of(indexes))))
    if brokers.shutting_down[indexes].any():
        leaving = indexes[brokers.shutting_down[indexes] != 0]
        context.log.add(Message.SHUTTING_DOWN_REMOVED, brokers=tuple(sorted(brokers.ids_of(leaving))))
    last_replica_hold.on_broker_failure(context, indexes)
    brokers.unregister(indexes)
    yield CloseChannels(tuple(int(index) for index in indexes))
    yield from on_replicas_offline(context, _reset_log_dirs(context, context.mask(indexes)))


def _reset_log_dirs(context: Context, broker_mask: UInt8) -> PartitionReplicas:
    """All replicas on these brokers, with offline log directories of an earlier registration forgotten."""
    replicas = replica_state_machine.replicas_on(context, broker_mask)
    offline_log_dirs.forget(context, np.flatnonzero(broker_mask).astype(np.int32))
    p = context.cluster.partitions
    slots = replicas.slots(p)
    offline = slots[p.are_flagged(slots, ReplicaFlag.OFFLINE_DIR)]
    p.replica_status[offline] &= ~np.uint8(ReplicaFlag.OFFLINE_DIR)
    return replicas
