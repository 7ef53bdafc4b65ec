"""Everything that can happen to a controller, as frozen records.

*Events* come from outside, one at a time; *answers* tell how an effect that the core asked for went, and only they may
arrive while an operation is under way. ``state`` is the ControllerState that Kafka shows while it handles the event
(3.9 ``ControllerState``); ``token`` names the caller who waits for a Reply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, TypeAlias

from kframe.errors import ErrorCode, KframeError
from kframe.model.admin import ConfigChange, FeatureUpdate, NewPartitions, NewTopic
from kframe.model.columns import Int32, Int64, Ragged, UInt8
from kframe.model.tables import Targets

#: A partition named by people and protocols: (topic, partition).
TopicPartition: TypeAlias = tuple[str, int]
#: The token of an event that nobody waits for.
NOBODY = 0


class ControllerState(IntEnum):
    """What the controller is busy with; Kafka's codes, shown by the ControllerState gauge."""

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
    """The two elections that a client may ask for (ElectLeaders)."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Base of what comes from outside."""

    state: ClassVar[ControllerState] = ControllerState.IDLE


@dataclass(frozen=True, slots=True)
class Elect(Event):
    """The role may be free: try to take it, and fail over if that succeeds (Kafka: Startup, Reelect).

    ``takeover``: take it also from a controller that holds it; ``brokers_only``: if that one is a broker.
    """

    takeover: bool = False
    brokers_only: bool = False
    state: ClassVar[ControllerState] = ControllerState.CONTROLLER_CHANGE


@dataclass(frozen=True, slots=True)
class ControllerChanged(Event):
    """The record of who is controller was created or changed: step down if it is not us."""

    state: ClassVar[ControllerState] = ControllerState.CONTROLLER_CHANGE


@dataclass(frozen=True, slots=True)
class SessionExpired(Event):
    """Our session with storage is over: step down whatever the record says (Kafka: Expire)."""

    state: ClassVar[ControllerState] = ControllerState.CONTROLLER_CHANGE


@dataclass(frozen=True, slots=True)
class ResignRequested(Event):
    """Give the role up, so that another controller takes it."""

    state: ClassVar[ControllerState] = ControllerState.CONTROLLER_SHUTDOWN


@dataclass(frozen=True, slots=True)
class BrokersChanged(Event):
    """Registrations came or went (children of ``/brokers/ids``)."""

    state: ClassVar[ControllerState] = ControllerState.BROKER_CHANGE


@dataclass(frozen=True, slots=True)
class BrokerModified(Event):
    """A registration's content changed in place (``/brokers/ids/N``)."""

    broker_id: int
    state: ClassVar[ControllerState] = ControllerState.BROKER_CHANGE


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequested(Event):
    """A broker asks to hand its leaders over before it stops; ``broker_epoch`` -1 is not checked."""

    broker_id: int
    broker_epoch: int
    token: int = NOBODY
    state: ClassVar[ControllerState] = ControllerState.CONTROLLED_SHUTDOWN


@dataclass(frozen=True, slots=True)
class ElectionRequested(Event):
    """A client asks for leaders to be elected (ElectLeaders); ``partitions`` None means all."""

    election_type: ElectionType
    partitions: tuple[TopicPartition, ...] | None
    token: int = NOBODY
    state: ClassVar[ControllerState] = ControllerState.MANUAL_LEADER_BALANCE


@dataclass(frozen=True, slots=True)
class RebalanceLeaders(Event):
    """Look whether leaders should move back to preferred replicas (Kafka: AutoPreferredReplicaLeaderElection)."""

    state: ClassVar[ControllerState] = ControllerState.AUTO_LEADER_BALANCE


