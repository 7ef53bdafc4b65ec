"""Invariants of controller events: gauges, responses, failures and bounded work (I24 to I30)."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from kframe.core.state.metrics import Gauges
from kframe.errors import ErrorCode
from kframe.model.events import (
    BrokersChanged,
    ControllerChanged,
    DelayedReplyExpired,
    ElectionRequested,
    Event,
    LeaderAndIsrResponseReceived,
    ReassignmentRequested,
    RebalanceLeaders,
    Reelect,
    StopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from kframe.model.ids import NO_BROKER_EPOCH, NO_STATE, PartitionState, ReplicaState
from kframe.ports.store_requests import (
    DropDeletions,
    FencedWrite,
    ReadStates,
    ReleaseRole,
    WriteReassignments,
    WriteStates,
)
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.observations import EventCompleted, EventStarted, RequestCompleted, StateWritten
from kframe_simulator.simulation.observed import Observed
from kframe_simulator.simulation.watch import Watch

#: The most effects of an event in a simulated cluster.
EFFECTS_MAX: Final = 400
#: Events that only request another read. One of each may wait (``KafkaController`` reads everything anyway).
_READ_EVENTS: Final = (Reelect, ControllerChanged, BrokersChanged)
#: The longest event queue in a simulated cluster.
QUEUE_MAX: Final = 400


def gauges_equal_recount(watch: Watch, ended: EventCompleted) -> str | None:
    """I24: the gauges equal a recount of the columns, and are 0 while the process is not controller."""
    controller = ended.process.loop.controller
    gauges = controller.gauges()
    if not controller.active:
        nonzero = {name: value for name, value in gauges.items() if value}
        return f"gauges of a process that is not controller: {nonzero}" if nonzero else None
    known, recount = watch.recounts.get(ended.process.controller_id, (b"", {}))
    if known != ended.columns:
        recount = Gauges(controller.cluster).values()
        watch.recounts[ended.process.controller_id] = ended.columns, recount
    differing = {name: (gauges[name], value) for name, value in recount.items() if gauges[name] != value}
    return f"gauges (shown, recounted): {differing}" if differing else None


def states_fit_columns(watch: Watch, ended: EventCompleted) -> str | None:
    """I25: the partition states match the columns. A deposed controller that has not noticed its successor is exempt:
    it may have read the successor's writes."""
    controller, controller_id = ended.process.loop.controller, ended.process.controller_id
    if not ended.process.active or controller.controller_epoch < watch.simulation.ensemble.controller_epoch():
        return None
    if watch.fitting_states.get(controller_id) == ended.columns:
        return None
    p = controller.cluster.partitions
    rows = (p.topic >= 0).nonzero()[0]
    state, leader, stated = p.states_of(rows), p.leader[rows], p.partition_epoch[rows] != NO_STATE
    inconsistent = ((state == PartitionState.ONLINE) & ~(stated & (leader >= 0))) | (
        (state == PartitionState.NEW) & stated
    )
    for row in rows[inconsistent].tolist():
        return f"{controller.cluster.name(row)}: {controller.cluster.view(row).state.name}, leader {p.leader[row]}"
    watch.fitting_states[controller_id] = ended.columns
    return None


def replica_states_fit_columns(watch: Watch, ended: EventCompleted) -> str | None:
    """I25: each replica of a partition with a state has a replica state, unless its topic is being deleted or the event
    failed."""
    controller_id = ended.process.controller_id
    if not ended.succeeded or watch.fitting_replica_states.get(controller_id) == ended.columns:
        return None
    cluster = ended.process.loop.controller.cluster
    p = cluster.partitions
    rows = ((p.topic >= 0) & (p.partition_epoch != NO_STATE)).nonzero()[0].astype(np.int32)
    for row in rows[cluster.topics.deleting[p.topic[rows]] == 0].tolist():
        states = p.replica_states(p.slots_of(np.array([row], np.int32)))
        if (states == ReplicaState.NON_EXISTENT).any():
            return f"{cluster.name(row)}: replica states {states.tolist()}"
    watch.fitting_replica_states[controller_id] = ended.columns
    return None


