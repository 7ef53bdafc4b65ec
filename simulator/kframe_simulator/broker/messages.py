"""The requests and responses of a broker model, named as in Kafka.

A partition is a key ``(topic, partition)``, and a broker is its id. Offsets count records; times are milliseconds.
These messages have no wire format.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition

#: An unknown topic id.
NO_ID: Final = bytes(16)
#: The replica id in a Fetch that does not come from a follower.
CONSUMER: Final = -1
#: An undefined epoch, offset, sequence or producer id.
UNDEFINED: Final = -1


class RecordKind(IntEnum):
    """The kind of a record: data or a transaction marker."""

    DATA = 0
    TRANSACTIONAL = 1
    COMMIT = 2
    ABORT = 3


class Record(NamedTuple):
    """One record of a log; a batch of the model has one record. The index in the log gives its offset."""

    leader_epoch: int
    value: object
    producer_id: int = UNDEFINED
    producer_epoch: int = UNDEFINED
    sequence: int = UNDEFINED
    kind: RecordKind = RecordKind.DATA


# -- From the controller.


class LeaderState(msgspec.Struct, frozen=True):
    """One partition of LeaderAndIsr. ``controller_epoch`` is the epoch of the controller that made the decision."""

    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    is_new: bool = False
    recovery: int = 0


class LeaderAndIsr(msgspec.Struct, frozen=True):
    """Make the broker leader or follower. The response is ControlResponse. ``broker_epoch`` -1 is not checked."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, LeaderState]
    topic_ids: Mapping[str, bytes] = {}
    """Ids of the named topics that have one."""


class PartitionMetadata(msgspec.Struct, frozen=True):
    """One partition of UpdateMetadata. Leader -2: the topic is being deleted."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]


class UpdateMetadata(msgspec.Struct, frozen=True):
    """Live brokers and partition leaders. The response is ControlResponse."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    live_brokers: tuple[int, ...]
    partitions: Mapping[TopicPartition, PartitionMetadata] = {}
    topic_ids: Mapping[str, bytes] = {}


class Stop(msgspec.Struct, frozen=True):
    """One partition of StopReplica. Leader epoch -2: the topic is being deleted; -1: not given."""

    leader_epoch: int
    delete: bool


class StopReplica(msgspec.Struct, frozen=True):
    """Stop following, and delete the replicas with ``delete`` set. The response is ControlResponse."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, Stop]


class ControlResponse(msgspec.Struct, frozen=True):
    """The response to the three control requests: a top-level error, or one error code for each partition."""

    error: ErrorCode = ErrorCode.NONE
    errors: Mapping[TopicPartition, ErrorCode] = {}


# -- Between brokers, and from consumers.


class FetchPartition(msgspec.Struct, frozen=True):
    """One partition of a Fetch. Unset epochs are -1; a consumer sets none."""

    fetch_offset: int
    current_leader_epoch: int = UNDEFINED
    last_fetched_epoch: int = UNDEFINED
    topic_id: bytes = NO_ID


class Fetch(msgspec.Struct, frozen=True):
    """Fetch records from a leader. A consumer (``replica_id`` CONSUMER) reads up to the high watermark. With
    ``committed`` (isolation.level read_committed) it reads up to the last stable offset."""

    replica_id: int
    partitions: Mapping[TopicPartition, FetchPartition]
    committed: bool = False


class EpochEnd(NamedTuple):
    """The largest leader epoch up to the requested one, and its end offset. Both are -1 if there is none."""

    leader_epoch: int
    end_offset: int


class Fetched(msgspec.Struct, frozen=True):
    """One partition of a Fetch response. With ``diverging`` there are no records: the follower truncates first.

    An OFFSET_OUT_OF_RANGE response has the leader's offsets; a real follower requests them with ListOffsets.
    """

    error: ErrorCode
    high_watermark: int = UNDEFINED
    log_end_offset: int = UNDEFINED
    records: tuple[Record, ...] = ()
    diverging: EpochEnd | None = None


class FetchResponse(msgspec.Struct, frozen=True):
    """The response to Fetch."""

    partitions: Mapping[TopicPartition, Fetched]


class OffsetForLeaderPartition(msgspec.Struct, frozen=True):
    """One partition of OffsetsForLeaderEpoch."""

    current_leader_epoch: int
    leader_epoch: int


class OffsetsForLeaderEpoch(msgspec.Struct, frozen=True):
    """Request the end offsets of leader epochs. Followers send it before inter-broker protocol 2.7-IV1."""

    replica_id: int
    partitions: Mapping[TopicPartition, OffsetForLeaderPartition]


class OffsetsForLeaderEpochResponse(msgspec.Struct, frozen=True):
    """The response: an error and the end of the epoch for each partition."""

    partitions: Mapping[TopicPartition, tuple[ErrorCode, EpochEnd]]


# -- From clients.


class Produce(msgspec.Struct, frozen=True):
    """One record for one partition. ``acks`` is 0, 1 or -1 (all). A producer with id and sequence is idempotent.

    The response is ProduceResponse. With acks -1 it may come later, as an Outgoing to Peer.CLIENT. With acks 0 there is
    none.
    """

    partition: TopicPartition
    value: object
    acks: int = -1
    timeout_ms: float = 30_000
    correlation: int = 0
    """The client's id for the request; a later response repeats it."""
    producer_id: int = UNDEFINED
    producer_epoch: int = UNDEFINED
    sequence: int = UNDEFINED
    transactional: bool = False


class ProduceResponse(msgspec.Struct, frozen=True):
    """The response to Produce. ``offset`` is the offset of the record; for a duplicate, of the original record."""

    error: ErrorCode
    offset: int = UNDEFINED
    leader_epoch: int = UNDEFINED


class EndTransaction(msgspec.Struct, frozen=True):
    """End a transaction of a producer (WriteTxnMarkers). The response, ProduceResponse, is immediate."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    committed: bool


class Metadata(msgspec.Struct, frozen=True):
    """Request the leaders that this broker knows. The response is MetadataResponse."""

    topics: tuple[str, ...] | None = None


class MetadataResponse(msgspec.Struct, frozen=True):
    """The response to Metadata. Partitions are as the last UpdateMetadata had them."""

    controller_id: int
    live_brokers: tuple[int, ...]
    partitions: Mapping[TopicPartition, PartitionMetadata]


Request: TypeAlias = (
    LeaderAndIsr | UpdateMetadata | StopReplica | Fetch | OffsetsForLeaderEpoch | Produce | EndTransaction | Metadata
)
"""The requests that ``Broker.handle`` accepts."""
Response: TypeAlias = (
    ControlResponse | FetchResponse | OffsetsForLeaderEpochResponse | ProduceResponse | MetadataResponse
)
"""The responses that ``Broker.handle`` returns."""