@dataclass(frozen=True, slots=True, eq=False)
class AlterPartitionRequested(Event):
    """A leader proposes ISRs (AlterPartition ``version``). Arrays stand beside ``partitions``.

    A topic is named by name (versions 0 and 1) or by id (16 bytes). ``isr`` holds broker ids in the order sent, and
    ``isr_epochs``, beside its values, the broker epoch of each (version 3; -1: not said).
    """

    broker_id: int
    broker_epoch: int
    version: int
    partitions: tuple[tuple[str | bytes, int], ...]
    leader_epoch: Int32
    partition_epoch: Int32
    recovery: UInt8
    isr: Ragged
    token: int = NOBODY
    isr_epochs: Int64 | None = None
    state: ClassVar[ControllerState] = ControllerState.ISR_CHANGE


@dataclass(frozen=True, slots=True)
class TopicsChanged(Event):
    """Topics came or went (children of ``/brokers/topics``)."""

    state: ClassVar[ControllerState] = ControllerState.TOPIC_CHANGE


@dataclass(frozen=True, slots=True)
class TopicModified(Event):
    """A topic's assignment was written (``/brokers/topics/T``)."""

    topic: str
    state: ClassVar[ControllerState] = ControllerState.TOPIC_CHANGE


@dataclass(frozen=True, slots=True)
class TopicSettingsChanged(Event):
    """A topic's settings were written (TopicUncleanLeaderElectionEnable, if they allow unclean elections now)."""

    topic: str
    state: ClassVar[ControllerState] = ControllerState.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE


@dataclass(frozen=True, slots=True)
class DeletionsMarked(Event):
    """Topics were marked for deletion (children of ``/admin/delete_topics``)."""

    state: ClassVar[ControllerState] = ControllerState.TOPIC_DELETION


@dataclass(frozen=True, slots=True)
class ReassignmentsLeft(Event):
    """An operator has left reassignments in storage (``/admin/reassign_partitions``)."""

    state: ClassVar[ControllerState] = ControllerState.ALTER_PARTITION_REASSIGNMENT


@dataclass(frozen=True, slots=True)
class PreferredElectionLeft(Event):
    """An operator has left partitions in storage whose preferred leaders are wanted."""

    state: ClassVar[ControllerState] = ControllerState.MANUAL_LEADER_BALANCE


@dataclass(frozen=True, slots=True)
class IsrChangesLeft(Event):
    """Leaders have left word of ISRs that they changed in storage (``/isr_change_notification``)."""

    state: ClassVar[ControllerState] = ControllerState.ISR_CHANGE


@dataclass(frozen=True, slots=True)
class LogDirEventsLeft(Event):
    """Brokers have left word of log directories that died (``/log_dir_event_notification``)."""

    state: ClassVar[ControllerState] = ControllerState.LOG_DIR_CHANGE


@dataclass(frozen=True, slots=True)
class CreateTopicsRequested(Event):
    """A client asks for new topics (CreateTopics). ``start_index`` and ``shift`` place automatic assignments; whoever
    makes the event draws them. The answer comes when every partition has a leader and every live broker knows the
    topics, or after ``timeout_ms``."""

    topics: tuple[NewTopic, ...]
    timeout_ms: int = 0
    validate_only: bool = False
    start_index: int = 0
    shift: int = 0
    token: int = NOBODY
    state: ClassVar[ControllerState] = ControllerState.TOPIC_CHANGE


@dataclass(frozen=True, slots=True)
class CreatePartitionsRequested(Event):
    """A client asks for more partitions (CreatePartitions). Answered as CreateTopicsRequested is."""

    topics: tuple[NewPartitions, ...]
    timeout_ms: int = 0
    validate_only: bool = False
    token: int = NOBODY
    state: ClassVar[ControllerState] = ControllerState.TOPIC_CHANGE


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequested(Event):
    """A client asks for topics to be deleted (DeleteTopics). Answered when every live broker has removed the topics
    from its metadata, or after ``timeout_ms``."""

    names: tuple[str, ...]
    timeout_ms: int = 0
    token: int = NOBODY
    state: ClassVar[ControllerState] = ControllerState.TOPIC_DELETION


@dataclass(frozen=True, slots=True, eq=False)
class ReassignmentRequested(Event):
    """A client asks for partitions to be moved (AlterPartitionReassignments)."""

    targets: Targets
    token: int = NOBODY
    state: ClassVar[ControllerState] = ControllerState.ALTER_PARTITION_REASSIGNMENT


