"""Offline and cordoned log directories of brokers (Kafka 4.4 ``ReplicationControlManager``)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.replication.isr_changes import remove_broker, rows_in_directory
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import BrokerRegistrationChangeRecord


def handle_directories_offline(
    context: KraftContext, registration: BrokerRegistration, offline: Sequence[UUID]
) -> ControllerResult[None]:
    """Remove replicas in offline directories from ISRs and leaderships, then write the online directories."""
    lost = [directory for directory in registration.directories if directory in offline]
    if not lost:
        return ControllerResult((), None)
    changes = [
        remove_broker(context, registration.broker_id, rows_in_directory(context.metadata, index))
        for index in context.metadata.directories.indexes_of(lost)
    ]
    online = tuple(directory for directory in registration.directories if directory not in offline)
    record = BrokerRegistrationChangeRecord(
        broker_id=registration.broker_id, broker_epoch=registration.broker_epoch, log_dirs=online
    )
    return ControllerResult([*changes, RecordAndVersion(record, 2)], None)


def cordon_directories(registration: BrokerRegistration, cordoned: Sequence[UUID]) -> ControllerResult[None]:
    """Write the cordoned directories of a broker if they differ."""
    if registration.cordoned is not None and set(registration.cordoned) == set(cordoned):
        return ControllerResult((), None)
    change = BrokerRegistrationChangeRecord(
        broker_id=registration.broker_id, broker_epoch=registration.broker_epoch, cordoned_log_dirs=tuple(cordoned)
    )
    return ControllerResult([RecordAndVersion(change, 3)], None)
