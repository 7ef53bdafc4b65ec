"""Kafka's protocol on the wire: frames, headers, and the bodies of requests and responses of every version.

The only module that knows kio, whose classes say how messages are laid out (``shapes``). Whatever bytes come, decoding
gives plain data or raises CodecError, and makes nothing that is larger than what came by more than a fixed factor.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map

from kframe_kafka_wire.shapes import CodecError, Cursor, Shape, struct_shape

__all__ = [
    "API_NAMES",
    "CodecError",
    "Header",
    "decode_header",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "known",
]

#: Names of the APIs by key, as Kafka spells them in snake case.
API_NAMES: Final[Mapping[int, str]] = api_key_map
_FIRST = struct.Struct(">hhi")
_SIZE = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the body of a request. ``body`` is where that begins."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: int


def known(api_key: int, version: int) -> bool:
    """Whether there is a layout for this version of an API."""
    return api_key in api_key_map and version in schema_name_map[api_key_map[api_key]]


def decode_header(frame: bytes) -> Header:
    """Read the header of a request, without the size before it.

    Raises CodecError; a version that is not known is none (its header is read as far as it is the same in all).
    """
    cursor = Cursor(frame)
    api_key, version, correlation_id = _FIRST.unpack_from(frame, cursor.skip(_FIRST.size))
    if not known(api_key, version):
        return Header(api_key, version, correlation_id, None, cursor.at)
    header, _ = _request(api_key, version)
    cursor.at = 0
    value = header.read(cursor)
    return Header(api_key, version, correlation_id, value.get("client_id"), cursor.at)


def decode_request(header: Header, frame: bytes) -> dict[str, Any]:
    """Read the body of a request. Raises CodecError.

    What stands behind it in the frame is passed over, as brokers do (``RequestContext.parseRequest``): librdkafka
    leaves three bytes there when it asks for all topics.
    """
    value: dict[str, Any] = _request(header.api_key, header.api_version)[1].read(Cursor(frame, header.body))
    return value


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[int, dict[str, Any]]:
    """Read a response, without the size before it: correlation id and body. It ends where the frame ends. Raises
    CodecError."""
    header, body = _response(api_key, version)
    cursor = Cursor(frame)
    correlation_id: int = header.read(cursor)["correlation_id"]
    value: dict[str, Any] = body.read(cursor)
    if cursor.at != cursor.end:
        raise CodecError(f"{cursor.end - cursor.at} bytes behind the end of the message")
    return correlation_id, value


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, fields: Mapping[str, Any]
) -> bytes:
    """A request with its size before it; fields that are left out are as Kafka's message files say, fields that the
    version does not have are left out. Raises CodecError if a value does not fit."""
    head = {
        "request_api_key": api_key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    return _framed(*_request(api_key, version), head, fields)


def encode_response(api_key: int, version: int, correlation_id: int, fields: Mapping[str, Any]) -> bytes:
    """A response with its size before it; fields as ``encode_request`` takes them. Raises CodecError."""
    return _framed(*_response(api_key, version), {"correlation_id": correlation_id}, fields)


def _framed(header: Shape, body: Shape, head: Mapping[str, Any], fields: Mapping[str, Any]) -> bytes:
    out = bytearray(_SIZE.size)
    try:
        header.write(out, head)
        body.write(out, fields)
        _SIZE.pack_into(out, 0, len(out) - _SIZE.size)
    except (struct.error, AttributeError, TypeError, ValueError) as error:
        raise CodecError(f"a value does not fit its field: {error}") from error
    return bytes(out)


@cache
def _request(api_key: int, version: int) -> tuple[Shape, Shape]:
    """Shapes of the header and the body of a request. Raises CodecError if there is no such version."""
    if not known(api_key, version):
        raise CodecError(f"no version {version} of API {api_key}")
    body = load_request_schema(api_key, version)
    # In all headers the client id is written the old way, so that anybody can read it.
    return struct_shape(body.__header_schema__, legacy_texts=True), struct_shape(body)


@cache
def _response(api_key: int, version: int) -> tuple[Shape, Shape]:
    """The same of a response."""
    if not known(api_key, version):
        raise CodecError(f"no version {version} of API {api_key}")
    body = load_response_schema(api_key, version)
    return struct_shape(body.__header_schema__), struct_shape(body)
