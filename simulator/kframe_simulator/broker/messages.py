"""The requests and responses of a broker model, named as Kafka names them.

A partition is a key ``(topic, partition)``, a broker is its id, offsets count records, times are milliseconds. Nothing
in here is encoded for a wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition

#: A topic id that is not known.
NO_ID: Final = bytes(16)
#: Who asks in a Fetch that does not come from a follower.
CONSUMER: Final = -1
#: The epoch, offset, sequence or producer id of something that has none.
UNDEFINED: Final = -1


class RecordKind(IntEnum):
    """What a record of a log is."""

    DATA = 0
    TRANSACTIONAL = 1
    COMMIT = 2
    ABORT = 3


class Record(NamedTuple):
    """One record of a log; a batch of the model holds one. Its offset is its place."""

    leader_epoch: int
    value: object
    producer_id: int = UNDEFINED
    producer_epoch: int = UNDEFINED
    sequence: int = UNDEFINED
    kind: RecordKind = RecordKind.DATA


# -- from the controller


class LeaderState(msgspec.Struct, frozen=True):
    """One partition of LeaderAndIsr. ``controller_epoch`` is that of the controller that made the decision."""

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
    """Be leader or follower. Answered by ControlResponse. ``broker_epoch`` -1 is not checked."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, LeaderState]
    topic_ids: Mapping[str, bytes] = {}
    """Ids of the topics named, as far as they have one."""
    live_leaders: tuple[int, ...] = ()


class PartitionMetadata(msgspec.Struct, frozen=True):
    """One partition of UpdateMetadata; leader -2: it is being deleted."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


class UpdateMetadata(msgspec.Struct, frozen=True):
    """Who lives, and who leads what. Answered by ControlResponse."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    live_brokers: tuple[int, ...]
    partitions: Mapping[TopicPartition, PartitionMetadata] = {}
    topic_ids: Mapping[str, bytes] = {}


class Stop(msgspec.Struct, frozen=True):
    """One partition of StopReplica; leader epoch -2: its topic is being deleted, -1: not said."""

    leader_epoch: int
    delete: bool


class StopReplica(msgspec.Struct, frozen=True):
    """Stop following, and delete what is told so. Answered by ControlResponse."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, Stop]


class ControlResponse(msgspec.Struct, frozen=True):
    """The answer to the three control requests: a top-level error, or an error for each partition (NONE included)."""

    error: ErrorCode = ErrorCode.NONE
    errors: Mapping[TopicPartition, ErrorCode] = {}


# -- between brokers, and from consumers


class FetchPartition(msgspec.Struct, frozen=True):
    """Where a follower stands. Epochs that are not given are -1; a consumer's fetch gives none of them."""

    fetch_offset: int
    log_start_offset: int = 0
    current_leader_epoch: int = UNDEFINED
    last_fetched_epoch: int = UNDEFINED
    topic_id: bytes = NO_ID


class Fetch(msgspec.Struct, frozen=True):
    """Records from a leader on. A consumer (``replica_id`` CONSUMER) reads up to the high watermark, one that wants
    ``committed`` records only (isolation.level) up to the last stable offset."""

    replica_id: int
    partitions: Mapping[TopicPartition, FetchPartition]
    committed: bool = False


class EpochEnd(NamedTuple):
    """The largest leader epoch that is not larger than one asked for, and the offset at which it ends; both -1 where
    there is none."""

    leader_epoch: int
    end_offset: int


class Fetched(msgspec.Struct, frozen=True):
    """What a leader says of one partition. With ``diverging`` there are no records: truncate first.

    An OFFSET_OUT_OF_RANGE answer carries the leader's offsets, for which a real follower asks by ListOffsets.
    """

    error: ErrorCode
    high_watermark: int = UNDEFINED
    log_start_offset: int = UNDEFINED
    log_end_offset: int = UNDEFINED
    records: tuple[Record, ...] = ()
    diverging: EpochEnd | None = None


class FetchResponse(msgspec.Struct, frozen=True):
    """The answer to Fetch."""

    partitions: Mapping[TopicPartition, Fetched]


class EpochQuestion(msgspec.Struct, frozen=True):
    """One partition of OffsetsForLeaderEpoch."""

    current_leader_epoch: int
    leader_epoch: int


class OffsetsForLeaderEpoch(msgspec.Struct, frozen=True):
    """Where leader epochs end, asked by followers before inter-broker protocol 2.7-IV1."""

    replica_id: int
    partitions: Mapping[TopicPartition, EpochQuestion]


class OffsetsForLeaderEpochResponse(msgspec.Struct, frozen=True):
    """The answer: an error and the epoch's end for each partition."""

    partitions: Mapping[TopicPartition, tuple[ErrorCode, EpochEnd]]


# -- from clients


class Produce(msgspec.Struct, frozen=True):
    """One record for one partition. ``acks`` is 0, 1 or -1 (all); a producer with id and sequence is idempotent.

    Answered by ProduceResponse: at once, or, with acks -1, later as an Outgoing to Peer.CLIENT; with acks 0 never.
    """

    partition: TopicPartition
    value: object
    acks: int = -1
    timeout_ms: float = 30_000
    correlation: int = 0
    """Whatever the client knows the request by; comes back with a late answer."""
    producer_id: int = UNDEFINED
    producer_epoch: int = UNDEFINED
    sequence: int = UNDEFINED
    transactional: bool = False


class ProduceResponse(msgspec.Struct, frozen=True):
    """The answer to Produce; ``offset`` is the record's, of a duplicate the one that it has had all along."""

    error: ErrorCode
    offset: int = UNDEFINED
    leader_epoch: int = UNDEFINED


class EndTransaction(msgspec.Struct, frozen=True):
    """A transaction of a producer ends (WriteTxnMarkers). Answered by ProduceResponse, always at once."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    committed: bool


class DeleteRecords(msgspec.Struct, frozen=True):
    """Everything below ``offset`` (-1: below the high watermark) may go. Answered by DeleteRecordsResponse, at once or
    later."""

    partition: TopicPartition
    offset: int
    timeout_ms: float = 30_000
    correlation: int = 0


class DeleteRecordsResponse(msgspec.Struct, frozen=True):
    """The answer: the low watermark."""

    error: ErrorCode
    low_watermark: int = UNDEFINED


class AlterReplicaLogDirs(msgspec.Struct, frozen=True):
    """Move replicas of this broker to other log directories. Answered by ControlResponse."""

    partitions: Mapping[TopicPartition, str]


class Metadata(msgspec.Struct, frozen=True):
    """Who leads what, as this broker has been told. Answered by MetadataResponse."""

    topics: tuple[str, ...] | None = None


class MetadataResponse(msgspec.Struct, frozen=True):
    """The answer to Metadata; a partition's metadata is as the controller told it."""

    controller_id: int
    live_brokers: tuple[int, ...]
    partitions: Mapping[TopicPartition, PartitionMetadata]


Request: TypeAlias = (
    LeaderAndIsr | UpdateMetadata | StopReplica | Fetch | OffsetsForLeaderEpoch | Produce | EndTransaction
    | DeleteRecords | AlterReplicaLogDirs | Metadata
)  # fmt: skip
"""What ``Broker.handle`` takes."""
Response: TypeAlias = (
    ControlResponse | FetchResponse | OffsetsForLeaderEpochResponse | ProduceResponse | DeleteRecordsResponse
    | MetadataResponse
)  # fmt: skip
"""What ``Broker.handle`` returns."""
