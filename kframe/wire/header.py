"""The part of a request before its body: the size, and the header with the correlation id of the channel."""

from __future__ import annotations

from typing import Final

from kframe.errors import ShapeError
from kframe.wire.apis import CONTROL_APIS
from kframe.wire.primitives import NO_TAGGED_FIELDS, int16, int32, nullable_string

#: A request's size is an int32.
REQUEST_BYTES_MAX: Final = 2**31 - 1


def header_version(api_key: int, api_version: int) -> int:
    """Version of the header of a control request: 2 with flexible versions, else 1."""
    return 2 if api_version >= CONTROL_APIS[api_key].flexible else 1


def request_header(
    header_version: int, api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """A request header.

    Version 0 has no client id (only ControlledShutdown 0 uses it), version 1 has one, version 2 also has tagged fields.
    The client id keeps its two-byte length in all of them. Kafka's controller gives its own id as text.
    """
    header = int16(api_key) + int16(api_version) + int32(correlation_id)
    if header_version >= 1:
        header += nullable_string(client_id, compact=False)
    if header_version >= 2:
        header += NO_TAGGED_FIELDS
    return header


def size_prefix(nbytes: int) -> bytes:
    """The size of a request of ``nbytes`` (header and body) as four bytes. Raises ShapeError if it is too large."""
    if not 0 <= nbytes <= REQUEST_BYTES_MAX:
        raise ShapeError(f"a request of {nbytes} bytes; the most is {REQUEST_BYTES_MAX}")
    return int32(nbytes)
