"""Store calls for the controller role, and for the registrations of this controller."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from typing import Final

from kframe.plugin import ControllerFenced, StoreError, ZnodeError
from kframe.plugin.cluster import Registration
from kframe.plugin.live import Instance
from kframe.plugin.store import Claim, Holder, OwnsRole, ReadController, ReleaseRole
from kframe.plugin.znodes import ControllerZnode
from kframe_zookeeper.loading.memory import Memory
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.role.election import EPOCH_MAX, Candidate
from kframe_zookeeper.role.instances import InstanceRecord
from kframe_zookeeper.role.presence import Presence
from kframe_zookeeper.session.requests import NO_NODE, delete
from kframe_zookeeper.session.session import RequestLost
from kframe_zookeeper.store.state import StoreState
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.cluster import decode_controller, kraft_epoch

_log = logging.getLogger("kframe.zookeeper")

#: The id of no controller, or of a controller with a malformed znode.
NO_CONTROLLER: Final = -1


class RoleCalls(StoreState):
    """Part of ZooKeeperStore."""

    def contend(self, controller_id: int) -> None:
        """Claim the role for this controller when ``/controller`` is deleted, or the process of its owner has ended.

        See ``role.contender`` and ``role.liveness``. The active controller lets standbys notice the end of its process.
        A standby returns when it can notice the end of the active controller's process, or after about a second.
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
            connection.contender.prepare(self._candidate(connection, controller_id), epoch, holder)
        connection.watch_holder()
        connection.await_attempt()

    def _read_controller(self, request: ReadController) -> Holder:
        """The present controller, and whether it is this session: an equal id alone proves nothing."""
        controller_id = self._controller_id(self._connected())
        return Holder(controller_id, self._owns_role(OwnsRole()))

    def _controller_id(self, connection: Connection) -> int:
        """Id of the present controller; -1 if there is none or its znode is malformed."""
        if connection.contender.pending():
            return NO_CONTROLLER  # ``Claim`` takes it.
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

    def _owns_role(self, request: OwnsRole) -> bool:
        """Whether this session owns ``/controller``.

        Waits until the server answers or has ended the session; ``may_act`` is up to date afterwards.
        """
        connection = self._connected()
        if connection.contender.pending():
            return False
        connection.check_role()
        node = connection.node(paths.CONTROLLER)
        return node is not None and node.owner == connection.session.session_id

    def may_act(self) -> bool:
        """Whether we have the role for all we know, and the fence is open."""
        connection = self._connection
        return connection is not None and connection.may_act

    def _release(self, request: ReleaseRole) -> None:
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

    def announce(self, registration: Registration) -> None:
        """Register in ``/brokers/ids`` while we have the role. See ``role.presence``. Callable from any thread."""
        self._presence = Presence(registration, time.time_ns() // 1_000_000)
        self._put(self._update_registration)

    def register_instance(self, instance: Instance, *, duplicate: bool = False) -> None:
        """See ``kframe.snapshot.instances.InstanceRegistration``."""
        record = self._instance
        if record is None:
            self._instance = InstanceRecord(instance, duplicate=duplicate)
            return

        def update() -> None:
            connection = self._connection
            if connection is not None:
                with suppress(StoreError):  # The next session writes a complete record.
                    record.update(connection)

        record.instance = instance
        self._put(update)

    def _update_registration(self) -> None:
        """Register in ``/brokers/ids`` if we have the role, else unregister. Runs in the worker."""
        connection, presence = self._connection, self._presence
        if connection is not None and presence is not None:
            presence.update(connection)

    def _remember(self, controller_epoch: int) -> None:
        """Remember the highest controller epoch seen, unless no epoch can follow it."""
        if controller_epoch < EPOCH_MAX:
            self._highest_epoch = max(self._highest_epoch, controller_epoch)

    def _candidate(self, connection: Connection, controller_id: int) -> Candidate:
        acl, now_ms = connection.acl_of(paths.CONTROLLER), time.time_ns() // 1_000_000
        return Candidate(connection.session, connection.root, acl, controller_id, now_ms, self._highest_epoch)

    def _claim(self, request: Claim) -> int | None:
        """Take the role, and return the new controller epoch. None if it is taken, or another contender was faster."""
        connection, takeover = self._connected(), request.takeover
        connection.take_role(None)  # An earlier claim must not count as the new one.
        candidate = self._candidate(connection, request.controller_id)
        if takeover:
            with suppress(ZnodeError):
                node = connection.node(paths.CONTROLLER)
                takeover = node is None or kraft_epoch(decode_controller(node.data)) is None
        try:
            early = connection.contender.take()
            claim = candidate.claim(takeover=takeover, brokers_only=request.brokers_only, early=early)
        except RequestLost:
            # The role may be ours: end the session, and the role with it.
            self._put(partial(self._expire, connection))
            raise
        connection.watches.exists(paths.CONTROLLER)
        if claim is None:
            return None
        self._remember(claim.controller_epoch)
        connection.take_role(claim)
        connection.check_role()
        if connection.claim is None:
            raise StoreError("the role was lost as soon as it was won")
        if self._presence is not None:
            self._presence.update(connection)
        return claim.controller_epoch


#: How the store handles these requests.
ROLE_HANDLERS: Final = (
    ReadController.handled_by(RoleCalls._read_controller),
    OwnsRole.handled_by(RoleCalls._owns_role),
    Claim.handled_by(RoleCalls._claim),
    ReleaseRole.handled_by(RoleCalls._release),
)


def warn_of_kraft(memory: Memory, record: ControllerZnode) -> None:
    """Log a KRaft controller that has the role."""
    epoch = kraft_epoch(record)
    memory.warn(
        paths.CONTROLLER,
        None
        if epoch is None
        else (
            f"KRaft controller {record.brokerid} holds the role: {paths.CONTROLLER} field kraftControllerEpoch: found "
            f"{epoch}, expected -1; the cluster is being migrated to KRaft, and its role is never taken"
        ),
    )
