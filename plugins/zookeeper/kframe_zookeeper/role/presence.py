"""Register the active controller in ``/brokers/ids`` for brokers before Kafka 3.0.

These brokers look there for the controller when they request a controlled shutdown (Kafka 2.8 ``KafkaServer``:
``zkClient.getBroker(controllerId)``). The znode is ephemeral in the session that has the role. It is deleted before the
role is given up, so Kafka's controllers never load it. A field that no broker writes marks it for other instances.
"""

from __future__ import annotations

import logging
import threading

import msgspec

from kframe.plugin import StoreError
from kframe.plugin.cluster import Registration
from kframe.plugin.znodes import CONTROLLER_FIELD
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.role.election import WonElection
from kframe_zookeeper.session.requests import EPHEMERAL, NO_NODE, NODE_EXISTS, delete
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.brokers import encode_broker

_log = logging.getLogger("kframe.zookeeper")


class Presence:
    """The registration of a controller. If it fails, only the controlled shutdown of old brokers is affected.

    The role is released by the controller's thread, while the store's worker registers after events of
    ``/controller``. A lock keeps the worker from creating the znode again after the release has deleted it.
    """

    def __init__(self, registration: Registration, now_ms: int) -> None:
        self._path = paths.broker_path(registration.broker_id)
        self._data = encode_broker(registration, now_ms, extra={CONTROLLER_FIELD: msgspec.Raw(b"true")})
        self._lock = threading.Lock()
        self._released: WonElection | None = None

    def update(self, connection: Connection) -> None:
        """Register if this session has the role and does not release it, else unregister."""
        with self._lock:
            if connection.claim is None:
                self._unregister(connection)
            elif connection.claim is not self._released:
                self._register(connection)

    def release(self, connection: Connection) -> None:
        """Unregister before the role is released. Later calls of ``update`` do not register for this election."""
        with self._lock:
            self._released = connection.claim
            self._unregister(connection)

    def _register(self, connection: Connection) -> None:
        """Create the registration, unless a broker has the id."""
        try:
            connection.write_unfenced([[connection.create(self._path, self._data, EPHEMERAL)]], NODE_EXISTS)
            node = connection.node(self._path)
            if node is None or node.owner != connection.session.session_id:
                _log.warning(
                    "%s belongs to another session: brokers before 3.0 find no controller for their shutdown",
                    self._path,
                )
        except StoreError as error:
            _log.warning(
                "%s could not be created: brokers before 3.0 find no controller for their shutdown (%s)",
                self._path,
                error,
            )

    def _unregister(self, connection: Connection) -> None:
        """Delete the registration if this session owns it."""
        try:
            node = connection.node(self._path)
            if node is not None and node.owner == connection.session.session_id:
                connection.write_unfenced([[delete(connection.root + self._path, node.version)]], NO_NODE)
        except StoreError as error:
            _log.info("%s could not be deleted and ends with the session (%s)", self._path, error)
