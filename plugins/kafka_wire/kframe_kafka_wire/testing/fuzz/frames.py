"""Fuzz frames of every API and version: requests as the server decodes them, responses as the clients do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kframe_kafka_wire import codec
from kframe_simulator.fuzz import Base, Batch, Outcome

#: Each n-th decoded message is encoded, and must be equal after decoding again.
_TWICE: Final = 16


@dataclass(frozen=True, slots=True)
class FrameTarget:
    """A fuzz target that receives frames."""

    name: str
    bases: Sequence[Base]
    pieces: Sequence[bytes]
    share: int


class Requests(FrameTarget):
    """Requests without size. The kind is the API of the base case; the header of a mutated case may name another
    API."""

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """Decode the header and, for known versions, the body, as ``inbound`` does."""
        return [_outcome(_request, batch[i]) for i in range(len(batch))]


class Replies(FrameTarget):
    """Responses without size. The kind is an API and a version."""

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
        encoded = codec.encode_request(header.api_key, header.api_version, 1, header.client_id, body)[4:]
        _same(body, codec.decode_request(codec.decode_header(encoded), encoded))


def _reply(raw: bytes, api_key: int, version: int) -> None:
    _, body = codec.decode_response(api_key, version, raw)
    if sum(raw) % _TWICE == 0:
        _same(body, codec.decode_response(api_key, version, codec.encode_response(api_key, version, 7, body)[4:])[1])


def _same(body: dict[str, Any], again: dict[str, Any]) -> None:
    # Compared as text, because NaN is not equal to itself.
    assert repr(body) == repr(again), (body, again)
