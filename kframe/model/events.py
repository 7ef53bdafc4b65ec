"""Everything that can happen to a controller, as frozen records.

*Events* come from outside, one at a time. The results of effects are an EffectResult; only those may arrive while an
operation is in progress. ``state`` is the ControllerState that Kafka reports while it handles the event (3.9
``ControllerState``). ``token`` names the caller that waits for a Reply.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct

from kframe.errors import ErrorCode, KframeError
from kframe.model.admin import ConfigChange, FeatureUpdate, NewPartitions, NewTopic
from kframe.model.arrays import Int32, Int64, Ragged, UInt8
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.model.tables import RequestedPartitions, Targets

#: A partition in requests and storage: (topic, partition).
TopicPartition: TypeAlias = tuple[str, int]
#: The token of an event without a waiting caller.
NO_TOKEN = 0


class ControllerState(IntEnum):
    """The current work of the controller, with Kafka's codes, as the ControllerState gauge reports it."""

    IDLE = 0
    CONTROLLER_CHANGE = 1
    BROKER_CHANGE = 2
    TOPIC_CHANGE = 3
    TOPIC_DELETION = 4
    ALTER_PARTITION_REASSIGNMENT = 5
    AUTO_LEADER_BALANCE = 6
    MANUAL_LEADER_BALANCE = 7
    CONTROLLED_SHUTDOWN = 8
    ISR_CHANGE = 9
    LEADER_AND_ISR_RESPONSE_RECEIVED = 10
    LOG_DIR_CHANGE = 11
    CONTROLLER_SHUTDOWN = 12
    UNCLEAN_LEADER_ELECTION_ENABLE = 13
    TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE = 14
    LIST_PARTITION_REASSIGNMENT = 15
    UPDATE_METADATA_RESPONSE_RECEIVED = 16
    UPDATE_FEATURES = 17


class ElectionType(IntEnum):
    """The two kinds of elections that a client can request (ElectLeaders)."""

    PREFERRED = 0
    UNCLEAN = 1


class Event(Struct, frozen=True):
    """Base of the inputs from outside."""

    state: ClassVar[ControllerState] = ControllerState.IDLE


class Reelect(Event, frozen=True):
    """The role may be free: try to claim it, and fail over if the claim succeeds (Kafka: Startup and Reelect).

    ``takeover``: claim it even if another controller holds it; ``brokers_only``: only if that holder is a broker.
    """

    takeover: bool = False
    brokers_only: bool = False
    state: ClassVar[ControllerState] = ControllerState.CONTROLLER_CHANGE


class ControllerChanged(Event, frozen=True):
    """The controller record was created or changed: resign if another controller holds it."""

    state: ClassVar[ControllerState] = ControllerState.CONTROLLER_CHANGE


class SessionExpired(Event, frozen=True):
    """Our session with storage has expired: resign without reading the record (Kafka: Expire)."""

    state: ClassVar[ControllerState] = ControllerState.CONTROLLER_CHANGE


class ResignRequested(Event, frozen=True):
    """Resign, so that another controller takes the role."""

    state: ClassVar[ControllerState] = ControllerState.CONTROLLER_SHUTDOWN


class BrokersChanged(Event, frozen=True):
    """Brokers registered or unregistered (children of ``/brokers/ids``)."""

    state: ClassVar[ControllerState] = ControllerState.BROKER_CHANGE


class BrokerModified(Event, frozen=True):
    """The content of a registration changed (``/brokers/ids/N``)."""

    broker_id: int
    state: ClassVar[ControllerState] = ControllerState.BROKER_CHANGE


class ControlledShutdownRequested(Event, frozen=True):
    """A broker requests controlled shutdown, so that its leaders move first. ``broker_epoch`` -1 is not checked."""

    broker_id: int
    broker_epoch: int
    token: int = NO_TOKEN
    state: ClassVar[ControllerState] = ControllerState.CONTROLLED_SHUTDOWN


class ElectionRequested(Event, frozen=True):
    """A client requests leader elections (ElectLeaders). ``partitions`` None means all."""

    election_type: ElectionType
    partitions: tuple[TopicPartition, ...] | None
    token: int = NO_TOKEN
    state: ClassVar[ControllerState] = ControllerState.MANUAL_LEADER_BALANCE


