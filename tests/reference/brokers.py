"""Brokers that answer as they are told, one request in flight for each; and a clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.reference.facts import Entry, Key

SILENT = "SILENT"
APIS = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
RETRY_SECONDS = 30.0


@dataclass(slots=True)
class Sent:
    """A request, and the topic numbers of the partitions that it names."""

    request: Entry
    partitions: dict[Key, Entry]
    topics: dict[str, int]
    answer: tuple[str, dict[Key, str]] = ("NONE", {})


@dataclass(slots=True)
class Channel:
    """What waits for one registration of a broker."""

    waiting: deque[Sent] = field(default_factory=deque)
    held: Sent | None = None
    again_at: float = 0.0


class Brokers:
    """``answered`` is called with a request and what the broker says to it: a top-level error and one by partition."""

    def __init__(self, answered: Callable[[Sent, str, dict[Key, str]], None]) -> None:
        self._answered = answered
        self._said: dict[tuple[int, str, Key | None], str] = {}
        self.channels: dict[int, Channel] = {}
        self.received: list[Entry] = []
        self.now = 0.0

    def connect(self, brokers: list[int]) -> None:
        for broker in brokers:
            self.channels[broker] = Channel()

    def disconnect(self, brokers: list[int]) -> None:
        for broker in brokers:
            self.channels.pop(broker, None)

    def send(self, sent: Sent) -> None:
        channel = self.channels.get(sent.request["broker"])
        if channel is not None:
            channel.waiting.append(sent)
            self._deliver(channel)

    def say(self, broker: int, error: str, api: str | None, partitions: list[Key]) -> None:
        for name in [api] if api else APIS:
            if error == "NONE" and not partitions:
                self._said = {key: said for key, said in self._said.items() if key[:2] != (broker, name)}
            for partition in partitions or (None,):
                if error == "NONE":
                    self._said.pop((broker, name, partition), None)
                else:
                    self._said[broker, name, partition] = error
        channel = self.channels.get(broker)
        if channel is not None and channel.held is not None and not self._silent(channel.held):
            held, channel.held = channel.held, None
            self._answered(held, *held.answer)
            self._deliver(channel)

    def next_timer(self) -> float:
        """When a request is sent again for lack of an answer."""
        return min((one.again_at for one in self.channels.values() if one.held is not None), default=float("inf"))

    def send_again(self) -> None:
        for channel in self.channels.values():
            if channel.held is not None and channel.again_at <= self.now:
                self._receive(channel, channel.held)
                self._deliver(channel)

    def take(self) -> list[Entry]:
        taken, self.received = self.received, []
        return sorted(taken, key=lambda request: int(request["broker"]))

    def _deliver(self, channel: Channel) -> None:
        while channel.waiting and channel.held is None:
            self._receive(channel, channel.waiting.popleft())

    def _receive(self, channel: Channel, sent: Sent) -> None:
        self.received.append(sent.request)
        sent.answer = self._answer(sent)
        if self._silent(sent):
            channel.held, channel.again_at = sent, self.now + RETRY_SECONDS
        else:
            channel.held = None
            self._answered(sent, *sent.answer)

    def _silent(self, sent: Sent) -> bool:
        return self._said.get((sent.request["broker"], sent.request["api"], None)) == SILENT

    def _answer(self, sent: Sent) -> tuple[str, dict[Key, str]]:
        broker, api = sent.request["broker"], sent.request["api"]
        top = self._error(broker, api, None, "NONE")
        return top, {key: self._error(broker, api, key, top) for key in sent.partitions}

    def _error(self, broker: int, api: str, partition: Key | None, otherwise: str) -> str:
        said = self._said.get((broker, api, partition))
        return otherwise if said in (None, SILENT) else str(said)
