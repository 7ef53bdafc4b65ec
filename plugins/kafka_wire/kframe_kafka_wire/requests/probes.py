"""Requests that show whether a registered address leads to a ZooKeeper-mode broker of this cluster."""

from __future__ import annotations

import logging
from typing import Final

from kframe.plugin import KframeError
from kframe_kafka_wire.connections.broker import BrokerConnection, Target
from kframe_kafka_wire.protocol.codec import decode_response, encode_request
from kframe_kafka_wire.protocol.errors import CodecError
from kframe_kafka_wire.records.store import Records, cluster_id
from kframe_kafka_wire.requests.content import LEADER_AND_ISR

_log = logging.getLogger("kframe.kafka_wire")

_API_VERSIONS: Final = 18, 0
#: The first version of Metadata that has the cluster id. Every broker serves it without authorization.
_METADATA_VERSION: Final = 3, 2
_REPLY_BYTES_MAX: Final = 2**20


class ClusterId:
    """The id of this cluster, read from ``/cluster/id`` once it exists. Callable from any thread."""

    def __init__(self, records: Records | None = None) -> None:
        """Without ``records`` the id is never known."""
        self._records = records
        self._known: str | None = None

    def read(self) -> str | None:
        """The id. None while it does not exist or cannot be read."""
        if self._known is None and self._records is not None:
            try:
                self._known = cluster_id(self._records)
            except KframeError as error:
                _log.debug("/cluster/id cannot be read: %s", error)
        return self._known


def serves_a_controller(target: Target, timeout_ms: int) -> bool | None:
    """Whether the ApiVersions of the broker at ``target`` has LeaderAndIsr. None if the broker does not answer.

    A KRaft-mode broker closes the connection on LeaderAndIsr, StopReplica and UpdateMetadata: their listener is
    ``zkBroker`` alone (Kafka 3.9 ``SimpleApiVersionManager``).
    """
    connection = BrokerConnection(target)
    try:
        connection.open(timeout_ms)
        request = encode_request(*_API_VERSIONS, 0, target.client_id, {})
        _, response = decode_response(*_API_VERSIONS, connection.exchange([request], _REPLY_BYTES_MAX, timeout_ms))
        if response["error_code"]:
            return None
        return any(entry["api_key"] == LEADER_AND_ISR for entry in response["api_keys"])
    except (CodecError, OSError, KframeError):
        return None
    finally:
        connection.close()


def cluster_id_of(connection: BrokerConnection, client_id: str, timeout_ms: int) -> str | None:
    """The cluster id in the broker's response to Metadata for no topics; None if it names none or cannot be read.

    Raises OSError and WireError as ``BrokerConnection.exchange`` does.
    """
    request = encode_request(*_METADATA_VERSION, 0, client_id, {"topics": []})
    reply = connection.exchange([request], _REPLY_BYTES_MAX, timeout_ms)
    try:
        response = decode_response(*_METADATA_VERSION, reply)[1]
    except CodecError as error:
        _log.debug("the cluster id of a broker cannot be read: %s", error)
        return None
    return str(response["cluster_id"]) if response["cluster_id"] else None
