"""A cluster in memory: a store with ZooKeeper's rules, recording and counting transports, brokers that answer, a clock.

Nothing here uses threads, sockets or real time, and equal calls give equal results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kframe.lazy import load_at_access

if TYPE_CHECKING:
    from kframe.embedded.brokers import SILENT as SILENT
    from kframe.embedded.brokers import EmbeddedBrokers as EmbeddedBrokers
    from kframe.embedded.clock import VirtualClock as VirtualClock
    from kframe.embedded.ensemble import MemoryEnsemble as MemoryEnsemble
    from kframe.embedded.store import MemoryStore as MemoryStore
    from kframe.embedded.transport import Api as Api
    from kframe.embedded.transport import CountingTransport as CountingTransport
    from kframe.embedded.transport import RecordingTransport as RecordingTransport
    from kframe.embedded.transport import Request as Request

load_at_access(__name__, {
    "kframe.embedded.brokers": ("SILENT", "EmbeddedBrokers"),
    "kframe.embedded.clock": ("VirtualClock",),
    "kframe.embedded.ensemble": ("MemoryEnsemble",),
    "kframe.embedded.store": ("MemoryStore",),
    "kframe.embedded.transport": ("Api", "CountingTransport", "RecordingTransport", "Request"),
})  # fmt: skip

__all__ = [
    "SILENT",
    "Api",
    "CountingTransport",
    "EmbeddedBrokers",
    "MemoryEnsemble",
    "MemoryStore",
    "RecordingTransport",
    "Request",
    "VirtualClock",
]
