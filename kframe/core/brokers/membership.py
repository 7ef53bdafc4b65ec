"""Brokers come, go, return under a new broker epoch, or change their endpoints (``spec/controller.md`` section 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe import kernels
from kframe.core.context import Context, Operation, ask
from kframe.core.reassignment import offline_log_dirs, partition_reassignment, reassignment_start
from kframe.core.state_machines import last_replica_hold, partition_state_machine, replica_state_machine
from kframe.core.state_machines.replica_state_machine import Replicas
from kframe.core.topics import topic_deletion
from kframe.model.asks import ReadBrokers
from kframe.model.brokers import Registration
from kframe.model.columns import Int32, UInt8
from kframe.model.effects import CloseChannels, OpenChannels
from kframe.model.ids import PartitionState, ReplicaFlag, ReplicaState
from kframe.model.log_entries import Message
from kframe.model.requests import Occasion

_NOBODY = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a fresh read of all registrations says against what the controller knew."""

    new: tuple[Registration, ...]
    bounced: tuple[Registration, ...]
    dead: tuple[int, ...]

    @staticmethod
    def between(context: Context, registrations: tuple[Registration, ...]) -> Difference:
        """Same id with a higher broker epoch is a death and a birth (Kafka 3.9 ``processBrokerChange``)."""
        brokers = context.cluster.brokers
        standing = np.flatnonzero(brokers.registered)
        known = dict(zip(brokers.ids[standing].tolist(), brokers.broker_epoch[standing].tolist(), strict=True))
        current = sorted(registrations, key=lambda registration: registration.broker_id)
        return Difference(
            new=tuple(one for one in current if one.broker_id not in known),
            bounced=tuple(one for one in current if one.broker_epoch > known.get(one.broker_id, one.broker_epoch)),
            dead=tuple(sorted(known.keys() - {one.broker_id for one in current})),
        )


def brokers_changed(context: Context) -> Operation[None]:
    """Compare registrations with what is known: first the new ones, then the bounced, then the dead."""
    registrations = yield from ask(ReadBrokers())
    found = Difference.between(context, registrations)
    brokers = context.cluster.brokers
    _report_change(context, registrations, found)
    if found.new:
        yield from _register(context, found.new)
    if found.bounced:
        bounced = brokers.index_of([one.broker_id for one in found.bounced])
        yield from _unregister(context, bounced)
        yield from _register(context, found.bounced)
    if found.dead:
        yield from _unregister(context, brokers.index_of(found.dead))
    if found.new or found.bounced or found.dead:
        context.log.add(Message.BROKER_EPOCHS_UPDATED, epochs=broker_epochs(context))


def broker_epochs(context: Context) -> dict[int, int]:
    """Broker epochs of the live brokers, by id, ascending."""
    brokers = context.cluster.brokers
    live = np.flatnonzero(brokers.live)
    return dict(sorted(zip(brokers.ids[live].tolist(), brokers.broker_epoch[live].tolist(), strict=True)))


def _report_change(context: Context, registrations: tuple[Registration, ...], found: Difference) -> None:
    """Report all four lists, as Kafka does even where nothing has changed (3.9 ``processBrokerChange``)."""
    context.log.add(
        Message.BROKERS_CHANGED,
        new=tuple(one.broker_id for one in found.new),
        deleted=found.dead,
        bounced=tuple(one.broker_id for one in found.bounced),
        live=tuple(sorted(one.broker_id for one in registrations)),
    )


def broker_modified(context: Context, broker_id: int) -> Operation[None]:
    """A registration changed in place: new endpoints are told to everybody; a new rack alone is not news. A broker that
    is not known could not be read before: it is born."""
    registrations = yield from ask(ReadBrokers())
    brokers = context.cluster.brokers
    index = brokers.find(broker_id)
    fresh = next((one for one in registrations if one.broker_id == broker_id), None)
    if fresh is None:
        return
    if index is None or not brokers.registered[index]:
        yield from _register(context, (fresh,))
        return
    known = brokers.registrations[index]
    if known is not None and known.endpoints == fresh.endpoints:
        return
    context.log.add(Message.BROKER_METADATA_UPDATED, old=known, new=fresh)
    context.log.add(Message.BROKER_UPDATE, broker=broker_id)
    brokers.registrations[index] = fresh
    yield from context.announce(context.registered())


