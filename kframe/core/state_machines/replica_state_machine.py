"""The replica state machine: bulk moves between the seven replica states (Kafka 3.9 ``ZkReplicaStateMachine``).

A replica is named by its row and its place in the row's slots; both arrays go together through every function here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.core.context import ATTEMPTS_MAX, Context, Operation, stale
from kframe.core.request_batch import RequestBatch
from kframe.core.state_machines.leader_election import tell_replicas
from kframe.core.state_machines.scala_hash_order import scala_hash_order
from kframe.core.state_machines.transitions import REPLICA_MOVES, leaves
from kframe.model.changes import StateChange
from kframe.model.columns import Bool, Int32, Partitions, Ragged, UInt8
from kframe.model.ids import NO_STATE, PartitionState, ReplicaFlag, ReplicaState
from kframe.model.log_entries import Message
from kframe.model.requests import Occasion

_NOBODY = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Replicas:
    """Replicas as (row, place) pairs. They stay the same ones when a row moves to other slots, as any read of a state
    may make it do; a row that is assigned anew has others."""

    rows: Int32
    places: Int32

    @staticmethod
    def at(p: Partitions, rows: Int32, slots: NDArray[Any]) -> Replicas:
        """The replicas of ``rows`` that stand in these slots now."""
        return Replicas(rows, (slots - p.slot_start[rows]).astype(np.int32, copy=False))

    def slots(self, p: Partitions) -> Int32:
        """Where they stand now."""
        slots: Int32 = p.slot_start[self.rows] + self.places
        return slots

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, mask: UInt8 | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Replicas:
        """Those that a mask chooses."""
        chosen = mask.astype(np.bool_, copy=False)
        return self if chosen.all() else Replicas(self.rows[chosen], self.places[chosen])


def hosted_by(context: Context, broker_mask: UInt8) -> Replicas:
    """All replicas on the brokers (by index) that the mask chooses."""
    p = context.cluster.partitions
    rows = context.replica_index.rows_on(broker_mask)
    most = int(p.replica_count[rows].sum())
    hosted, places = np.empty(most, np.int32), np.empty(most, np.int32)
    count = kernels.list_replicas_on(rows, broker_mask, p.slot_start, p.replica_count, p.replica, hosted, places)
    return Replicas(hosted[:count], places[:count])


def of_rows(context: Context, rows: Int32) -> Replicas:
    """All assigned replicas of ``rows``."""
    p = context.cluster.partitions
    return Replicas.at(p, np.repeat(rows, p.replica_count[rows]), p.slots_of(rows))


def on_broker(context: Context, broker: int, rows: Int32) -> Replicas:
    """The replicas of ``rows`` on one broker (index); rows without one there are left out."""
    p = context.cluster.partitions
    slots, owner = p.slots_of(rows), np.repeat(rows, p.replica_count[rows])
    here = p.replica[slots] == broker
    return Replicas.at(p, owner[here].astype(np.int32), slots[here])


def are_online(context: Context, replicas: Replicas) -> Bool:
    """Whether each is on a broker that lives, and not on a dead log directory (Kafka 3.9 ``isReplicaOnline``)."""
    p, slots = context.cluster.partitions, replicas.slots(context.cluster.partitions)
    whole = (p.replica_flags[slots] & np.uint8(ReplicaFlag.OFFLINE_DIR)) == 0
    online: Bool = whole & (context.cluster.brokers.live[p.replica[slots]] != 0)
    return online


def startup(context: Context) -> Operation[None]:
    """Derive every replica's state from its broker, tell brokers all that they host, and drop the dead from ISRs."""
    p, brokers = context.cluster.partitions, context.cluster.brokers
    context.log.add(Message.INITIALIZING_REPLICAS)
    kernels.initialize_replica_states(
        p.slot_start, p.replica_count, p.replica, p.replica_flags, brokers.live, p.replica_state
    )
    everywhere = hosted_by(context, np.ones(len(brokers), np.uint8))
    online = p.replica_state[everywhere.slots(p)] == ReplicaState.ONLINE
    context.log.add(Message.ONLINE_REPLICAS)
    yield from move(context, everywhere.where(online), ReplicaState.ONLINE)
    context.log.add(Message.OFFLINE_REPLICAS)
    yield from move(context, everywhere.where(~online), ReplicaState.OFFLINE)


