"""Invariants of control requests: order, receiver, and replicas that may be stopped (I13 to I18, I22)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.events import BrokersChanged, ControlledShutdownRequested, IsrChangesNotified, TopicPartition
from kframe.model.ids import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, NO_BROKER_EPOCH, NO_STATE
from kframe_simulator.broker.messages import LeaderAndIsr, Stop, StopReplica, UpdateMetadata
from kframe_simulator.replication.control_requests import read_row
from kframe_simulator.simulation.observations import (
    ChannelOpened,
    ControlledShutdownCompleted,
    EventCompleted,
    RequestQueued,
    RequestSent,
)
from kframe_simulator.simulation.observed import partitions_of
from kframe_simulator.simulation.watch import Watch


def single_request_in_flight(watch: Watch, sent: RequestSent) -> str | None:
    """I13: a broker has at most one request in flight. Requests are in the order of creation. Only the same request is
    repeated."""
    process, request = sent.process, sent.request
    line = watch.simulation.lines.get((process.controller_id, process.incarnation, request.broker_id))
    if not line or line[0] is not request:
        return f"broker {request.broker_id}: a request of {type(request.message).__name__} left out of order"
    return None


def first_request_is_update_metadata(watch: Watch, queued: RequestQueued) -> str | None:
    """I14: in each controller epoch a registration first receives UpdateMetadata with all brokers. Its first
    LeaderAndIsr has all its partitions."""
    process, request = queued.process, queued.request
    message = request.message
    key = (
        process.controller_id,
        process.incarnation,
        message.controller_epoch,
        request.broker_id,
        request.broker_epoch,
    )
    kinds_sent = watch.started.setdefault(key, set())
    first, kind = not kinds_sent, type(message)
    first_of_kind = kind not in kinds_sent
    kinds_sent.add(kind)
    if first and not isinstance(message, UpdateMetadata):
        return f"broker {request.broker_id} receives {kind.__name__} first"
    if first and isinstance(message, UpdateMetadata):
        registered = tuple(process.loop.controller.cluster.brokers.registered_ids())
        if message.live_brokers != registered:
            return (
                f"broker {request.broker_id} receives live brokers {message.live_brokers}, registered are {registered}"
            )
    if first_of_kind and isinstance(message, LeaderAndIsr):
        missing = _assigned_partitions(process, request.broker_id) - message.partitions.keys()
        if missing:
            return f"the first LeaderAndIsr of broker {request.broker_id} leaves out {sorted(missing)}"
    return None


def _assigned_partitions(process: object, broker_id: int) -> set[tuple[str, int]]:
    """Partitions with a state that the controller has assigned to a broker. Excluded are topics under deletion, and
    replicas under addition, which are sent as new later. A broker that is shutting down receives only partitions whose
    ISR has it."""
    cluster = process.loop.controller.cluster  # type: ignore[attr-defined]
    p, index = cluster.partitions, cluster.brokers.find(broker_id)
    is_shutting_down = index is not None and cluster.brokers.shutting_down[index] != 0
    result = set()
    for row in (p.partition_epoch != NO_STATE).nonzero()[0].tolist():
        if p.topic[row] >= 0 and not cluster.topics.deleting[p.topic[row]]:
            state = read_row(cluster, row)
            if broker_id in (state.isr if is_shutting_down else state.replicas) and broker_id not in state.adding:
                result.add(state.key)
    return result


def for_current_registration(watch: Watch, sent: RequestSent) -> str | None:
    """I15: a request has the broker epoch of its registration from creation to completion."""
    channel = sent.process.transport.channels.get(sent.request.broker_id)
    if channel is None or channel.broker_epoch != sent.request.message.broker_epoch:
        now = None if channel is None else channel.broker_epoch
        return f"broker {sent.request.broker_id}: a request for {sent.request.message.broker_epoch} went to {now}"
    return None


def failure_precedes_startup(watch: Watch, connected: ChannelOpened) -> str | None:
    """I16: a new registration of the same id is handled as a broker failure and then a broker startup."""
    if connected.open_epoch is not None:
        return f"broker {connected.broker_id} was connected anew while its channel of {connected.open_epoch} was open"
    return None


def requests_go_to_registered_brokers(watch: Watch, queued: RequestQueued) -> str | None:
    """I17: requests go to registered brokers, and list no dead leader as live."""
    cluster, request = queued.process.loop.controller.cluster, queued.request
    index = cluster.brokers.find(request.broker_id)
    if index is None or not cluster.brokers.registered[index]:
        return f"a request for broker {request.broker_id}, which is known to be gone"
    if request.broker_id not in queued.process.transport.channels:
        return f"a request for broker {request.broker_id}, to which no channel is open"
    return None


def _stops(queued: RequestQueued) -> Iterable[tuple[TopicPartition, Stop]]:
    """The partitions of a StopReplica request. Other requests have none."""
    message = queued.request.message
    return message.partitions.items() if isinstance(message, StopReplica) else ()


def deletions_keep_target_and_isr(watch: Watch, queued: RequestQueued) -> str | None:
    """I18, I22: only replicas of topics under deletion, or outside the target, are deleted, and no ISR member."""
    cluster = queued.process.loop.controller.cluster
    for key, stop in _stops(queued):
        row = cluster.row(*key)
        if not stop.delete or row is None or cluster.topics.deleting[cluster.partitions.topic[row]]:
            continue
        state = read_row(cluster, row)
        broker_id, target = queued.request.broker_id, list(state.target)
        if broker_id in target or broker_id in state.isr:
            return f"{key}: broker {broker_id} of target {target}, isr {state.isr} is sent a deletion of its replica"
    return None


def stop_replica_has_leader_epoch(watch: Watch, queued: RequestQueued) -> str | None:
    """I18: StopReplica has the current leader epoch, so that a broker refuses a late request. It has -1 if there never
    was a leader, and -2, which is never refused, if the topic is being deleted. A deposed controller may not know that
    its topic was deleted and created again."""
    stored, deleting = watch.observed.stored, watch.observed.deleting(queued.process)
    for key, stop in _stops(queued):
        known = {leader_epoch for _, leader_epoch, _, _ in stored.get(key, ())}
        earlier = {leader_epoch for _, leader_epoch, _, _ in watch.observed.deleted_states(queued.process, key)}
        of_earlier_topic = bool(earlier) and stop.leader_epoch in {EPOCH_DURING_DELETE, *earlier}
        expected = {EPOCH_DURING_DELETE} if key[0] in deleting else known
        if known and stop.leader_epoch not in expected and not of_earlier_topic:
            return f"{key}: StopReplica bears leader epoch {stop.leader_epoch}, stored were {sorted(known)}"
        row = watch.simulation.ensemble.rows.get(key)
        if row is None or not known or not stop.delete or key[0] in deleting:
            continue
        if watch.observed.in_term(queued.process) and stop.leader_epoch != row.leader_epoch:
            return f"{key}: StopReplica bears leader epoch {stop.leader_epoch}, stored is {row.leader_epoch}"
    return None


def deletions_repeat_only_after_events(watch: Watch, queued: RequestQueued) -> str | None:
    """I19: StopReplica with deletion is repeated only after an event that lets the deletion continue."""
    deleting = watch.observed.deleting(queued.process)
    for key, stop in _stops(queued):
        repeated = stop.delete and watch.observed.repeats_deletion(queued.process, key, queued.request.broker_id)
        if repeated and key[0] in deleting:
            return f"{key}: broker {queued.request.broker_id} is sent the same deletion again, and nothing has changed"
    return None


def only_stored_states_are_sent(watch: Watch, queued: RequestQueued) -> str | None:
    """I12: LeaderAndIsr and UpdateMetadata have states that were stored, and none of a later controller. A deposed
    controller may not know that its topic was deleted."""
    message, observed = queued.request.message, watch.observed
    if isinstance(message, LeaderAndIsr):
        for key, state in message.partitions.items():
            if state.controller_epoch > message.controller_epoch:
                return f"{key}: a state of controller epoch {state.controller_epoch} is sent in an earlier one"
            leadership = state.leader, state.leader_epoch, state.isr, state.partition_epoch
            if leadership not in observed.known_states(queued.process, key):
                return f"{key}: leader {state.leader} of epoch {state.leader_epoch}, isr {state.isr} never was stored"
    elif isinstance(message, UpdateMetadata):
        for key, sent in message.partitions.items():
            leadership = sent.leader, sent.leader_epoch, sent.isr, sent.partition_epoch
            if sent.leader != LEADER_DURING_DELETE and leadership not in observed.known_states(queued.process, key):
                return f"{key}: leader {sent.leader} of epoch {sent.leader_epoch}, isr {sent.isr} never was stored"
    return None


def only_assigned_replicas_are_sent(watch: Watch, queued: RequestQueued) -> str | None:
    """I21: LeaderAndIsr has replicas from a stored assignment: a reassignment begins only after it is stored."""
    message = queued.request.message
    if not isinstance(message, LeaderAndIsr) or not watch.observed.in_term(queued.process):
        return None
    for key, state in message.partitions.items():
        row = watch.simulation.ensemble.rows.get(key)
        others = set() if row is None else set(state.replicas) - set(row.replicas)
        if others and row is not None:
            return f"{key}: replicas {state.replicas} are sent, storage has {row.replicas}"
    return None


def last_in_sync_logs_stay(watch: Watch, queued: RequestQueued) -> str | None:
    """I22: a reassignment deletes no replica before a live target replica leads."""
    observed = watch.observed
    for key, stop in _stops(queued):
        row = watch.simulation.ensemble.rows.get(key)
        if row is None or not stop.delete or not observed.in_term(queued.process):
            continue
        if key[0] in observed.deleting(queued.process) | observed.marked():
            continue
        target = set(row.target)
        if queued.request.broker_id in row.removing and row.leader not in target & observed.live(queued.process):
            return (
                f"{key}: broker {queued.request.broker_id} is sent a deletion, {row.leader} leads, not {sorted(target)}"
            )
    return None


def only_controllers_send(watch: Watch, queued: RequestQueued) -> str | None:
    """I3: no request is sent while its sender is not certain of the role."""
    if not queued.process.store.role_is_certain():
        return f"{queued.process.controller_id} tells broker {queued.request.broker_id} while its role is not certain"
    return None


def isr_changes_are_sent_alone(watch: Watch, queued: RequestQueued) -> str | None:
    """I30: after an ISR change notification, UpdateMetadata has only the partitions in the notification."""
    message = queued.request.message
    if not isinstance(queued.process.event, IsrChangesNotified) or not isinstance(message, UpdateMetadata):
        return None
    others = message.partitions.keys() - watch.simulation.noticed_now(queued.process)
    return (
        f"broker {queued.request.broker_id} is sent {sorted(others)}, which no leader has proposed" if others else None
    )


def original_replicas_wait_for_target(watch: Watch, queued: RequestQueued) -> str | None:
    """I22: a reassignment stops no original replica before all target replicas were in sync. A deposed controller
    may complete a reassignment of its own term. Brokers that know its successor refuse the request (Kafka 3.9
    ``ReplicaManager.stopReplicas``)."""
    cluster, epoch = queued.process.loop.controller.cluster, queued.request.message.controller_epoch
    for key, stop in _stops(queued):
        row = cluster.row(*key)
        saved = row is not None and not cluster.topics.deleting[cluster.partitions.topic[row]]
        if saved and stop.delete and not watch.reassignments.may_stop(key, queued.request.broker_id, epoch):
            return f"{key}: original replica {queued.request.broker_id} is stopped before the target was in sync"
    return None


def new_assignments_are_sent(watch: Watch, ended: EventCompleted) -> str | None:
    """I12: after an event that changes an assignment, every live remaining replica is sent the stored leader epoch.
    Exempt is an assignment that an earlier event has sent, and this event stored because its record was unreadable."""
    process = ended.process
    if not ended.succeeded:
        return None
    live, marked = watch.observed.live(process), watch.observed.marked()
    for was, row in ended.written_rows(watch.simulation.ensemble.rows):
        if row.partition_epoch == NO_STATE or row.key[0] in marked or row[7:10] == was[7:10]:
            continue
        if watch.observed.sent_before(process, row, ended.event):
            continue
        for broker in live.intersection(row.replicas) - set(row.removing):
            if ended.sent_epochs.get((row.key, broker)) != row.leader_epoch:
                return f"{row.key}: broker {broker} is not sent replicas {row.replicas}, which were {was.replicas}"
    return None


def new_replicas_are_sent_as_new(watch: Watch, ended: EventCompleted) -> str | None:
    """I18: LeaderAndIsr marks a replica as new in the event that creates or adds it. A broker with a failed log
    directory creates only new replicas."""
    unsent = ended.not_sent_as_new
    return None if not unsent else f"{unsent[0][0]}: broker {unsent[0][1]} did not get is_new for its replica"


def removed_replicas_are_deleted(watch: Watch, ended: EventCompleted) -> str | None:
    """I18, I21: a broker that an event removes from an assignment is sent StopReplica with deletion. Exempt is a broker
    that was not registered when this term first sent the assignment without it, and has registered since. This event
    stored that assignment, or a later one, because the record was unreadable before. As in Kafka 3.9
    (``sendStopReplicaRequests``, ``onBrokerStartup``), the broker keeps its log."""
    process, ensemble = ended.process, watch.simulation.ensemble
    if not ended.succeeded:
        return None
    registered, term = watch.observed.registered(process), watch.observed.of_term(process)
    for was, row in ended.written_rows(ensemble.rows):
        if row.partition_epoch == NO_STATE or not ensemble.readable([row.key[0]]):
            continue
        for broker in registered.keys() & set(was.replicas) - set(row.replicas):
            replica = row.key, broker
            if replica not in term.sent_deletions and replica not in term.sent_replicas.absent_at_removal:
                return f"{row.key}: broker {broker} left the assignment, and is not sent a deletion"
    return None


def broker_changes_are_sent(watch: Watch, ended: EventCompleted) -> str | None:
    """I12: when registrations come or go, all registered brokers receive UpdateMetadata in the same event."""
    if not isinstance(ended.event, BrokersChanged) or not ended.succeeded:
        return None
    return f"brokers {ended.unaware} are not sent the registered brokers" if ended.unaware else None


def leaders_that_shut_down_are_notified(watch: Watch, ended: EventCompleted) -> str | None:
    """I12: a broker that is shutting down receives the new leaders of its partitions in the same event."""
    event = ended.event
    if not ended.process.active or not isinstance(event, ControlledShutdownRequested):
        return None
    cluster = ended.process.loop.controller.cluster
    index = cluster.brokers.find(event.broker_id)
    if index is None or not cluster.brokers.registered[index]:
        return None
    for key, leader in ended.unsent:
        row = cluster.row(*key)
        saved = row is not None and not cluster.topics.deleting[cluster.partitions.topic[row]]
        if saved and leader == event.broker_id:
            return f"{key}: broker {leader} does not lead any more, and was not notified"
    return None


def shutdown_response_lists_led_partitions(watch: Watch, shutdown: ControlledShutdownCompleted) -> str | None:
    """L5: a ControlledShutdown response lists all partitions that the broker still leads and that have other
    replicas."""
    if shutdown.response.error is not ErrorCode.NONE:
        return None
    cluster, broker_id = shutdown.process.loop.controller.cluster, shutdown.request.broker_id
    p, index = cluster.partitions, cluster.brokers.find(broker_id)
    rows = ((p.leader == index) & (p.replica_count > 1) & (p.partition_epoch != NO_STATE) & (p.topic >= 0)).nonzero()[0]
    led = set(partitions_of(cluster, rows[cluster.topics.deleting[p.topic[rows]] == 0].astype(np.int32)))
    named = set(shutdown.response.remaining)
    return f"broker {broker_id} leads {sorted(led)}, and was sent {sorted(named)}" if led != named else None


def stale_shutdown_is_refused(watch: Watch, shutdown: ControlledShutdownCompleted) -> str | None:
    """I15: a ControlledShutdown request of an earlier registration is refused."""
    if shutdown.response.error is not ErrorCode.NONE:
        return None
    brokers, request = shutdown.process.loop.controller.cluster.brokers, shutdown.request
    known = int(brokers.broker_epoch[brokers.find(request.broker_id)])
    is_stale = NO_BROKER_EPOCH != request.broker_epoch < known
    return (
        f"broker {request.broker_id} of epoch {known} is let go in epoch {request.broker_epoch}" if is_stale else None
    )
