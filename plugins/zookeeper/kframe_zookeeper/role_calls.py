"""The calls of the store that concern the role: claiming it, asking for it, giving it up."""

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
from kframe_zookeeper.role import EPOCH_MOST, Candidate
from kframe_zookeeper.session import RequestLost
from kframe_zookeeper.znodes import decode_controller

_log = logging.getLogger("kframe.zookeeper")

#: The id that stands for no controller, or for one whose record cannot be read.
NO_CONTROLLER: Final = -1


class Calls(Protocol):
    """What the calls need of the store that they belong to."""

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

    def claim(self: Calls, controller_id: int) -> int | None:
        """Take the role if it is free, and return the controller epoch: one more than the last."""
        return _claim(self, controller_id)

    def take_over(self: Calls, controller_id: int, brokers_only: bool = False) -> int | None:
        """Take the role also from a controller, or a broker, that holds it; None if yet another one was faster."""
        return _claim(self, controller_id, takeover=True, brokers_only=brokers_only)

    def contend(self: Calls, controller_id: int) -> None:
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

    def controller(self: Calls) -> int:
        """Id of the present controller; -1 if there is none, or none that anybody can read."""
        connection = self._connected()
        if connection.contender.pending():
            return NO_CONTROLLER  # until it is claimed by the call
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

    def owns_role(self: Calls) -> bool:
        """Whether ``/controller`` is an ephemeral record of our own session.

        Waits until the server answers or has ended the session; ``may_act`` is up to date afterwards.
        """
        connection = self._connected()
        if connection.contender.pending():
            return False
        connection.check_role()
        node = connection.node(paths.CONTROLLER)
        return node is not None and node.owner == connection.session.session_id

    def may_act(self: Calls) -> bool:
        """Whether the role was claimed, not heard to be lost, and our session is certain to live by our own clock."""
        connection = self._connection
        return connection is not None and connection.may_act

    def release(self: Calls) -> None:
        """Delete ``/controller`` if the role is still ours; registrations are not followed any more.

        If that cannot be told from lost, the session ends: nobody else can be controller as long as it lives.
        """
        self._memory.follows = False
        connection = self._connection
        if connection is None or connection.claim is None:
            return
        if self._presence is not None:
            self._presence.disappear(connection)
        try:
            connection.write([[delete(connection.root + paths.CONTROLLER)]], NO_NODE)
        except ControllerFenced:
            pass  # taken over: there is nothing of ours to give up
        except StoreError as error:
            _log.warning("the role could not be given up, so the session is: %s", error)
            self._put(partial(self._expire, connection))
        connection.take_role(None)


def remember(store: Calls, controller_epoch: int) -> None:
    """There has been this controller epoch: none that falls is followed, but where none can follow."""
    if controller_epoch < EPOCH_MOST:
        store._highest_epoch = max(store._highest_epoch, controller_epoch)


def _candidate(store: Calls, connection: Connection, controller_id: int) -> Candidate:
    acl, now_ms = connection.acl_of(paths.CONTROLLER), time.time_ns() // 1_000_000
    return Candidate(connection.session, connection.root, acl, controller_id, now_ms, store._highest_epoch)


def _claim(store: Calls, controller_id: int, *, takeover: bool = False, brokers_only: bool = False) -> int | None:
    connection = store._connected()
    connection.take_role(None)  # an old claim is not to be taken for the new one
    candidate = _candidate(store, connection, controller_id)
    if takeover:
        with suppress(ZnodeError):
            node = connection.node(paths.CONTROLLER)
            takeover = node is None or kraft_epoch(decode_controller(node.data)) is None
    try:
        early = connection.contender.take()
        claim = candidate.claim(takeover=takeover, brokers_only=brokers_only, early=early)
    except RequestLost:
        # The record may be ours without anyone knowing it: it goes with the session.
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
        store._presence.appear(connection)
    return claim.controller_epoch
