"""Kafka's control requests on the wire: versions by inter-broker protocol, headers and bodies."""

from __future__ import annotations

from kframe.wire.encode import BYTE_LIMIT, Encoder
from kframe.wire.header import header_version, request_header, size_prefix
from kframe.wire.request import EncodedRequest
from kframe.wire.versions import ControlVersions

__all__ = [
    "BYTE_LIMIT",
    "ControlVersions",
    "EncodedRequest",
    "Encoder",
    "header_version",
    "request_header",
    "size_prefix",
]
