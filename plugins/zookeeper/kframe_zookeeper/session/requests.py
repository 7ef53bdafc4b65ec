"""Encode multi requests for kazoo, and return their responses undecoded.

kazoo has no multiRead (opcode 22, ZooKeeper 3.6 and later), and its multi decodes each operation in Python.
``KazooClient._call`` accepts any object with ``type``, ``serialize`` and ``deserialize``. It is private, so the plugin
pins the version of kazoo.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from kazoo.exceptions import EXCEPTIONS, BadVersionError, NodeExistsError, NoNodeError
from kazoo.security import ACL

from kframe.plugin import counted
from kframe.plugin.columns import UInt8
from kframe_zookeeper.session.fence import Fence

_HEADER: Final = struct.Struct(">i?i")
_INT: Final = struct.Struct(">i")
#: The end marker behind the last operation of a multi.
END: Final = _HEADER.pack(-1, True, -1)
_CREATE, _DELETE, _GET_DATA, _SET_DATA, _GET_CHILDREN, _CHECK = 1, 2, 4, 5, 8, 13
_GET_DATA_HEADER: Final = _HEADER.pack(_GET_DATA, False, -1)
#: ZooKeeper's error codes.
NO_NODE: Final = NoNodeError.code
NODE_EXISTS: Final = NodeExistsError.code
BAD_VERSION: Final = BadVersionError.code
#: Flags of create operations.
PERSISTENT: Final = 0
EPHEMERAL: Final = 1
SEQUENTIAL: Final = 2


@dataclass(frozen=True, slots=True)
class MultiResponse:
    """The response to a multi: its first result begins at ``start`` of ``data``."""

    data: UInt8
    start: int


class MultiRequest:
    """Operations that ZooKeeper performs together, ready to be sent."""

    type: ClassVar[int]

    def __init__(self, operations: bytes | memoryview, count: int, fence: Fence) -> None:
        self.count = count
        """The number of operations."""
        self._operations = operations
        self._fence = fence
        self._sent_s = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({counted(self.count, 'operation')})"

    def serialize(self) -> bytes:
        """The operations; called by kazoo when the request is sent."""
        self._sent_s = self._fence.now_s()
        return b"".join((self._operations, END))

    def _response(self, data: bytes, offset: int) -> MultiResponse:
        """The undecoded response: decoding must not block kazoo's own thread, which calls this."""
        self._fence.contact(self._sent_s)
        return MultiResponse(np.frombuffer(data, np.uint8), offset)


class MultiRead(MultiRequest):
    """Reads that are answered together, each with its own result or error. They cannot arm watches."""

    type = 22

    def halves(self) -> Sequence[MultiRead]:
        """Two requests that read the same; empty if it cannot be split."""
        return ()

    def deserialize(self, data: bytes, offset: int) -> MultiResponse:
        """The response; called by kazoo."""
        return self._response(data, offset)


class MultiWrite(MultiRequest):
    """Writes that are performed together or not at all.

    While the fence is closed, an empty multi is sent instead. Its response has no results, and opens the fence if the
    session lives.
    """

    type = 14

    def serialize(self) -> bytes:
        """The operations, or none. Called by kazoo when the request is sent."""
        operations = super().serialize()
        return operations if self._fence.is_open() else END

    def deserialize(self, data: bytes, offset: int) -> list[MultiResponse]:
        """The response, in a list. Kazoo iterates over the results of a multi."""
        return [self._response(data, offset)]


def buffer(data: bytes | None) -> bytes:
    """Bytes or null in ZooKeeper's encoding."""
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


def get_data(path: str) -> bytes:
    """Read data and stat. ``path`` is absolute here and below: the chroot is part of it."""
    encoded = path.encode()
    return b"".join((_GET_DATA_HEADER, _INT.pack(len(encoded)), encoded, b"\0"))


def get_children(path: str) -> bytes:
    """Read the names of the children."""
    return b"".join((_HEADER.pack(_GET_CHILDREN, False, -1), buffer(path.encode()), b"\0"))


def check(path: str, version: int) -> bytes:
    """Fail the multi unless the node has this version."""
    return b"".join((_HEADER.pack(_CHECK, False, -1), buffer(path.encode()), _INT.pack(version)))


def create(path: str, data: bytes | None, acl: bytes, flags: int = PERSISTENT) -> bytes:
    """Create a node. ``acl`` is encoded by ``encode_acl``."""
    return b"".join((_HEADER.pack(_CREATE, False, -1), buffer(path.encode()), buffer(data), acl, _INT.pack(flags)))


def set_data(path: str, data: bytes | None, version: int = -1) -> bytes:
    """Replace the data if the node has this version. -1 is any version."""
    return b"".join((_HEADER.pack(_SET_DATA, False, -1), buffer(path.encode()), buffer(data), _INT.pack(version)))


def delete(path: str, version: int = -1) -> bytes:
    """Delete a node without children if it has this version. -1 is any version."""
    return b"".join((_HEADER.pack(_DELETE, False, -1), buffer(path.encode()), _INT.pack(version)))


def encode_acl(acl: Sequence[ACL]) -> bytes:
    """An ACL as in create operations."""
    encoded = [
        _INT.pack(entry.perms) + buffer(entry.id.scheme.encode()) + buffer(entry.id.id.encode()) for entry in acl
    ]
    return _INT.pack(len(encoded)) + b"".join(encoded)


def error_name(code: int) -> str:
    """The name of a ZooKeeper error for messages, also for unknown codes."""
    return EXCEPTIONS[code].__name__ if code in EXCEPTIONS else f"error {code}"