def replicas_offline(context: Context, replicas: Replicas) -> Operation[None]:
    """Replicas became unreachable: elect new leaders, then take them out of the ISRs (``onReplicasBecomeOffline``).

    Every partition without an online leader is tried, not only those of ``replicas``. If nothing at all was told to
    the brokers that way, they are told who is left.
    """
    cluster = context.cluster
    doomed = cluster.doomed(replicas.rows)
    kept = replicas.where(~doomed)
    yield from partition_state_machine.move(context, _leaderless(context), PartitionState.OFFLINE)
    removals = replica_state_machine.plan_first_removals(context, kept)
    moves = yield from partition_state_machine.trigger_online(context, following=removals)
    yield from replica_state_machine.move(context, kept, ReplicaState.OFFLINE)
    if doomed.any():
        yield from topic_deletion.fail_replicas(context, replicas.where(doomed))
    if len(kept) == 0 and len(moves.elected) == 0:
        yield from context.announce(context.registered(), occasion=Occasion.UNHEARD)


def _leaderless(context: Context) -> Int32:
    """Rows with a state and without an online leader, ascending; topics queued for deletion are left out."""
    cluster, p = context.cluster, context.cluster.partitions
    found = np.empty(len(cluster), np.int32)
    count = kernels.list_leaderless(
        p.topic, p.leader, p.partition_epoch, p.slot_start, p.replica_count, p.replica, p.replica_flags,
        cluster.brokers.live, cluster.topics.deleting, found,
    )  # fmt: skip
    return found[:count].copy()


def _register(context: Context, registrations: tuple[Registration, ...]) -> Operation[None]:
    """Brokers have registered (``onBrokerStartup``): the others learn of them, they learn of everything, and what was
    without a leader is tried again."""
    cluster = context.cluster
    context.log.add(Message.BROKER_STARTUP, brokers=tuple(sorted(one.broker_id for one in registrations)))
    indexes = cluster.brokers.register(registrations)
    last_replica_hold.arrived(context, indexes)
    yield OpenChannels(tuple(int(index) for index in indexes))
    new = context.mask(indexes)
    replicas = _forget_offline_dirs(context, new)
    others = np.flatnonzero((cluster.brokers.registered != 0) & (new == 0)).astype(np.int32)
    yield from context.announce(others)
    yield from context.announce(indexes, context.announced_rows())
    yield from replica_state_machine.move(context, replicas, ReplicaState.ONLINE)
    begun = yield from partition_state_machine.trigger_online(context)
    yield from partition_reassignment.begin_led(context, begun.initialised)
    yield from partition_reassignment.resume_on(context, indexes)
    yield from reassignment_start.relieve(context)
    yield from topic_deletion.resume_topics(context, np.unique(cluster.partitions.topic[replicas.rows]).tolist())


def _unregister(context: Context, indexes: Int32) -> Operation[None]:
    """Registrations are gone (``onBrokerFailure``)."""
    brokers = context.cluster.brokers
    context.log.add(Message.BROKER_FAILURE, brokers=tuple(sorted(brokers.ids_of(indexes))))
    if brokers.shutting_down[indexes].any():
        leaving = indexes[brokers.shutting_down[indexes] != 0]
        context.log.add(Message.SHUTTING_DOWN_REMOVED, brokers=tuple(sorted(brokers.ids_of(leaving))))
    last_replica_hold.departed(context, indexes)
    brokers.unregister(indexes)
    yield CloseChannels(tuple(int(index) for index in indexes))
    yield from replicas_offline(context, _forget_offline_dirs(context, context.mask(indexes)))


def _forget_offline_dirs(context: Context, broker_mask: UInt8) -> Replicas:
    """All replicas on these brokers; what was known of their log dirs belongs to an earlier registration."""
    replicas = replica_state_machine.hosted_by(context, broker_mask)
    offline_log_dirs.forget(context, np.flatnonzero(broker_mask).astype(np.int32))
    p = context.cluster.partitions
    slots = replicas.slots(p)
    dead = slots[(p.replica_flags[slots] & np.uint8(ReplicaFlag.OFFLINE_DIR)) != 0]
    p.replica_flags[dead] &= ~np.uint8(ReplicaFlag.OFFLINE_DIR)
    return replicas
