"""Fencing, unfencing, controlled shutdown, sessions and heartbeats of brokers.

Source: Kafka 4.4 ``ReplicationControlManager``. Changes of partitions precede the record that fences a broker. They
follow the record that unfences it or begins its controlled shutdown.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from kframe.core.kraft.brokers.heartbeats import BrokerControlState
from kframe.core.kraft.brokers.log_directories import cordon_directories, handle_directories_offline
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, DecisionPart
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.core.kraft.replication.isr_changes import (
    add_broker,
    has_leaderships,
    leaderless_rows,
    remove_broker,
    remove_unclean_broker,
    rows_with_elr_member,
    rows_with_isr_member,
)
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import (
    BrokerRegistrationChangeRecord,
    FencingChange,
)
from kframe.model.kraft.releases import ReleaseRule


@dataclass(frozen=True, slots=True)
class BrokerHeartbeat:
    """A BrokerHeartbeat request. ``cordoned_directories`` None: the broker names none."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline_directories: tuple[UUID, ...] = ()
    cordoned_directories: tuple[UUID, ...] | None = None


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatReply:
    """The response to a heartbeat.

    While ``in_controlled_shutdown``, the runtime passes the offset of the batch to
    ``Heartbeats.begin_controlled_shutdown``.
    """

    is_caught_up: bool
    is_fenced: bool
    in_controlled_shutdown: bool
    should_shut_down: bool


def fence_broker(context: KraftContext, registration: BrokerRegistration) -> ControllerResult[None]:
    """Remove a broker from ISRs and leaderships, then fence it (Kafka ``handleBrokerFenced``)."""
    broker_id = registration.broker_id
    changes = remove_broker(context, broker_id, rows_with_isr_member(context.metadata, broker_id))
    return ControllerResult([changes, _fencing_record(registration, FencingChange.FENCE)], None)


def unfence_broker(context: KraftContext, registration: BrokerRegistration) -> ControllerResult[None]:
    """Unfence a broker, then elect leaders of leaderless partitions (Kafka ``handleBrokerUnfenced``)."""
    elections = add_broker(context, registration.broker_id, leaderless_rows(context.metadata))
    return ControllerResult([_fencing_record(registration, FencingChange.UNFENCE), elections], None)


def _fencing_record(registration: BrokerRegistration, change: FencingChange) -> RecordAndVersion:
    record = BrokerRegistrationChangeRecord(
        broker_id=registration.broker_id, broker_epoch=registration.broker_epoch, fenced=change
    )
    return RecordAndVersion(record, 0)


def begin_controlled_shutdown(context: KraftContext, registration: BrokerRegistration) -> ControllerResult[None]:
    """Mark a broker as in controlled shutdown, once, and remove it from ISRs and leaderships."""
    broker_id = registration.broker_id
    changes = remove_broker(context, broker_id, rows_with_isr_member(context.metadata, broker_id))
    if registration.in_controlled_shutdown:
        return ControllerResult([changes], None)
    record = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=registration.broker_epoch, in_controlled_shutdown=1
    )
    return ControllerResult([RecordAndVersion(record, 1), changes], None)


def handle_broker_shutdown(context: KraftContext, broker_id: int, *, clean: bool) -> ControllerResult[None]:
    """Remove the former process of a broker from ISRs; with ELR an unclean shutdown also removes it from ELRs.

    Releases without RESTART_LEAVES_ISRS leave it there.
    """
    rows = rows_with_isr_member(context.metadata, broker_id)
    if len(rows) and not context.follows(ReleaseRule.RESTART_LEAVES_ISRS):
        return ControllerResult((), None)
    if clean or not context.metadata.elr_enabled:
        return ControllerResult([remove_broker(context, broker_id, rows)], None)
    rows_by_list = rows, rows_with_elr_member(context.metadata, broker_id)
    return ControllerResult([remove_unclean_broker(context, broker_id, rows) for rows in rows_by_list], None)