class RebalanceLeaders(Event, frozen=True):
    """Check whether leaders should move back to preferred replicas (Kafka: AutoPreferredReplicaLeaderElection)."""

    state: ClassVar[ControllerState] = ControllerState.AUTO_LEADER_BALANCE


class AlterPartitionRequested(Event, frozen=True, eq=False):
    """A leader proposes ISRs (AlterPartition ``version``). Arrays are parallel to ``partitions``.

    A request names topics by name (versions 0 and 1) or by id (16 bytes). ``isr`` holds broker ids in the order sent.
    ``isr_epochs`` is parallel to ``isr.values`` and holds the broker epoch of each (version 3; -1: not sent).
    """

    broker_id: int
    broker_epoch: int
    version: int
    partitions: RequestedPartitions
    leader_epoch: Int32
    partition_epoch: Int32
    recovery: UInt8
    isr: Ragged
    token: int = NO_TOKEN
    isr_epochs: Int64 | None = None
    state: ClassVar[ControllerState] = ControllerState.ISR_CHANGE


class TopicsChanged(Event, frozen=True):
    """Topics were created or deleted (children of ``/brokers/topics``)."""

    state: ClassVar[ControllerState] = ControllerState.TOPIC_CHANGE


class TopicModified(Event, frozen=True):
    """A topic's assignment was written (``/brokers/topics/T``)."""

    topic: str
    state: ClassVar[ControllerState] = ControllerState.TOPIC_CHANGE


class TopicSettingsChanged(Event, frozen=True):
    """A topic's settings were written (TopicUncleanLeaderElectionEnable, if they allow unclean elections now)."""

    topic: str
    state: ClassVar[ControllerState] = ControllerState.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE


class DeletionsMarked(Event, frozen=True):
    """Topics were marked for deletion (children of ``/admin/delete_topics``)."""

    state: ClassVar[ControllerState] = ControllerState.TOPIC_DELETION


class ReassignmentsStored(Event, frozen=True):
    """An operator wrote reassignments to storage (``/admin/reassign_partitions``)."""

    state: ClassVar[ControllerState] = ControllerState.ALTER_PARTITION_REASSIGNMENT


class PreferredElectionStored(Event, frozen=True):
    """An operator requested a preferred election in storage (``/admin/preferred_replica_election``)."""

    state: ClassVar[ControllerState] = ControllerState.MANUAL_LEADER_BALANCE


class IsrChangesNotified(Event, frozen=True):
    """Leaders wrote notifications of ISRs that they changed in storage (``/isr_change_notification``)."""

    state: ClassVar[ControllerState] = ControllerState.ISR_CHANGE


class LogDirEventsNotified(Event, frozen=True):
    """Brokers wrote notifications of failed log directories (``/log_dir_event_notification``)."""

    state: ClassVar[ControllerState] = ControllerState.LOG_DIR_CHANGE


class CreateTopicsRequested(Event, frozen=True):
    """A client requests new topics (CreateTopics). ``start_index`` and ``shift`` determine automatic assignments; the
    creator of the event draws them. The response comes when every partition has a leader and every live broker has the
    topics in its metadata, or after ``timeout_ms``."""

    topics: tuple[NewTopic, ...]
    timeout_ms: int = 0
    validate_only: bool = False
    start_index: int = 0
    shift: int = 0
    token: int = NO_TOKEN
    state: ClassVar[ControllerState] = ControllerState.TOPIC_CHANGE


class CreatePartitionsRequested(Event, frozen=True):
    """A client requests more partitions (CreatePartitions). Answered like CreateTopicsRequested."""

    topics: tuple[NewPartitions, ...]
    timeout_ms: int = 0
    validate_only: bool = False
    token: int = NO_TOKEN
    state: ClassVar[ControllerState] = ControllerState.TOPIC_CHANGE


class DeleteTopicsRequested(Event, frozen=True):
    """A client requests the deletion of topics (DeleteTopics). Answered when every live broker has removed the topics
    from its metadata, or after ``timeout_ms``."""

    names: tuple[str, ...]
    timeout_ms: int = 0
    token: int = NO_TOKEN
    state: ClassVar[ControllerState] = ControllerState.TOPIC_DELETION


class ReassignmentRequested(Event, frozen=True, eq=False):
    """A client requests reassignments of partitions (AlterPartitionReassignments)."""

    targets: Targets
    token: int = NO_TOKEN
    state: ClassVar[ControllerState] = ControllerState.ALTER_PARTITION_REASSIGNMENT


