"""A state of the small space as immutable values: what storage holds, each controller's process, each broker, the
facts.

Three brokers (ids 1 to 3), one partition, up to two controllers (1 and 2). Broker epochs count the registrations of a
broker, which is all that a controller compares them by. A global state is a tuple of numbers, one for each part of it;
equal parts have equal numbers (``Pool``), so that equal states are equal tuples and nothing is taken for the same by
chance.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple, TypeAlias

BROKERS: Final = (1, 2, 3)
CONTROLLERS: Final = (1, 2)
#: In ``Stored.leader`` and requests: no broker leads.
NO_LEADER: Final = -1
#: In ``Broker.leader``: the process received nothing since it started.
LEADER_UNKNOWN: Final = -2

#: What a process has been notified of, and not checked yet.
ELECT: Final = 1
CHANGED: Final = 2
BROKERS_CHANGED: Final = 4
#: Its watches: on who is controller (one-shot), on registrations (one-shot, armed unless notified already).
ARMED: Final = 8
FOLLOWS: Final = 16
#: Its session is over in storage, and it does not know.
EXPIRED: Final = 32
#: There is no process.
DOWN: Final = 64

#: ("U", controller epoch, broker epoch, live brokers), ("L", ce, be, leader, leader epoch, ISR, partition epoch,
#: replicas) or ("S", ce, be, leader epoch, delete).
Message: TypeAlias = tuple[Any, ...]
#: What happens in a step: who, does what, and to what.
Label: TypeAlias = tuple[Any, ...]
#: Requests on their way to one broker, first in, first out; None without a connection.
Channel: TypeAlias = tuple[Message, ...] | None


class Stored(NamedTuple):
    """What storage holds."""

    registered: tuple[int, int, int]
    """Broker epoch of each registration, 0 where there is none."""
    owner: int
    """Who holds ``/controller``, 0 for nobody."""
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    recovery: int
    state_epoch: int
    """Controller epoch in the state."""
    version: int
    assigned: tuple[int, ...] = BROKERS
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class ControllerProcess(NamedTuple):
    """One controller process and its session."""

    node: int
    """Which state the core is in (``Subject``)."""
    flags: int
    claim: int
    """Controller epoch of the role that its session has won, 0 if none; it fences writes."""
    task: int
    """Whose request is handled: a broker's AlterPartition, 10 + a broker's ControlledShutdown, or 20 for a
    reassignment; 0 for none."""


class Request(NamedTuple):
    """An AlterPartition on its way to, or waiting at, a controller."""

    controller: int
    broker_epoch: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]

    def __str__(self) -> str:
        return f"to ISR {self.isr} at leader epoch {self.leader_epoch}, partition epoch {self.partition_epoch}"


class Broker(NamedTuple):
    """One broker: its process, its replica, and what it waits for."""

    up: bool
    epoch: int
    """Its last registration."""
    controller_epoch: int = 0
    controller: int = 0
    live: tuple[int, ...] = ()
    leader: int = LEADER_UNKNOWN
    leader_epoch: int = -1
    partition_epoch: int = 0
    isr: tuple[int, ...] = ()
    """As committed; only of a leader."""
    replicas: tuple[int, ...] = ()
    """As it was told; only of a leader."""
    proposed: tuple[int, ...] = ()
    """The ISR that it has asked for."""
    stuck: bool = False
    """The proposal was refused in a way that it does not ask again before the next leader epoch."""
    asked: Request | None = None
    answer: tuple[Any, ...] = ()
    leaving: tuple[int, int] = (0, 0)
    """(controller, broker epoch) of its ControlledShutdown; controller 0 once that was answered."""
    stopped: bool = False
    has: bool = False
    """Whether the record is in its log."""
    fetched: tuple[int, ...] = ()
    """Of a leader: who has fetched all that it has, in this leader epoch."""


class Facts(NamedTuple):
    """What no part of the cluster knows: the one record, and how many faults may still happen (-1: any number)."""

    produced: bool
    committed: bool
    broker_faults: int
    controller_faults: int
    moves: int = 0
    """How often an operator may still ask for the reassignment, or for its end."""


class Pool:
    """Numbers for values: equal values, equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.values: list[Any] = []

    def number(self, value: Hashable) -> int:
        """The number of a value; a new one where it was not met yet."""
        result = self._numbers.get(value)
        if result is None:
            result = self._numbers[value] = len(self.values)
            self.values.append(value)
        return result

    def __len__(self) -> int:
        return len(self.values)
