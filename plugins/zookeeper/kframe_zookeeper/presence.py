"""A controller that stands in ``/brokers/ids``, as long as it has the role, though it is no broker.

Brokers before Kafka 3.0 look there for the address to ask for a controlled shutdown (2.8 ``KafkaServer``:
``zkClient.getBroker(controllerId)``); everything else they take from UpdateMetadata. The record is ephemeral in the
session that has the role, so that both end at once, and it is deleted before the role is given up: Kafka's own
controllers never load it. It has a field that no broker writes, by which kframe knows it and takes it for no broker.
"""

from __future__ import annotations

import logging

import msgspec

from kframe.plugin import StoreError
from kframe.plugin.cluster import Registration
from kframe_zookeeper import paths
from kframe_zookeeper.connection import NO_NODE, NODE_EXISTS, Connection
from kframe_zookeeper.requests import EPHEMERAL, delete
from kframe_zookeeper.znodes import CONTROLLER_FIELD, encode_broker

_log = logging.getLogger("kframe.zookeeper")


class Presence:
    """The record of one controller. Whatever goes wrong with it costs old brokers a controlled shutdown, no more."""

    def __init__(self, registration: Registration, now_ms: int) -> None:
        self._path = paths.broker_path(registration.broker_id)
        self._data = encode_broker(registration, now_ms, extra={CONTROLLER_FIELD: msgspec.Raw(b"true")})

    def appear(self, connection: Connection) -> None:
        """Stand there from now on, unless a broker does."""
        try:
            connection.write_freely([[connection.create(self._path, self._data, EPHEMERAL)]], NODE_EXISTS)
            node = connection.node(self._path)
            if node is None or node.owner != connection.session.session_id:
                _log.warning("%s is another's: brokers before 3.0 find no controller for their shutdown", self._path)
        except StoreError as error:
            _log.warning("%s is not there: brokers before 3.0 find no controller (%s)", self._path, error)

    def disappear(self, connection: Connection) -> None:
        """Stand there no more; another's record is left alone."""
        try:
            node = connection.node(self._path)
            if node is not None and node.owner == connection.session.session_id:
                connection.write_freely([[delete(connection.root + self._path, node.version)]], NO_NODE)
        except StoreError as error:
            _log.info("%s goes with the session (%s)", self._path, error)
