"""Envelope: requests of clients that brokers forward, with the principal of the client (KIP-590)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, TypeAlias

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header, decode_header, decode_request, encode_response
from kframe_kafka_wire.protocol.errors import CodecError
from kframe_kafka_wire.records.principals import Principal

from kframe.plugin import ErrorCode
from kframe_kraft.controller import NotController
from kframe_kraft.errors import RecordError
from kframe_kraft.records.primitives import Reader, read_bool, read_string

ENVELOPE: Final = 58
#: The APIs that brokers forward (Kafka ``ApiKeys.forwardable``).
FORWARDABLE: Final = frozenset({19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81, 94})
Respond: TypeAlias = Callable[[Header, Fields, ClientSession], Awaitable[Fields]]
IsOffered: TypeAlias = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Unwraps requests. ``respond`` answers them, and raises NotController."""

    is_offered: IsOffered
    respond: Respond

    async def envelope(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """Envelope. A broker looks for the active controller after NOT_CONTROLLER outside, not inside."""
        frame = body["request_data"]
        try:
            inner = decode_header(frame)
            client = ClientSession(
                session.listener,
                str(ip_address(body["client_host_address"])),
                principal_of(body["request_principal"] or b""),
                is_forwarded=True,
            )
        except (RecordError, ValueError):
            return {"error_code": ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE}
        except CodecError:
            return {"error_code": ErrorCode.INVALID_REQUEST}
        if inner.api_key not in FORWARDABLE:
            return {"error_code": ErrorCode.INVALID_REQUEST}
        if not self.is_offered(inner.api_key, inner.api_version):
            return {"error_code": ErrorCode.UNSUPPORTED_VERSION}
        try:
            response = await self.respond(inner, decode_request(inner, frame), client)
        except NotController:
            return {"error_code": ErrorCode.NOT_CONTROLLER}
        except CodecError:
            return {"error_code": ErrorCode.INVALID_REQUEST}
        data = encode_response(inner.api_key, inner.api_version, inner.correlation_id, response)
        return {"error_code": ErrorCode.NONE, "response_data": data[4:]}


def principal_of(data: bytes) -> Principal:
    """The client (Kafka ``DefaultPrincipalData``). Raises RecordError if it is malformed."""
    reader = Reader(data, "request principal")
    version = int.from_bytes(reader.read_bytes(2), "big")
    if version:
        raise reader.error(f"version {version}", "version 0")
    kind, name = read_string(reader), read_string(reader)
    if kind is None or name is None:
        raise reader.error("no type or no name", "both")
    return Principal(name, kind, by_token=read_bool(reader))
