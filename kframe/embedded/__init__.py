"""A cluster in memory: a store with ZooKeeper's rules, recording and counting transports, brokers that answer, a clock.

Nothing here uses threads, sockets or real time, and equal calls give equal results.
"""

from kframe.embedded.brokers import SILENT, EmbeddedBrokers
from kframe.embedded.clock import VirtualClock
from kframe.embedded.ensemble import MemoryEnsemble
from kframe.embedded.store import MemoryStore
from kframe.embedded.transport import Api, CountingTransport, RecordingTransport, Request

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
