"""Stores and transports in memory, to build others on."""

from __future__ import annotations

from kframe.embedded import (
    Api,
    CountingTransport,
    EmbeddedBrokers,
    MemoryEnsemble,
    MemoryStore,
    RecordingTransport,
    Request,
    VirtualClock,
)
from kframe.embedded.describe import describe_requests
from kframe.embedded.states import StateColumns

__all__ = [
    "Api",
    "CountingTransport",
    "EmbeddedBrokers",
    "MemoryEnsemble",
    "MemoryStore",
    "RecordingTransport",
    "Request",
    "StateColumns",
    "VirtualClock",
    "describe_requests",
]
