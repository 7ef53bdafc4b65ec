"""What the controller must answer to registrations of brokers and controllers, their removal, and producer ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kframe.errors import ErrorCode
from kframe.plugin.kraft import ClusterMetadata, ControllerResult, RecordAndVersion, records
from kframe.plugin.kraft_controller import RequestRefused, producer_ids, registration
from verification.kraft.simulation.expected.heartbeats import CHANGES, compare_parts, states_after
from verification.kraft.simulation.expected.responses import difference, error_of, is_stale
from verification.kraft.simulation.image import ELR_FEATURE, BrokerState, Image
from verification.kraft.simulation.options import CLUSTER_ID, CONTROLLER
from verification.kraft.simulation.requests import Decided

LEVEL: Final = "metadata.version"
#: Versions of the record by the level from which they are written.
_REGISTRATION_VERSIONS: Final = {7: 1, 8: 2, 17: 3, 30: 4}
_DIRECTORIES_LEVEL: Final = 17
_CONTROLLERS_LEVEL: Final = 15
_UNREGISTER_LEVEL: Final = 33
_BLOCK: Final = 1_000
#: The last reserved id of a directory.
_RESERVED_MAX: Final = 99


def version_at(level: int, versions: dict[int, int]) -> int:
    """The version of a record at a level."""
    return versions[max(first for first in versions if first <= level)]


def compare_registration(
    request: registration.BrokerRegistrationRequest, kraft_version: int, image: Image, end: int, decided: Decided
) -> str | None:
    """The response to BrokerRegistration, and its record."""
    expected = _registration_error(request, kraft_version, image)
    if expected is not ErrorCode.NONE or isinstance(decided, RequestRefused):
        return difference(expected, error_of(decided))
    broker_id, level = request.broker_id, image.features[LEVEL]
    broker = image.brokers.get(broker_id)
    is_same = broker is not None and broker.incarnation_id == request.incarnation_id
    record = records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=broker.broker_epoch if broker is not None and is_same else end,
        end_points=request.end_points,
        features=request.features,
        rack=request.rack,
        fenced=broker.fenced if broker is not None and is_same else True,
        in_controlled_shutdown=broker.in_shutdown if broker is not None and is_same else False,
        log_dirs=request.directories if level >= _DIRECTORIES_LEVEL else (),
    )
    parts = [*([] if is_same else [CHANGES]), RecordAndVersion(record, version_at(level, _REGISTRATION_VERSIONS))]
    problem = difference(record.broker_epoch, decided.response) or compare_parts(parts, decided)
    if not is_same:
        image.soft.brokers.pop(broker_id, None)
        problem = problem or _former_roles(request, broker, image, decided)
    image.soft.register(broker_id, fenced=record.fenced)
    return problem


def _registration_error(request: registration.BrokerRegistrationRequest, kraft_version: int, image: Image) -> ErrorCode:
    broker = image.brokers.get(request.broker_id)
    if request.cluster_id != CLUSTER_ID:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    is_other = broker is not None and broker.incarnation_id != request.incarnation_id
    if broker is not None and is_other and not image.soft.is_expired((request.broker_id, broker.broker_epoch)):
        return ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if request.is_migrating_zk_broker:
        return ErrorCode.BROKER_ID_NOT_REGISTERED
    if image.features[LEVEL] >= _DIRECTORIES_LEVEL and not _are_directories_valid(request, image):
        return ErrorCode.INVALID_REGISTRATION
    ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    finalized = {**image.features, "kraft.version": kraft_version}
    for name in {*ranges, *finalized} - {LEVEL}:
        low, high = ranges.get(name, (0, 0))
        if not low <= finalized.get(name, 0) <= high:
            return ErrorCode.UNSUPPORTED_VERSION
    if LEVEL not in ranges:
        return ErrorCode.INVALID_REGISTRATION
    low, high = ranges[LEVEL]
    return ErrorCode.NONE if low <= image.features[LEVEL] <= high else ErrorCode.UNSUPPORTED_VERSION


def _are_directories_valid(request: registration.BrokerRegistrationRequest, image: Image) -> bool:
    of_others = {
        directory
        for broker_id, broker in image.brokers.items()
        if broker_id != request.broker_id
        for directory in broker.directories
    }
    distinct = set(request.directories)
    is_reserved = any(directory.int <= _RESERVED_MAX for directory in distinct)
    return bool(distinct) and not is_reserved and len(distinct) == len(request.directories) and not distinct & of_others


def _former_roles(
    request: registration.BrokerRegistrationRequest,
    broker: BrokerState | None,
    image: Image,
    decided: ControllerResult[Any],
) -> str | None:
    """A former process is in no ELR either, unless it stopped cleanly: then it stays there, also in place of an ISR."""
    is_clean = (
        request.detects_clean_shutdown and broker is not None and request.previous_broker_epoch == broker.broker_epoch
    )
    if not image.features.get(ELR_FEATURE, 0):
        return None
    after = states_after(image, decided)
    for key, before in image.partitions.items():
        state = after.get(key, before)
        is_known = request.broker_id in {*before.isr, *before.elr}
        if not is_clean and request.broker_id in state.elr:
            return f"broker {request.broker_id} stopped uncleanly, and stays in the ELR of {key}: {state}"
        needs_elr = len(state.isr) < image.min_isr(key[0]) and not state.recovery
        if is_clean and is_known and needs_elr and request.broker_id not in state.elr:
            return f"broker {request.broker_id} stopped cleanly, and is not in the ELR of {key}: {state}"
    return None


def compare_unregistration(broker_id: int, image: Image, end: int, decided: Decided) -> str | None:
    """The response to UnregisterBroker, and its record."""
    broker = image.brokers.get(broker_id)
    if broker is None or isinstance(decided, RequestRefused):
        expected = ErrorCode.BROKER_ID_NOT_REGISTERED if broker is None else ErrorCode.NONE
        return difference(expected, error_of(decided))
    record = records.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch)
    return compare_parts([CHANGES, RecordAndVersion(record, 0)], decided)


def compare_controller(
    record: records.RegisterControllerRecord, image: Image, end: int, decided: Decided
) -> str | None:
    """The response to ControllerRegistration, and its record."""
    if image.features[LEVEL] < _CONTROLLERS_LEVEL or isinstance(decided, RequestRefused):
        is_known = image.features[LEVEL] >= _CONTROLLERS_LEVEL
        return difference(ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION, error_of(decided))
    return compare_parts([RecordAndVersion(record, 0)], decided)


def compare_controller_removal(controller_id: int, image: Image, end: int, decided: Decided) -> str | None:
    """The response to UnregisterController, and its record."""
    expected = ErrorCode.NONE
    if image.features[LEVEL] < _UNREGISTER_LEVEL:
        expected = ErrorCode.UNSUPPORTED_VERSION
    elif controller_id == CONTROLLER:
        expected = ErrorCode.INVALID_REQUEST
    elif controller_id not in image.controllers:
        expected = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
    if expected is not ErrorCode.NONE or isinstance(decided, RequestRefused):
        return difference(expected, error_of(decided))
    record = records.UnregisterControllerRecord(controller_id=controller_id)
    return compare_parts([RecordAndVersion(record, 0)], decided)


def compare_producer_ids(node: tuple[int, int], image: Image, end: int, decided: Decided) -> str | None:
    """The response to AllocateProducerIds of a broker id and broker epoch, and its record."""
    if is_stale(image, *node) or isinstance(decided, RequestRefused):
        expected = ErrorCode.STALE_BROKER_EPOCH if is_stale(image, *node) else ErrorCode.NONE
        return difference(expected, error_of(decided))
    start = image.next_producer_id
    record = records.ProducerIdsRecord(broker_id=node[0], broker_epoch=node[1], next_producer_id=start + _BLOCK)
    block = producer_ids.KraftProducerIds(start, _BLOCK)
    return difference(block, decided.response) or compare_parts([RecordAndVersion(record, 0)], decided)


def registration_problems(metadata: ClusterMetadata, image: Image) -> Iterator[str]:
    """Compare the registrations that the controller has with the records."""
    stored = {
        broker_id: BrokerState(
            each.broker_epoch,
            each.incarnation_id,
            each.directories,
            each.fenced,
            each.in_controlled_shutdown,
            each.rack,
            each.cordoned,
            each.end_points,
            each.features,
        )
        for broker_id, each in metadata.brokers.registrations.items()
    }
    if stored != _in_order(image.brokers):
        yield f"the controller has brokers {stored}, the records {image.brokers}"
    if metadata.controllers != image.controllers:
        yield f"the controller has controllers {metadata.controllers}, the records {image.controllers}"
    if metadata.next_producer_id != image.next_producer_id:
        yield f"the next producer id is {metadata.next_producer_id}, the records have {image.next_producer_id}"


def offset_problems(metadata: ClusterMetadata, image: Image) -> Iterator[str]:
    """Compare the offsets of registrations that an active controller knows with the records."""
    offsets = {broker_id: each.offset for broker_id, each in metadata.brokers.registrations.items()}
    expected = {broker_id: image.soft.registered[broker_id] for broker_id in image.brokers}
    if offsets != expected:
        yield f"the controller has registrations of {offsets}, the records {expected}"


def _in_order(brokers: dict[int, BrokerState]) -> dict[int, BrokerState]:
    """Directories ascend."""
    return {
        broker_id: replace(broker, directories=tuple(sorted(broker.directories)))
        for broker_id, broker in brokers.items()
    }
