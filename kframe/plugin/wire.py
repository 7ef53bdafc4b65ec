"""Kafka's control requests as bytes: versions by inter-broker protocol, headers and bodies."""

from __future__ import annotations

from kframe.model.protocol import LATEST, InterBrokerProtocol
from kframe.wire import ControlVersions, Encoder, header_version, request_header, size_prefix
from kframe.wire.brokers import endpoint_on
from kframe.wire.primitives import unsigned_varint

__all__ = [
    "LATEST",
    "ControlVersions",
    "Encoder",
    "InterBrokerProtocol",
    "endpoint_on",
    "header_version",
    "request_header",
    "size_prefix",
    "unsigned_varint",
]
