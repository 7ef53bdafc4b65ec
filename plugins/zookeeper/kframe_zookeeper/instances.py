"""Which instances of kframe live: an ephemeral record of each below ``/kframe/instances``, one for each id.

Two controllers under one id cannot be told apart by brokers or operators. So an id belongs to the instance whose record
exists. After ``kill -9`` the record remains until its session expires: where the system proves that the process has
ended, its successor replaces the record at once, else it waits until the session must have expired.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import Final, NamedTuple

from kframe.errors import StoreError, ZnodeError
from kframe.snapshot.instances import Instance
from kframe_zookeeper import paths
from kframe_zookeeper.connection import NO_NODE, NODE_EXISTS, Connection
from kframe_zookeeper.multiread import Node, read_children, read_nodes
from kframe_zookeeper.request_calls import BAD_VERSION
from kframe_zookeeper.requests import EPHEMERAL, delete, set_data
from kframe_zookeeper.session import RequestLost, Session, SessionOver
from kframe_zookeeper.znodes import decode_controller, decode_instance, encode_instance

_log = logging.getLogger("kframe.zookeeper")

#: How often an instance that waits for a record to go checks whether it has gone.
_POLL_S: Final = 0.1
#: What an expired session may need beyond its timeout until the server has removed its records: it counts in ticks.
_EXPIRY_SLACK: Final = 1.5


class IdInUse(StoreError):
    """Another live instance has the id. ``holder`` says which one."""

    def __init__(self, controller_id: int, holder: str) -> None:
        super().__init__(f"id {controller_id} is the id of {holder}")
        self.controller_id = controller_id
        self.holder = holder


class _Holder(NamedTuple):
    """The instance that has an id: how to name it, whether it lives if that is known, and when its session ends."""

    text: str
    alive: bool | None
    session_timeout_ms: int


class InstanceRecord:
    """The record of this instance."""

    def __init__(self, instance: Instance, *, duplicate: bool) -> None:
        """``duplicate``: go on, without a record, if another instance has the id."""
        self.instance = instance
        self._duplicate = duplicate
        self._path = paths.instance_path(instance.controller_id)
        self._unwritable = False
        self._ended_sessions: set[int] = set()
        """Sessions of processes that have ended: what is left of them is not a live instance."""

    def appear(self, connection: Connection, *, wait: bool) -> None:
        """Create the record. ``wait``: for the session of a predecessor that may have ended to expire.

        Raises IdInUse if another live instance has the id. A record that ZooKeeper does not let us write is logged.
        """
        waiting_since: float | None = None
        while (holder := self._claim(connection)) is not None:
            if self._duplicate:
                _log.warning("id %d is also the id of %s; told to go on", self.instance.controller_id, holder.text)
                return
            patience_s = holder.session_timeout_ms * _EXPIRY_SLACK / 1000 if wait and holder.alive is None else 0.0
            now = time.monotonic()
            if waiting_since is None and patience_s > 0:
                waiting_since = now
                _log.warning(
                    "id %d is the id of %s; waiting up to %.1f s in case it has ended and its session expires",
                    self.instance.controller_id, holder.text, patience_s,
                )  # fmt: skip
            if waiting_since is None or now - waiting_since > patience_s:
                raise IdInUse(self.instance.controller_id, holder.text)
            time.sleep(_POLL_S)

    def update(self, connection: Connection, instance: Instance) -> None:
        """Describe this instance anew, if the record is ours."""
        self.instance = instance
        node = connection.node(self._path)
        if node is not None and node.owner == connection.session.session_id:
            data = encode_instance(instance, _timeout_ms(connection))
            connection.write_freely(
                [[set_data(connection.root + self._path, data, node.version)]], BAD_VERSION, NO_NODE
            )

    def _claim(self, connection: Connection) -> _Holder | None:
        """Create the record; the instance that has the id, None if it is ours now."""
        try:
            connection.create_missing([paths.INSTANCES])
            create = connection.create(self._path, encode_instance(self.instance, _timeout_ms(connection)), EPHEMERAL)
            connection.write_freely([[create]], NODE_EXISTS)
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

    def _other(self, connection: Connection, node: Node) -> _Holder | None:
        """The instance in another's record. The record of a process that has ended is removed first."""
        name = self._path.rpartition("/")[2]
        try:
            instance, timeout_ms = decode_instance(name, node.data)
        except ZnodeError as error:
            return _Holder(f"an instance whose record cannot be read ({error})", None, _timeout_ms(connection))
        alive = False if instance.token == self.instance.token else instance.is_alive()
        if alive is not False:
            return _Holder(f"the live instance on {instance}", alive, timeout_ms)
        self._ended_sessions.add(node.owner)
        connection.write_freely([[delete(connection.root + self._path, node.version)]], BAD_VERSION, NO_NODE)
        return self._claim(connection)

    def _controller(self, connection: Connection) -> _Holder | None:
        """The present controller if it has our id, but no record: one that could not write it, or an older kframe."""
        node = connection.node(paths.CONTROLLER)
        if node is None or node.owner == connection.session.session_id or node.owner in self._ended_sessions:
            return None
        with suppress(ZnodeError):
            if decode_controller(node.data).brokerid == self.instance.controller_id:
                text = f"the present controller ({paths.CONTROLLER} of session 0x{node.owner:x})"
                return _Holder(text, None, _timeout_ms(connection))
        return None


def read_instances(session: Session) -> list[tuple[Instance, int]]:
    """Every instance that lives, by id, and the session that its record is ephemeral in. Records that cannot be read
    are logged and left out. Raises StoreError."""
    parent = session.client.chroot + paths.INSTANCES
    (names,) = read_children(session, [parent])
    listed = sorted(names or ())
    instances = []
    for name, node in zip(listed, read_nodes(session, [f"{parent}/{name}" for name in listed]), strict=True):
        if node is None:
            continue
        try:
            instances.append((decode_instance(name, node.data)[0], node.owner))
        except ZnodeError as error:
            _log.warning("an instance is left out: %s", error)
    return sorted(instances, key=lambda entry: entry[0].controller_id)


def _timeout_ms(connection: Connection) -> int:
    return round(connection.session.fence.timeout_s * 1000)
