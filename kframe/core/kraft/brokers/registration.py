"""Registration and removal of brokers and controllers (Kafka 4.4 ``ClusterControlManager``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from kframe.core.kraft.brokers.broker_events import handle_broker_shutdown
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, DecisionPart, RequestRefused, check_record_count
from kframe.core.kraft.replication.isr_changes import remove_broker, rows_with_elr_member, rows_with_isr_member
from kframe.errors import ErrorCode
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.directories import NO_BROKER
from kframe.model.kraft.directory_ids import is_reserved
from kframe.model.kraft.ids import KRAFT_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion, record_version
from kframe.model.kraft.records import (
    BrokerEndpoint,
    BrokerFeature,
    DirectoryIds,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)


@dataclass(frozen=True, slots=True)
class BrokerRegistrationRequest:
    """A BrokerRegistration request. ``detects_clean_shutdown``: its version is 3 or higher."""

    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    end_points: tuple[BrokerEndpoint, ...] = ()
    features: tuple[BrokerFeature, ...] = ()
    rack: str | None = None
    directories: DirectoryIds = ()
    previous_broker_epoch: int = -1
    is_migrating_zk_broker: bool = False
    detects_clean_shutdown: bool = True


def register_broker(
    context: KraftContext, request: BrokerRegistrationRequest, broker_epoch: int, kraft_version: int = 0
) -> ControllerResult[int]:
    """Register a process of a broker; the response is its broker epoch.

    ``broker_epoch`` is the end of the log. A new incarnation gets it; the same incarnation keeps its epoch and states.
    Raises RequestRefused for a duplicate, invalid directories or unsupported features.
    """
    broker_id = request.broker_id
    stored = context.metadata.brokers.registrations.get(broker_id)
    _check_request(context, request)
    if context.level >= MetadataLevel.DIRECTORIES:
        _check_directories(context, request)
    finalized = {**context.metadata.features, METADATA_VERSION: context.level, KRAFT_VERSION: kraft_version}
    _check_features(request, finalized)
    same_process = stored is not None and stored.incarnation_id == request.incarnation_id
    parts: list[DecisionPart] = []
    if not same_process:
        previous = -2 if stored is None else stored.broker_epoch
        clean = request.detects_clean_shutdown and previous == request.previous_broker_epoch
        parts += handle_broker_shutdown(context, broker_id, clean=clean).parts
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=stored.broker_epoch if stored is not None and same_process else broker_epoch,
        end_points=request.end_points,
        features=request.features,
        rack=request.rack,
        fenced=stored.fenced if stored is not None and same_process else True,
        in_controlled_shutdown=same_process and stored is not None and stored.in_controlled_shutdown,
        log_dirs=request.directories if context.level >= MetadataLevel.DIRECTORIES else (),
    )
    parts.append(RecordAndVersion(record, record_version(record, context.level)))
    return ControllerResult(parts, record.broker_epoch)


def unregister_broker(context: KraftContext, broker_id: int) -> ControllerResult[None]:
    """Remove a registration. Raises RequestRefused if there is none, or for more than RECORDS_MAX records."""
    metadata = context.metadata
    registration = metadata.brokers.registrations.get(broker_id)
    if registration is None:
        message = f"Broker ID {broker_id} is not currently registered"
        raise RequestRefused(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    removal = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=registration.broker_epoch)
    parts: list[DecisionPart] = [
        remove_broker(context, broker_id, rows_with_isr_member(metadata, broker_id)),
        remove_broker(context, broker_id, rows_with_elr_member(metadata, broker_id)),
        RecordAndVersion(removal, 0),
    ]
    check_record_count(parts)
    return ControllerResult(parts, None)


def register_controller(context: KraftContext, record: RegisterControllerRecord) -> ControllerResult[None]:
    """Register a controller. Raises RequestRefused below the level that has these records."""
    if context.level < MetadataLevel.CONTROLLER_REGISTRATION:
        message = f"It needs metadata.version {MetadataLevel.CONTROLLER_REGISTRATION}."
        raise RequestRefused(ErrorCode.UNSUPPORTED_VERSION, message)
    return ControllerResult([RecordAndVersion(record, 0)], None)


def unregister_controller(context: KraftContext, controller_id: int) -> ControllerResult[None]:
    """Remove the registration of a controller. Raises RequestRefused for the active one, or if there is none."""
    if context.level < MetadataLevel.UNREGISTER_CONTROLLER:
        message = f"It needs metadata.version {MetadataLevel.UNREGISTER_CONTROLLER}."
        raise RequestRefused(ErrorCode.UNSUPPORTED_VERSION, message)
    if controller_id == context.settings.node_id:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if controller_id not in context.metadata.controllers:
        message = f"Controller ID {controller_id} is not currently registered."
        raise RequestRefused(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, message)
    return ControllerResult([RecordAndVersion(UnregisterControllerRecord(controller_id=controller_id), 0)], None)


def _check_request(context: KraftContext, request: BrokerRegistrationRequest) -> None:
    if request.cluster_id != context.settings.cluster_id:
        message = f"Expected cluster ID {context.settings.cluster_id}, but got cluster ID {request.cluster_id}"
        raise RequestRefused(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    stored = context.metadata.brokers.registrations.get(request.broker_id)
    is_other_process = stored is not None and stored.incarnation_id != request.incarnation_id
    epoch = -1 if stored is None else stored.broker_epoch
    if is_other_process and context.heartbeats.has_valid_session(request.broker_id, epoch, context.now_ns):
        message = f"The session of another process with broker ID {request.broker_id} is valid."
        raise RequestRefused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message)
    if request.is_migrating_zk_broker:
        message = "Controller does not support registering ZK brokers."
        raise RequestRefused(ErrorCode.BROKER_ID_NOT_REGISTERED, message)


def _check_directories(context: KraftContext, request: BrokerRegistrationRequest) -> None:
    problem = None
    if not request.directories:
        problem = "No directories specified in request"
    elif any(is_reserved(directory) for directory in request.directories):
        problem = "Reserved directory ID in request"
    elif len(set(request.directories)) != len(request.directories):
        problem = "Duplicate directory ID in request"
    if problem is not None:
        raise RequestRefused(ErrorCode.INVALID_REGISTRATION, problem)
    broker = context.metadata.brokers.find(request.broker_id)
    for directory in request.directories:
        owner = context.metadata.directories.broker_of(directory)
        if owner not in (NO_BROKER, broker):
            owner_id = context.metadata.brokers.ids[owner]
            message = f"Broker {owner_id} is already registered with directory {uuid_text(directory)}"
            raise RequestRefused(ErrorCode.INVALID_REGISTRATION, message)


def _check_features(request: BrokerRegistrationRequest, finalized: Mapping[str, int]) -> None:
    """Every finalized level is in the broker's range; an absent feature has the range 0 to 0."""
    ranges = {
        feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in request.features
    }
    for name in (*ranges, *(name for name in finalized if name not in ranges and name != METADATA_VERSION)):
        low, high = ranges.get(name, (0, 0))
        level = finalized.get(name, 0)
        if not low <= level <= high:
            message = f"The broker supports {name} from {low} to {high}, but its finalized version is {level}."
            raise RequestRefused(ErrorCode.UNSUPPORTED_VERSION, message)
    if METADATA_VERSION not in ranges:
        message = f"Request features do not contain '{METADATA_VERSION}'"
        raise RequestRefused(ErrorCode.INVALID_REGISTRATION, message)
