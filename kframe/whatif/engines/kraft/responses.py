"""The responses of a KRaft controller as a what-if reports them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kframe.core.kraft.controller_result import PartitionResult, RequestRefused
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
    results = list(results)
    codes = np.array([result.error for result in results], np.int16)
    wrong = tuple(_named(result) for result in results if result.error is not ErrorCode.NONE)
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), codes, wrong)


def _named(result: PartitionResult) -> str:
    """The partition, with the controller's message if it has one."""
    name = f"{result.topic}-{result.partition}"
    return name if result.message is None else f"{name} ({result.message})"
