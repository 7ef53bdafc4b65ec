"""Whether the process behind a registration is a KRaft-mode broker, which takes no requests of a controller.

A KRaft-mode broker closes the connection on LeaderAndIsr, StopReplica and UpdateMetadata (3.9 ``SocketServer``,
``SimpleApiVersionManager``; the message files list them for ``zkBroker`` alone), and says so in ApiVersions.
"""

from __future__ import annotations

from typing import Final

from kframe import KframeError
from kframe_kafka_wire.codec import CodecError, decode_response, encode_request
from kframe_kafka_wire.connection import Connection, Target
from kframe_kafka_wire.told import LEADER_AND_ISR

_API_VERSIONS: Final = 18
_REPLY_BYTES_MAX: Final = 2**16


def serves_a_controller(target: Target, timeout_ms: int) -> bool | None:
    """Whether the broker at ``target`` takes LeaderAndIsr, by its ApiVersions; None if it does not answer."""
    connection = Connection(target)
    try:
        connection.open(timeout_ms)
        request = encode_request(_API_VERSIONS, 0, 0, target.client_id, {})
        _, answer = decode_response(_API_VERSIONS, 0, connection.exchange([request], _REPLY_BYTES_MAX, timeout_ms))
        if answer["error_code"]:
            return None
        return any(entry["api_key"] == LEADER_AND_ISR for entry in answer["api_keys"])
    except (CodecError, OSError, KframeError):
        return None
    finally:
        connection.close()
