"""The decisions on the events that records of brokers show: registrations, fencing, shutdowns and directories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from kframe.core.kraft.brokers.broker_events import (
    begin_controlled_shutdown,
    fence_broker,
    unfence_broker,
)
from kframe.core.kraft.brokers.log_directories import cordon_directories, handle_directories_offline
from kframe.core.kraft.brokers.registration import BrokerRegistrationRequest, register_broker, unregister_broker
from kframe.core.kraft.causes.change_causes import (
    CONTROLLED_SHUTDOWN,
    DIRECTORY_FAILED,
    FENCED,
    RESTARTED,
    RESTARTED_UNCLEANLY,
    UNFENCED,
    UNREGISTERED,
    is_empty,
)
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.records import (
    BrokerRegistrationChangeRecord,
    FencingChange,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

CORDONED = "directories cordoned"
REGISTERED = "broker registered"
#: What the rules write for an event. Raises RequestRefused.
Decide: TypeAlias = Callable[[KraftContext], ControllerResult[object]]
#: An event by its text, and its decision.
PossibleEvent: TypeAlias = tuple[str, Decide]


def precedes_changes(record: MetadataRecord) -> bool:
    """Whether the record of an event precedes the changes of partitions. Otherwise it follows them."""
    return isinstance(record, BrokerRegistrationChangeRecord) and (
        record.fenced == FencingChange.UNFENCE or record.in_controlled_shutdown == 1
    )


def broker_events(context: KraftContext, record: MetadataRecord, offset: int) -> list[PossibleEvent]:
    """The events that a record may show. Empty if it is about no broker, or the rules never write it so.

    ``offset`` is that of the first record of the decision.
    """
    match record:
        case RegisterBrokerRecord():
            return _registrations(context, record, offset)
        case UnregisterBrokerRecord(broker_id=broker_id):
            return [(f"{UNREGISTERED}: broker {broker_id}", lambda context: unregister_broker(context, broker_id))]
        case BrokerRegistrationChangeRecord(broker_id=broker_id):
            registration = context.metadata.brokers.registrations.get(broker_id)
            if registration is not None:
                return [(f"{text}: broker {broker_id}", decide) for text, decide in _changes(record, registration)]
    return []


def _changes(record: BrokerRegistrationChangeRecord, registration: BrokerRegistration) -> Iterable[PossibleEvent]:
    if record.fenced == FencingChange.FENCE:
        yield FENCED, partial(fence_broker, registration=registration)
    if record.fenced == FencingChange.UNFENCE:
        yield UNFENCED, partial(unfence_broker, registration=registration)
    if record.in_controlled_shutdown == 1:
        yield CONTROLLED_SHUTDOWN, partial(begin_controlled_shutdown, registration=registration)
    if record.log_dirs or is_empty(record):
        offline = [directory for directory in registration.directories if directory not in record.log_dirs]
        yield DIRECTORY_FAILED, partial(handle_directories_offline, registration=registration, offline=offline)
    if record.cordoned_log_dirs is not None:
        cordoned = record.cordoned_log_dirs
        yield CORDONED, lambda _context: cordon_directories(registration, cordoned)


def _registrations(context: KraftContext, record: RegisterBrokerRecord, offset: int) -> list[PossibleEvent]:
    """A registration; with ELR, of another process after a clean or an unclean stop.

    Which stop it was is in the request only, and without ELR it makes no difference.
    """
    stored = context.metadata.brokers.registrations.get(record.broker_id)
    clean = partial(_registered, record, offset, -2 if stored is None else stored.broker_epoch)
    unclean = partial(_registered, record, offset, -1)
    if not context.metadata.elr_enabled or (stored is not None and stored.incarnation_id == record.incarnation_id):
        events: list[PossibleEvent] = [(REGISTERED, clean)]
    elif stored is None:
        events = [(REGISTERED, clean), (REGISTERED, unclean)]
    else:
        events = [(RESTARTED, clean), (RESTARTED_UNCLEANLY, unclean)]
    return [(f"{text}: broker {record.broker_id}", decide) for text, decide in events]


def _registered(
    record: RegisterBrokerRecord, offset: int, previous_epoch: int, context: KraftContext
) -> ControllerResult[object]:
    request = BrokerRegistrationRequest(
        broker_id=record.broker_id,
        cluster_id=context.settings.cluster_id,
        incarnation_id=record.incarnation_id,
        end_points=record.end_points,
        features=record.features,
        rack=record.rack,
        directories=record.log_dirs,
        previous_broker_epoch=previous_epoch,
        is_migrating_zk_broker=record.is_migrating_zk_broker,
    )
    return register_broker(context, request, offset)
