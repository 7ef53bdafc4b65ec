"""The requests that a broker model sends, and their responses."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeAlias

import msgspec

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe_simulator.broker.messages import (
    NO_ID,
    UNDEFINED,
    DeleteRecordsResponse,
    Fetch,
    FetchResponse,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
    ProduceResponse,
)


class ProposedIsr(msgspec.Struct, frozen=True):
    """One partition of AlterPartition."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    recovery: int = 0
    topic_id: bytes = NO_ID


class AlterPartition(msgspec.Struct, frozen=True):
    """A leader proposes ISRs. Answered by AlterPartitionResponse."""

    broker_id: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, ProposedIsr]


class AlteredPartition(msgspec.Struct, frozen=True):
    """What the controller made of one proposal; without error, the state that is stored now."""

    error: ErrorCode
    leader: int = UNDEFINED
    leader_epoch: int = UNDEFINED
    isr: tuple[int, ...] = ()
    recovery: int = 0
    partition_epoch: int = UNDEFINED


class AlterPartitionResponse(msgspec.Struct, frozen=True):
    """The answer to AlterPartition."""

    error: ErrorCode
    partitions: Mapping[TopicPartition, AlteredPartition] = {}


class ControlledShutdown(msgspec.Struct, frozen=True):
    """A broker asks to hand its leaders over. Answered by ControlledShutdownResponse."""

    broker_id: int
    broker_epoch: int


class ControlledShutdownResponse(msgspec.Struct, frozen=True):
    """The answer: an error, or what the broker still leads."""

    error: ErrorCode
    remaining: tuple[TopicPartition, ...] = ()


class WriteState(msgspec.Struct, frozen=True):
    """Replace a state in storage if its version still is ``partition_epoch`` (before inter-broker protocol 2.7-IV2).

    Answered by WriteStateResponse.
    """

    partition: TopicPartition
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    recovery: int
    partition_epoch: int


class WriteStateResponse(msgspec.Struct, frozen=True):
    """The answer: whether it was written. ``stored`` is what storage has now, its version as ``partition_epoch``; None
    if there is no such state."""

    written: bool
    stored: WriteState | None


class NotifyIsrChanges(msgspec.Struct, frozen=True):
    """Leave word in storage of the ISRs that this broker has written (``/isr_change_notification``). No answer."""

    partitions: tuple[TopicPartition, ...]


class NotifyLogDirFailure(msgspec.Struct, frozen=True):
    """Leave word in storage of a dead log directory (``/log_dir_event_notification``). No answer."""

    broker_id: int


class CloseSession(msgspec.Struct, frozen=True):
    """The broker is down of itself. No answer. Its registration goes at once if it stopped in order; a broker that
    halted leaves its session to expire."""

    broker_id: int
    in_order: bool = True


class Peer(IntEnum):
    """Whom a message is for."""

    BROKER = 0
    """Answer it with what that broker's ``handle`` returns."""
    CONTROLLER = 1
    STORE = 2
    CLIENT = 3


Message: TypeAlias = (
    Fetch | OffsetsForLeaderEpoch | AlterPartition | ControlledShutdown | WriteState | NotifyIsrChanges
    | NotifyLogDirFailure | CloseSession | ProduceResponse | DeleteRecordsResponse
)  # fmt: skip
"""What a broker sends of itself."""
Reply: TypeAlias = (
    FetchResponse | OffsetsForLeaderEpochResponse | AlterPartitionResponse | ControlledShutdownResponse
    | WriteStateResponse
)  # fmt: skip
"""What comes back for it."""


class Outgoing(msgspec.Struct, frozen=True):
    """A message that the simulation carries.

    ``peer_id`` is a broker's id; the controller's as this broker has been told; a late answer's ``correlation``; 0 for
    storage. ``number`` is what ``Broker.answered`` knows it by; 0:
    no answer is waited for.
    """

    peer: Peer
    peer_id: int
    number: int
    message: Message
