"""Answers of brokers to control requests: decoded by hand, with every bound checked, to the events that tell of them.

An answer speaks of every partition of its request, nearly always without error, so only errors become objects.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np

from kframe.plugin import ErrorCode, KframeError
from kframe.plugin.cluster import TopicPartition
from kframe.plugin.columns import Int32
from kframe.plugin.transport import Event, LeaderAndIsrAnswered, StopReplicaAnswered, UpdateMetadataAnswered
from kframe.plugin.wire import header_version
from kframe_kafka_wire import kernels
from kframe_kafka_wire.told import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, Told

#: From this version on LeaderAndIsr is answered by topic id, grouped by topic.
_BY_TOPIC_ID: Final = 5
_CODES: Final = {code.value: code for code in ErrorCode}
#: Bytes of the longest answer: a fixed part, and per partition a name of 249 characters, its length, index and error.
_REPLY_FIXED: Final = 1024
_REPLY_PARTITION: Final = 280


class WireError(KframeError):
    """What came over a connection is not what belongs there; the connection cannot be used any further."""


class Refused(WireError):
    """The broker will have none of us, or we will have none of it, however often it is tried."""


class Asked(NamedTuple):
    """What an answer answers."""

    broker_id: int
    controller_epoch: int
    api_key: int
    api_version: int
    correlation_id: int
    told: Told
    part: slice
    """Which of the rows in ``told`` this request has told."""

    def batch(self, error: ErrorCode) -> int:
        """The batch that an answer to UpdateMetadata completes or, with an error, refuses. Of several requests that a
        batch was cut into, only the last completes it; 0: the request completes none."""
        last = self.part.stop >= len(self.told.rows)
        return self.told.batch if last or error is not ErrorCode.NONE else 0

    @property
    def reply_bytes_max(self) -> int:
        """No honest answer is longer."""
        told = 0 if self.api_key == UPDATE_METADATA else self.part.stop - self.part.start
        return _REPLY_FIXED + _REPLY_PARTITION * told


def read_answer(asked: Asked, reply: bytes) -> Event | None:
    """The event that tells of an answer, without its size; None where it tells a controller nothing.

    StopReplica is told of the partitions that it was to delete only, and an answer without any partition not at all,
    as brokers answer a stale epoch (``wire.md`` section 3). Raises WireError for anything else than an answer.
    """
    flexible = header_version(asked.api_key, asked.api_version) == 2
    head = 7 if flexible else 6
    if len(reply) < head:
        raise WireError(f"an answer of {len(reply)} bytes, less than it can have")
    correlation_id, error = struct.unpack_from(">ixh" if flexible else ">ih", reply)
    if correlation_id != asked.correlation_id:
        raise WireError(f"an answer to request {correlation_id} instead of {asked.correlation_id}")
    if flexible and reply[4] != 0:
        raise WireError("an answer whose header has tagged fields")
    code = error_of(error)
    if asked.api_key == UPDATE_METADATA:
        if len(reply) != head + flexible or (flexible and reply[-1] != 0):
            raise WireError(f"an answer to UpdateMetadata of {len(reply)} bytes")
        return UpdateMetadataAnswered(asked.broker_id, code, asked.controller_epoch, asked.batch(code))
    grouped = asked.api_key == LEADER_AND_ISR and asked.api_version >= _BY_TOPIC_ID
    answered, errors = _partitions(asked, reply, head, flexible, grouped)
    rows = asked.told.rows[asked.part]
    if asked.api_key == LEADER_AND_ISR:
        return LeaderAndIsrAnswered(asked.broker_id, code, errors, asked.controller_epoch, rows)
    if code is ErrorCode.NONE and answered < len(rows):
        code = ErrorCode.UNKNOWN_SERVER_ERROR  # which of them are deleted is not known, so none is taken to be
    return _stopped(asked, code, errors, rows) if answered else None


def _stopped(
    asked: Asked, code: ErrorCode, errors: tuple[tuple[TopicPartition, ErrorCode], ...], rows: Int32
) -> StopReplicaAnswered | None:
    told = asked.told
    assert told.flags is not None
    assert told.names is not None
    deleted = told.flags[asked.part] != 0
    if not deleted.any():
        return None
    if errors:
        # Errors are few; so are the partitions of a deletion that are compared with them.
        pairs = zip(told.topic[asked.part][deleted].tolist(), told.partition[asked.part][deleted].tolist(), strict=True)
        about = {(told.names.names[topic], partition) for topic, partition in pairs}
        errors = tuple(one for one in errors if one[0] in about)
    return StopReplicaAnswered(asked.broker_id, code, errors, asked.controller_epoch, rows[deleted])


def _partitions(
    asked: Asked, reply: bytes, at: int, flexible: bool, grouped: bool
) -> tuple[int, tuple[tuple[TopicPartition, ErrorCode], ...]]:
    """How many partitions an answer speaks of, and those in error."""
    most = len(asked.told.rows[asked.part])
    found = np.empty((min(most, len(reply) // 6), 4), np.int32)
    counts = np.zeros(2, np.int32)
    end = kernels.scan_answer(reply, at, flexible, grouped, most, found, counts)
    if end < 0:
        raise WireError(f"an answer that breaks off, goes on too long or tells of more than {most} partitions")
    answered, in_error = counts.tolist()
    errors = [_error(asked, reply, *one) for one in found[:in_error].tolist()]
    return answered, tuple(one for one in errors if one is not None)


def _error(
    asked: Asked, reply: bytes, topic_at: int, topic_length: int, partition: int, error: int
) -> tuple[TopicPartition, ErrorCode] | None:
    """One error by name; None of a topic that the request has not told of by an id of its own."""
    topic = reply[topic_at : topic_at + topic_length]
    if asked.api_key == STOP_REPLICA or asked.api_version < _BY_TOPIC_ID:
        try:
            return (topic.decode(), partition), error_of(error)
        except UnicodeDecodeError:
            raise WireError("a topic's name that is no UTF-8") from None
    assert asked.told.names is not None
    name = asked.told.names.by_id(topic)
    return None if name is None else ((name, partition), error_of(error))


def error_of(error: int) -> ErrorCode:
    """An error of Kafka's by its code; one that a controller knows nothing of is like any other failure."""
    return _CODES.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
