"""Responses of brokers to control requests, decoded to events with every bound checked.

A response names every partition of its request, nearly always without error; only errors become objects.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import TopicPartition
from kframe.plugin.columns import Int32
from kframe.plugin.transport import (
    Event,
    LeaderAndIsrResponseReceived,
    StopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from kframe.plugin.wire import header_version
from kframe_kafka_wire._responses import scan_response
from kframe_kafka_wire.protocol.errors import WireError, error_of
from kframe_kafka_wire.requests.content import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, RequestContent

#: From this version on, responses to LeaderAndIsr group partitions by topic id.
_BY_TOPIC_ID: Final = 5
#: Bytes of the longest response: a fixed part, and for each partition a name of 249 characters, index and error.
_REPLY_FIXED: Final = 1024
_REPLY_PARTITION: Final = 280


class PendingRequest(NamedTuple):
    """The request that a response belongs to."""

    broker_id: int
    broker_epoch: int
    controller_epoch: int
    api_key: int
    api_version: int
    correlation_id: int
    content: RequestContent
    part: slice
    """The rows of ``content`` in this request."""

    def batch(self, error: ErrorCode) -> int:
        """The batch that a response to UpdateMetadata completes or, with an error, refuses. 0 for none.

        Of several requests that a batch was split into, only the last completes it.
        """
        last = self.part.stop >= len(self.content.rows)
        return self.content.batch if last or error is not ErrorCode.NONE else 0

    @property
    def reply_bytes_max(self) -> int:
        """The longest valid response."""
        partitions = 0 if self.api_key == UPDATE_METADATA else self.part.stop - self.part.start
        return _REPLY_FIXED + _REPLY_PARTITION * partitions


def read_response(request: PendingRequest, reply: bytes) -> Event | None:
    """The event of a response, whose size is not part of ``reply``; None if the controller needs none.

    Events of StopReplica name deleted replicas only. A response to it without partitions, as brokers send for a stale
    epoch, has no event. Raises WireError for malformed responses.
    """
    flexible = header_version(request.api_key, request.api_version) == 2
    header_size = 7 if flexible else 6
    if len(reply) < header_size:
        raise WireError(f"a response of {len(reply)} bytes, less than it can have")
    correlation_id, error = struct.unpack_from(">ixh" if flexible else ">ih", reply)
    if correlation_id != request.correlation_id:
        raise WireError(f"a response to request {correlation_id} instead of {request.correlation_id}")
    if flexible and reply[4] != 0:
        raise WireError("a response whose header has tagged fields")
    code = error_of(error)
    if request.api_key == UPDATE_METADATA:
        if len(reply) != header_size + flexible or (flexible and reply[-1] != 0):
            raise WireError(f"a response to UpdateMetadata of {len(reply)} bytes")
        return UpdateMetadataResponseReceived(request.broker_id, code, request.controller_epoch, request.batch(code))
    by_topic_id = request.api_key == LEADER_AND_ISR and request.api_version >= _BY_TOPIC_ID
    partition_count, errors = _partition_errors(request, reply, header_size, flexible, by_topic_id)
    rows = request.content.rows[request.part]
    if request.api_key == LEADER_AND_ISR:
        return LeaderAndIsrResponseReceived(
            request.broker_id, code, errors, request.controller_epoch, rows, request.broker_epoch
        )
    if code is ErrorCode.NONE and partition_count < len(rows):
        code = ErrorCode.UNKNOWN_SERVER_ERROR  # The response does not say which replicas were deleted.
    return _stop_replica_event(request, code, errors, rows) if partition_count else None


def _stop_replica_event(
    request: PendingRequest, code: ErrorCode, errors: tuple[tuple[TopicPartition, ErrorCode], ...], rows: Int32
) -> StopReplicaResponseReceived | None:
    content = request.content
    assert content.flags is not None
    assert content.names is not None
    deleted = content.flags[request.part] != 0
    if not deleted.any():
        return None
    if errors:
        # There are few errors, and few partitions of a deletion to compare with them.
        pairs = zip(
            content.topic[request.part][deleted].tolist(),
            content.partition[request.part][deleted].tolist(),
            strict=True,
        )
        deleted_partitions = {(content.names.names[topic], partition) for topic, partition in pairs}
        errors = tuple(error for error in errors if error[0] in deleted_partitions)
    return StopReplicaResponseReceived(
        request.broker_id, code, errors, request.controller_epoch, rows[deleted], request.broker_epoch
    )


def _partition_errors(
    request: PendingRequest, reply: bytes, offset: int, flexible: bool, by_topic_id: bool
) -> tuple[int, tuple[tuple[TopicPartition, ErrorCode], ...]]:
    """The number of partitions in a response, and those in error."""
    max_partitions = len(request.content.rows[request.part])
    error_entries = np.empty((min(max_partitions, len(reply) // 6), 4), np.int32)
    counts = np.zeros(2, np.int32)
    end = scan_response(reply, offset, flexible, by_topic_id, max_partitions, error_entries, counts)
    if end < 0:
        raise WireError(f"a response that is truncated, too long or has more than {max_partitions} partitions")
    partition_count, error_count = counts.tolist()
    errors = [_named_error(request, reply, *entry) for entry in error_entries[:error_count].tolist()]
    return partition_count, tuple(error for error in errors if error is not None)


def _named_error(
    request: PendingRequest, reply: bytes, topic_offset: int, topic_length: int, partition: int, error: int
) -> tuple[TopicPartition, ErrorCode] | None:
    """An error by topic name. None if no single topic of the request has its topic id."""
    topic = reply[topic_offset : topic_offset + topic_length]
    if request.api_key == STOP_REPLICA or request.api_version < _BY_TOPIC_ID:
        try:
            return (topic.decode(), partition), error_of(error)
        except UnicodeDecodeError:
            raise WireError("a topic's name that is no UTF-8") from None
    assert request.content.names is not None
    name = request.content.names.by_id(topic)
    return None if name is None else ((name, partition), error_of(error))
