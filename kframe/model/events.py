"""Everything that can happen to a controller, as frozen records.

*Events* come from outside, one at a time; *answers* tell how an effect that the core asked for went, and only they may
arrive while an operation is under way. ``state`` is the ControllerState that Kafka shows while it handles the event
(3.9 ``ControllerState``); ``token`` names the caller who waits for a Reply.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, TypeAlias

from kframe.errors import ErrorCode, KframeError
from kframe.model.columns import Int32, Ragged, UInt8

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
    """The role may be free: try to take it, and fail over if that succeeds (Kafka: Startup, Reelect)."""

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

    A topic is named by name (versions 0 and 1) or by id (16 bytes). ``isr`` holds broker ids in the order sent.
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
    state: ClassVar[ControllerState] = ControllerState.ISR_CHANGE


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered(Event):
    """A broker answered LeaderAndIsr; ``partition_errors`` leaves out those without error."""

    broker_id: int
    error: ErrorCode
    partition_errors: tuple[tuple[TopicPartition, ErrorCode], ...] = ()
    state: ClassVar[ControllerState] = ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED


@dataclass(frozen=True, slots=True)
class UpdateMetadataAnswered(Event):
    """A broker answered UpdateMetadata."""

    broker_id: int
    error: ErrorCode
    state: ClassVar[ControllerState] = ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED


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
