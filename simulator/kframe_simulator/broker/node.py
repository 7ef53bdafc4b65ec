"""State shared by the components of one broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kframe.model.events import TopicPartition
from kframe.model.ids import LEADER_DURING_DELETE
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.disks import Disks
from kframe_simulator.broker.messages import UNDEFINED, PartitionMetadata, UpdateMetadata
from kframe_simulator.broker.outgoing import Message, Outgoing, Peer, Reply

#: When something is due that is not planned.
NEVER: Final = float("inf")
#: Called with the reply to a message (None if there is none) and the time.
OnReply: TypeAlias = Callable[[Reply | None, float], None]


class MetadataCache:
    """Live brokers, the controller, and partition leaders (Kafka 3.9 ``ZkMetadataCache``)."""

    __slots__ = ("controller_id", "live_brokers", "partitions", "topic_ids")

    def __init__(self) -> None:
        self.controller_id = UNDEFINED
        self.live_brokers: frozenset[int] = frozenset()
        self.partitions: dict[TopicPartition, PartitionMetadata] = {}
        self.topic_ids: dict[str, bytes] = {}

    def update(self, request: UpdateMetadata) -> None:
        """Apply a request: replace the live brokers, add or remove partitions."""
        self.controller_id = request.controller_id
        self.live_brokers = frozenset(request.live_brokers)
        self.topic_ids.update(request.topic_ids)
        for key, metadata in request.partitions.items():
            if metadata.leader == LEADER_DURING_DELETE:
                self.partitions.pop(key, None)
            else:
                self.partitions[key] = metadata
        if any(metadata.leader == LEADER_DURING_DELETE for metadata in request.partitions.values()):
            remaining = {topic for topic, _ in self.partitions}
            self.topic_ids = {topic: item for topic, item in self.topic_ids.items() if topic in remaining}


class Node:
    """State of one broker process: settings, disks, metadata, and messages to send."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "cache",
        "config",
        "disks",
        "min_insync",
        "next_number",
        "outbox",
        "waiting",
    )

    def __init__(self, broker_id: int, config: BrokerConfig, disks: Disks, first_number: int) -> None:
        """``first_number`` is the number of the first message. It is above all numbers of earlier processes of this
        broker. A reply to an earlier process is then not accepted."""
        self.broker_id = broker_id
        self.broker_epoch = -1
        self.config = config
        self.disks = disks
        self.cache = MetadataCache()
        self.min_insync: dict[str, int] = {}
        self.outbox: list[Outgoing] = []
        self.waiting: dict[int, OnReply] = {}
        """By message number: the callback for the reply."""
        self.next_number = first_number
        """The number of the next message that expects a reply."""

    def ask(self, peer: Peer, peer_id: int, message: Message, on_reply: OnReply) -> int:
        """Send a message that expects a reply. Returns its number."""
        number = self.next_number
        self.next_number = number + 1
        self.waiting[number] = on_reply
        self.outbox.append(Outgoing(peer, peer_id, number, message))
        return number

    def send(self, peer: Peer, peer_id: int, message: Message) -> None:
        """Send a message that expects no reply."""
        self.outbox.append(Outgoing(peer, peer_id, 0, message))
