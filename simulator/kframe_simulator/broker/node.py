"""State shared by the components of one broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kframe_simulator.broker.cache import MetadataCache
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.disks import Disks
from kframe_simulator.broker.outgoing import Message, Outgoing, Peer, Reply

#: Called with the reply to a message (None if there is none) and the time.
OnReply: TypeAlias = Callable[[Reply | None, float], None]


class Node:
    """State of one broker process: settings, disks, metadata, and messages to send."""

    __slots__ = (
        "_number", "broker_epoch", "broker_id", "cache", "config", "disks", "min_insync", "outbox", "waiting",
    )  # fmt: skip

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
        self._number = first_number

    @property
    def next_number(self) -> int:
        """The number of the next message that expects a reply."""
        return self._number

    def ask(self, peer: Peer, peer_id: int, message: Message, on_reply: OnReply) -> int:
        """Send a message that expects a reply. Returns its number."""
        number = self._number
        self._number = number + 1
        self.waiting[number] = on_reply
        self.outbox.append(Outgoing(peer, peer_id, number, message))
        return number

    def send(self, peer: Peer, peer_id: int, message: Message) -> None:
        """Send a message that expects no reply."""
        self.outbox.append(Outgoing(peer, peer_id, 0, message))
