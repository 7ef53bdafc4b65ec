"""Decodes repeated requests of a connection once, and encodes equal responses of all connections once.

Idle brokers repeat Fetch and BrokerHeartbeat, equal but for the correlation id, and get equal responses. All brokers
fetch the same records. A controller with thousands of them would spend most of its time with the same few messages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kframe_kafka_wire.protocol.codec import (
    Fields,
    Header,
    decode_header,
    decode_request,
    encode_response,
    encode_response_buffers,
)
from kframe_kafka_wire.protocol.message_buffers import Buffers

#: Fetch and BrokerHeartbeat. Other messages may hold secrets.
_REPEATED: Final = frozenset({1, 63})
#: Larger requests are not retained.
_SIZE_MAX: Final = 1 << 10
#: Offset and end of the correlation id, in a request without its size, and in a response with its size.
_REQUEST_ID: Final = slice(4, 8)
_RESPONSE_ID: Final = slice(4, 8)


class SharedResponses:
    """The last response of each version of the APIs that brokers repeat."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], tuple[Fields, Buffers]] = {}

    def encoded(self, header: Header, fields: Fields) -> Buffers:
        """The response to a request, with its size. Raises CodecError."""
        layout, correlation_id = (header.api_key, header.api_version), header.correlation_id
        if header.api_key not in _REPEATED:
            return (encode_response(*layout, correlation_id, fields),)
        last = self._last.get(layout)
        if last is not None and last[0] == fields:
            first, *others = last[1]
            assert isinstance(first, bytes)
            encoded_id = correlation_id.to_bytes(4, "big", signed=True)
            return first[: _RESPONSE_ID.start] + encoded_id + first[_RESPONSE_ID.stop :], *others
        response = encode_response_buffers(*layout, correlation_id, fields)
        self._last[layout] = fields, response
        return response


class RepeatedRequests:
    """The last request of a connection, if brokers repeat it."""

    def __init__(self) -> None:
        self._request: tuple[bytes, Header, dict[str, Any]] | None = None

    def header(self, frame: bytes) -> Header:
        """The header of a request without its size. Raises CodecError."""
        last = self._last(frame)
        if last is None:
            return decode_header(frame)
        return replace(last[0], correlation_id=int.from_bytes(frame[_REQUEST_ID], "big", signed=True))

    def body(self, header: Header, frame: bytes) -> dict[str, Any]:
        """The body of a request, which the caller must not change. Raises CodecError."""
        last = self._last(frame)
        if last is not None:
            return last[1]
        body = decode_request(header, frame)
        is_retained = header.api_key in _REPEATED and len(frame) <= _SIZE_MAX
        self._request = (frame, header, body) if is_retained else None
        return body

    def _last(self, frame: bytes) -> tuple[Header, dict[str, Any]] | None:
        """Header and body of the last request, if this one differs in the correlation id only."""
        if self._request is None:
            return None
        last, header, body = self._request
        if len(last) != len(frame) or last[:4] != frame[:4] or last[8:] != frame[8:]:
            return None
        return header, body
