"""The versions, contents and quarantined paths that the store remembers for a session."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import Registration
from kframe.plugin.live import Instance
from kframe_zookeeper.znodes.strict import Extra

_log = logging.getLogger("kframe.zookeeper")


@dataclass(frozen=True, slots=True)
class CachedTopic:
    """A topic's znode as last read or written. It has its version, and unknown fields to write back."""

    version: int
    extra: Extra


@dataclass(frozen=True, slots=True)
class CachedBroker:
    """A broker's znode as last read, and its decoded registration."""

    data: bytes | None
    registration: Registration


class Memory:
    """The state of one session. A new session starts empty."""

    def __init__(self, instance: Instance | None = None) -> None:
        """``instance``: this instance, whose id no broker may use."""
        self.instance = instance
        self.emits_controller_events = False
        """Whether events that only a controller handles are emitted."""
        self.topics: dict[str, CachedTopic] = {}
        self.writing_topics = threading.Lock()
        """Held from before a write of topics until ``topics`` has their new versions."""
        self.brokers: dict[str, CachedBroker] = {}
        """The last readable registrations, by path."""
        self.broken: dict[str, str] = {}
        """Quarantined znodes: reasons by path."""
        self._known_changes: set[str] = set()
        self._warned: dict[str, str] = {}
        """The last warning, by path."""

    def note_changes(self, names: Iterable[str]) -> list[str]:
        """Remember these config change notifications. Return the new ones, sorted."""
        current = set(names)
        fresh = sorted(current - self._known_changes)
        self._known_changes = current
        return fresh

    def quarantine(self, path: str, problem: ZnodeError, becomes: str = "is left out") -> None:
        """Quarantine a malformed znode, and log it once. ``becomes`` ends the log line."""
        reason = str(problem)
        if self.broken.get(path) != reason:
            _log.error("malformed znode %s %s: %s", path, becomes, reason)
        self.broken[path] = reason

    def warn(self, path: str, problem: str | None) -> None:
        """Log a problem of a znode that is used nevertheless, once; None clears it."""
        if problem is None:
            self._warned.pop(path, None)
        elif self._warned.get(path) != problem:
            self._warned[path] = problem
            _log.warning("%s", problem)

    def repair(self, path: str) -> None:
        """Remove a readable znode from quarantine."""
        self.broken.pop(path, None)