def requests_get_single_response(watch: Watch, completed: RequestCompleted) -> str | None:
    """I26: each request has exactly one response, with an error code for every item."""
    if completed.times != 1:
        return f"{completed.description} got {completed.times} responses"
    return None if completed.whole else f"{completed.description}: the response is incomplete"


def repeated_events_write_nothing(watch: Watch, ended: EventCompleted) -> str | None:
    """I28: a repeated notification causes no second write."""
    if ended.repeated and ended.written:
        return f"{type(ended.event).__name__} came twice, and {sorted(ended.written)} were written again"
    return None


def failures_are_explained(watch: Watch, ended: EventCompleted) -> str | None:
    """I29: no event fails without a fault, whatever storage contains or brokers send."""
    reason = watch.simulation.unexplained_failure(ended.process)
    return None if reason is None else f"{type(ended.event).__name__} failed: {reason}"


def earlier_responses_write_nothing(watch: Watch, ended: EventCompleted) -> str | None:
    """I13: a response to a request of an earlier controller epoch, with other rows, causes no write."""
    epoch = getattr(ended.event, "controller_epoch", None)
    if epoch is None or not isinstance(ended.event, (LeaderAndIsrResponseReceived, StopReplicaResponseReceived)):
        return None
    done = sorted(kind.__name__ for kind in ended.requests if issubclass(kind, FencedWrite) and kind is not ReleaseRole)
    if epoch < ended.process.store.claimed_epoch and done:
        return f"a response to controller epoch {epoch} causes {done} in {ended.process.store.claimed_epoch}"
    return None


def stale_responses_change_nothing(watch: Watch, ended: EventCompleted) -> str | None:
    """I13: a response from an earlier controller epoch, or of an earlier registration, changes no state of the
    controller."""
    if not ended.process.active or not _is_void(ended.process, ended.event):
        return None
    if ended.knowledge in (b"", ended.columns):
        return None
    response = ended.event
    return (
        f"a response to controller epoch {response.controller_epoch}, broker epoch {response.broker_epoch}, "
        f"error {response.error.name}, has effects"
    )


def _is_void(process: ControllerProcess, event: Event) -> bool:
    """Whether a response does not concern the controller's current term, or the broker's registration."""
    if not isinstance(event, (LeaderAndIsrResponseReceived, StopReplicaResponseReceived)):
        return False
    registered = Observed.registered(process).get(event.broker_id, event.broker_epoch)
    of_another_registration = event.broker_epoch not in (NO_BROKER_EPOCH, registered) or (
        isinstance(event, StopReplicaResponseReceived) and event.error is ErrorCode.STALE_BROKER_EPOCH
    )
    return of_another_registration or event.controller_epoch < process.store.claimed_epoch


def failing_brokers_are_logged(watch: Watch, ended: EventCompleted) -> str | None:
    """I29: the log names a broker that has responded to LeaderAndIsr with an error."""
    event = ended.event
    if not isinstance(event, LeaderAndIsrResponseReceived) or event.error is ErrorCode.NONE or not ended.process.active:
        return None
    named = any(line.endswith(f" from broker {event.broker_id}") for line in ended.warnings)
    return None if named or ended.failed else f"broker {event.broker_id} returned {event.error.name}: not in the log"


def deletion_marks_stay_with_topics(watch: Watch, ended: EventCompleted) -> str | None:
    """I19: the deletion mark of a topic is not removed while the topic exists."""
    if not ended.requests.get(DropDeletions) or not ended.succeeded:
        return None
    dropped = (
        watch.observed.of_process(ended.process).marks_before - watch.observed.marked()
    ) & watch.simulation.ensemble.topic_ids.keys()
    return f"the marks of {sorted(dropped)} were removed, and the topics exist" if dropped else None


