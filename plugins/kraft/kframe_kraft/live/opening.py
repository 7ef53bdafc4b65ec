"""Opens observers for URLs ``kraft://HOST:PORT[,HOST:PORT]...`` with the security settings of Kafka's clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from kframe_kafka_wire.connections.broker import Target
from kframe_kafka_wire.connections.node import CLIENT_ID, NodeConnection, bootstrap_addresses
from kframe_kafka_wire.listeners.security import client_security

from kframe.plugin.live import Progress, ignore_progress
from kframe_kraft.batches import BATCH_BYTES_MAX
from kframe_kraft.disk import LogHistory, MetaProperties, QuorumState
from kframe_kraft.disk.segments import read_segments
from kframe_kraft.disk.temporary import TemporaryContent
from kframe_kraft.live.calls import FETCH_BYTES, Address
from kframe_kraft.live.followed_log import RECORDS
from kframe_kraft.live.observer import QuorumObserver
from kframe_kraft.sources.paths import NodeSource

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

    def connect(address: Address) -> NodeConnection:
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
    spooled = _SpooledLog(observer)
    observer.catch_up(progress, spooled.spool)
    return spooled.history()


class _SpooledLog:
    """Moves the committed batches of an observer to a temporary file, so that they need no memory."""

    def __init__(self, observer: QuorumObserver) -> None:
        self._observer = observer
        self._end = 0
        self._content = TemporaryContent(RECORDS)
        self._start_at_snapshot()

    def spool(self) -> None:
        """Move the committed batches to the file. Restart if a snapshot has replaced the log."""
        if self._observer.generation != self._generation:
            self._start_at_snapshot()
        log = self._observer.log
        for batch in log.committed_batches(self._end):
            self._content.append(batch.content.data)
            self._end = batch.header.next_offset
        log.drop(self._end)

    def history(self) -> LogHistory:
        """The current log."""
        log = read_segments({self._snapshot_id.offset: self._content})
        leader = self._observer.leader
        state = QuorumState(leader.leader_epoch, leader.leader_id, voters=self._observer.voters)
        return LogHistory(self._snapshot_id, self._snapshot, log, state, log.end)

    def _start_at_snapshot(self) -> None:
        log = self._observer.log
        self._generation = self._observer.generation
        self._snapshot_id, self._snapshot = log.snapshot_id, log.snapshot
        self._end = log.snapshot_id.offset
        self._content = TemporaryContent(RECORDS)
