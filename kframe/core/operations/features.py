"""Finalised feature levels (KIP-584). Kafka 3.9's brokers support no feature in ZooKeeper mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kframe.core.context import Context, Operation
from kframe.errors import ErrorCode
from kframe.model.events import UpdateFeaturesRequested


@dataclass(frozen=True, slots=True)
class FeaturesResponse:
    """The response. It has an error for all, or a code for each feature by name."""

    error: ErrorCode
    codes: Mapping[str, ErrorCode]


def refused(error: ErrorCode) -> FeaturesResponse:
    """The refusal of a request."""
    return FeaturesResponse(error, {})


def update_features(context: Context, request: UpdateFeaturesRequested) -> Operation[FeaturesResponse]:
    """Refuse every update: no broker supports a level of any feature. A malformed update gets the same code."""
    if not context.config.protocol.features:
        return refused(ErrorCode.INVALID_REQUEST)
    yield from ()
    return FeaturesResponse(
        ErrorCode.NONE, dict.fromkeys((update.name for update in request.updates), ErrorCode.INVALID_REQUEST)
    )
