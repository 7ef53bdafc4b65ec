"""One-shot watches that survive reconnects, armed in bulk by SetWatches requests.

kazoo drops all watches when a connection breaks. A SetWatches request (opcode 101) restores them. It lists the watched
paths and the last zxid that the client has seen. If a path has changed since, its watch fires at once (ZooKeeper 3.8
``DataTree.setWatches``).

The request is sent after every reconnect. It also arms watches on nodes that were read by multiRead, which cannot arm
any.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, TypeAlias

from kazoo.exceptions import NoNodeError
from kazoo.protocol.connection import CHILD_EVENT, DELETED_EVENT
from kazoo.protocol.serialization import Exists, GetChildren
from kazoo.protocol.states import EventType

from kframe_zookeeper.session.requests import buffer
from kframe_zookeeper.session.session import Session

#: Bytes of paths in one SetWatches request, about; as in ZooKeeper's own client.
PATHS_BYTES_MAX: Final = 128 * 1024


class Watched(Enum):
    """What a watch waits for."""

    DATA = 0
    """Change or deletion of an existing node."""
    ABSENT = 1
    """Creation of a missing node."""
    CHILDREN = 2
    """Creation or deletion of children."""


@dataclass(frozen=True, slots=True)
class _SetWatches:
    """Watch these nodes (chroot included) for changes after ``zxid``."""

    zxid: int
    paths: Sequence[tuple[str, Watched]]
    type: ClassVar[int] = 101

    def serialize(self) -> bytes:
        """The request; called by kazoo."""
        lists = [[path for path, watched in self.paths if watched is kind] for kind in Watched]
        encoded = (struct.pack(">i", len(paths)) + b"".join(buffer(path.encode()) for path in paths) for paths in lists)
        return struct.pack(">q", self.zxid) + b"".join(encoded)

    def deserialize(self, _data: bytes, _offset: int) -> bool:
        """The response has no content."""
        return True


#: Pending responses to SetWatches and getChildren requests.
Arming: TypeAlias = Iterator[tuple[_SetWatches, bool]]
Listing: TypeAlias = Iterator[tuple[GetChildren, Sequence[str] | None]]


class Watches:
    """The watches of a session. A watch fires once; the listener reads and arms again.

    The thread that reads the connection keeps the list of armed watches, because only it knows the order of events and
    answers. Watchers run in another thread: when a late one ran, the watch could be armed again already.
    """

    def __init__(self, session: Session, on_event: Callable[[EventType, str], None]) -> None:
        """``on_event`` is called in kazoo's watch thread with the event type and the path below the chroot. It must
        not block."""
        self._session = session
        self._on_event = on_event
        self._root = session.client.chroot
        self._armed: dict[tuple[str, bool], Watched] = {}
        """By path (chroot included) and whether children are watched."""
        self._lost_zxid: int | None = None
        """The last zxid seen before a disconnection whose watches are not armed again yet."""
        self.reconnects = 0
        self._lock = threading.Lock()
        session.client.on_fired = self._disarm
        session.client.on_response = self._note_response

    def last_zxid(self) -> int:
        """The last zxid seen: later reads return no older state."""
        return int(self._session.client.last_zxid)

    def begin_lists(self, paths: Sequence[str]) -> Listing:
        """Request the names of the children of each node, and arm a child watch on each existing node."""
        requests = [GetChildren(self._root + path, self._fired) for path in paths]
        return self._session.ask(requests, len(requests), absent=NoNodeError)

    @staticmethod
    def await_lists(responses: Listing) -> list[list[str] | None]:
        """Wait for the names that ``begin_lists`` requested. None where there is no node."""
        return [None if names is None else sorted(names) for _, names in responses]

    def exists(self, path: str) -> Any:
        """Stat of a node or None. Arms a watch in both cases."""
        return self._session.call(Exists(self._root + path, self._fired))

    def arm(self, paths: Iterable[str], watched: Watched, zxid: int) -> None:
        """Watch nodes for changes after ``zxid``. Nodes that are watched already are skipped."""
        self.await_armed(self.begin_arming(paths, watched, zxid))

    def begin_arming(self, paths: Iterable[str], watched: Watched, zxid: int) -> Arming:
        """Send the requests of ``arm``; ``await_armed`` waits for the responses."""
        with self._lock:
            fresh = [
                (self._root + path, watched)
                for path in paths
                if (self._root + path, watched is Watched.CHILDREN) not in self._armed
            ]
        return self._begin(fresh, zxid)

    @staticmethod
    def await_armed(arming: Arming) -> None:
        """Return when the server has armed the watches. Raises StoreError."""
        for _ in arming:
            pass

    def lose(self) -> None:
        """Note a reconnect; called before anything is read on the new connection."""
        with self._lock:
            self.reconnects += 1
            if self._lost_zxid is None:
                self._lost_zxid = self.last_zxid()

    def rearm(self) -> None:
        """Arm all watches again after a reconnect. Raises StoreError; call again then.

        If the connection breaks meanwhile, the watches are lost again, and the next call arms them.
        """
        with self._lock:
            zxid, reconnects = self._lost_zxid, self.reconnects
            if zxid is None:
                return
            armed = [(path, watched) for (path, _), watched in self._armed.items()]
        self.await_armed(self._begin(armed, zxid))
        with self._lock:
            if self.reconnects == reconnects:
                self._lost_zxid = None

    def _begin(self, paths: Sequence[tuple[str, Watched]], zxid: int) -> Arming:
        """Arm watches here, then at the server. The server may fire them before its response."""
        self._note(paths)
        for path, watched in paths:
            self._watchers(watched is Watched.CHILDREN)[path].add(self._fired)
        return self._session.ask(_SetWatches(zxid, part) for part in _parts(paths))

    def _note(self, paths: Iterable[tuple[str, Watched]]) -> None:
        with self._lock:
            self._armed.update(((path, watched is Watched.CHILDREN), watched) for path, watched in paths)

    def _note_response(self, request: Any, error: int) -> None:
        """Note the watch that a read has armed."""
        if getattr(request, "watcher", None) is None:
            return
        if isinstance(request, Exists) and error in (0, NoNodeError.code):
            self._note([(request.path, Watched.ABSENT if error else Watched.DATA)])
        elif isinstance(request, GetChildren) and not error:
            self._note([(request.path, Watched.CHILDREN)])

    def _disarm(self, event_type: int, path: str) -> None:
        """Note that the server has fired the watches of ``path``.

        An event that no watcher receives disarms nothing, so that ``rearm`` makes the server fire it again. A request
        that was sent again after a reconnect may cause it before ``rearm`` has added the watchers.
        """
        fired = [False, True] if event_type == DELETED_EVENT else [event_type == CHILD_EVENT]
        with self._lock:
            for children in fired:
                if path in self._watchers(children):
                    self._armed.pop((path, children), None)

    def _watchers(self, children: bool) -> dict[str, set[Callable[[Any], None]]]:
        """Return kazoo's watchers by path (chroot included)."""
        client = self._session.client
        watchers: dict[str, set[Callable[[Any], None]]] = client._child_watchers if children else client._data_watchers
        return watchers

    def _fired(self, event: Any) -> None:
        """Called by kazoo when a watch fires, and for every watch when the connection breaks (NONE)."""
        if event.type != EventType.NONE:
            self._on_event(event.type, event.path)


def _parts(paths: Sequence[tuple[str, Watched]]) -> Iterator[Sequence[tuple[str, Watched]]]:
    """Parts of at most about PATHS_BYTES_MAX bytes."""
    first = length = 0
    for index, (path, _) in enumerate(paths):
        length += len(path)
        if length > PATHS_BYTES_MAX:
            yield paths[first : index + 1]
            first, length = index + 1, 0
    if first < len(paths):
        yield paths[first:]
