"""Register each running instance of kframe in an ephemeral record, ``/kframe/instances/ID``.

Brokers and operators cannot tell two controllers with the same id apart, so the first record of an id wins. After
``kill -9`` the record remains until the session expires. If this machine can prove that the process has ended, its
successor replaces the record at once; otherwise the successor waits until the session must have expired.

The record also has the address by which standbys notice the end of the process (``liveness``).
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import Final, NamedTuple

from kframe.plugin import StoreError, ZnodeError
from kframe.plugin.live import Instance
from kframe_zookeeper.bulk.nodes import ReadNode, read_children, read_nodes
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.session.requests import BAD_VERSION, EPHEMERAL, NO_NODE, NODE_EXISTS, delete, set_data
from kframe_zookeeper.session.session import RequestLost, Session, SessionOver
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.cluster import decode_controller
from kframe_zookeeper.znodes.instances import RegisteredInstance, decode_instance, encode_instance

_log = logging.getLogger("kframe.zookeeper")

#: Seconds between two checks whether a record still exists.
_POLL_S: Final = 0.1
#: The server expires sessions in ticks, so a record may outlive the session timeout by up to half of it.
_EXPIRY_SLACK: Final = 1.5


class IdInUse(StoreError):
    """Another live instance has the id. ``holder`` describes it."""

    def __init__(self, controller_id: int, holder: str) -> None:
        super().__init__(f"id {controller_id} is the id of {holder}")
        self.controller_id = controller_id
        self.holder = holder


class _Holder(NamedTuple):
    """The instance that has an id."""

    text: str
    """Describes it in messages."""
    alive: bool | None
    """None if this machine cannot tell."""
    session_timeout_ms: int


class InstanceRecord:
    """The record of this instance. Its methods may be called from any thread."""

    def __init__(self, instance: Instance, *, duplicate: bool) -> None:
        """``duplicate``: go on, without a record, if another instance has the id."""
        self.instance = instance
        self.duplicate = duplicate
        self._path = paths.instance_path(instance.controller_id)
        self._unwritable = False
        self._ended_sessions: set[int] = set()
        """Sessions of processes that have ended. Their znodes do not count as a live instance."""
        self._listening_session = 0
        self._updating = threading.Lock()

    def register(self, connection: Connection, *, wait: bool) -> None:
        """Create the record. ``wait``: for the session of a predecessor that may have ended to expire.

        Raises IdInUse if another live instance has the id. A record that ZooKeeper refuses is logged.
        """
        waiting_since: float | None = None
        while (holder := self._claim(connection)) is not None:
            if self.duplicate:
                _log.warning(
                    "id %d is also the id of %s; duplicate ids are allowed", self.instance.controller_id, holder.text
                )
                return
            patience_s = holder.session_timeout_ms * _EXPIRY_SLACK / 1000 if wait and holder.alive is None else 0.0
            now = time.monotonic()
            if waiting_since is None and patience_s > 0:
                waiting_since = now
                _log.warning(
                    "id %d is the id of %s; waiting up to %.1f s for its session to expire",
                    self.instance.controller_id,
                    holder.text,
                    patience_s,
                )
            if waiting_since is None or now - waiting_since > patience_s:
                raise IdInUse(self.instance.controller_id, holder.text)
            time.sleep(_POLL_S)

    def update(self, connection: Connection) -> None:
        """Write the record again, if this session owns it. Raises StoreError."""
        with self._updating:
            node = connection.node(self._path)
            if node is not None and node.owner == connection.session.session_id:
                write = set_data(connection.root + self._path, self._encoded(connection), node.version)
                connection.write_unfenced([[write]], BAD_VERSION, NO_NODE)

    def listen(self, connection: Connection) -> None:
        """Let standbys notice the end of this process from now on. Raises StoreError."""
        if self._listening_session != connection.session.session_id:
            connection.listen(self.instance.token)
            self.update(connection)
            self._listening_session = connection.session.session_id

    def _encoded(self, connection: Connection) -> bytes:
        return encode_instance(RegisteredInstance(self.instance, _timeout_ms(connection), connection.listener))

    def _creation(self, connection: Connection) -> bytes:
        return connection.create(self._path, self._encoded(connection), EPHEMERAL)

    def _claim(self, connection: Connection) -> _Holder | None:
        """Create the record. Return the instance that has the id, None if this one has it now."""
        try:
            connection.create_missing([paths.INSTANCES])
            connection.write_unfenced([[self._creation(connection)]], NODE_EXISTS)
        except (SessionOver, RequestLost):
            raise
        except StoreError as error:
            if not self._unwritable:
                _log.warning("%s cannot be written, so other instances do not see this one: %s", self._path, error)
            self._unwritable = True
            return self._controller(connection)
        node = connection.node(self._path)
        if node is not None and node.owner != connection.session.session_id:
            return self._other(connection, node)
        return self._controller(connection)

    def _other(self, connection: Connection, node: ReadNode) -> _Holder | None:
        """The instance in a record of another session. The record of a process that has ended is replaced."""
        name = self._path.rpartition("/")[2]
        try:
            instance, timeout_ms, _ = decode_instance(name, node.data)
        except ZnodeError as error:
            return _Holder(f"an instance whose record cannot be read ({error})", None, _timeout_ms(connection))
        alive = False if instance.token == self.instance.token else instance.is_alive()
        if alive is not False:
            return _Holder(f"the live instance on {instance}", alive, timeout_ms)
        self._ended_sessions.add(node.owner)
        replace = [delete(connection.root + self._path, node.version), self._creation(connection)]
        connection.write_unfenced([replace], BAD_VERSION, NO_NODE)
        return self._claim(connection)

    def _controller(self, connection: Connection) -> _Holder | None:
        """The active controller, if it has our id but no record. This is an older kframe, or its record was refused."""
        node = connection.node(paths.CONTROLLER)
        if node is None or node.owner == connection.session.session_id or node.owner in self._ended_sessions:
            return None
        with suppress(ZnodeError):
            if decode_controller(node.data).brokerid == self.instance.controller_id:
                text = f"the present controller ({paths.CONTROLLER} of session 0x{node.owner:x})"
                return _Holder(text, None, _timeout_ms(connection))
        return None


def read_instances(session: Session) -> list[tuple[Instance, int]]:
    """Every live instance with the session that owns its record, by controller id. Raises StoreError.

    Records that cannot be read are logged and left out.
    """
    parent = session.client.chroot + paths.INSTANCES
    (children,) = read_children(session, [parent])
    names = sorted(children or ())
    instances = []
    for name, node in zip(names, read_nodes(session, [f"{parent}/{name}" for name in names]), strict=True):
        if node is None:
            continue
        try:
            instances.append((decode_instance(name, node.data).instance, node.owner))
        except ZnodeError as error:
            _log.warning("ignoring the record of an instance: %s", error)
    return sorted(instances, key=lambda entry: entry[0].controller_id)


def _timeout_ms(connection: Connection) -> int:
    return round(connection.session.fence.timeout_s * 1000)
