"""The replica state machine, in bulk: seven replica states (Kafka 3.9 ``ZkReplicaStateMachine``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from kframe import kernels
from kframe.core.context import ATTEMPTS_MAX, Context, Operation
from kframe.core.request_batch import RequestBatch
from kframe.core.state_machines.isr_removals import plan_removals, remove_from_isrs
from kframe.core.state_machines.leader_election import queue_leader_and_isr
from kframe.core.state_machines.removal_rounds import removal_rounds
from kframe.core.state_machines.scala_hash_order import scala_hash_order
from kframe.core.state_machines.transitions import REPLICA_TRANSITIONS, bits, source_states
from kframe.model.arrays import Bool, Int32, UInt8
from kframe.model.changes import StateChange
from kframe.model.columns import Partitions
from kframe.model.config import STRICT_REASSIGNMENT
from kframe.model.ids import EPOCH_DURING_DELETE, NO_STATE, PartitionState, ReplicaFlag, ReplicaState
from kframe.model.lists import distinct_rows, distinct_values
from kframe.model.log_entries import Message
from kframe.model.row_views import span_of, values_at

_NO_ROWS = np.empty(0, np.int32)
#: States of which brokers are notified under the partition's state: they are set once that is planned.
_ANNOUNCED = (ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE)


@dataclass(slots=True, eq=False)
class PartitionReplicas:
    """Replicas as (row, position in the row's list) pairs.

    They stay valid when a row gets other slots, as reading a state may cause. A new assignment invalidates them.
    """

    rows: Int32
    positions: Int32
    _slots: tuple[int, Int32] | None = None
    """Their slots after this many relocations."""
    _brokers: Int32 | None = field(default=None, init=False)

    def slots(self, p: Partitions) -> Int32:
        """Their slots at present. Callers must not modify the array."""
        if self._slots is None or self._slots[0] != p.relocations:
            self._slots = p.relocations, p.slot_start[self.rows] + self.positions
        return self._slots[1]

    def brokers(self, p: Partitions) -> Int32:
        """The broker (index) of each. Callers must not modify the array."""
        if self._brokers is None:
            self._brokers = p.brokers_of(self.slots(p))
        return self._brokers

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, mask: UInt8 | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> PartitionReplicas:
        """The replicas that a mask selects."""
        chosen = mask.astype(np.bool_, copy=False)
        if chosen.all():
            return self
        if not chosen.any():
            return PartitionReplicas(_NO_ROWS, _NO_ROWS)
        return PartitionReplicas(self.rows[chosen], self.positions[chosen])


def replicas_on(context: Context, broker_mask: UInt8) -> PartitionReplicas:
    """All replicas on the brokers (by index) that the mask selects."""
    return _list_replicas(context, context.replica_index.rows_on(broker_mask), broker_mask)


def replicas_of(context: Context, rows: Int32) -> PartitionReplicas:
    """All assigned replicas of ``rows``."""
    return _list_replicas(context, rows, np.ones(len(context.cluster.brokers), np.uint8))


def replicas_of_broker(context: Context, broker: int, rows: Int32) -> PartitionReplicas:
    """The replicas of ``rows`` on one broker (index)."""
    p = context.cluster.partitions
    positions, slots = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    kernels.locate_replicas(rows, broker, p.slot_start, p.replica_count, p.replica, positions, slots)
    return PartitionReplicas(rows, positions, (p.relocations, slots)).where(positions >= 0)


def _list_replicas(context: Context, rows: Int32, broker_mask: UInt8) -> PartitionReplicas:
    """The replicas of ``rows`` on the brokers that the mask selects."""
    p = context.cluster.partitions
    capacity = int(values_at(p.replica_count, rows).sum())
    owners, positions, slots = (np.empty(capacity, np.int32) for _ in range(3))
    count = kernels.list_replicas_on(
        rows, broker_mask, p.slot_start, p.replica_count, p.replica, owners, positions, slots
    )
    return PartitionReplicas(owners[:count], positions[:count], (p.relocations, slots[:count]))


def in_states(context: Context, replicas: PartitionReplicas, states: Iterable[ReplicaState]) -> PartitionReplicas:
    """Those of ``replicas`` that are in one of these states."""
    return replicas.where(_are_in_states(context, replicas, bits(states)))


def _are_in_states(context: Context, replicas: PartitionReplicas, states: int) -> Bool:
    """Whether each is in one of these states (a bit for each)."""
    p, matches = context.cluster.partitions, np.empty(len(replicas), np.uint8)
    kernels.check_transitions(replicas.slots(p), p.replica_status, states, matches)
    return matches.view(np.bool_)


def are_online(context: Context, replicas: PartitionReplicas) -> Bool:
    """Whether each is on a live broker and on no offline log directory (Kafka 3.9 ``isReplicaOnline``)."""
    p, online = context.cluster.partitions, np.empty(len(replicas), np.uint8)
    kernels.mark_online_replicas(replicas.slots(p), p.replica, p.replica_status, context.cluster.brokers.live, online)
    return online.view(np.bool_)


def startup(context: Context) -> Operation[None]:
    """Derive the state of every replica, send brokers their replicas' states, and remove dead brokers from ISRs."""
    p, brokers = context.cluster.partitions, context.cluster.brokers
    context.log.add(Message.INITIALIZING_REPLICAS)
    kernels.initialize_replica_states(p.slot_start, p.replica_count, p.replica, brokers.live, p.replica_status)
    replicas = replicas_on(context, np.ones(len(brokers), np.uint8))
    online = _are_in_states(context, replicas, bits([ReplicaState.ONLINE]))
    context.log.add(Message.ONLINE_REPLICAS)
    yield from transition(context, replicas.where(online), ReplicaState.ONLINE)
    context.log.add(Message.OFFLINE_REPLICAS)
    yield from transition(context, replicas.where(~online), ReplicaState.OFFLINE)


def transition(context: Context, replicas: PartitionReplicas, target: ReplicaState) -> Operation[PartitionReplicas]:
    """Change replicas to ``target``, with the requests that the transition requires. Return the refused replicas.

    Illegal transitions are logged and change nothing. One batch of requests is sent at the end.
    """
    refused = PartitionReplicas(_NO_ROWS, _NO_ROWS)
    if len(replicas) == 0:
        return refused
    p, sources = context.cluster.partitions, source_states(REPLICA_TRANSITIONS, target)
    if target in _ANNOUNCED:
        legal = _are_in_states(context, replicas, sources)
    else:
        slots = replicas.slots(p)
        legal = context.gauges.deleting_replicas.change_states(replicas.rows, slots, sources, target)
    if not legal.all():
        refused, replicas = replicas.where(~legal), replicas.where(legal)
        _log_illegal(context, refused.rows, target)
    batch = context.batch()
    if target is ReplicaState.OFFLINE:
        yield from _take_offline(context, replicas, batch)
    elif target is ReplicaState.NEW:
        _create(context, replicas, batch)
    elif target is ReplicaState.ONLINE:
        _bring_online(context, replicas, batch)
    elif target is ReplicaState.DELETION_STARTED:
        batch.add_stop_replica(replicas.brokers(p), replicas.rows, delete=True)
    yield from context.send(batch)
    return refused


def transition_on(context: Context, broker: int, rows: Int32, target: ReplicaState) -> int:
    """Change the replicas of ``rows`` on one broker (index) to a ``target`` that no broker is notified of.

    Returns how many these are. Illegal transitions are logged. One pass does the work of ``replicas_of_broker`` and
    ``transition``: each response to a deletion of replicas needs both.
    """
    sources = source_states(REPLICA_TRANSITIONS, target)
    legal = context.gauges.deleting_replicas.change_states_on(broker, rows, sources, target)
    _log_illegal(context, rows[legal < 0], target)
    return int(np.count_nonzero(legal))


def _log_illegal(context: Context, rows: Int32, target: ReplicaState) -> None:
    context.log_refused("Replica of", rows, f"no legal transition to {target.name}")


def set_new(context: Context, replicas: PartitionReplicas) -> None:
    """Set replicas without a state to New. No broker is notified."""
    _set_states(context, replicas, ReplicaState.NEW)


def _set_states(context: Context, replicas: PartitionReplicas, target: ReplicaState) -> None:
    """Set the state of replicas."""
    slots = replicas.slots(context.cluster.partitions)
    context.gauges.deleting_replicas.set_states(replicas.rows, slots, target)


def _queue_states(
    context: Context, batch: RequestBatch, replicas: PartitionReplicas, brokers: Int32, is_new: bool
) -> None:
    """Add LeaderAndIsr for the broker of each replica whose partition has a state, and metadata for all brokers."""
    partition_epoch, rows = context.cluster.partitions.partition_epoch, replicas.rows
    changed = distinct_values(rows)
    if not (values_at(partition_epoch, changed) != NO_STATE).all():
        has_state = partition_epoch[rows] != NO_STATE
        rows, brokers, changed = rows[has_state], brokers[has_state], changed[partition_epoch[changed] != NO_STATE]
    if len(rows):
        batch.add_leader_and_isr(brokers, rows, changed, is_new)


def _create(context: Context, replicas: PartitionReplicas, batch: RequestBatch) -> None:
    """NonExistent → New. A replica that leads its partition cannot be New: it is refused and logged."""
    p = context.cluster.partitions
    if (p.partition_epoch[span_of(replicas.rows)] != NO_STATE).any():  # no partition of a new topic has one
        has_state = p.partition_epoch[replicas.rows] != NO_STATE
        brokers = replicas.brokers(p)
        leads = has_state & (p.leader[replicas.rows] == brokers)
        context.log_refused("Replica of", replicas.rows[leads], "cannot be New: it is the leader")
        replicas = replicas.where(~leads)
        _queue_states(context, batch, replicas, brokers[~leads], is_new=True)
    _set_states(context, replicas, ReplicaState.NEW)


def _bring_online(context: Context, replicas: PartitionReplicas, batch: RequestBatch) -> None:
    """Send the partition's state to all but New replicas, which have it."""
    known = in_states(context, replicas, set(ReplicaState) - {ReplicaState.NEW})
    _queue_states(context, batch, known, known.brokers(context.cluster.partitions), is_new=False)
    _set_states(context, replicas, ReplicaState.ONLINE)


def _take_offline(context: Context, replicas: PartitionReplicas, batch: RequestBatch) -> Operation[None]:
    """Stop the replicas and remove them from ISRs.

    A row loses its replicas one after another in Kafka's order of brokers. All rows lose their first ones in one write,
    then their second ones, and so on.
    """
    cluster = context.cluster
    p, registered = cluster.partitions, cluster.brokers.registered
    replicas = _by_row(replicas)
    rows, brokers = replicas.rows, replicas.brokers(p)
    leader_epoch = batch.stop_leader_epoch(rows)
    removed, stated = np.ones(len(rows), np.bool_), np.ones(len(rows), np.bool_)
    writes_change_epochs = bool((leader_epoch != EPOCH_DURING_DELETE).any())
    for number, removal_round in enumerate(removal_rounds(context.cluster, rows, brokers)):
        chosen, chosen_rows, chosen_brokers = removal_round
        if number and writes_change_epochs:
            leader_epoch[chosen] = batch.stop_leader_epoch(chosen_rows)
        has_state = values_at(p.partition_epoch, chosen_rows) != NO_STATE
        if not has_state.all():
            stated[chosen] = removed[chosen] = has_state
            chosen, chosen_rows, chosen_brokers = chosen[has_state], chosen_rows[has_state], chosen_brokers[has_state]
        removed_rows = yield from remove_from_isrs(context, chosen_brokers, chosen_rows)
        if len(removed_rows) < len(chosen_rows):
            has_left = np.isin(chosen_rows, removed_rows)
            removed[chosen], chosen_brokers = has_left, chosen_brokers[has_left]
        _log_shrunk(context, chosen_brokers, removed_rows)
    if not context.config.protocol.alter_partition:
        yield from _remove_rejoined(context, brokers[removed], rows[removed])
    stopped = np.ones(len(rows), np.bool_) if registered.all() else registered[brokers] != 0
    if stopped.any():
        sent: slice | Bool = slice(None) if stopped.all() else stopped
        batch.add_stop_replica(brokers[sent], rows[sent], delete=False, leader_epoch=leader_epoch[sent])
    # StopReplica has this leader epoch exactly where the topic is queued for deletion.
    notified = removed & (leader_epoch != EPOCH_DURING_DELETE)
    _queue_shrunk(context, batch, brokers[notified], rows[notified])
    if not stated.all():
        batch.add_metadata(np.flatnonzero(registered), _NO_ROWS)
    _set_states(context, replicas.where(~stated | removed), ReplicaState.OFFLINE)


def _remove_rejoined(context: Context, brokers: Int32, rows: Int32) -> Operation[None]:
    """Remove ``brokers[i]`` from the ISR of ``rows[i]`` (ascending) again, where the leader has added it meanwhile.

    Before inter-broker protocol 2.7-IV2 a leader writes ISRs up to the first write of the controller. A replica that is
    not in the ISR costs no write, so that it may join while another one leaves. In Kafka it stays, and is deleted.
    """
    p = context.cluster.partitions
    for _ in range(ATTEMPTS_MAX):
        isr = p.lists("isr", rows)
        rejoined = isr.any(isr.values == brokers[isr.owners]) & (isr.counts > 1)
        brokers, rows = brokers[rejoined], rows[rejoined]
        if len(rows) == 0:
            break
        is_first = np.concatenate([[True], rows[1:] != rows[:-1]])
        yield from remove_from_isrs(context, brokers[is_first], rows[is_first])


def _by_row(replicas: PartitionReplicas) -> PartitionReplicas:
    """The replicas by ascending row."""
    rows = replicas.rows
    if bool((rows[1:] >= rows[:-1]).all()):
        return replicas
    order = np.argsort(rows, kind="stable")
    return PartitionReplicas(rows[order], replicas.positions[order])


def _log_shrunk(context: Context, replica_brokers: Int32, rows: Int32) -> None:
    """Log the rows whose ISR the broker beside them has left, broker by broker."""
    brokers = context.cluster.brokers
    if not context.log.partitions_max or len(rows) == 0:
        return
    for broker_id in scala_hash_order(brokers.ids[distinct_rows(replica_brokers, len(brokers))].tolist()):
        shrunk = rows[replica_brokers == brokers.find(broker_id)]
        context.log.add_partitions(Message.ISR_SHRUNK, context.cluster, shrunk, replica=broker_id)


def _queue_shrunk(context: Context, batch: RequestBatch, brokers: Int32, rows: Int32) -> None:
    """Add LeaderAndIsr of ``rows`` (ascending), which the brokers in ``brokers`` have left, for the other replicas.

    A row that several brokers have left is sent to all replicas: each removal notifies the other brokers.

    With ``STRICT_REASSIGNMENT`` replicas under addition are new. When a reassignment is overridden, this is their first
    request. In Kafka they are not, and a broker with a failed log directory refuses them.
    """
    is_first = np.concatenate([[True], rows[1:] != rows[:-1]])[: len(rows)]
    is_single = is_first & np.concatenate([is_first[1:], [True]])[: len(rows)]
    notified, excluded = rows[is_first], np.where(is_single, brokers, np.int32(-1))[is_first]
    recipients = context.cluster.brokers.registered
    if len(notified) and bool((excluded == excluded[0]).all()) and excluded[0] >= 0:
        recipients = recipients.copy()
        recipients[excluded[0]], excluded = 0, None
    new_flags = int(ReplicaFlag.ADDING) if context.config[STRICT_REASSIGNMENT] else 0
    queue_leader_and_isr(
        context, batch, notified, recipients, skip_flags=0, is_new=False, new_flags=new_flags, excluded=excluded
    )


def plan_first_removals(context: Context, replicas: PartitionReplicas) -> StateChange | None:
    """The part of the first write of a transition to OFFLINE that no election before it can change, or None.

    The store sends it behind the elections without waiting for their response. Elections change only partitions that
    are New or Offline. Before inter-broker protocol 2.7-IV2 leaders write ISRs, so states are read before they are
    written.
    """
    p = context.cluster.partitions
    replicas = _by_row(replicas)
    slots, brokers = replicas.slots(p), replicas.brokers(p)
    certain = (p.states_of(replicas.rows) == PartitionState.ONLINE) & (p.replica_states(slots) == ReplicaState.ONLINE)
    certain &= p.partition_epoch[replicas.rows] != NO_STATE
    if not context.config.protocol.alter_partition or not certain.any():
        return None
    first = removal_rounds(context.cluster, replicas.rows, brokers)[0]
    certain = certain[first.positions]
    change = plan_removals(context, first.brokers[certain], first.rows[certain])
    return change if len(change) else None
