"""Fuzz responses that kframe evaluates: brokers' to control requests, and a cluster's to the admin client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kframe.plugin import KframeError
from kframe.plugin.cluster import ElectionType, Targets
from kframe.plugin.columns import Ragged
from kframe.plugin.wire import header_version
from kframe_kafka_wire import _naive_answers, codec, kernels
from kframe_kafka_wire.answers import PendingRequest, WireError, read_answer
from kframe_kafka_wire.client import ALTER, ELECT, LIST, METADATA, AdminClient, top_level_error
from kframe_kafka_wire.request_content import LEADER_AND_ISR, UPDATE_METADATA, RequestContent, TopicNames
from kframe_kafka_wire.security import ListenerSecurity
from kframe_kafka_wire.testing.fuzz.frames import FrameTarget
from kframe_simulator.fuzz import Batch, Outcome

#: Partitions of the requests.
_PARTITIONS: Final = 4
_CORRELATION: Final = 7


class ControlReplies(FrameTarget):
    """Responses to control requests, as the transport reads them. The kind is an API and a version."""

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """Kernel and reference implementation must agree. The response gives an event or closes the connection."""
        return [_control(batch[i], *map(int, batch.kinds[i].split())) for i in range(len(batch))]


class AdminReplies(FrameTarget):
    """Responses to the admin client. The kind is an API key."""

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The result of the client, or its error."""
        return [_admin(batch[i], int(batch.kinds[i])) for i in range(len(batch))]


def _control(raw: bytes, api_key: int, version: int) -> Outcome:
    flexible = header_version(api_key, version) == 2
    head = 7 if flexible else 6
    if api_key != UPDATE_METADATA and len(raw) >= head:
        grouped = api_key == LEADER_AND_ISR and version >= 5
        assert _scanned(kernels, raw, head, flexible, grouped) == _scanned(_naive_answers, raw, head, flexible, grouped)
    try:
        read_answer(_asked(api_key, version), raw)
    except WireError as error:
        return str(error)
    return None


def _scanned(module: Any, raw: bytes, head: int, flexible: bool, grouped: bool) -> tuple[Any, ...]:
    errors, counts = np.zeros((min(_PARTITIONS, len(raw) // 6), 4), np.int32), np.zeros(2, np.int32)
    end = module.scan_answer(raw, head, flexible, grouped, _PARTITIONS, errors, counts)
    return (end, errors[: counts[1]].tolist(), counts.tolist()) if end >= 0 else (end,)


def _asked(api_key: int, version: int) -> PendingRequest:
    numbers = np.arange(_PARTITIONS, dtype=np.int32)
    names = TopicNames(np.zeros(1, np.int32), np.ones((1, 16), np.uint8), ["a"])
    content = RequestContent(
        api_key, numbers, np.zeros_like(numbers), numbers, np.ones(_PARTITIONS, np.uint8), numbers, names
    )
    return PendingRequest(1, 1, api_key, version, _CORRELATION, content, slice(0, _PARTITIONS))


def _admin(raw: bytes, api_key: int) -> Outcome:
    try:
        _QUESTIONS[api_key](_Answered(raw))
    except KframeError as error:
        return str(error)
    return None


class _Answered(AdminClient):
    """A client that receives these bytes as its first response, and empty responses after that."""

    def __init__(self, raw: bytes) -> None:
        super().__init__([("broker", 9092)], ListenerSecurity("CLIENT", "PLAINTEXT", None, sasl=False, config={}))
        self._raw: bytes | None = raw

    def _ask(self, api: tuple[int, int], **fields: Any) -> dict[str, Any]:
        if self._raw is None:
            return {"topics": []}
        raw, self._raw = self._raw, None
        _, response = codec.decode_response(*api, raw)
        top_level_error(response)
        return response


_TARGETS: Final = Targets(
    ("t",), np.zeros(1, np.int32), np.zeros(1, np.int32), Ragged.of([[1, 2]]), np.zeros(1, np.bool_)
)
_QUESTIONS: Final[Mapping[int, Any]] = {
    METADATA[0]: AdminClient.capture,
    ALTER[0]: lambda client: client.reassign(_TARGETS),
    LIST[0]: AdminClient.reassignments,
    ELECT[0]: lambda client: client.elect(ElectionType.PREFERRED, [("t", 0)]),
}