def handle_heartbeat(
    context: KraftContext, heartbeat: BrokerHeartbeat, log_end: int | None = None
) -> ControllerResult[BrokerHeartbeatReply]:
    """Process a heartbeat; the response is a BrokerHeartbeatReply. Raises RequestRefused for a stale broker epoch.

    With ``log_end``, the offset of the first record of the decision, a controlled shutdown begins at the last one.
    Without it the caller passes that offset to ``Heartbeats.begin_controlled_shutdown``.
    """
    broker_id, heartbeats = heartbeat.broker_id, context.heartbeats
    heartbeats.contact_ns[broker_id, heartbeat.broker_epoch] = context.now_ns
    registration = context.registration(broker_id, heartbeat.broker_epoch)
    is_caught_up = heartbeat.metadata_offset >= registration.offset
    current = heartbeats.brokers[broker_id].state
    state = heartbeats.next_state(
        broker_id,
        want_fence=heartbeat.want_fence,
        want_shut_down=heartbeat.want_shut_down,
        is_caught_up=is_caught_up,
        has_leaderships=lambda: has_leaderships(context.metadata, broker_id),
    )
    parts: list[DecisionPart] = []
    if state is not current:
        transition = unfence_broker if state is BrokerControlState.UNFENCED else fence_broker
        transition = begin_controlled_shutdown if state is BrokerControlState.CONTROLLED_SHUTDOWN else transition
        parts += transition(context, registration).parts
    is_fenced = state in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)
    heartbeats.touch(broker_id, is_fenced, heartbeat.metadata_offset)
    if context.level >= MetadataLevel.DIRECTORIES:
        parts += handle_directories_offline(context, registration, heartbeat.offline_directories).parts
    if context.level >= MetadataLevel.CORDONED_DIRECTORIES and heartbeat.cordoned_directories is not None:
        parts += cordon_directories(registration, heartbeat.cordoned_directories).parts
    in_shutdown = state is BrokerControlState.CONTROLLED_SHUTDOWN
    if in_shutdown and log_end is not None:
        count = sum(part.count if isinstance(part, PartitionChangeBatch) else 1 for part in parts)
        heartbeats.begin_controlled_shutdown(broker_id, log_end + count - 1)
    if state is BrokerControlState.SHUTDOWN_NOW and context.settings.ends_sessions_at_shutdown:
        del heartbeats.contact_ns[broker_id, heartbeat.broker_epoch]
    reply = BrokerHeartbeatReply(is_caught_up, is_fenced, in_shutdown, state is BrokerControlState.SHUTDOWN_NOW)
    return ControllerResult(parts, reply)


def steady_reply(
    registration: BrokerRegistration | None, heartbeat: BrokerHeartbeat, level: int
) -> BrokerHeartbeatReply | None:
    """The reply to a heartbeat that changes no record; None if it may change one, or is refused.

    ``handle_heartbeat`` replies the same. It reads nothing but its arguments, so any thread may call it; ``level`` is
    that of ``metadata.version``.
    """
    if registration is None or registration.broker_epoch != heartbeat.broker_epoch or not registration.is_active:
        return None
    if heartbeat.want_fence or heartbeat.want_shut_down:
        return None
    if level >= MetadataLevel.DIRECTORIES and set(registration.directories) & set(heartbeat.offline_directories):
        return None
    named = None if level < MetadataLevel.CORDONED_DIRECTORIES else heartbeat.cordoned_directories
    if named is not None and cordon_directories(registration, named).parts:
        return None
    return BrokerHeartbeatReply(heartbeat.metadata_offset >= registration.offset, False, False, False)


def note_contact(context: KraftContext, session: tuple[int, int], contact_ns: int, steady_offset: int | None) -> None:
    """Note that a heartbeat arrived at ``contact_ns``, if its session, a broker id and a broker epoch, lasts.

    A steady one (``steady_reply``) is not handled otherwise: ``steady_offset`` is the metadata offset that the last of
    them reported, None without one.
    """
    broker_id, broker_epoch = session
    sessions = context.heartbeats.contact_ns
    if session not in sessions:
        return
    sessions[session] = max(contact_ns, sessions[session])
    registration = context.metadata.brokers.registrations.get(broker_id)
    if steady_offset is not None and registration is not None and registration.broker_epoch == broker_epoch:
        context.heartbeats.brokers[broker_id].metadata_offset = steady_offset


def fence_stale_broker(context: KraftContext) -> ControllerResult[bool]:
    """Fence a broker whose session has expired; the response is whether there may be another."""
    expired = context.heartbeats.expired_sessions(context.now_ns)
    if not expired:
        return ControllerResult((), False)
    broker_id, broker_epoch = expired[0]
    del context.heartbeats.contact_ns[broker_id, broker_epoch]
    registration = context.metadata.brokers.registrations.get(broker_id)
    if registration is None:
        context.heartbeats.brokers.pop(broker_id, None)
        return ControllerResult((), True)
    if registration.broker_epoch != broker_epoch:
        return ControllerResult((), True)
    return ControllerResult(end_session(context, registration).parts, True)


def end_session(context: KraftContext, registration: BrokerRegistration) -> ControllerResult[None]:
    """End the session of a broker that is not fenced, and fence it."""
    context.heartbeats.contact_ns.pop((registration.broker_id, registration.broker_epoch), None)
    context.heartbeats.fence(registration.broker_id)
    return fence_broker(context, registration)
