"""The responses of a KRaft controller as a what-if reports them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from kframe.core.kraft.controller_result import PartitionResult, RequestRefused
from kframe.core.kraft.topics.topic_requests import CreatableTopicResult
from kframe.errors import ErrorCode
from kframe.whatif.results.outcome import ControllerResponse


def accepted() -> ControllerResponse:
    """The response to a request that names no partition."""
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), np.empty(0, np.int16))


def refused(refusal: RequestRefused) -> ControllerResponse:
    """The response to a request that the controller refuses as a whole."""
    return ControllerResponse(refusal.error, np.empty(0, np.int32), np.empty(0, np.int16), (refusal.message,))


def partition_response(results: Iterable[PartitionResult]) -> ControllerResponse:
    """The response to a request for partitions, some of which may not exist."""
    return _response([(f"{result.topic}-{result.partition}", result.error, result.message) for result in results])


def topics_response(results: Iterable[CreatableTopicResult]) -> ControllerResponse:
    """The response to a request for topics."""
    return _response([(result.topic, result.error, result.message) for result in results], "topics")


def _response(
    results: Sequence[tuple[str, ErrorCode, str | None]], unit: Literal["partitions", "topics"] = "partitions"
) -> ControllerResponse:
    """The response from names, errors and messages; those with an error are named, with the message if there is one."""
    codes = np.array([error for _, error, _ in results], np.int16)
    wrong = tuple(
        name if message is None else f"{name} ({message})"
        for name, error, message in results
        if error is not ErrorCode.NONE
    )
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), codes, wrong, unit)
