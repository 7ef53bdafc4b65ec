"""Decodes requests and encodes responses of a connection, each only once if it is repeated.

Idle brokers repeat Fetch and BrokerHeartbeat, equal but for the correlation id, and get equal responses. A controller
with thousands of them would spend most of its time with the same few messages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kframe_kafka_wire.protocol.codec import Fields, Header, decode_header, decode_request, encode_response

#: Fetch and BrokerHeartbeat. Other messages may hold secrets.
_REPEATED: Final = frozenset({1, 63})
#: Larger messages are not retained.
_SIZE_MAX: Final = 1 << 10
#: Offset and end of the correlation id, in a request without its size, and in a response with its size.
_REQUEST_ID: Final = slice(4, 8)
_RESPONSE_ID: Final = slice(4, 8)


class RepeatedMessages:
    """The last request and the last response of a connection, if brokers repeat them."""

    def __init__(self) -> None:
        self._request: tuple[bytes, Header, dict[str, Any]] | None = None
        self._response: tuple[tuple[int, int], Fields, bytes] | None = None

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
        self._request = (frame, header, body) if _is_retained(header, frame) else None
        return body

    def response(self, header: Header, fields: Fields) -> bytes:
        """The response to a request, with its size. Raises CodecError."""
        layout, correlation_id = (header.api_key, header.api_version), header.correlation_id
        if self._response is not None and self._response[:2] == (layout, fields):
            encoded = bytearray(self._response[2])
            encoded[_RESPONSE_ID] = correlation_id.to_bytes(4, "big", signed=True)
            return bytes(encoded)
        response = encode_response(*layout, correlation_id, fields)
        self._response = (layout, fields, response) if _is_retained(header, response) else None
        return response

    def _last(self, frame: bytes) -> tuple[Header, dict[str, Any]] | None:
        """Header and body of the last request, if this one differs in the correlation id only."""
        if self._request is None:
            return None
        last, header, body = self._request
        if len(last) != len(frame) or last[:4] != frame[:4] or last[8:] != frame[8:]:
            return None
        return header, body


def _is_retained(header: Header, message: bytes) -> bool:
    return header.api_key in _REPEATED and len(message) <= _SIZE_MAX
