"""Producer ids of brokers, and the removal of controllers.

Source: Kafka 4.4 ``ProducerIdControlManager`` and ``ClusterControlManager``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import ProducerIdsRecord, UnregisterControllerRecord

#: Producer ids of one block (Kafka ``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``).
PRODUCER_ID_BLOCK: Final = 1_000


@dataclass(frozen=True, slots=True)
class KraftProducerIds:
    """A block of producer ids: ``length`` ids from ``start`` on."""

    start: int
    length: int


def allocate_producer_ids(context: KraftContext, broker_id: int, broker_epoch: int) -> ControllerResult:
    """Allocate the next block of a broker; the response is a KraftProducerIds.

    Raises RequestRefused for a stale broker epoch.
    """
    context.registration(broker_id, broker_epoch)
    start = context.metadata.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=start + PRODUCER_ID_BLOCK
    )
    return ControllerResult([RecordAndVersion(record, 0)], response=KraftProducerIds(start, PRODUCER_ID_BLOCK))


def unregister_controller(context: KraftContext, controller_id: int) -> ControllerResult:
    """Remove the registration of a controller. Raises RequestRefused for the active one, or if there is none."""
    if context.level < MetadataLevel.UNREGISTER_CONTROLLER:
        message = f"It needs metadata.version {MetadataLevel.UNREGISTER_CONTROLLER}."
        raise RequestRefused(ErrorCode.UNSUPPORTED_VERSION, message)
    if controller_id == context.settings.node_id:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if controller_id not in context.metadata.controllers:
        message = f"Controller ID {controller_id} is not currently registered."
        raise RequestRefused(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, message)
    return ControllerResult([RecordAndVersion(UnregisterControllerRecord(controller_id=controller_id), 0)])