def move(
    context: Context, replicas: Replicas, target: ReplicaState, occasion: Occasion = Occasion.REPLICAS
) -> Operation[Replicas]:
    """Move replicas to ``target`` with the effects of ``spec/state-machines.md`` section 3.2; return the refused ones.

    Illegal moves change nothing and are logged. One batch is sent at the end.
    """
    refused = Replicas(_NOBODY, _NOBODY)
    if len(replicas) == 0:
        return refused
    p, legal = context.cluster.partitions, np.empty(len(replicas), np.uint8)
    slots = replicas.slots(p)
    if kernels.check_transitions(slots, p.replica_state, leaves(REPLICA_MOVES, target), legal) < len(replicas):
        refused, replicas, slots = replicas.where(legal == 0), replicas.where(legal), slots[legal != 0]
        context.log_refused("Replica of", refused.rows, f"no legal move to {target.name}")
    counted = bool(context.cluster.topics.deleting.any())
    batch, before = context.batch(occasion), p.replica_state[slots] if counted else None
    if target is ReplicaState.OFFLINE:
        yield from _take_offline(context, replicas, slots, batch)
    elif target is ReplicaState.NEW:
        _welcome(context, replicas, batch)
    elif target is ReplicaState.ONLINE:
        _bring_online(context, replicas, slots, batch)
    else:
        p.replica_state[slots] = target
        if target is ReplicaState.DELETION_STARTED:
            batch.add_stop_replica(_brokers(context, replicas), replicas.rows, delete=True)
    if before is not None:
        context.gauges.replicas_moved(replicas.rows, before, p.replica_state[replicas.slots(p)])
    yield from context.send(batch)
    return refused


def call_new(context: Context, replicas: Replicas) -> None:
    """Replicas that the controller knows nothing of are New from now on; nobody is told."""
    p = context.cluster.partitions
    before = p.replica_state[replicas.slots(p)]
    p.replica_state[replicas.slots(p)] = ReplicaState.NEW
    context.gauges.replicas_moved(replicas.rows, before, p.replica_state[replicas.slots(p)])


def _brokers(context: Context, replicas: Replicas) -> Int32:
    p = context.cluster.partitions
    return p.hosts_of(replicas.slots(p))


def _tell_each(
    context: Context, batch: RequestBatch, replicas: Replicas, brokers: Int32, is_new: bool
) -> None:  # fmt: skip
    """Queue for each replica's broker, as far as the partition has a state, that state; metadata for everybody."""
    stated = context.cluster.partitions.partition_epoch[replicas.rows] != NO_STATE
    rows, brokers = (replicas.rows, brokers) if stated.all() else (replicas.rows[stated], brokers[stated])
    if len(rows):
        ascending = bool((rows[1:] >= rows[:-1]).all())
        changed = rows[np.concatenate([[True], rows[1:] != rows[:-1]])] if ascending else np.unique(rows)
        batch.add_leader_and_isr(brokers, rows, changed, is_new)


def _welcome(context: Context, replicas: Replicas, batch: RequestBatch) -> None:
    """NonExistent → New. A replica that leads its partition already cannot be new: it is refused and logged."""
    p = context.cluster.partitions
    brokers = _brokers(context, replicas)
    leads = p.leader[replicas.rows] == brokers
    leads &= p.partition_epoch[replicas.rows] != NO_STATE
    context.log_refused("Replica of", replicas.rows[leads], "cannot be New: it is the leader")
    replicas = replicas.where(~leads)
    _tell_each(context, batch, replicas, brokers[~leads], is_new=True)
    p.replica_state[replicas.slots(p)] = ReplicaState.NEW


def _bring_online(context: Context, replicas: Replicas, slots: Int32, batch: RequestBatch) -> None:
    """New replicas were told already; all others, ``slots`` beside them, learn the state of their partition."""
    p = context.cluster.partitions
    known = p.replica_state[slots] != ReplicaState.NEW
    told, where = (replicas, slots) if known.all() else (replicas.where(known), slots[known])
    _tell_each(context, batch, told, p.hosts_of(where), is_new=False)
    p.replica_state[slots] = ReplicaState.ONLINE


def _take_offline(context: Context, replicas: Replicas, slots: Int32, batch: RequestBatch) -> Operation[None]:
    """Stop the replicas, ``slots`` beside them, and take them out of their ISRs, broker by broker in Kafka's order."""
    brokers, hosts = context.cluster.brokers, context.cluster.partitions.hosts_of(slots)
    if len(hosts) and bool((hosts == hosts[0]).all()):
        yield from _take_broker_offline(context, int(hosts[0]), replicas, batch)
        return
    offsets, count = np.empty(len(brokers) + 1, np.int32), len(replicas)
    rows, origin = np.empty(count, np.int32), np.empty(count, np.int32)
    kernels.group_by_broker(hosts, replicas.rows, offsets, rows, origin)
    for broker_id in scala_hash_order(brokers.ids[np.flatnonzero(offsets[1:] != offsets[:-1])].tolist()):
        broker = brokers.find(broker_id)
        assert broker is not None, "a broker index without a broker id"
        part = slice(offsets[broker], offsets[broker + 1])
        on_it = Replicas(rows[part], replicas.places[origin[part]])
        yield from _take_broker_offline(context, broker, on_it, batch)