def elections_change_leaders(watch: Watch, written: StateWritten) -> str | None:
    """I28: a requested or balancing election that keeps the leader writes nothing."""
    process, before = written.process, written.before
    if process is None or before is None or not isinstance(process.event, (ElectionRequested, RebalanceLeaders)):
        return None
    if before.leader == written.after.leader >= 0 and watch.observed.live(process) >= {before.leader}:
        return f"{written.key}: {type(process.event).__name__} elects {before.leader}, the leader"
    return None


def balancing_elects_eligible_replicas(watch: Watch, ended: EventCompleted) -> str | None:
    """I28: balancing elects only live in-sync replicas: it reads no state again, unless a write was refused."""
    futile = ended.requests.get(ReadStates) and not (
        ended.requests.get(WriteStates) or watch.simulation.options.hold_last
    )
    if isinstance(ended.event, RebalanceLeaders) and futile:
        return "balancing has tried an election that could not succeed"
    return None


def read_states_are_applied(watch: Watch, ended: EventCompleted) -> str | None:
    """I24: the columns contain the last version of each state that the controller has read or written."""
    process = ended.process
    if not ended.requests.get(ReadStates) or not ended.succeeded:
        return None
    cluster = process.loop.controller.cluster
    for key, version in watch.observed.of_process(process).last_read.items():
        row = cluster.row(*key)
        if row is not None and int(cluster.partitions.partition_epoch[row]) != version:
            known = int(cluster.partitions.partition_epoch[row])
            return f"{key}: the controller continues with version {known}, but has read {version}"
    return None


def stored_reassignments_stay(watch: Watch, ended: EventCompleted) -> str | None:
    """L3: a reassignment from storage stays in its znode until it is complete, unless a later API request names it. As
    in Kafka, a partition that never had a leader is reported as failed and removed. Under
    ``kframe.reassignment.strict`` its reassignment begins with its first leader. A topic that the controller could not
    read in this event, or since it took the role, is unknown, or its assignment is stored later."""
    if not ended.requests.get(WriteReassignments) or ended.failed:
        return None
    ensemble, marked, term = watch.simulation.ensemble, watch.observed.marked(), watch.observed.of_term(ended.process)
    before, now = ended.reassignments, ensemble.stored_reassignments()
    requested = ended.event.targets.partitions() if isinstance(ended.event, ReassignmentRequested) else ()
    for key in (before.keys() - now.keys()).difference(requested):
        row = ensemble.rows.get(key)
        if row is None or not (row.adding or row.removing) or key[0] in marked or row.partition_epoch == NO_STATE:
            continue
        if key[0] in ended.unread or (key[0] in term.unreadable_topics and key not in term.announced):
            continue
        if row.target and row.target == before[key]:
            return f"{key}: its reassignment to {before[key]} continues, and was removed from storage"
    return None


def notifications_are_handled_once(watch: Watch, started: EventStarted) -> str | None:
    """I28: a change is notified once, however often the process was elected. A response may be notified twice."""
    repeated = watch.observed.is_repeated_event(started.process, started.event)
    may_repeat = isinstance(
        started.event,
        (
            LeaderAndIsrResponseReceived,
            DelayedReplyExpired,
            StopReplicaResponseReceived,
            UpdateMetadataResponseReceived,
        ),
    )
    return f"{type(started.event).__name__} is handled twice" if repeated and not may_repeat else None


def steps_are_bounded(watch: Watch, ended: EventCompleted) -> str | None:
    """I30: an event ends after a bounded number of effects, and queues stay short."""
    process = ended.process
    if process.effects > EFFECTS_MAX:
        return f"{type(ended.event).__name__} took {process.effects} effects"
    waiting = Counter(type(event) for event in process.loop.queue.waiting() if isinstance(event, _READ_EVENTS))
    if waiting and max(waiting.values()) > 1:
        return f"events that only request a read wait more than once: {dict(waiting)}"
    longest = max([len(process.loop.queue), *(len(channel.waiting) for channel in process.transport.channels.values())])
    return f"a queue has {longest} items" if longest > QUEUE_MAX else None