@dataclass(frozen=True, slots=True)
class ListReassignmentsRequested(Event):
    """A client asks which partitions are being moved (ListPartitionReassignments); None means all."""

    partitions: tuple[TopicPartition, ...] | None = None
    token: int = NOBODY
    state: ClassVar[ControllerState] = ControllerState.LIST_PARTITION_REASSIGNMENT


@dataclass(frozen=True, slots=True)
class ProducerIdsRequested(Event):
    """A broker asks for a block of producer ids (AllocateProducerIds), or the controller itself, which has no broker
    epoch, for the producers that ask it."""

    broker_id: int
    broker_epoch: int
    token: int = NOBODY


@dataclass(frozen=True, slots=True)
class BrokerDefaultsChanged(Event):
    """The settings of all brokers were written (UncleanLeaderElectionEnable, if they allow unclean elections now)."""

    state: ClassVar[ControllerState] = ControllerState.UNCLEAN_LEADER_ELECTION_ENABLE


@dataclass(frozen=True, slots=True)
class AlterConfigsRequested(Event):
    """A client asks for settings to be changed (IncrementalAlterConfigs); with ``replace`` for all settings to be
    replaced by those set here (AlterConfigs)."""

    changes: tuple[ConfigChange, ...]
    replace: bool = False
    validate_only: bool = False
    token: int = NOBODY


@dataclass(frozen=True, slots=True)
class UpdateFeaturesRequested(Event):
    """A client asks for feature levels to be finalised (UpdateFeatures)."""

    updates: tuple[FeatureUpdate, ...]
    token: int = NOBODY
    state: ClassVar[ControllerState] = ControllerState.UPDATE_FEATURES


@dataclass(frozen=True, slots=True)
class Inspected(Event):
    """Somebody wants to look at the columns between two events; nothing changes."""

    token: int = NOBODY


@dataclass(frozen=True, slots=True)
class ReplyDue(Event):
    """The time is up for whoever waits under ``waiter`` (a number of the core's own)."""

    waiter: int


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered(Event):
    """A broker answered LeaderAndIsr. ``rows`` are those of the request, rows of the controller that sent it under
    ``controller_epoch``; ``partition_errors`` leaves out those without error."""

    broker_id: int
    error: ErrorCode
    partition_errors: tuple[tuple[TopicPartition, ErrorCode], ...]
    controller_epoch: int
    rows: Int32 = field(compare=False)
    state: ClassVar[ControllerState] = ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED


@dataclass(frozen=True, slots=True)
class UpdateMetadataAnswered(Event):
    """A broker answered UpdateMetadata that was sent under ``controller_epoch``.

    ``batch`` is the newest ``ControlRequests.batch`` whose metadata the broker has received in full with this request
    and those before it; 0 if the transport does not know. For an error it is the batch that the broker refused.
    """

    broker_id: int
    error: ErrorCode
    controller_epoch: int = field(default=-1, compare=False)
    batch: int = field(default=0, compare=False)
    state: ClassVar[ControllerState] = ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED


@dataclass(frozen=True, slots=True)
class StopReplicaAnswered(Event):
    """A broker answered StopReplica. ``rows`` are those that it was to delete; else as LeaderAndIsrAnswered."""

    broker_id: int
    error: ErrorCode
    partition_errors: tuple[tuple[TopicPartition, ErrorCode], ...]
    controller_epoch: int
    rows: Int32 = field(compare=False)
    state: ClassVar[ControllerState] = ControllerState.TOPIC_DELETION


@dataclass(frozen=True, slots=True)
class Answer:
    """Base of what comes back for an effect."""


@dataclass(frozen=True, slots=True, eq=False)
class Done(Answer):
    """The effect was performed; ``value`` is what it asked for."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Failed(Answer):
    """The effect could not be performed; ``error`` decides what follows (``errors.CONSEQUENCE``)."""

    error: KframeError