class ListReassignmentsRequested(Event, frozen=True):
    """A client lists the running reassignments (ListPartitionReassignments). None means all."""

    partitions: tuple[TopicPartition, ...] | None = None
    token: int = NO_TOKEN
    state: ClassVar[ControllerState] = ControllerState.LIST_PARTITION_REASSIGNMENT


class ProducerIdsRequested(Event, frozen=True):
    """A request for a block of producer ids: from a broker (AllocateProducerIds), or from the controller itself, which
    has no broker epoch, for the producers that use it."""

    broker_id: int
    broker_epoch: int
    token: int = NO_TOKEN


class BrokerDefaultsChanged(Event, frozen=True):
    """The settings of all brokers were written (UncleanLeaderElectionEnable, if they allow unclean elections now)."""

    state: ClassVar[ControllerState] = ControllerState.UNCLEAN_LEADER_ELECTION_ENABLE


class AlterConfigsRequested(Event, frozen=True):
    """A client requests changes of settings (IncrementalAlterConfigs). With ``replace`` the settings given here replace
    all settings (AlterConfigs)."""

    changes: tuple[ConfigChange, ...]
    replace: bool = False
    validate_only: bool = False
    token: int = NO_TOKEN


class UpdateFeaturesRequested(Event, frozen=True):
    """A client requests that feature levels be finalised (UpdateFeatures)."""

    updates: tuple[FeatureUpdate, ...]
    token: int = NO_TOKEN
    state: ClassVar[ControllerState] = ControllerState.UPDATE_FEATURES


class InspectionRequested(Event, frozen=True):
    """A caller reads the columns between two events; nothing changes."""

    token: int = NO_TOKEN


class DelayedReplyExpired(Event, frozen=True):
    """The timeout of a delayed reply has expired. ``number`` is that of ``TermState.delayed_replies``."""

    number: int


class BrokerResponse(Event, frozen=True):
    """Base of the responses of brokers. Two of a type are equal if their identities are."""

    broker_id: int
    error: ErrorCode

    def identity(self) -> tuple[object, ...]:
        """The values that distinguish responses of a type. Arrays of rows are not among them."""
        return self.broker_id, self.error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerResponse) and type(other) is type(self) and self.identity() == other.identity()

    def __hash__(self) -> int:
        return hash(self.identity())


class PartitionsResponse(BrokerResponse, frozen=True):
    """Base of the responses about partitions. ``rows`` are those of the request, in the columns of the controller that
    sent it under ``controller_epoch``. ``partition_errors`` omits partitions without an error. ``broker_epoch`` is that
    of the registration that received the request; NO_BROKER_EPOCH if the transport does not know it."""

    partition_errors: tuple[tuple[TopicPartition, ErrorCode], ...]
    controller_epoch: int
    rows: Int32
    broker_epoch: int = NO_BROKER_EPOCH

    def identity(self) -> tuple[object, ...]:
        """The base's values, the partitions in error and the controller epoch."""
        return *super().identity(), self.partition_errors, self.controller_epoch


class LeaderAndIsrResponseReceived(PartitionsResponse, frozen=True):
    """A broker responded to LeaderAndIsr."""

    state: ClassVar[ControllerState] = ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED


class UpdateMetadataResponseReceived(BrokerResponse, frozen=True):
    """A broker responded to UpdateMetadata that was sent under ``controller_epoch``.

    ``batch`` is the newest ``ControlRequests.batch`` whose metadata the broker has received completely with this
    request and earlier ones; 0 if the transport does not track it. For an error it is the batch that the broker
    rejected.
    """

    controller_epoch: int = -1
    batch: int = 0
    state: ClassVar[ControllerState] = ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED


class StopReplicaResponseReceived(PartitionsResponse, frozen=True):
    """A broker responded to StopReplica. ``rows`` are those of the replicas to delete."""

    state: ClassVar[ControllerState] = ControllerState.TOPIC_DELETION


class EffectResult(Struct, frozen=True):
    """Base of the results of effects."""


class Done(EffectResult, frozen=True, eq=False):
    """The effect was performed. ``value`` is its result."""

    value: Any = None


class Failed(EffectResult, frozen=True):
    """The effect could not be performed. The class of ``error`` determines the consequence (``errors.RESIGNING``)."""

    error: KframeError
