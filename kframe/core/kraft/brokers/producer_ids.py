"""Blocks of producer ids (Kafka 4.4 ``ProducerIdControlManager``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import ProducerIdsRecord

#: Producer ids of one block (Kafka ``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``).
PRODUCER_ID_BLOCK: Final = 1_000


@dataclass(frozen=True, slots=True)
class KraftProducerIds:
    """A block of producer ids: ``length`` ids from ``start`` on."""

    start: int
    length: int


def allocate_producer_ids(
    context: KraftContext, broker_id: int, broker_epoch: int
) -> ControllerResult[KraftProducerIds]:
    """Allocate the next block of a broker; the response is a KraftProducerIds.

    Raises RequestRefused for a stale broker epoch.
    """
    context.registration(broker_id, broker_epoch)
    start = context.metadata.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=start + PRODUCER_ID_BLOCK
    )
    return ControllerResult([RecordAndVersion(record, 0)], KraftProducerIds(start, PRODUCER_ID_BLOCK))
