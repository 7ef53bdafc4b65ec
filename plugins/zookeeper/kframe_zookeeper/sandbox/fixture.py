"""The fixture of the store contract on a real ZooKeeper, with the external changes of brokers and operators.

All writes use kazoo's own calls, not the code under test.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import methodcaller
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from kazoo.client import KazooClient, TransactionRequest
from kazoo.protocol.states import Callback

from kframe.plugin.cluster import (
    NO_BROKER_EPOCH,
    NO_STATE,
    UNSET,
    ClusterState,
    Registration,
    Targets,
    TopicPartition,
    table_of,
)
from kframe.testing.waiting import PATIENCE_S, wait_until
from kframe_zookeeper.loading.settings import MIN_INSYNC, UNCLEAN
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.session.client import make_client
from kframe_zookeeper.session.settings import ConnectSettings, settings_of_url
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.brokers import decode_broker, encode_broker
from kframe_zookeeper.znodes.configs import ConfigNotification, decode_config, encode_config, encode_config_change
from kframe_zookeeper.znodes.lists import encode_log_dir_event, encode_partitions, encode_targets
from kframe_zookeeper.znodes.topics import decode_state, encode_state, encode_topics

_numbers = itertools.count()
#: Operations in one transaction.
_TOGETHER = 500
#: How long a client that ends a session tries to connect before another one does.
_CONNECT_S = 10.0


def open_temporary_fixture(url: str) -> ZooKeeperFixture:
    """The fixture of ``kframe plugins check``. It replaces the chroot of the URL by a temporary one."""
    return _TemporaryFixture(settings_of_url(url), ClusterState())


class ZooKeeperFixture:
    """Implements ``kframe.testing.store_fixture.StorageFixture`` in its own chroot."""

    def __init__(self, settings: ConnectSettings, cluster: ClusterState) -> None:
        """Store ``cluster`` at the servers of ``settings``, in a new chroot."""
        self._settings = replace(settings, chroot=f"/cluster-{next(_numbers)}-{time.time_ns()}")
        self.operator = make_client(self._settings)
        """A client that acts for operators and brokers."""
        self.operator.start()
        self.stores: list[ZooKeeperStore] = []
        _seed(self.operator, cluster)
        brokers = cluster.brokers
        self.register_brokers(
            brokers.registrations[index] or Registration(int(brokers.ids[index]), NO_BROKER_EPOCH)
            for index in brokers.registered.nonzero()[0]
        )

    def close(self) -> None:
        """Close every store and the operator's session."""
        for store in self.stores:
            store.close()
        self.operator.stop()
        self.operator.close()

    def connect(self, address: str | None = None, **overrides: Any) -> ZooKeeperStore:
        """A store for another controller, not open yet. ``address`` is another address of the server.

        ``overrides`` are further settings.
        """
        store = ZooKeeperStore(self.settings(address, **overrides))
        self.stores.append(store)
        return store

    def settings(self, address: str | None = None, **overrides: Any) -> ConnectSettings:
        """The connection settings, with another address and further settings if given."""
        settings = replace(self._settings, **overrides)
        if address is None:
            return settings
        host, _, port = address.rpartition(":")
        return replace(settings, hosts=((host, int(port)),))

    def expire(self, store: Any) -> None:
        """End the session of a store, as the server does. Wait for its next session."""
        before = store._connection
        credentials = before.session.client.client_id  # None as soon as the session has ended.
        while not before.session.over:  # In an ensemble the session may move to another server.
            self.end_session(credentials)
            before.session._over.wait(0.5)
        self.await_session(store, before)

    def await_session(self, store: ZooKeeperStore, before: Connection) -> None:
        """Return when a store has another session than ``before``, and its events were handled."""
        end = time.monotonic() + PATIENCE_S
        while store._connection is before:
            assert time.monotonic() < end, "the store has no new session"
            time.sleep(0.005)
        self.settle()

    def end_session(self, client_id: tuple[int, bytes]) -> None:
        """End the session with this id and password. Another client does it."""
        wait_until(lambda: self._try_to_end(client_id))

    def _try_to_end(self, client_id: tuple[int, bytes]) -> bool:
        """Whether a client could connect to a session, which it then closed. A busy server may refuse connections."""
        client = make_client(self._settings)
        client._session_id, client._session_passwd = client_id
        connected: bool = client.start_async().wait(_CONNECT_S)
        client.stop()
        client.close()
        return connected

    def settle(self) -> None:
        """Return when all events so far were handled."""
        for store in self.stores:
            for _ in range(3):  # The handler of a watch may send requests that fire further watches.
                self._settle(store)

    def _settle(self, store: ZooKeeperStore) -> None:
        connection, worker = store._connection, store._worker
        if connection is None or worker is None:
            return
        handler = connection.session.client.handler
        connection.session.client.sync("/")  # A server of an ensemble may lag behind the others.
        for put in (
            lambda done: handler.dispatch_callback(Callback("settle", done.set, ())),
            lambda done: worker.put(done.set),
        ):
            done = threading.Event()
            put(done)
            assert done.wait(PATIENCE_S)

    def drop_controller(self) -> None:
        """Delete ``/controller``."""
        self.operator.delete(paths.CONTROLLER)

    # -- brokers

    def register_brokers(self, registrations: Iterable[Registration]) -> tuple[int, ...]:
        """Register brokers in one transaction. Return their broker epochs."""
        return self._replace_brokers((), tuple(registrations))

    def unregister_brokers(self, broker_ids: Iterable[int]) -> None:
        """Delete registrations in one transaction."""
        self._replace_brokers(tuple(broker_ids), ())

    def bounce_brokers(self, broker_ids: Iterable[int]) -> tuple[int, ...]:
        """Replace registrations by equal ones in one transaction. Return the new broker epochs."""
        ids = tuple(broker_ids)
        nodes = [self.operator.get(paths.broker_path(broker_id)) for broker_id in ids]
        registrations = [
            decode_broker(str(broker_id), data, stat.czxid) for broker_id, (data, stat) in zip(ids, nodes, strict=True)
        ]
        return self._replace_brokers(ids, tuple(registrations))

    def modify_broker(self, registration: Registration) -> None:
        """Replace the content of a registration."""
        self.operator.set(paths.broker_path(registration.broker_id), encode_broker(registration, 0))
        self._synchronize()

    def _replace_brokers(self, unregistered: Sequence[int], new: Sequence[Registration]) -> tuple[int, ...]:
        deletions = [methodcaller("delete", paths.broker_path(broker_id)) for broker_id in unregistered]
        creations = [
            methodcaller(
                "create", paths.broker_path(registration.broker_id), encode_broker(registration, 0), ephemeral=True
            )
            for registration in new
        ]
        commit(self.operator, [*deletions, *creations])
        self._synchronize()
        return tuple(self.operator.exists(paths.broker_path(registration.broker_id)).czxid for registration in new)

    def _synchronize(self) -> None:
        """Bring the servers of all stores up to date: those of an ensemble may lag behind the operator's."""
        if len(self._settings.hosts) == 1:
            return
        for store in self.stores:
            connection = store._connection
            if connection is not None:
                connection.session.client.sync_async("/").wait(PATIENCE_S)

    # -- topics

    def write_state(self, topic: str, partition: int, *, isr: Sequence[int]) -> int:
        """Write another ISR, as a broker does. Return the new version of the state."""
        path = paths.state_path(topic, partition)
        state = decode_state(self.operator.get(path)[0], path)
        data = encode_state(
            state.leader, state.leader_epoch, list(isr), state.controller_epoch, state.leader_recovery_state
        )
        version = int(self.operator.set(path, data).version)
        self._synchronize()
        return version

    def configure_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Change settings of a topic as ``kafka-configs`` does, with the notification."""
        path = paths.config_path("topics", name)
        exists = self.operator.exists(path) is not None
        known = decode_config(self.operator.get(path)[0], path) if exists else {}
        data = encode_config({**known, **config})
        if exists:
            self.operator.set(path, data)
        else:
            self.operator.create(path, data)
        self.operator.create(
            paths.CONFIG_CHANGE, encode_config_change(ConfigNotification("topics", name)), sequence=True
        )
        self._synchronize()

    def mark_for_deletion(self, names: Iterable[str]) -> None:
        """Mark topics for deletion in one transaction."""
        commit(self.operator, [methodcaller("create", paths.delete_topic_path(name)) for name in names])
        self._synchronize()

    # -- what is left for the controller

    def request_reassignments(self, targets: Targets) -> None:
        """Write a reassignment request."""
        self.operator.create(paths.REASSIGN_PARTITIONS, encode_targets(targets))
        self._synchronize()

    def request_preferred_election(self, partitions: Iterable[TopicPartition]) -> None:
        """Write a preferred leader election request."""
        self.operator.create(paths.PREFERRED_ELECTION, encode_partitions(partitions))
        self._synchronize()

    def notify_isr_changes(self, partitions: Iterable[TopicPartition]) -> None:
        """Write an ISR change notification."""
        self.operator.create(paths.ISR_CHANGE, encode_partitions(partitions), sequence=True)
        self._synchronize()

    def notify_log_dir_event(self, broker_id: int) -> None:
        """Write a log directory failure notification."""
        self.operator.create(paths.LOG_DIR_EVENT, encode_log_dir_event(broker_id), sequence=True)
        self._synchronize()


class _TemporaryFixture(ZooKeeperFixture):
    """Deletes its chroot when it is closed."""

    def close(self) -> None:
        """Close, and delete the chroot."""
        for store in self.stores:
            store.close()
        self.operator.delete("/", recursive=True)
        super().close()


def commit(client: KazooClient, operations: Sequence[Callable[[TransactionRequest], object]]) -> None:
    """Add operations to transactions of some hundred each, and commit these. Raises the first error."""
    for first in range(0, len(operations), _TOGETHER):
        transaction = client.transaction()
        for operation in operations[first : first + _TOGETHER]:
            operation(transaction)
        for result in transaction.commit():
            if isinstance(result, Exception):
                raise result


def _seed(client: KazooClient, cluster: ClusterState) -> None:
    """Create the chroot and its persistent nodes. Store topics, states at their versions, settings and marks."""
    topics, table = cluster.topics, table_of(cluster, np.arange(len(cluster.topics)))
    persistent = {
        str(path) for node in paths.PERSISTENT for path in (PurePosixPath(node), *PurePosixPath(node).parents)
    }
    operations: list[methodcaller] = [methodcaller("create", path, b"") for path in sorted(persistent)]
    for index, (name, data) in enumerate(zip(table.names, encode_topics(table), strict=True)):
        config = {}
        if topics.unclean[index] != UNSET:
            config[UNCLEAN] = "true" if topics.unclean[index] else "false"
        if topics.min_insync[index] != UNSET:
            config[MIN_INSYNC] = str(int(topics.min_insync[index]))
        operations.append(methodcaller("create", paths.topic_path(name), data))
        operations.append(methodcaller("create", paths.config_path("topics", name), encode_config(config)))
        if topics.deleting[index]:
            operations.append(methodcaller("create", paths.delete_topic_path(name), b""))
        if any(cluster.partitions.partition_epoch[row] != NO_STATE for row in topics.rows_of(index)):
            operations.append(methodcaller("create", paths.partitions_path(name), b""))
    for row in np.flatnonzero(cluster.partitions.partition_epoch != NO_STATE).tolist():
        operations += _state_operations(cluster, row)
    commit(client, operations)


def _state_operations(cluster: ClusterState, row: int) -> list[methodcaller]:
    """Operations that store one state, and write it until it has its version."""
    view = cluster.view(row)
    path = paths.state_path(view.topic, view.partition)
    data = encode_state(
        -1 if view.leader is None else view.leader,
        view.leader_epoch,
        list(view.isr),
        view.controller_epoch,
        int(view.recovery),
    )
    created = [methodcaller("create", path.removesuffix("/state"), b""), methodcaller("create", path, data)]
    return created + [methodcaller("set_data", path, data)] * view.partition_epoch
