"""One-shot watches as Kafka's client has them, many armed by one request, and none lost with a connection.

Kazoo drops every watch when a connection breaks and never arms one again. The server would keep them: a client says in
a SetWatches request (opcode 101) what it watches and the last transaction that it has seen, and what has changed since
then fires at once (ZooKeeper 3.8 ``DataTree.setWatches``). We send that after every reconnect, and also to arm the
watches of nodes that were read by multiRead, which cannot arm any.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, TypeAlias

from kazoo.exceptions import NoNodeError
from kazoo.protocol.serialization import Exists, GetChildren
from kazoo.protocol.states import EventType

from kframe_zookeeper.requests import buffer
from kframe_zookeeper.session import Session

#: Bytes of paths in one SetWatches request, about; as in ZooKeeper's own client.
PATHS_BYTES_MOST: Final = 128 * 1024


class Watched(Enum):
    """What a watch waits for."""

    DATA = 0
    """Change or deletion of a node that is there."""
    ABSENT = 1
    """Creation of a node that is not there."""
    CHILDREN = 2
    """Children coming or going."""


@dataclass(frozen=True, slots=True)
class _SetWatches:
    """Watch these nodes (chroot included) for what has changed since transaction ``zxid``."""

    zxid: int
    paths: Sequence[tuple[str, Watched]]
    type: ClassVar[int] = 101

    def serialize(self) -> bytes:
        """The request; called by kazoo."""
        lists = [[path for path, what in self.paths if what is kind] for kind in Watched]
        encoded = (struct.pack(">i", len(paths)) + b"".join(buffer(path.encode()) for path in paths) for paths in lists)
        return struct.pack(">q", self.zxid) + b"".join(encoded)

    def deserialize(self, _data: bytes, _offset: int) -> bool:
        """The answer says no more than that it is one."""
        return True


#: Watches, and lists of children, that were asked for: the answers that are still to come.
Arming: TypeAlias = Iterator[tuple[_SetWatches, bool]]
Listing: TypeAlias = Iterator[tuple[GetChildren, Sequence[str] | None]]


class Watches:
    """What one session watches. A watch that goes off is gone; reading and arming again is the listener's business."""

    def __init__(self, session: Session, on_event: Callable[[EventType, str], None]) -> None:
        """``hear`` is called in kazoo's watch thread with what happened and the path, relative to the chroot; it must
        not block."""
        self._session = session
        self._on_event = on_event
        self._root = session.client.chroot
        self._armed: dict[tuple[str, bool], Watched] = {}
        """By path (chroot included) and whether children are watched."""
        self._lost_at: int | None = None
        """The last transaction seen before watches were lost that are not armed again yet."""
        self._lock = threading.Lock()

    def seen(self) -> int:
        """The last transaction that we have seen: what is read from now on is no older."""
        return int(self._session.client.last_zxid)

    def lists(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Names of the children of each node, None where it is not there; watched from now on if it is."""
        return self.await_lists(paths, self.begin_lists(paths))

    def begin_lists(self, paths: Sequence[str]) -> Listing:
        """The same, but only ask for it; ``await_lists`` has the names."""
        requests = [GetChildren(self._root + path, self._fired) for path in paths]
        return self._session.ask(requests, len(requests), absent=NoNodeError)

    def await_lists(self, paths: Sequence[str], answers: Listing) -> list[list[str] | None]:
        """The names that were asked for."""
        lists = [None if names is None else sorted(names) for _, names in answers]
        there = [path for path, names in zip(paths, lists, strict=True) if names is not None]
        self._note([(self._root + path, Watched.CHILDREN) for path in there])
        return lists

    def exists(self, path: str) -> Any:
        """Stat of a node or None; watched from now on either way."""
        stat = self._session.call(Exists(self._root + path, self._fired))
        self._note([(self._root + path, Watched.ABSENT if stat is None else Watched.DATA)])
        return stat

    def arm(self, paths: Iterable[str], what: Watched, zxid: int) -> None:
        """Watch nodes for what has changed since ``zxid``; those watched already are passed over."""
        self.await_armed(self.begin_arming(paths, what, zxid))

    def begin_arming(self, paths: Iterable[str], what: Watched, zxid: int) -> Arming:
        """The same, but only ask for it; ``await_armed`` waits until all of it is so."""
        with self._lock:
            fresh = [
                (self._root + path, what)
                for path in paths
                if (self._root + path, what is Watched.CHILDREN) not in self._armed
            ]
        return self._begin(fresh, zxid)

    @staticmethod
    def await_armed(arming: Arming) -> None:
        """Return when the server watches what was asked for. Raises StoreError."""
        for _ in arming:
            pass

    def lose(self) -> None:
        """The connection has broken and is back; called before anything is read on the new one."""
        if self._lost_at is None:
            self._lost_at = self.seen()

    def rearm(self) -> None:
        """Watch everything again that was watched when the connection broke. Raises StoreError, to be repeated then."""
        zxid = self._lost_at
        if zxid is None:
            return
        with self._lock:
            armed = [(path, what) for (path, _), what in self._armed.items()]
        self.await_armed(self._begin(armed, zxid))
        self._lost_at = None

    def _begin(self, paths: Sequence[tuple[str, Watched]], zxid: int) -> Arming:
        """Arm watches here, then at the server: what fires there at once comes before its answer."""
        self._note(paths)
        client = self._session.client
        for path, what in paths:
            (client._child_watchers if what is Watched.CHILDREN else client._data_watchers)[path].add(self._fired)
        return self._session.ask(_SetWatches(zxid, part) for part in _parts(paths))

    def _note(self, paths: Iterable[tuple[str, Watched]]) -> None:
        with self._lock:
            self._armed.update(((path, what is Watched.CHILDREN), what) for path, what in paths)

    def _fired(self, event: Any) -> None:
        """Called by kazoo when a watch went off, and for every watch when the connection breaks (NONE)."""
        if event.type == EventType.NONE:
            return
        path = self._root + event.path
        gone = [False, True] if event.type == EventType.DELETED else [event.type == EventType.CHILD]
        with self._lock:
            for children in gone:
                self._armed.pop((path, children), None)
        self._on_event(event.type, event.path)


def _parts(paths: Sequence[tuple[str, Watched]]) -> Iterator[Sequence[tuple[str, Watched]]]:
    """Parts that fit a request each."""
    first = length = 0
    for index, (path, _) in enumerate(paths):
        length += len(path)
        if length > PATHS_BYTES_MOST:
            yield paths[first : index + 1]
            first, length = index + 1, 0
    if first < len(paths):
        yield paths[first:]
