"""A state of the small space as immutable values: storage, each controller process, each broker, the facts.

There are three brokers (ids 1 to 3), one partition, and up to two controllers (1 and 2). A broker epoch counts the
registrations of a broker; controllers only compare it. A global state is a tuple of numbers, one for each part. Equal
parts have equal numbers (``Pool``), so that equal states are equal tuples. There are no hash collisions.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple, TypeAlias

BROKERS: Final = (1, 2, 3)
CONTROLLERS: Final = (1, 2)
#: In ``Stored.leader`` and requests: no broker leads.
NO_LEADER: Final = -1
#: In ``SearchBroker.leader``: the process received nothing since it started.
LEADER_UNKNOWN: Final = -2

#: Pending notifications of a process.
ELECT: Final = 1
CHANGED: Final = 2
BROKERS_CHANGED: Final = 4
#: Watches of a process: on the role (one-shot), on registrations (one-shot, armed unless a notification is pending).
ARMED: Final = 8
FOLLOWS: Final = 16
#: Its session has expired in storage, and it does not know.
EXPIRED: Final = 32
#: There is no process.
DOWN: Final = 64

#: ("U", controller epoch, broker epoch, live brokers), ("L", ce, be, leader, leader epoch, ISR, partition epoch,
#: replicas) or ("S", ce, be, leader epoch, delete).
Message: TypeAlias = tuple[Any, ...]
#: The process, action and object of a step.
Label: TypeAlias = tuple[Any, ...]
#: The queue of requests to one broker; None without a connection.
Channel: TypeAlias = tuple[Message, ...] | None


class Stored(NamedTuple):
    """The content of storage."""

    registered: tuple[int, int, int]
    """Broker epoch of each registration, 0 if there is none."""
    owner: int
    """The owner of ``/controller``, 0 if there is none."""
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


class ControllerSession(NamedTuple):
    """One controller process and its session."""

    node: int
    """The number of the core's state (``Subject``)."""
    flags: int
    claim: int
    """Controller epoch of the session's claim, 0 if none. It fences writes."""
    task: int
    """The request in progress: a broker's AlterPartition, 10 + a broker's ControlledShutdown, 20 for a reassignment; 0
    for none."""


class QueuedProposal(NamedTuple):
    """An AlterPartition request in flight or queued at a controller."""

    controller: int
    broker_epoch: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]

    def __str__(self) -> str:
        return f"to ISR {self.isr} at leader epoch {self.leader_epoch}, partition epoch {self.partition_epoch}"


class SearchBroker(NamedTuple):
    """One broker: its process, its replica, and its pending requests."""

    up: bool
    epoch: int
    """The broker epoch of its last registration."""
    controller_epoch: int = 0
    controller: int = 0
    live: tuple[int, ...] = ()
    leader: int = LEADER_UNKNOWN
    leader_epoch: int = -1
    partition_epoch: int = 0
    isr: tuple[int, ...] = ()
    """The committed ISR. Set on the leader only."""
    replicas: tuple[int, ...] = ()
    """The replicas of the last LeaderAndIsr. Set on the leader only."""
    proposed: tuple[int, ...] = ()
    """The proposed ISR."""
    stuck: bool = False
    """Whether the proposal was refused until the next leader epoch."""
    queued_proposal: QueuedProposal | None = None
    response: tuple[Any, ...] = ()
    shutdown_request: tuple[int, int] = (0, 0)
    """(controller, broker epoch) of its ControlledShutdown. Controller 0 after the response."""
    stopped: bool = False
    has_record: bool = False
    """Whether the record is in its log."""
    fetched: tuple[int, ...] = ()
    """On a leader: the followers that have fetched its whole log in this leader epoch."""


class Facts(NamedTuple):
    """Facts outside the cluster: the committed record, and the remaining faults (-1: no limit)."""

    produced: bool
    committed: bool
    broker_faults: int
    controller_faults: int
    reassignments: int = 0
    """The remaining reassignment requests and cancellations."""


class Pool:
    """Numbers for values: equal values, equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.values: list[Any] = []

    def number(self, value: Hashable) -> int:
        """The number of a value. A new number for a new value."""
        result = self._numbers.get(value)
        if result is None:
            result = self._numbers[value] = len(self.values)
            self.values.append(value)
        return result
