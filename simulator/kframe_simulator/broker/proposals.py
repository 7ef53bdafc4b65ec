"""ISR changes of a leader: AlterPartition, or a write to storage before inter-broker protocol 2.7-IV2."""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe.model.ids import RecoveryState
from kframe_simulator.broker.messages import NO_ID, UNDEFINED
from kframe_simulator.broker.node import NEVER, Node
from kframe_simulator.broker.outgoing import (
    AlteredPartition,
    AlterPartition,
    AlterPartitionResponseData,
    NotifyIsrChanges,
    Peer,
    ProposedIsr,
    Reply,
    WriteState,
    WriteStateResponse,
)
from kframe_simulator.broker.partition import Partition, PendingIsr

#: The delay before a failed request is sent again.
RETRY_MS: Final = 50.0
#: How often a broker checks for written ISRs without a notification.
NOTIFY_EVERY_MS: Final = 2_500.0
#: The broker notifies when the last written ISR is older than the first time, or the last notification is older than
#: the second.
NOTIFY_QUIET_MS: Final = 5_000.0
NOTIFY_AT_LEAST_MS: Final = 60_000.0


class Proposals(Protocol):
    """Submits ISR changes, by either method."""

    def submit(self, partition: Partition, pending: PendingIsr) -> None:
        """Send a proposal; ``partition.on_isr_response`` receives the outcome."""

    def poll(self, now: float) -> float:
        """Do what is due. Returns the next due time."""


class AlterPartitions:
    """Sends AlterPartition: all queued proposals in one request, one request in flight, until each has a response."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._unsent: dict[TopicPartition, tuple[Partition, PendingIsr]] = {}
        self._in_flight = False
        self._retry_at = 0.0

    def submit(self, partition: Partition, pending: PendingIsr) -> None:
        """Queue a proposal. It is refused while another proposal for the same partition is in flight."""
        if partition.key in self._unsent:
            refused = AlteredPartition(ErrorCode.OPERATION_NOT_ATTEMPTED)
            partition.on_isr_response(pending, refused, 0.0)  # Changes no watermark, so that the time does not matter.
        else:
            self._unsent[partition.key] = partition, pending

    def poll(self, now: float) -> float:
        """Send the queued proposals if the controller is known."""
        if self._in_flight or not self._unsent or self._node.cache.controller_id == UNDEFINED:
            return NEVER
        if now < self._retry_at:
            return self._retry_at
        items = dict(self._unsent)
        proposed = {
            key: ProposedIsr(
                item.leader_epoch, item.partition_epoch, item.isr, RecoveryState.RECOVERED, self._topic_id(partition)
            )
            for key, (partition, item) in items.items()
        }
        message = AlterPartition(self._node.broker_id, self._node.broker_epoch, proposed)
        self._in_flight = True
        self._node.ask(Peer.CONTROLLER, self._node.cache.controller_id, message, partial(self._on_response, items))
        return NEVER

    def _topic_id(self, partition: Partition) -> bytes:
        log = partition.log
        return log.topic_id if log is not None and self._node.config.protocol.topic_ids else NO_ID

    def _on_response(
        self, items: dict[TopicPartition, tuple[Partition, PendingIsr]], reply: Reply | None, now: float
    ) -> None:
        self._in_flight = False
        if not isinstance(reply, AlterPartitionResponseData) or reply.error is not ErrorCode.NONE:
            self._retry_at = now + RETRY_MS
            return
        for key, (partition, pending) in items.items():
            result = reply.partitions.get(key)
            if result is not None:  # A proposal that the response leaves out is sent again.
                del self._unsent[key]
                partition.on_isr_response(pending, result, now)


class StoredIsrs:
    """Writes states to storage if their version has not changed, and creates ISR change notifications at intervals."""

    def __init__(self, node: Node, now: float) -> None:
        self._node = node
        self._failed: list[tuple[Partition, PendingIsr]] = []
        self._retry_at = NEVER
        self._changed: dict[TopicPartition, None] = {}
        self._changed_at = self._notified_at = now
        self._next_check = now + NOTIFY_EVERY_MS

    def submit(self, partition: Partition, pending: PendingIsr) -> None:
        """Write the state."""
        message = WriteState(
            partition.key,
            self._node.broker_id,
            pending.leader_epoch,
            pending.isr,
            partition.controller_epoch,
            RecoveryState.RECOVERED,
            pending.partition_epoch,
        )
        self._node.ask(Peer.STORE, 0, message, partial(self._on_response, partition, pending, message))

    def poll(self, now: float) -> float:
        """Repeat writes without a response, and notify."""
        if now >= self._retry_at:
            failed, self._failed, self._retry_at = self._failed, [], NEVER
            for partition, pending in failed:
                self.submit(partition, pending)
        if now >= self._next_check:
            self._next_check = now + NOTIFY_EVERY_MS
            quiet = now - self._changed_at > NOTIFY_QUIET_MS
            if self._changed and (quiet or now - self._notified_at > NOTIFY_AT_LEAST_MS):
                self._node.send(Peer.STORE, 0, NotifyIsrChanges(tuple(self._changed)))
                self._changed, self._notified_at = {}, now
        return min(self._retry_at, self._next_check if self._changed else NEVER)

    def _on_response(
        self, partition: Partition, pending: PendingIsr, sent: WriteState, reply: Reply | None, now: float
    ) -> None:
        if not isinstance(reply, WriteStateResponse):
            self._failed.append((partition, pending))
            self._retry_at = now + RETRY_MS
            return
        stored = reply.stored
        if stored is None or not (reply.written or _same(stored, sent)):
            partition.on_isr_response(pending, AlteredPartition(ErrorCode.INVALID_UPDATE_VERSION), now)
            return
        self._changed[partition.key] = None
        self._changed_at = now
        result = AlteredPartition(
            ErrorCode.NONE, stored.leader, stored.leader_epoch, stored.isr, stored.recovery, stored.partition_epoch
        )
        partition.on_isr_response(pending, result, now)


def _same(stored: WriteState, sent: WriteState) -> bool:
    """Whether a refused write had been done before. Its response was lost then."""
    return (stored.leader, stored.leader_epoch, stored.controller_epoch, stored.isr, stored.recovery) == (
        sent.leader,
        sent.leader_epoch,
        sent.controller_epoch,
        sent.isr,
        sent.recovery,
    )
