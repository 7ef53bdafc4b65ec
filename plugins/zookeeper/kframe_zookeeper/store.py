"""The store of a controller on a real ZooKeeper: what it is told of, the role, brokers and states.

Calls come from the controller's thread; a worker of ours follows the watches and replaces a session that has ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.serialization import Sync
from kazoo.protocol.states import EventType

from kframe.plugin import ConfigError, KframeError, StoreError, ZnodeError
from kframe.plugin.cluster import ClusterState, Registration
from kframe.plugin.columns import Int32
from kframe.plugin.store import Elect, Event, Met, Notify, SessionExpired, StateChange, StoredStates, WriteResult
from kframe_zookeeper import paths
from kframe_zookeeper.acls import acl_of
from kframe_zookeeper.chroot import require_cluster
from kframe_zookeeper.connect import ensure_chroot, make_client
from kframe_zookeeper.connection import NO_NODE, Connection
from kframe_zookeeper.identity_calls import IdentityCalls
from kframe_zookeeper.instances import IdInUse, InstanceRecord
from kframe_zookeeper.loading import load_cluster, reread_registrations
from kframe_zookeeper.memory import Memory
from kframe_zookeeper.presence import Presence
from kframe_zookeeper.record_calls import RecordCalls
from kframe_zookeeper.request_calls import RequestCalls
from kframe_zookeeper.requests import delete, encode_acl
from kframe_zookeeper.role_calls import RoleCalls, remember
from kframe_zookeeper.session import RequestLost, Session, SessionOver
from kframe_zookeeper.settings import ConnectSettings, settings_of_url
from kframe_zookeeper.states import new_states, stored_states
from kframe_zookeeper.topic_calls import TopicCalls
from kframe_zookeeper.watch_events import WatchEvents
from kframe_zookeeper.watches import Watched
from kframe_zookeeper.worker import Worker
from kframe_zookeeper.znodes import decode_controller_epoch, encode_features

_log = logging.getLogger("kframe.zookeeper")

#: How often the server is asked for a sign of life, in parts of the session timeout.
HEARTBEATS: Final = 6
#: How long to wait before the next try to get a new session (Kafka 3.9 ``ZooKeeperClient.RetryBackoffMs``).
RETRY_S: Final = 1.0


class ZooKeeperStore(RoleCalls, TopicCalls, RequestCalls, RecordCalls, IdentityCalls):
    """Implements ``kframe.model.ports.Store``.

    When its session expires it goes on in a new one; a claim does not survive that.
    """

    def __init__(self, settings: ConnectSettings, creates: bool = True) -> None:
        """``creates``: create, when connecting, what every broker creates."""
        self._settings = settings
        self._creates = creates
        self._notify: Notify = _ignore
        self._memory = Memory()
        self._connection: Connection | None = None
        self._worker: Worker | None = None
        self._changing = threading.Lock()
        self._presence: Presence | None = None
        self._instance: InstanceRecord | None = None
        self._highest_epoch = 0
        self._on_brokers_loaded: Met = _ignore_registrations
        self._cluster_checked = True
        """False from ``open`` until the chroot was found to hold a cluster."""

    def open(self, notify: Notify) -> None:
        """Connect, create the nodes that every broker creates unless told not to, and watch who is controller.

        Raises StoreError, and ConfigError where a TLS file cannot be used, the chroot holds no cluster, or another
        instance has our id.
        """
        if self._worker is not None:
            raise StoreError("the store is open already")
        self._worker = Worker(self._beat, self._beat_s)
        try:
            if self._creates and self._settings.create_chroot:
                ensure_chroot(self._settings)
            else:
                self._cluster_checked = False
            self._begin_session(first=True)
        except IdInUse as error:
            self.close()
            raise ConfigError("config key broker.id", f"{error.controller_id}, which is the id of {error.holder}",
                              "an id that no live instance has, or --allow-duplicate-id") from error  # fmt: skip
        except (KazooException, KazooTimeoutError) as error:
            self.close()
            raise StoreError(f"{self._settings.connect_string} cannot be reached: {error}") from error
        except KframeError:
            self.close()
            raise
        self._notify = notify

    def close(self) -> None:
        """Disconnect; ``/controller`` goes if it is ours. Nothing is notified any more. May be called again."""
        self._notify = _ignore
        with self._changing:
            worker, self._worker = self._worker, None
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.session.close()
            connection.retire()
        if worker is not None:
            worker.stop()

    def connected(self) -> bool:
        """Whether our session lives: the fence is open, that is, the server was heard of late."""
        connection = self._connection
        return connection is not None and connection.session.fence.is_open()

    def quarantined(self) -> dict[str, str]:
        """Nodes that are left out because they cannot be read, by path, with the reason."""
        return dict(self._memory.broken)

    def prepare(self) -> None:
        """Create ``/feature`` where it is missing, and drop pending log-dir and ISR notifications.

        Mostly there is nothing to write: that we have the role is then seen by a read of a server that is up to date.
        """
        connection = self._connected()
        parents = (paths.LOG_DIR_EVENTS, paths.ISR_CHANGES)
        synced = connection.session.ask([Sync(connection.root + paths.CONTROLLER_EPOCH)])
        records, lists = connection.results([paths.FEATURE, paths.CONTROLLER_EPOCH]), connection.children(parents)
        deque(synced, 0)
        feature, epoch = (results.node(i) for _, results in records for i in range(len(results.code)))
        connection.require_claim(epoch)
        writes = [
            [delete(f"{connection.root}{parent}/{name}")]
            for parent, names in zip(parents, lists, strict=True) for name in names
        ]  # fmt: skip
        if writes:
            connection.write(writes, NO_NODE)
        if feature is None:
            connection.write([[connection.create(paths.FEATURE, encode_features({}))]])

    def load(self) -> ClusterState:
        """Read everything and arm its watches; what cannot be read is left out, see ``broken``."""
        return load_cluster(self._connected(), self._memory, self._on_brokers_loaded)

    def foretell(self, on_brokers_loaded: Met) -> None:
        """Have ``load`` tell who is registered while the server reads states."""
        self._on_brokers_loaded = on_brokers_loaded

    def read_brokers(self) -> tuple[Registration, ...]:
        """All registrations, by broker id; arms the watches on their coming, going and content."""
        connection = self._connected()
        zxid, self._memory.follows = connection.watches.seen(), True
        registrations, paths_read = reread_registrations(connection, self._memory)
        connection.watches.arm(paths_read, Watched.DATA, zxid)
        return registrations

    def write_states(self, cluster: ClusterState, change: StateChange) -> WriteResult:
        """Create or compare-and-set each row, in batches that each check our claim."""
        connection = self._connected()
        return connection.writer.write(new_states(connection, cluster, change))

    def write_ahead(self, cluster: ClusterState, change: StateChange, following: StateChange) -> WriteResult:
        """``write_states`` of ``change``; the batches of ``following`` leave right behind its own."""
        connection = self._connected()
        first, second = (new_states(connection, cluster, states) for states in (change, following))
        return connection.writer.write(first, second)

    def read_states(self, cluster: ClusterState, rows: Int32) -> StoredStates:
        """Read the states of these rows; a stored broker that ``cluster`` has not met gets an index in it."""
        return stored_states(self._connected(), self._memory, cluster, rows)

    def _acl_of(self, path: str) -> bytes:
        """The ACL of a new node, as create operations hold it."""
        return encode_acl(acl_of(path, self._settings.secure_acl))

    def _connected(self) -> Connection:
        connection = self._connection
        if connection is None:
            raise StoreError("the store is not open")
        return connection

    def _put(self, task: Callable[[], None]) -> None:
        """Have the worker do something, if there still is one."""
        worker = self._worker
        if worker is not None:
            worker.put(task)

    def _begin_session(self, *, first: bool = False) -> None:
        """Connect in a new session, and watch who is controller. Raises StoreError, first ConfigError too."""
        own = self._instance
        memory = Memory(None if own is None or own.duplicate else own.instance)
        session = Session(make_client(self._settings))
        connection = Connection(session, self._acl_of, lambda what, path: self._put(partial(on_event, what, path)))
        watch_events = WatchEvents(connection, memory, self._emit)

        def on_event(what: EventType, path: str) -> None:
            watch_events.handle(what, path)
            if path == paths.CONTROLLER:
                self._show()

        session.on_end = lambda: self._put(partial(self._expire, connection))

        def reconnected() -> None:
            connection.reconnected()
            self._put(connection.resume)

        session.on_reconnect = reconnected
        session.begin(self._settings.connection_timeout_ms / 1000)
        try:
            if not self._cluster_checked:
                require_cluster(session, self._settings)
                self._cluster_checked = True
            if self._creates:
                connection.create_missing(paths.PERSISTENT)
            if self._instance is not None:
                self._instance.register(connection, wait=first)
            connection.watches.exists(paths.CONTROLLER)
        except KframeError:
            session.close()
            raise
        session.waits_for_server = True  # from now on there may be something to lose
        with self._changing:
            self._memory, self._connection = memory, connection
        if self._worker is None:  # closed while we connected
            self.close()

    def _beat_s(self) -> float:
        """Seconds until the next sign of life is asked for."""
        connection = self._connection
        timeout_s = RETRY_S * HEARTBEATS if connection is None else connection.session.fence.timeout_s
        return timeout_s / HEARTBEATS

    def _beat(self) -> None:
        """Ask for a sign of life: it proves that the session lives, and its lack that it may not.

        What is asked for tells whether the role is of any use. Whoever wrote ``/controller_epoch`` without taking
        ``/controller`` from us fences us and everybody else out: then we end the session, so that one is elected.
        """
        connection = self._connection
        if connection is None:
            return
        claim = connection.claim
        try:
            epoch, holder = connection.nodes([paths.CONTROLLER_EPOCH, paths.CONTROLLER])
            connection.resume()
            connection.watch_holder()
        except SessionOver:
            self._expire(connection)
        except RequestLost:
            _log.info("ZooKeeper did not answer; the session lives for %.1f s more", connection.session.fence.left_s())
        else:
            with suppress(ZnodeError):
                remember(self, 0 if epoch is None else decode_controller_epoch(epoch.data))
            ours = holder is not None and holder.owner == connection.session.session_id
            if ours and claim is not None and claim is connection.claim and not claim.stands(epoch):
                _log.error("somebody who is not controller has written %s; we resign", paths.CONTROLLER_EPOCH)
                self._expire(connection)
            elif connection.contender.overdue(connection.session.fence.timeout_s):
                _log.error("the role was won but the controller does not take it; ending the session")
                self._expire(connection)

    def _expire(self, connection: Connection) -> None:
        """The session is over or may be: say so, and get another one. In the worker."""
        if self._connection is not connection:
            return
        self._memory.follows = False
        connection.take_role(None)
        connection.session.expire()
        connection.retire()
        self._emit(SessionExpired())
        connection.session.dispose()
        while self._connection is connection and self._worker is not None:
            try:
                self._begin_session()
            except StoreError as error:
                _log.warning("no new session yet: %s", error)
                time.sleep(RETRY_S)
            else:
                self._emit(Elect())

    def _emit(self, event: Event) -> None:
        """Notify whoever is to be notified now."""
        self._notify(event)


def open_store(url: str) -> ZooKeeperStore:
    """The store that a URL names, not open yet; see ``settings`` for its form. Raises ConfigError."""
    return ZooKeeperStore(settings_of_url(url))


def _ignore(_event: object) -> None:
    """Notified while nobody listens."""


def _ignore_registrations(registrations: Sequence[Registration]) -> None:
    """Told who is registered while nobody wants to know early."""
