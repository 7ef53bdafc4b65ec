"""Frames of every API and version: requests as our server decodes them, replies as clients of brokers do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kframe_kafka_wire import codec
from kframe_simulator.fuzz import Base, Batch, Outcome

#: Every so many cases what was decoded is encoded, and has to be the same when it is decoded again.
_TWICE: Final = 16


@dataclass(frozen=True, slots=True)
class FrameTarget:
    """Something that frames are given to."""

    name: str
    bases: Sequence[Base]
    pieces: Sequence[bytes]
    share: int


class Requests(FrameTarget):
    """Requests, without their size. A kind is the API that a case was made of; what it asks now, its header says."""

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """As ``inbound`` reads them: the header, and the body if there is such a version."""
        return [_outcome(_request, batch[i]) for i in range(len(batch))]


class Replies(FrameTarget):
    """Replies, without their size. A kind is an API and a version."""

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """Decode as the requester does."""
        return [_outcome(_reply, batch[i], *map(int, batch.kinds[i].split())) for i in range(len(batch))]


def _outcome(read: Callable[..., None], raw: bytes, *more: int) -> Outcome:
    try:
        read(raw, *more)
    except codec.CodecError as error:
        return str(error)
    return None


def _request(raw: bytes) -> None:
    header = codec.decode_header(raw)
    body = codec.decode_request(header, raw)
    if sum(raw) % _TWICE == 0:
        again = codec.encode_request(header.api_key, header.api_version, 1, header.client_id, body)[4:]
        _same(body, codec.decode_request(codec.decode_header(again), again))


def _reply(raw: bytes, api_key: int, version: int) -> None:
    _, body = codec.decode_response(api_key, version, raw)
    if sum(raw) % _TWICE == 0:
        _same(body, codec.decode_response(api_key, version, codec.encode_response(api_key, version, 7, body)[4:])[1])


def _same(body: dict[str, Any], again: dict[str, Any]) -> None:
    # As text: what is not a number is not equal to itself.
    assert repr(body) == repr(again), (body, again)