def _take_broker_offline(context: Context, broker: int, replicas: Replicas, batch: RequestBatch) -> Operation[None]:
    cluster = context.cluster
    p = cluster.partitions
    if cluster.brokers.registered[broker]:
        batch.add_stop_replica(np.full(len(replicas), broker, np.int32), replicas.rows, delete=False)
    stated = p.partition_epoch[replicas.rows] != NO_STATE
    left = yield from leave_isrs(context, broker, replicas.where(stated).rows)
    replica = int(cluster.brokers.ids[broker])
    context.log.add_partitions(Message.ISR_SHRUNK, cluster, left, replica=replica)
    kept = ~cluster.doomed(left)
    told = left if kept.all() else left[kept]
    others = cluster.brokers.registered.copy()
    others[broker] = 0
    tell_replicas(context, batch, told, others, skip_flags=0, is_new=False)
    if not stated.all():
        batch.add_metadata(np.flatnonzero(cluster.brokers.registered), _NOBODY)
    gone = replicas if len(left) == len(replicas) else replicas.where(~stated | np.isin(replicas.rows, left))
    p.replica_state[gone.slots(p)] = ReplicaState.OFFLINE


def plan_first_removals(context: Context, replicas: Replicas) -> StateChange | None:
    """The part of the first write of a transition to OFFLINE that no election before it can change, or None.

    The store sends it behind the elections without waiting for their answer. Elections change only partitions that are
    New or Offline. Before inter-broker protocol 2.7-IV2 leaders write ISRs, so states are read before they are written.
    """
    cluster, p = context.cluster, context.cluster.partitions
    slots = replicas.slots(p)
    certain = (p.state[replicas.rows] == PartitionState.ONLINE) & (p.replica_state[slots] == ReplicaState.ONLINE)
    certain &= p.partition_epoch[replicas.rows] != NO_STATE
    if not context.config.protocol.alter_partition or not certain.any():
        return None
    hosts = p.hosts_of(slots)
    broker = cluster.brokers.find(scala_hash_order(cluster.brokers.ids[np.flatnonzero(np.bincount(hosts))].tolist())[0])
    assert broker is not None, "a broker index without a broker id"
    change = _plan_removal(context, broker, replicas.rows[certain & (hosts == broker)])
    return change if len(change) else None


def leave_isrs(context: Context, broker: int, rows: Int32) -> Operation[Int32]:
    """Take ``broker`` out of the ISRs of ``rows``; return those rows whose ISR lacks it now (or keeps it as the last).

    Rows that it had left before cost no write and no leader epoch; they too are remembered under our controller epoch,
    although storage keeps the old one (Kafka 3.9 ``doRemoveReplicasFromIsr``). Rows of a topic under deletion whose
    state is gone are passed over silently. Where leaders write ISRs themselves, rows are read first: the broker may
    have joined one since, and nothing would refuse the write that is not made.
    """
    kept: list[Int32] = []
    remaining = rows
    if not context.config.protocol.alter_partition:
        remaining, _ = yield from context.refresh(rows)
        kept.append(np.setdiff1d(rows, remaining).astype(np.int32))
    for _ in range(ATTEMPTS_MAX):
        change = _plan_removal(context, broker, remaining)
        result = yield from context.write(change)
        if result.accepted.all():
            remaining = remaining[:0]
            break
        lost = change.rows[~result.accepted & ~stale(result)]
        context.log_refused(
            "Replica of", lost[~context.cluster.doomed(lost)], "stays as it is: storage has no state for its partition"
        )
        raced = change.rows[stale(result)]
        remaining, _ = yield from context.refresh(raced)
        unreadable = np.setdiff1d(raced, remaining).astype(np.int32)
        context.log_refused("Replica of", unreadable, "stays as it is: its partition's state is gone or another's")
        kept += [lost, unreadable]
    context.log_refused("Replica of", remaining, "stays as it is: its partition's state keeps changing")
    kept.append(remaining)
    stay = np.concatenate(kept)
    left = np.setdiff1d(rows, stay, assume_unique=True) if len(stay) else rows
    context.cluster.partitions.controller_epoch[left] = context.controller_epoch
    return left


def _plan_removal(context: Context, broker: int, rows: Int32) -> StateChange:
    p = context.cluster.partitions
    changed, leader, leader_epoch, expected = (np.empty(len(rows), np.int32) for _ in range(4))
    recovery = np.empty(len(rows), np.uint8)
    offsets, values = np.empty(len(rows) + 1, np.int32), np.empty(int(p.isr_count[rows].sum()), np.int32)
    count = kernels.plan_removals(
        broker, rows, p.leader, p.leader_epoch, p.recovery, p.partition_epoch, p.slot_start, p.isr_count, p.isr,
        changed, leader, leader_epoch, recovery, expected, offsets, values,
    )  # fmt: skip
    isr = Ragged(offsets[: count + 1], values[: offsets[count]])
    return StateChange(
        changed[:count], leader[:count], leader_epoch[:count], recovery[:count], isr, expected[:count],
        context.controller_epoch,
    )  # fmt: skip
