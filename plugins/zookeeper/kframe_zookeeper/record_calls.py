"""Store calls for raw records: ACLs, quotas, credentials, delegation tokens.

Brokers write these records, too. So writes are compare-and-set by version, not fenced by the controller epoch.
"""

from __future__ import annotations

from typing import Protocol

from kazoo.exceptions import BadVersionError, NotEmptyError

from kframe_zookeeper.connection import NO_NODE, NODE_EXISTS, Connection
from kframe_zookeeper.requests import SEQUENTIAL, delete, set_data


class RecordStore(Protocol):
    """The members of the store that these calls use."""

    def _connected(self) -> Connection: ...


class RecordCalls:
    """Part of ZooKeeperStore. Paths are below the chroot. Callable from any thread. Each call raises StoreError."""

    def read_record(self: RecordStore, path: str) -> bytes | None:
        """The data of a node. None if it does not exist."""
        node = self._connected().node(path)
        return None if node is None else node.data

    def read_record_names(self: RecordStore, path: str) -> tuple[str, ...]:
        """Names of a node's children. Empty if it does not exist."""
        return self._connected().children([path])[0]

    def read_versioned_record(self: RecordStore, path: str) -> tuple[bytes, int] | None:
        """The data and version of a node. None if it does not exist."""
        node = self._connected().node(path)
        return None if node is None else (node.data or b"", node.version)

    def write_record(self: RecordStore, path: str, data: bytes, version: int | None) -> bool:
        """Replace the data of a node at ``version``. None creates the node and its parents.

        Return false if the node has another version, does not exist, or exists already.
        """
        connection = self._connected()
        if version is None:
            create = [[connection.create(path, data)]]
            code = connection.write_unfenced(create, NO_NODE, NODE_EXISTS).code[0]
            if code == NO_NODE:
                connection.create_missing([path.rpartition("/")[0]])
                code = connection.write_unfenced(create, NO_NODE, NODE_EXISTS).code[0]
        else:
            write = [[set_data(connection.root + path, data, version)]]
            code = connection.write_unfenced(write, NO_NODE, BadVersionError.code).code[0]
        return not code

    def delete_record(self: RecordStore, path: str, version: int) -> bool:
        """Delete a node at ``version``; false if it does not exist, has another version or has children."""
        connection = self._connected()
        write = [[delete(connection.root + path, version)]]
        return not connection.write_unfenced(write, NO_NODE, BadVersionError.code, NotEmptyError.code).code[0]

    def append_record(self: RecordStore, prefix: str, data: bytes) -> None:
        """Create a sequential node with ``prefix``, and its parents."""
        connection = self._connected()
        create = [[connection.create(prefix, data, SEQUENTIAL)]]
        if connection.write_unfenced(create, NO_NODE).code[0]:
            connection.create_missing([prefix.rpartition("/")[0]])
            connection.write_unfenced(create)
