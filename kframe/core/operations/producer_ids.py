"""Blocks of producer ids (AllocateProducerIds; Kafka 3.9 ``ZkProducerIdManager``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe.core.context import Context, Operation, ask
from kframe.errors import ErrorCode
from kframe.model.events import ProducerIdsRequested
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.ports.store_requests import AllocateProducerIds

#: Producer ids in a block.
BLOCK_LENGTH: Final = 1000


@dataclass(frozen=True, slots=True)
class ProducerIdsResponse:
    """The response. It is an error, or the first id of a block of ``length``."""

    error: ErrorCode
    first: int = 0
    length: int = 0


def refused(error: ErrorCode) -> ProducerIdsResponse:
    """The refusal of a request."""
    return ProducerIdsResponse(error)


def allocate(context: Context, request: ProducerIdsRequested) -> Operation[ProducerIdsResponse]:
    """Allocate a block for a registered broker of this epoch, or for the controller itself."""
    brokers = context.cluster.brokers
    index = brokers.find(request.broker_id)
    ours = request.broker_id == context.controller_id and request.broker_epoch == NO_BROKER_EPOCH
    if (index is None or not brokers.registered[index]) and not ours:
        return refused(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if index is not None and brokers.broker_epoch[index] != request.broker_epoch:
        return refused(ErrorCode.STALE_BROKER_EPOCH)
    first = yield from ask(AllocateProducerIds(request.broker_id))
    return ProducerIdsResponse(ErrorCode.NONE, first, BLOCK_LENGTH)
