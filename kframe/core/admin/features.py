"""Finalised feature levels (KIP-584; ``spec/wire.md`` section 14, ``spec/controller.md`` section 14).

In ZooKeeper mode Kafka 3.9's brokers support no feature, so that no level can be finalised, whatever is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kframe.core.context import Context, Operation
from kframe.errors import ErrorCode
from kframe.model.events import UpdateFeaturesRequested


@dataclass(frozen=True, slots=True)
class FeaturesResponse:
    """The answer: an error for all, or a code for each feature by name."""

    error: ErrorCode
    codes: Mapping[str, ErrorCode]


def refused(error: ErrorCode) -> FeaturesResponse:
    """The answer that changes nothing."""
    return FeaturesResponse(error, {})


def update_features(context: Context, request: UpdateFeaturesRequested) -> Operation[FeaturesResponse]:
    """Refuse each update, since no broker of a ZooKeeper-mode cluster supports any level of any feature; a malformed
    one (empty name, level below 1 without downgrade, deleting what is not finalised) has the same code."""
    if not context.config.protocol.features:
        return refused(ErrorCode.INVALID_REQUEST)
    yield from ()
    return FeaturesResponse(
        ErrorCode.NONE, dict.fromkeys((one.name for one in request.updates), ErrorCode.INVALID_REQUEST)
    )
