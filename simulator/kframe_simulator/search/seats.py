"""What one controller process does in one step: takes an event, or does its next call on storage.

A step ends before the next call on storage, so that anything may happen between two of them. What lies between, sending
included, touches nobody else and is done at once, as ``kframe.runtime.perform.Performer`` does it; ``fine`` makes each
batch of requests a step of its own, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kframe_simulator.search import laws, storage
from kframe_simulator.search.subject import Subject
from kframe_simulator.search.values import (
    ARMED,
    BROKERS_CHANGED,
    CHANGED,
    ELECT,
    EXPIRED,
    FOLLOWS,
    Request,
    Seat,
    Stored,
)

_EVENTS: Final = {ELECT: "Elect", CHANGED: "ControllerChanged", BROKERS_CHANGED: "BrokersChanged"}


@dataclass(frozen=True, slots=True)
class Step:
    """What came of it."""

    stored: Stored
    seat: Seat
    acts: tuple[tuple[Any, ...], ...]
    """Effects of the core, in order; "send" for batches that left."""
    told: tuple[int, ...]
    """What the other controllers are notified of, in order."""
    broken: tuple[str, ...]


@dataclass(slots=True)
class _Turn:
    """A step under way."""

    stored: Stored
    seat: Seat
    acts: list[tuple[Any, ...]] = field(default_factory=list)
    told: list[int] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    unheard: set[int] = field(default_factory=set)
    """Brokers that were connected to and told nothing yet."""


class Seats:
    """The rules of all seats; ``subjects`` by controller."""

    def __init__(
        self, subjects: dict[int, Subject], fenced: bool, fine: bool, unclean: bool, target: tuple[int, ...]
    ) -> None:
        self.subjects = subjects
        self._fenced, self._fine, self._unclean, self._target = fenced, fine, unclean, target

    def waiting(self, seat: Seat) -> list[str]:
        """The notifications that it can take now."""
        if seat.flags & EXPIRED:
            return ["SessionExpired"]
        return [name for flag, name in _EVENTS.items() if seat.flags & flag]

    def resting(self, own: int, seat: Seat) -> bool:
        """Whether its core is between two events."""
        return self.subjects[own].nodes[seat.node].ask is None

    def take(self, own: int, stored: Stored, seat: Seat, name: str) -> Step:
        """It takes a notification."""
        if name == "SessionExpired":
            seat = seat._replace(flags=ARMED | ELECT, claim=0)
        else:
            (flag,) = (flag for flag, item in _EVENTS.items() if item == name)
            seat = seat._replace(flags=seat.flags & ~flag)
        return self._take(own, _Turn(stored, seat), (name,))

    def serve(self, own: int, stored: Stored, seat: Seat, broker: int, asked: Request | int) -> Step:
        """It takes a broker's request: an AlterPartition, or (a broker epoch) a ControlledShutdown."""
        if isinstance(asked, Request):
            return self._take(own, _Turn(stored, seat._replace(task=broker)), ("alter", broker, asked))
        return self._take(own, _Turn(stored, seat._replace(task=10 + broker)), ("leave", broker, asked))

    def move(self, own: int, stored: Stored, seat: Seat, *replicas: int) -> Step:
        """It takes an operator's request to reassign the partition, or without replicas to give that up."""
        return self._take(own, _Turn(stored, seat._replace(task=20)), ("move", *replicas))

    def call(self, own: int, stored: Stored, seat: Seat) -> Step:
        """It does what its core waits for."""
        turn = _Turn(stored, seat)
        self._call(own, turn)
        return self._end(own, turn)

    def _take(self, own: int, turn: _Turn, event: tuple[Any, ...]) -> Step:
        self._run(own, turn, event)
        if not self.resting(own, turn.seat):
            self._call(own, turn)
        return self._end(own, turn)

    def _end(self, own: int, turn: _Turn) -> Step:
        node = self.subjects[own].nodes[turn.seat.node]
        if node.ask is None:
            turn.seat = turn.seat._replace(task=0)
            turn.broken += laws.remembered(node, turn.seat, turn.stored)
        if turn.unheard and not self._fine:
            turn.broken.append(f"I14: brokers {sorted(turn.unheard)} are connected to and told nothing")
        return Step(turn.stored, turn.seat, tuple(turn.acts), tuple(turn.told), tuple(turn.broken))

    def _call(self, own: int, turn: _Turn) -> None:
        node, before = self.subjects[own].nodes[turn.seat.node], turn.stored
        assert node.ask is not None
        if node.ask[0] == "send":
            self._run(own, turn, self._send(turn, node.ask[1]))
            return
        called = storage.call(own, before, turn.seat, node.ask, self._fenced)
        if called.wrote:
            turn.broken += laws.written(before, called.stored, turn.seat, node, self._unclean)
        turn.broken += laws.assigned(before, called.stored, turn.seat, self._target)
        turn.stored, turn.seat = called.stored, called.seat
        turn.told += [called.told] if called.told else []
        self._run(own, turn, called.answer)

    def _run(self, own: int, turn: _Turn, given: tuple[Any, ...]) -> None:
        """The core goes on to its next call."""
        subject = self.subjects[own]
        while True:
            before = subject.nodes[turn.seat.node]
            number, done = subject.step(turn.seat.node, given)
            node = subject.nodes[number]
            turn.seat = turn.seat._replace(node=number)
            turn.acts += done
            turn.broken += laws.moved(before, node)
            turn.broken += laws.silent(given, node, turn.seat)
            turn.broken += laws.acted(done, turn.seat, given[0] == "failed", node.ask is None)
            if any(kind == "reply" for kind, *_ in done):
                turn.seat = turn.seat._replace(task=0)  # what follows is the controller's own
            for kind, *content in done:
                turn.unheard |= set(content[0]) if kind == "open" else set()
            self._resigned(own, turn, done)
            if node.ask is None or node.ask[0] != "send":
                return
            turn.broken += laws.told(node.ask[1], node, turn.seat, turn.unheard)
            if self._fine:
                return
            given = self._send(turn, node.ask[1])

    def _send(self, turn: _Turn, messages: tuple[Any, ...]) -> tuple[Any, ...]:
        """Hand a batch over, while the role is certain (``Store.may_act``)."""
        if not turn.seat.claim or turn.seat.flags & EXPIRED:
            return ("failed", "session")
        turn.acts.append(("send", messages))
        return ("done", "send")

    def _resigned(self, own: int, turn: _Turn, done: tuple[tuple[Any, ...], ...]) -> None:
        for kind, *content in done:
            if kind != "resigned":
                continue
            if content[1]:
                turn.stored, gone = storage.release(own, turn.stored, turn.seat)
                turn.seat = turn.seat._replace(flags=turn.seat.flags & ~FOLLOWS)
                if gone:
                    turn.told.append(ELECT)
                    turn.seat = storage.notify(turn.seat, ELECT)
            turn.seat = turn.seat._replace(claim=0)
            turn.unheard.clear()
