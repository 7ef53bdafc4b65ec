"""Multi requests as kazoo takes them: bytes made by us go out over its session, and answers come back as they are.

Kazoo has no multiRead (opcode 22, ZooKeeper 3.6 and later), and its own multi decodes each operation in Python. Any
object with ``type``, ``serialize`` and ``deserialize`` travels through ``KazooClient._call``; that is private, so the
plugin pins kazoo and a test holds these classes to it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from kframe.plugin.columns import UInt8
from kframe_zookeeper.fence import Fence

_HEADER: Final = struct.Struct(">i?i")
_INT: Final = struct.Struct(">i")
#: What stands behind the last operation of a multi.
END: Final = _HEADER.pack(-1, True, -1)
_CREATE, _DELETE, _GET_DATA, _SET_DATA, _GET_CHILDREN, _CHECK = 1, 2, 4, 5, 8, 13
_GET_DATA_HEADER: Final = _HEADER.pack(_GET_DATA, False, -1)
#: What a create operation says of the new node beside path, data and ACL: it is persistent, or goes with the session.
PERSISTENT: Final = 0
EPHEMERAL: Final = 1
SEQUENTIAL: Final = 2


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a multi: its first result begins at ``start`` of ``data``."""

    data: UInt8
    start: int


class MultiRequest:
    """Operations that ZooKeeper performs together, ready to be sent."""

    type: ClassVar[int]

    def __init__(self, operations: bytes | memoryview, count: int, fence: Fence) -> None:
        self.count = count
        """How many operations there are."""
        self._operations = operations
        self._fence = fence
        self._sent_s = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.count} operations)"

    def serialize(self) -> bytes:
        """The operations; called by kazoo at the moment of sending."""
        self._sent_s = self._fence.now_s()
        return b"".join((self._operations, END))

    def _answered(self, data: bytes, offset: int) -> Reply:
        """The answer, not looked into: kazoo's own thread, which calls this, has no time for that."""
        self._fence.contact(self._sent_s)
        return Reply(np.frombuffer(data, np.uint8), offset)


class MultiRead(MultiRequest):
    """Reads that are answered together, each with its own result or error. They cannot set watches."""

    type = 22

    def halves(self) -> Sequence[MultiRead]:
        """Requests that read the same in two parts; none where it cannot be parted."""
        return ()

    def deserialize(self, data: bytes, offset: int) -> Reply:
        """The answer; called by kazoo."""
        return self._answered(data, offset)


class MultiWrite(MultiRequest):
    """Writes of which all are done or none.

    While the fence is shut they are not sent: an empty multi goes out in their place. Its answer has no results, and
    opens the fence if the session lives.
    """

    type = 14

    def serialize(self) -> bytes:
        """The operations, or none; called by kazoo at the moment of sending."""
        operations = super().serialize()
        return operations if self._fence.is_open() else END

    def deserialize(self, data: bytes, offset: int) -> list[Reply]:
        """The answer, in a list because kazoo wants to go through the results of a multi."""
        return [self._answered(data, offset)]


def buffer(data: bytes | None) -> bytes:
    """Bytes, or the lack of them, as ZooKeeper lays them out."""
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


def get_data(path: str) -> bytes:
    """Read data and stat. ``path`` is absolute here and below: the chroot is part of it."""
    encoded = path.encode()
    return b"".join((_GET_DATA_HEADER, _INT.pack(len(encoded)), encoded, b"\0"))


def get_children(path: str) -> bytes:
    """Read the names of the children."""
    return b"".join((_HEADER.pack(_GET_CHILDREN, False, -1), buffer(path.encode()), b"\0"))


def check(path: str, version: int) -> bytes:
    """Go on only if the node has this version."""
    return b"".join((_HEADER.pack(_CHECK, False, -1), buffer(path.encode()), _INT.pack(version)))


def create(path: str, data: bytes | None, acl: bytes, flags: int = PERSISTENT) -> bytes:
    """Create a node; ``acl`` as ``encode_acl`` makes it."""
    return b"".join(
        (_HEADER.pack(_CREATE, False, -1), buffer(path.encode()), buffer(data), acl, _INT.pack(flags))
    )  # fmt: skip


def set_data(path: str, data: bytes | None, version: int = -1) -> bytes:
    """Replace the data if the node has this version; -1: whatever it has."""
    return b"".join((_HEADER.pack(_SET_DATA, False, -1), buffer(path.encode()), buffer(data), _INT.pack(version)))


def delete(path: str, version: int = -1) -> bytes:
    """Delete a node that has no children, if it has this version; -1: whatever it has."""
    return b"".join((_HEADER.pack(_DELETE, False, -1), buffer(path.encode()), _INT.pack(version)))


def encode_acl(entries: Iterable[tuple[int, str, str]]) -> bytes:
    """An ACL as create operations hold it, from (permissions, scheme, id) each."""
    encoded = [_INT.pack(perms) + buffer(scheme.encode()) + buffer(who.encode()) for perms, scheme, who in entries]
    return _INT.pack(len(encoded)) + b"".join(encoded)
