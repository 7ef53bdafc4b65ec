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
    """ISRs that a leader proposes. The response is AlterPartitionResponse."""

    broker_id: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, ProposedIsr]


class AlteredPartition(msgspec.Struct, frozen=True):
    """The controller's decision on one proposal: an error, or the stored state."""

    error: ErrorCode
    leader: int = UNDEFINED
    leader_epoch: int = UNDEFINED
    isr: tuple[int, ...] = ()
    recovery: int = 0
    partition_epoch: int = UNDEFINED


class AlterPartitionResponseData(msgspec.Struct, frozen=True):
    """The response to AlterPartition."""

    error: ErrorCode
    partitions: Mapping[TopicPartition, AlteredPartition] = {}


class ControlledShutdown(msgspec.Struct, frozen=True):
    """A broker asks the controller to move its leaders. The response is ControlledShutdownResponse."""

    broker_id: int
    broker_epoch: int


class ControlledShutdownResponseData(msgspec.Struct, frozen=True):
    """The response: an error, or the partitions that the broker still leads."""

    error: ErrorCode
    remaining: tuple[TopicPartition, ...] = ()


class WriteState(msgspec.Struct, frozen=True):
    """Replace a stored state if its version is still ``partition_epoch`` (before inter-broker protocol 2.7-IV2).

    The response is WriteStateResponse.
    """

    partition: TopicPartition
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    recovery: int
    partition_epoch: int


class WriteStateResponse(msgspec.Struct, frozen=True):
    """The response: whether the state was written. ``stored`` is the state in storage, with its version as
    ``partition_epoch``; None if there is none."""

    written: bool
    stored: WriteState | None


class NotifyIsrChanges(msgspec.Struct, frozen=True):
    """Create a notification of the ISRs that this broker has written (``/isr_change_notification``). No response."""

    partitions: tuple[TopicPartition, ...]


class NotifyLogDirFailure(msgspec.Struct, frozen=True):
    """Create a notification of a failed log directory (``/log_dir_event_notification``). No response."""

    broker_id: int


class CloseSession(msgspec.Struct, frozen=True):
    """The broker has stopped. No response. A clean stop deletes the registration at once. After a halt the session has
    to expire."""

    broker_id: int
    in_order: bool = True


class Peer(IntEnum):
    """The receiver of a message."""

    BROKER = 0
    """A broker. Reply with the result of its ``handle``."""
    CONTROLLER = 1
    STORE = 2
    CLIENT = 3


Message: TypeAlias = (
    Fetch
    | OffsetsForLeaderEpoch
    | AlterPartition
    | ControlledShutdown
    | WriteState
    | NotifyIsrChanges
    | NotifyLogDirFailure
    | CloseSession
    | ProduceResponse
)
"""The messages that a broker sends."""
Reply: TypeAlias = (
    FetchResponse
    | OffsetsForLeaderEpochResponse
    | AlterPartitionResponseData
    | ControlledShutdownResponseData
    | WriteStateResponse
)
"""The replies to them."""


class Outgoing(msgspec.Struct, frozen=True):
    """A message for the simulation to deliver.

    ``peer_id`` is a broker's id, the controller's id as this broker knows it, or the ``correlation`` of a later
    response; 0 for storage. ``number`` is the argument of ``Broker.on_response``; 0 means that no reply is expected.
    """

    peer: Peer
    peer_id: int
    number: int
    message: Message
