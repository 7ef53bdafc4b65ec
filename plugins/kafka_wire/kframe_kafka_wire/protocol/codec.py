"""Encode and decode Kafka's protocol: headers and bodies of requests and responses of every version.

Only this module and ``newer_messages`` use kio, whose classes describe the message layouts (``shapes``). Decoding
untrusted bytes returns plain data or raises CodecError. Its memory is bounded by a multiple of the input's size.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map

from kframe_kafka_wire.protocol.errors import CodecError
from kframe_kafka_wire.protocol.message_buffers import Buffers, MessageBuffers
from kframe_kafka_wire.protocol.newer_messages import NEWER
from kframe_kafka_wire.protocol.shapes import Cursor, Shape, struct_shape

#: The fields of a request or response, or of a struct in it, by name (``shapes``).
Fields: TypeAlias = Mapping[str, Any]
#: Names of the APIs by key, in snake case.
API_NAMES: Final[Mapping[int, str]] = api_key_map
_FIRST = struct.Struct(">hhi")
_SIZE = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a request. ``body`` is the offset of the body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: int


def known(api_key: int, version: int) -> bool:
    """Whether there is a layout for this API version."""
    return (api_key in api_key_map and version in schema_name_map[api_key_map[api_key]]) or (api_key, version) in NEWER


def newest(api_key: int, min_version: int, max_version: int) -> int | None:
    """The newest version from ``min_version`` to ``max_version`` with a layout, or None."""
    return next((version for version in range(max_version, min_version - 1, -1) if known(api_key, version)), None)


def decode_header(frame: bytes) -> Header:
    """Decode the header of a request without its size. Raises CodecError.

    For unknown versions, only the fields that all versions share are decoded.
    """
    cursor = Cursor(frame)
    api_key, version, correlation_id = _FIRST.unpack_from(frame, cursor.skip(_FIRST.size))
    if not known(api_key, version):
        return Header(api_key, version, correlation_id, None, cursor.offset)
    header, _ = _request(api_key, version)
    cursor.offset = 0
    value = header.read(cursor)
    return Header(api_key, version, correlation_id, value.get("client_id"), cursor.offset)


def decode_request(header: Header, frame: bytes) -> dict[str, Any]:
    """Decode the body of a request. Raises CodecError.

    Trailing bytes are ignored, as brokers do (``RequestContext.parseRequest``): librdkafka leaves three bytes in a
    request for all topics.
    """
    value: dict[str, Any] = _request(header.api_key, header.api_version)[1].read(Cursor(frame, header.body))
    return value


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[int, dict[str, Any]]:
    """Decode a response without its size: correlation id and body. Raises CodecError, also for trailing bytes."""
    header, body = _response(api_key, version)
    cursor = Cursor(frame)
    correlation_id: int = header.read(cursor)["correlation_id"]
    value: dict[str, Any] = body.read(cursor)
    if cursor.offset != cursor.end:
        raise CodecError(f"{cursor.end - cursor.offset} bytes behind the end of the message")
    return correlation_id, value


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, fields: Mapping[str, Any]
) -> bytes:
    """Encode a request with its size. Raises CodecError if a value does not fit.

    Omitted fields get the defaults of Kafka's message files. Fields that the version does not have are ignored.
    """
    head = {
        "request_api_key": api_key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    return _framed(*_request(api_key, version), head, fields)


def encode_response(api_key: int, version: int, correlation_id: int, fields: Mapping[str, Any]) -> bytes:
    """Encode a response with its size; ``fields`` as in ``encode_request``. Raises CodecError."""
    return _framed(*_response(api_key, version), {"correlation_id": correlation_id}, fields)


def encode_response_buffers(api_key: int, version: int, correlation_id: int, fields: Mapping[str, Any]) -> Buffers:
    """Encode a response with its size, without a copy of large byte strings: each of them is a buffer.

    The first buffer is bytes that begin with the size and the header. ``fields`` as in ``encode_request``; records may
    also be a FileSection. Raises CodecError.
    """
    out = MessageBuffers(_SIZE.size)
    _write(out, *_response(api_key, version), {"correlation_id": correlation_id}, fields)
    first, others = out.buffers()
    return _SIZE.pack(len(first) + sum(map(len, others)) - _SIZE.size) + first[_SIZE.size :], *others


def _framed(header: Shape, body: Shape, head: Mapping[str, Any], fields: Mapping[str, Any]) -> bytes:
    out = bytearray(_SIZE.size)
    _write(out, header, body, head, fields)
    _SIZE.pack_into(out, 0, len(out) - _SIZE.size)
    return bytes(out)


def _write(out: bytearray, header: Shape, body: Shape, head: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    try:
        header.write(out, head)
        body.write(out, fields)
    except (struct.error, AttributeError, TypeError, ValueError) as error:
        raise CodecError(f"a value does not fit its field: {error}") from error


def request_class(api_key: int, version: int) -> Any:
    """The class that describes a request. Raises CodecError for an unknown version."""
    _check_known(api_key, version)
    newer = NEWER.get((api_key, version))
    return newer[0] if newer else load_request_schema(api_key, version)


def response_class(api_key: int, version: int) -> Any:
    """The class that describes a response. Raises CodecError for an unknown version."""
    _check_known(api_key, version)
    newer = NEWER.get((api_key, version))
    return newer[1] if newer else load_response_schema(api_key, version)


def _check_known(api_key: int, version: int) -> None:
    if not known(api_key, version):
        raise CodecError(f"no version {version} of API {api_key}")


@cache
def _request(api_key: int, version: int) -> tuple[Shape, Shape]:
    """Shapes of the header and the body of a request. Raises CodecError for an unknown version."""
    body = request_class(api_key, version)
    # All headers have the client id in the old string format, so that every server can read it.
    return struct_shape(body.__header_schema__, legacy_strings=True), struct_shape(body)


@cache
def _response(api_key: int, version: int) -> tuple[Shape, Shape]:
    """Shapes of the header and the body of a response. Raises CodecError for an unknown version."""
    body = response_class(api_key, version)
    return struct_shape(body.__header_schema__), struct_shape(body)
