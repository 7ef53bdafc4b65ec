"""Store calls for the controller role: claim, take over, contend, check, release."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from kframe.plugin import ControllerFenced, StoreError, ZnodeError
from kframe.plugin.live import Instance
from kframe_zookeeper import paths
from kframe_zookeeper.connection import NO_NODE, Connection
from kframe_zookeeper.foreign import kraft_epoch, warn_of_kraft
from kframe_zookeeper.instances import InstanceRecord
from kframe_zookeeper.memory import Memory
from kframe_zookeeper.presence import Presence
from kframe_zookeeper.requests import delete
from kframe_zookeeper.role import EPOCH_MAX, Candidate
from kframe_zookeeper.session import RequestLost
from kframe_zookeeper.znodes import decode_controller

_log = logging.getLogger("kframe.zookeeper")

#: The id of no controller, or of a controller with a malformed znode.
NO_CONTROLLER: Final = -1


class RoleStore(Protocol):
    """The members of the store that these calls use."""

    _memory: Memory
    _connection: Connection | None
    _presence: Presence | None
    _instance: InstanceRecord | None
    _highest_epoch: int

    def _connected(self) -> Connection: ...

    def _put(self, task: Callable[[], None]) -> None: ...

    def _expire(self, connection: Connection) -> None: ...


class RoleCalls:
    """Part of ZooKeeperStore; see ``ports.Store`` for what each call promises."""

    _instance: InstanceRecord | None

    def claim(self: RoleStore, controller_id: int) -> int | None:
        """Take the role if it is free. Return the new controller epoch, else None."""
        return _claim(self, controller_id)

    def take_over(self: RoleStore, controller_id: int, brokers_only: bool = False) -> int | None:
        """Take the role also from the present controller. None if another contender was faster."""
        return _claim(self, controller_id, takeover=True, brokers_only=brokers_only)

    def contend(self: RoleStore, controller_id: int) -> None:
        """Claim the role for this controller when ``/controller`` is deleted, or the process of its owner has ended.

        See ``contender`` and ``liveness``. The active controller lets standbys notice the end of its own process.
        """
        connection = self._connected()
        if self._instance is None:
            self._instance = InstanceRecord(Instance.of_this_process(controller_id), duplicate=True)
            self._instance.register(connection, wait=False)
        self._instance.listen(connection)
        if connection.claim is not None:
            return
        if not connection.contender.prepared:
            epoch, holder = connection.nodes([paths.CONTROLLER_EPOCH, paths.CONTROLLER])
            if epoch is None or holder is None:
                return
            connection.contender.prepare(_candidate(self, connection, controller_id), epoch, holder)
        connection.watch_holder()

    def controller(self: RoleStore) -> int:
        """Id of the present controller; -1 if there is none or its znode is malformed."""
        connection = self._connected()
        if connection.contender.pending():
            return NO_CONTROLLER  # ``claim`` takes it.
        connection.watches.exists(paths.CONTROLLER)
        node = connection.node(paths.CONTROLLER)
        if node is None:
            self._memory.repair(paths.CONTROLLER)
            return NO_CONTROLLER
        try:
            record = decode_controller(node.data)
        except ZnodeError as error:
            self._memory.quarantine(paths.CONTROLLER, error)
            return NO_CONTROLLER
        self._memory.repair(paths.CONTROLLER)
        warn_of_kraft(self._memory, record)
        return record.brokerid

    def owns_role(self: RoleStore) -> bool:
        """Whether this session owns ``/controller``.

        Waits until the server answers or has ended the session; ``may_act`` is up to date afterwards.
        """
        connection = self._connected()
        if connection.contender.pending():
            return False
        connection.check_role()
        node = connection.node(paths.CONTROLLER)
        return node is not None and node.owner == connection.session.session_id

    def may_act(self: RoleStore) -> bool:
        """Whether we have the role for all we know, and the fence is open."""
        connection = self._connection
        return connection is not None and connection.may_act

    def release(self: RoleStore) -> None:
        """Delete ``/controller`` if we have the role, and stop following registrations.

        If the outcome is unknown, the session is ended, so that another controller can be elected.
        """
        self._memory.emits_controller_events = False
        connection = self._connection
        if connection is None or connection.claim is None:
            return
        if self._presence is not None:
            self._presence.release(connection)
        try:
            connection.write([[delete(connection.root + paths.CONTROLLER)]], NO_NODE)
        except ControllerFenced:
            pass  # Another controller has taken over.
        except StoreError as error:
            _log.warning("the controller role could not be released; ending the session: %s", error)
            self._put(partial(self._expire, connection))
        connection.take_role(None)


def remember(store: RoleStore, controller_epoch: int) -> None:
    """Remember the highest controller epoch seen, unless no epoch can follow it."""
    if controller_epoch < EPOCH_MAX:
        store._highest_epoch = max(store._highest_epoch, controller_epoch)


def _candidate(store: RoleStore, connection: Connection, controller_id: int) -> Candidate:
    acl, now_ms = connection.acl_of(paths.CONTROLLER), time.time_ns() // 1_000_000
    return Candidate(connection.session, connection.root, acl, controller_id, now_ms, store._highest_epoch)


def _claim(store: RoleStore, controller_id: int, *, takeover: bool = False, brokers_only: bool = False) -> int | None:
    connection = store._connected()
    connection.take_role(None)  # An earlier claim must not count as the new one.
    candidate = _candidate(store, connection, controller_id)
    if takeover:
        with suppress(ZnodeError):
            node = connection.node(paths.CONTROLLER)
            takeover = node is None or kraft_epoch(decode_controller(node.data)) is None
    try:
        early = connection.contender.take()
        claim = candidate.claim(takeover=takeover, brokers_only=brokers_only, early=early)
    except RequestLost:
        # The role may be ours: end the session, and the role with it.
        store._put(partial(store._expire, connection))
        raise
    connection.watches.exists(paths.CONTROLLER)
    if claim is None:
        return None
    remember(store, claim.controller_epoch)
    connection.take_role(claim)
    connection.check_role()
    if connection.claim is None:
        raise StoreError("the role was lost as soon as it was won")
    if store._presence is not None:
        store._presence.update(connection)
    return claim.controller_epoch
