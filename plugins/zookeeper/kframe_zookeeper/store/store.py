"""The store of a controller on ZooKeeper: sessions, events, the role, brokers and states.

Calls come from the controller's thread. A worker thread follows the watches and replaces an ended session.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Final

from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.serialization import Sync
from kazoo.protocol.states import EventType

from kframe.plugin import ConfigError, KframeError, StoreError, ZnodeError
from kframe.plugin.cluster import ClusterState, Registration
from kframe.plugin.store import (
    BrokersLoaded,
    Event,
    Handlers,
    Load,
    Notify,
    Prepare,
    ReadBrokers,
    ReadStates,
    Reelect,
    Reply,
    SessionExpired,
    StoredStates,
    StoreRequest,
    WriteResult,
    WriteStates,
)
from kframe_zookeeper.loading.chroot import require_cluster
from kframe_zookeeper.loading.cluster import load_cluster
from kframe_zookeeper.loading.memory import Memory
from kframe_zookeeper.loading.registrations import reread_registrations
from kframe_zookeeper.loading.states import new_states, stored_states
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.role.instances import IdInUse
from kframe_zookeeper.session.client import ensure_chroot, make_client
from kframe_zookeeper.session.requests import NO_NODE, delete, encode_acl
from kframe_zookeeper.session.session import RequestLost, Session, SessionOver
from kframe_zookeeper.session.settings import ConnectSettings, settings_of_url
from kframe_zookeeper.session.watches import Watched
from kframe_zookeeper.store.events import WatchEvents
from kframe_zookeeper.store.requests import REQUEST_HANDLERS, RequestCalls
from kframe_zookeeper.store.role import ROLE_HANDLERS, RoleCalls
from kframe_zookeeper.store.topics import TOPIC_HANDLERS, TopicCalls
from kframe_zookeeper.store.worker import Worker
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.acls import acl_of
from kframe_zookeeper.znodes.cluster import NO_FEATURES, decode_controller_epoch

_log = logging.getLogger("kframe.zookeeper")

#: Heartbeats per session timeout.
HEARTBEATS: Final = 6
#: Seconds between two attempts to begin a session (Kafka 3.9 ``ZooKeeperClient.RetryBackoffMs``).
RETRY_S: Final = 1.0


class ZooKeeperStore(RoleCalls, TopicCalls, RequestCalls):
    """Implements ``kframe.ports.store.Store``.

    After a session expiry it continues in a new session, without the role.
    """

    def __init__(self, settings: ConnectSettings, creates: bool = True) -> None:
        """``creates``: create the persistent znodes of brokers when connecting."""
        super().__init__()
        self._settings = settings
        self._creates = creates
        self._notify: Notify = _ignore
        self._changing = threading.Lock()
        self._on_brokers_loaded: BrokersLoaded = _ignore
        self._cluster_checked = True
        """Whether the chroot is known to hold a cluster."""

    def open(self, notify: Notify) -> None:
        """Connect, create the persistent znodes if the store ``creates``, and watch ``/controller``.

        Raises StoreError, and ConfigError if a TLS file cannot be used, the chroot holds no cluster, or another
        instance has the id.
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
            raise ConfigError(
                "config key broker.id",
                f"{error.controller_id}, which is the id of {error.holder}",
                "an id that no live instance has, or --allow-duplicate-id",
            ) from error
        except (KazooException, KazooTimeoutError) as error:
            self.close()
            raise StoreError(f"{self._settings.connect_string} cannot be reached: {error}") from error
        except KframeError:
            self.close()
            raise
        self._notify = notify

    def close(self) -> None:
        """End the session, and with it the role. No event is emitted afterwards. May be called again."""
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
        """Whether the session is certain to live. The fence is then open."""
        connection = self._connection
        return connection is not None and connection.session.fence.is_open()

    def quarantined(self) -> dict[str, str]:
        """Malformed znodes that are left out: reasons by path."""
        return dict(self._memory.broken)

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        """The reply to a request. Raises StoreError if the server does not answer."""
        return _HANDLERS.perform(self, request)

    def _prepare(self, request: Prepare) -> None:
        """Create a missing ``/feature``, and delete pending log dir and ISR notifications.

        Usually there is nothing to write. Then a synced read verifies the role.
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
            for parent, names in zip(parents, lists, strict=True)
            for name in names
        ]
        if writes:
            connection.write(writes, NO_NODE)
        if feature is None:
            connection.write([[connection.create(paths.FEATURE, NO_FEATURES)]])

    def _load(self, request: Load) -> ClusterState:
        """Read the cluster and arm the watches. Malformed znodes are left out; see ``quarantined``."""
        return load_cluster(self._connected(), self._memory, self._on_brokers_loaded, self._emit)

    def report_brokers(self, on_brokers_loaded: BrokersLoaded) -> None:
        """Have ``Load`` report the registered brokers while the server reads states."""
        self._on_brokers_loaded = on_brokers_loaded

    def _read_brokers(self, request: ReadBrokers) -> tuple[Registration, ...]:
        """All registrations by broker id. Arms the watches on the list and on each registration."""
        connection = self._connected()
        zxid, self._memory.emits_controller_events = connection.watches.last_zxid(), True
        registrations, paths_read = reread_registrations(connection, self._memory)
        connection.watches.arm(paths_read, Watched.DATA, zxid)
        return registrations

    def _write_states(self, request: WriteStates) -> WriteResult:
        """Create or compare-and-set each row, in batches that each check our claim. The batches of ``following`` are
        sent right behind."""
        connection, following = self._connected(), request.following
        return connection.writer.write(
            new_states(connection, request.cluster, request.change),
            None if following is None else new_states(connection, request.cluster, following),
        )

    def _read_states(self, request: ReadStates) -> StoredStates:
        """Read the states of these rows. A stored broker that the cluster does not know gets an index there."""
        return stored_states(self._connected(), self._memory, request.cluster, request.rows)

    def _acl_of(self, path: str) -> bytes:
        """The encoded ACL of a new znode."""
        return encode_acl(acl_of(path, self._settings.secure_acl))

    def _begin_session(self, *, first: bool = False) -> None:
        """Connect in a new session, and watch ``/controller``. Raises StoreError, at first ConfigError, too."""
        instance = self._instance
        memory = Memory(None if instance is None or instance.duplicate else instance.instance)
        session = Session(make_client(self._settings))
        connection = Connection(session, self._acl_of, lambda *event: self._put(partial(on_event, *event)))
        watch_events = WatchEvents(connection, memory, self._emit)

        def on_event(event_type: EventType, path: str) -> None:
            watch_events.handle(event_type, path)
            if path == paths.CONTROLLER:
                self._update_registration()
            elif path.startswith(f"{paths.INSTANCES}/"):
                with suppress(StoreError):  # The next heartbeat reads the record again.
                    connection.watch_holder()

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
        session.waits_for_server = True
        with self._changing:
            self._memory, self._connection = memory, connection
        if self._worker is None:  # Closed while we connected.
            self.close()

    def _beat_s(self) -> float:
        """Seconds until the next heartbeat."""
        connection = self._connection
        timeout_s = RETRY_S * HEARTBEATS if connection is None else connection.session.fence.timeout_s
        return timeout_s / HEARTBEATS

    def _beat(self) -> None:
        """Send a heartbeat, which extends the fence, and check the role.

        A client that writes ``/controller_epoch`` but not ``/controller`` fences the controller, and no other can be
        elected. Then the session is ended, so that an election follows.
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
            _log.info(
                "ZooKeeper did not answer; the session lives for %.1f s more", connection.session.fence.remaining_s()
            )
        else:
            with suppress(ZnodeError):
                self._remember(0 if epoch is None else decode_controller_epoch(epoch.data))
            ours = holder is not None and holder.owner == connection.session.session_id
            if ours and claim is not None and claim is connection.claim and not claim.is_current(epoch):
                _log.error("a client that is not controller has written %s; resigning", paths.CONTROLLER_EPOCH)
                self._expire(connection)
            elif connection.contender.overdue(connection.session.fence.timeout_s):
                _log.error("the controller has not taken the role it was elected to; ending the session")
                self._expire(connection)

    def _expire(self, connection: Connection) -> None:
        if self._connection is not connection:
            return
        self._memory.emits_controller_events = False
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
                self._emit(Reelect())

    def _emit(self, event: Event) -> None:
        """Pass an event to the controller."""
        self._notify(event)


#: How the store handles each request.
_HANDLERS: Final[Handlers[ZooKeeperStore]] = Handlers(
    Prepare.handled_by(ZooKeeperStore._prepare),
    Load.handled_by(ZooKeeperStore._load),
    ReadBrokers.handled_by(ZooKeeperStore._read_brokers),
    WriteStates.handled_by(ZooKeeperStore._write_states),
    ReadStates.handled_by(ZooKeeperStore._read_states),
    *ROLE_HANDLERS,
    *TOPIC_HANDLERS,
    *REQUEST_HANDLERS,
)


def open_store(url: str) -> ZooKeeperStore:
    """The store that a URL names, not open yet; see ``session.settings`` for its form. Raises ConfigError."""
    return ZooKeeperStore(settings_of_url(url))


def _ignore(_: object) -> None:
    """The default callback, and that of a closed store."""
