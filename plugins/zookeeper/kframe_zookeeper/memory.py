"""What the store remembers of what it has read and written, beside the columns that belong to the controller."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import Registration
from kframe.plugin.live import Instance
from kframe_zookeeper.znodes import Extra

_log = logging.getLogger("kframe.zookeeper")


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic's node as we read or wrote it last: its version, and fields of others that are written back with it."""

    version: int
    extra: Extra


@dataclass(frozen=True, slots=True)
class SeenBroker:
    """A broker's node as we read it last, and the registration that it is."""

    data: bytes | None
    registration: Registration


class Memory:
    """Kept for one session: nothing of it may be relied on in another."""

    def __init__(self, instance: Instance | None = None) -> None:
        """``instance``: this one, if no broker may have its id."""
        self.instance = instance
        self.follows = False
        """Whether changes are notified that only a controller acts on."""
        self.topics: dict[str, SeenTopic] = {}
        self.writing_topics = threading.Lock()
        """Held from before a write of topics until their new versions stand in ``topics``."""
        self.brokers: dict[str, SeenBroker] = {}
        """Registrations of brokers as they could be read last, by path."""
        self.broken: dict[str, str] = {}
        """Nodes that cannot be read, by path, with the reason. Nothing is done about them but this."""
        self._changes_seen: set[str] = set()
        self._warned: dict[str, str] = {}
        """What was warned of last, by path."""

    def note_changes(self, names: Iterable[str]) -> list[str]:
        """Remember these notifications of changed settings; return those that are new, in order."""
        there = set(names)
        fresh = sorted(there - self._changes_seen)
        self._changes_seen = there
        return fresh

    def quarantine(self, path: str, problem: ZnodeError, becomes: str = "is left out") -> None:
        """Note that a node cannot be read, and say once what becomes of it."""
        reason = str(problem)
        if self.broken.get(path) != reason:
            _log.error("%s %s: %s", path, becomes, reason)
        self.broken[path] = reason

    def warn(self, path: str, problem: str | None) -> None:
        """Warn once of what is wrong with a node that is acted on all the same; None: nothing is (any more)."""
        if problem is None:
            self._warned.pop(path, None)
        elif self._warned.get(path) != problem:
            self._warned[path] = problem
            _log.warning("%s", problem)

    def repair(self, path: str) -> None:
        """A node can be read (again)."""
        self.broken.pop(path, None)
