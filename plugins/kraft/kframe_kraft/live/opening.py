"""Opens observers for URLs ``kraft://HOST:PORT[,HOST:PORT]...`` with the security settings of Kafka's clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from kframe_kafka_wire.client import client_security
from kframe_kafka_wire.connection import Target
from kframe_kafka_wire.node import CLIENT_ID, NodeConnection, bootstrap_addresses

from kframe.plugin.live import Progress, ignore_progress
from kframe_kraft.batches import BATCH_BYTES_MAX
from kframe_kraft.disk import LogHistory, MetaProperties
from kframe_kraft.live.calls import FETCH_BYTES, Address, QuorumNode
from kframe_kraft.live.observer import QuorumObserver
from kframe_kraft.live.spooled_log import SpooledLog
from kframe_kraft.sources import NodeSource

SCHEME: Final = "kraft"
#: Time limit of a TCP connection.
CONNECT_MS: Final = 4_000
#: The largest response: records, or one larger batch, and the rest of the message.
_REPLY_BYTES_MAX: Final = FETCH_BYTES + BATCH_BYTES_MAX + 2**20


def open_observer(url: str, config: Mapping[str, str], pause: Callable[[float], object] = time.sleep) -> QuorumObserver:
    """An observer, not connected yet. ``config`` has the keys of Kafka's clients. ``pause`` waits between two attempts
    to connect. Raises ConfigError."""
    addresses = bootstrap_addresses(url.removeprefix(f"{SCHEME}:"))
    security = client_security(config)
    credentials = security.credentials()

    def connect(address: Address) -> QuorumNode:
        target = Target(*address, security.tls, credentials, CLIENT_ID)
        return NodeConnection(target, CONNECT_MS, reply_bytes_max=_REPLY_BYTES_MAX)

    return QuorumObserver(addresses, connect, pause)


def read_quorum(url: str, config: Mapping[str, str], progress: Progress = ignore_progress) -> NodeSource:
    """The committed log of a quorum, from its newest snapshot on, in a temporary file.

    Raises ConfigError, StoreError and LogError; OSError if the file cannot be written.
    """
    observer = open_observer(url, config)
    try:
        history = spooled_history(observer, progress)
        properties = None if observer.cluster_id is None else MetaProperties(observer.cluster_id, -1)
        return NodeSource(history, properties)
    finally:
        observer.close()


def spooled_history(observer: QuorumObserver, progress: Progress = ignore_progress) -> LogHistory:
    """The committed log so far, in a temporary file. The observer releases it. Raises as ``read_quorum``."""
    spooled = SpooledLog(observer)
    observer.catch_up(progress, spooled.spool)
    return spooled.history()
