"""The controller's log messages as data: the core creates entries, the runtime formats them as lines.

Entries name a message and its values. ``kframe.runtime.controller_log`` and ``kframe.runtime.state_change_log`` have
the texts. For many partitions an entry holds columns of a bounded sample, never one object per partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto

from msgspec import Struct

from kframe.model.arrays import Int32, Ragged, UInt8


class Message(Enum):
    """Every message that the core logs."""

    ELECTED = auto()
    OTHER_ELECTED = auto()
    ELECTED_INSTEAD = auto()
    RESIGNED = auto()
    OPERATION_FAILED = auto()
    BROKER_EPOCHS_INITIALIZED = auto()
    ACTIVE_BROKERS = auto()
    TOPIC_LIST = auto()
    TOPICS_TO_DELETE = auto()
    TOPICS_INELIGIBLE = auto()
    SENDING_METADATA = auto()
    INITIALIZING_REPLICAS = auto()
    ONLINE_REPLICAS = auto()
    OFFLINE_REPLICAS = auto()
    INITIALIZING_PARTITIONS = auto()
    ONLINE_PARTITIONS = auto()
    READY = auto()
    BROKERS_CHANGED = auto()
    BROKER_EPOCHS_UPDATED = auto()
    BROKER_STARTUP = auto()
    BROKER_FAILURE = auto()
    SHUTTING_DOWN_REMOVED = auto()
    BROKER_METADATA_UPDATED = auto()
    BROKER_UPDATE = auto()
    BROKER_SHUTDOWN = auto()
    STALE_SHUTDOWN = auto()
    LOG_DIR_FAILURE = auto()
    TOPICS_CHANGED = auto()
    PARTITIONS_CREATED = auto()
    PARTITIONS_ADDED = auto()
    PARTITIONS_SKIPPED = auto()
    TOPIC_ID_RESTORED = auto()
    NON_BROKERS_REPLACED = auto()
    DELETIONS_STARTING = auto()
    DELETIONS_IGNORED = auto()
    DELETIONS_DISABLED = auto()
    DELETIONS_HANDLED = auto()
    DELETION_RESTARTED = auto()
    DELETION_COMPLETED = auto()
    DELETION_HALTED = auto()
    ELECTION_STARTED = auto()
    AUTO_REBALANCE = auto()
    PREFERRED_COMPLETED = auto()
    PREFERRED_FAILED = auto()
    UNCLEAN_BY_DEFAULT = auto()
    UNCLEAN_FOR_TOPIC = auto()
    ALTER_PARTITION_UNKNOWN_BROKER = auto()
    ALTER_PARTITION_STALE_EPOCH = auto()
    ALTER_PARTITION_REJECTED = auto()
    ISR_UPDATED = auto()
    TARGETS_CAUGHT_UP = auto()
    ASSIGNMENT_UPDATED = auto()
    LEADER_EPOCH_UPDATED = auto()
    PARTITION_NEW = auto()
    PARTITION_INITIALIZED = auto()
    LEADER_ELECTED = auto()
    PARTITION_FAILED = auto()
    ISR_SHRUNK = auto()
    REASSIGNMENT_SENT = auto()
    REPLICAS_OFFLINE = auto()
    RESPONSE_ERROR = auto()
    REFUSED = auto()


class TopicNames(Struct, frozen=True):
    """Names of some of ``count`` topics."""

    names: tuple[str, ...]
    count: int


class PartitionNames(Struct, frozen=True, eq=False):
    """Names of some of ``count`` partitions: row ``i`` is partition ``partition[i]`` of ``topics[topic[i]]``."""

    count: int
    topics: Sequence[str]
    """The names of all topics by index; append-only."""
    topic: Int32
    partition: Int32

    def __len__(self) -> int:
        """Number of named partitions."""
        return len(self.topic)

    def name(self, index: int) -> str:
        """``topic-partition``."""
        return f"{self.topics[self.topic[index]]}-{self.partition[index]}"


class PartitionSample(Struct, frozen=True, eq=False):
    """Some of the partitions of one bulk change, evenly spaced, with their state right after it. Brokers are ids.

    Every array and list is parallel to ``names``. ``before`` is the previous PartitionState; ``flags`` are the
    ReplicaFlag bits parallel to ``replicas.values``.
    """

    names: PartitionNames
    before: UInt8
    leader: Int32
    leader_epoch: Int32
    controller_epoch: Int32
    partition_epoch: Int32
    recovery: UInt8
    isr: Ragged
    replicas: Ragged
    flags: UInt8

    def __len__(self) -> int:
        return len(self.names)


class TopicAssignments(Struct, frozen=True, eq=False):
    """Assignments of some partitions of new topics, and the stored topic ids."""

    sample: PartitionSample
    topic_ids: Mapping[str, bytes | None]


class LogEntry(Struct, frozen=True, eq=False):
    """One message and its values, by the names that its template uses."""

    message: Message
    controller_epoch: int
    values: Mapping[str, object]
