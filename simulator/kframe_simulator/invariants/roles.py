"""Invariants of the controller role: one controller for each controller epoch (I1 to I3)."""

from __future__ import annotations

from kframe.core.operations.leader_rebalance import TIMER as REBALANCE_TIMER
from kframe.errors import ErrorCode
from kframe.model.events import SessionExpired
from kframe.ports.store_requests import FencedWrite
from kframe.runtime.loop import RETRY_MS
from kframe_simulator.simulation.observations import (
    EventCompleted,
    EventStarted,
    RequestSent,
    ResponseSent,
    RoleClaimed,
    StoreWritten,
)
from kframe_simulator.simulation.watch import Watch


def epoch_has_single_owner(watch: Watch, claimed: RoleClaimed) -> str | None:
    """I1: one run of one process uses a controller epoch."""
    owner = (claimed.process.controller_id, claimed.process.incarnation)
    known = watch.epoch_owner.setdefault(claimed.controller_epoch, owner)
    return None if known == owner else f"epoch {claimed.controller_epoch} of {known} was claimed by {owner}"


def request_has_own_epoch(watch: Watch, sent: RequestSent) -> str | None:
    """I1: requests have the controller epoch of their sender's own election."""
    owner = (sent.process.controller_id, sent.process.incarnation)
    epoch = sent.request.message.controller_epoch
    known = watch.epoch_owner.get(epoch)
    return None if known == owner else f"{owner} sends in epoch {epoch}, which is {known}'s"


def accepted_controller_epochs_increase(watch: Watch, sent: ResponseSent) -> str | None:
    """I1: the controller epochs that a broker accepts never decrease."""
    epoch = sent.request.message.controller_epoch
    before = watch.memory[sent.broker.broker_id].controller_epoch
    if sent.response.error is ErrorCode.NONE and epoch < before:
        return f"broker {sent.broker.broker_id} obeyed controller epoch {epoch} after {before}"
    return None


def writes_are_fenced(watch: Watch, written: StoreWritten) -> str | None:
    """I2: a controller writes only under the controller epoch of its own election."""
    if not isinstance(written.request, FencedWrite):
        return None
    now, own = watch.simulation.ensemble.controller_epoch(), written.process.store.claimed_epoch
    return None if now == own else f"{written.request.name} of epoch {own} was done in epoch {now}"


def sends_end_with_the_role(watch: Watch, sent: RequestSent) -> str | None:
    """I3: after a process has seen that it lost the role, it sends no request."""
    store, epoch = sent.process.store, sent.request.message.controller_epoch
    if store.claimed_epoch != epoch or store.lost_role:
        return f"{sent.process.controller_id} sends in epoch {epoch} after it has lost the role"
    return None


def expiry_is_handled_first(watch: Watch, started: EventStarted) -> str | None:
    """I3: after its session has ended, a process handles the session expiry before all older events."""
    process, event = started.process, started.event
    if isinstance(event, SessionExpired):
        return None
    if watch.observed.of_process(process).expiries_handled < process.store.expiries:
        return f"{process.controller_id} handles {type(event).__name__} before the end of its session"
    return None


def expiry_ends_the_role(watch: Watch, ended: EventCompleted) -> str | None:
    """I3: after the session expiry is handled, the process is inactive and has no controller timers."""
    process = ended.process
    if isinstance(ended.event, SessionExpired) and process.active:
        return f"{process.controller_id} is active after the end of its session"
    if not process.active and process.clock.is_set(REBALANCE_TIMER):
        return f"{process.controller_id} is not active, and its timer {REBALANCE_TIMER} is set"
    return None


def failed_failovers_are_spaced(watch: Watch, claimed: RoleClaimed) -> str | None:
    """I29: a process that has failed twice in a row waits before it claims the role again."""
    process = claimed.process
    failures = watch.observed.of_process(process).failures
    waited = process.clock.now_ms() - failures[-1] if len(failures) > 1 else RETRY_MS
    return f"{process.controller_id} claims the role {waited:.0f} ms after it failed" if waited < RETRY_MS else None


def writes_end_with_the_role(watch: Watch, written: StoreWritten) -> str | None:
    """I3: after a process has seen that it lost the role, it does no controller write."""
    store = written.process.store
    if isinstance(written.request, FencedWrite) and (store.lost_role or store.claimed_epoch < 0):
        return f"{written.process.controller_id} did {written.request.name} without the role"
    return None
