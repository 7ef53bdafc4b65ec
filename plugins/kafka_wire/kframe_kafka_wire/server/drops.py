"""Dropped connections of a server: counted by reason, and logged at a bounded rate."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from kframe.plugin.transport import RateLimit

_log = logging.getLogger("kframe.kafka_wire")

#: Log lines per second for each reason.
LINES_PER_SECOND: Final = 5


class DropReason(StrEnum):
    """Why a connection ended, other than by its client between two requests."""

    FRAME_REFUSED = "frame_refused"
    """A frame or request is malformed, too large, of an unsupported version, or not allowed now."""
    LOGIN_FAILED = "login_failed"
    IDLE = "idle"
    """Nothing was sent, or a response was not read, for connections.max.idle.ms."""
    TOO_MANY = "too_many"
    """A limit was reached: max.connections, max.connections.per.ip or kframe.unauthenticated.connection.rate."""
    LOST = "lost"
    """TCP or TLS failed."""
    UNANSWERABLE = "unanswerable"
    """The controller cannot respond."""
    FAILED = "failed"
    """An unexpected exception, which is a bug."""


_LEVELS: Final[Mapping[DropReason, int]] = {
    DropReason.FRAME_REFUSED: logging.WARNING,
    DropReason.LOGIN_FAILED: logging.INFO,
    DropReason.IDLE: logging.DEBUG,
    DropReason.TOO_MANY: logging.WARNING,
    DropReason.LOST: logging.DEBUG,
    DropReason.UNANSWERABLE: logging.WARNING,
    DropReason.FAILED: logging.ERROR,
}


class DroppedConnections:
    """Counts the dropped connections of a server in its own thread. Any thread may read."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._counts = dict.fromkeys(DropReason, 0)
        self._limits = {reason: RateLimit(LINES_PER_SECOND, lambda: now_s() * 1000) for reason in DropReason}

    def record(self, reason: DropReason, host: str, problem: object, *, traceback: bool = False) -> None:
        """Count and log a dropped connection from ``host``."""
        self._counts[reason] += 1
        level, limit = _LEVELS[reason], self._limits[reason]
        if not _log.isEnabledFor(level) or not limit.take():
            return
        suppressed = limit.take_suppressed()
        suffix = f" ({suppressed} others left out of this log)" if suppressed else ""
        _log.log(level, "connection from %s dropped (%s): %s%s", host, reason, problem, suffix, exc_info=traceback)

    def metrics(self) -> dict[str, float]:
        """``kframe_connections_dropped_total`` by reason, and the number of refused frames."""
        values: dict[str, float] = {"kframe_frames_refused_total": self._counts[DropReason.FRAME_REFUSED]}
        for reason, count in self._counts.items():
            values[f'kframe_connections_dropped_total{{reason="{reason}"}}'] = count
        return values
