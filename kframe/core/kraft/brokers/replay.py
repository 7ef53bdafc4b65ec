"""Replay of registrations and of producer ids (Kafka 4.4 ``ClusterControlManager``, ``ProducerIdControlManager``)."""

from __future__ import annotations

from msgspec.structs import replace

from kframe.errors import InputError
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    FencingChange,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)


def replay_register_broker(metadata: ClusterMetadata, record: RegisterBrokerRecord, offset: int) -> None:
    """Replace the registration of the broker."""
    metadata.brokers.register(
        BrokerRegistration(
            broker_id=record.broker_id,
            broker_epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            end_points=record.end_points,
            features=record.features,
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            is_migrating_zk_broker=record.is_migrating_zk_broker,
            directories=record.log_dirs,
            cordoned=record.cordoned_log_dirs,
            offset=offset,
        )
    )


def replay_unregister_broker(metadata: ClusterMetadata, record: UnregisterBrokerRecord, offset: int) -> None:
    """Remove the registration of the broker."""
    _registration(metadata, record.broker_id, record.broker_epoch)
    metadata.brokers.unregister(record.broker_id)


def replay_registration_change(metadata: ClusterMetadata, record: BrokerRegistrationChangeRecord, offset: int) -> None:
    """Change the registration of the broker. Empty ``log_dirs`` change nothing."""
    registration = _registration(metadata, record.broker_id, record.broker_epoch)
    fenced = registration.fenced if record.fenced == FencingChange.NONE else record.fenced == FencingChange.FENCE
    metadata.brokers.register(
        replace(
            registration,
            fenced=fenced,
            in_controlled_shutdown=registration.in_controlled_shutdown or record.in_controlled_shutdown == 1,
            directories=record.log_dirs or registration.directories,
            cordoned=registration.cordoned if record.cordoned_log_dirs is None else record.cordoned_log_dirs,
        )
    )


def replay_fence_broker(metadata: ClusterMetadata, record: FenceBrokerRecord, offset: int) -> None:
    """Fence the broker."""
    metadata.brokers.register(replace(_registration(metadata, record.id, record.epoch), fenced=True))


def replay_unfence_broker(metadata: ClusterMetadata, record: UnfenceBrokerRecord, offset: int) -> None:
    """Unfence the broker."""
    metadata.brokers.register(replace(_registration(metadata, record.id, record.epoch), fenced=False))


def replay_register_controller(metadata: ClusterMetadata, record: RegisterControllerRecord, offset: int) -> None:
    """Replace the registration of the controller."""
    metadata.controllers[record.controller_id] = record


def replay_unregister_controller(metadata: ClusterMetadata, record: UnregisterControllerRecord, offset: int) -> None:
    """Remove the registration of the controller."""
    if metadata.controllers.pop(record.controller_id, None) is None:
        raise InputError("UnregisterControllerRecord", f"controller {record.controller_id}", "a registered controller")


def replay_producer_ids(metadata: ClusterMetadata, record: ProducerIdsRecord, offset: int) -> None:
    """Advance the next free producer id. Raises InputError if it does not grow."""
    if record.next_producer_id <= metadata.next_producer_id:
        actual, expected = str(record.next_producer_id), f"more than {metadata.next_producer_id}"
        raise InputError("ProducerIdsRecord.nextProducerId", actual, expected)
    metadata.next_producer_id = record.next_producer_id


def _registration(metadata: ClusterMetadata, broker_id: int, epoch: int) -> BrokerRegistration:
    registration = metadata.brokers.registrations.get(broker_id)
    if registration is None or registration.broker_epoch != epoch:
        expected = "a registered broker" if registration is None else f"epoch {registration.broker_epoch}"
        raise InputError("broker of a metadata record", f"broker {broker_id}, epoch {epoch}", expected)
    return registration
