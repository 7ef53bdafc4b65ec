"""The events of a what-if, in order: elections, written states, sent requests. No clock: steps have names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from kframe.model.arrays import Bool
from kframe.model.ids import Api, ElectionKind
from kframe.model.texts import counted

ApiName: TypeAlias = Literal["LeaderAndIsr", "UpdateMetadata", "StopReplica"]


class ElectionEvent(Struct, tag_field="what", tag="election"):
    """An election; ``unclean`` of the ``elected`` leaders are from outside the ISR."""

    text: str
    kind: str
    partitions: int
    elected: int
    unclean: int


class StatesEvent(Struct, tag_field="what", tag="partition states written"):
    """A write of partition states."""

    text: str
    partitions: int
    created: int
    elected: int
    shrunk: int
    leaderless: int
    refused: int
    grown: int


class RequestsEvent(Struct, tag_field="what", tag="requests"):
    """Requests of one kind; ``bytes`` is null where the snapshot lacks content of them."""

    text: str
    api: ApiName
    brokers: int
    requests: int
    partitions: int
    entries: int
    bytes: int | None


class TopicsEvent(Struct, tag_field="what", tag="topics"):
    """Records of topics were written; ``adding`` and ``removing`` count replicas."""

    text: str
    action: TopicAction
    topics: int
    adding: int
    removing: int


class ElrEvent(Struct, tag_field="what", tag="elr"):
    """Eligible leader replicas of a KRaft cluster changed; the ``elected`` ones left because they lead now."""

    text: str
    partitions: int
    entered: int
    left: int
    elected: int


class RecordsEvent(Struct, tag_field="what", tag="records"):
    """The controller of a KRaft cluster wrote records."""

    text: str
    records: int
    types: dict[str, int]
    bytes: int


class ElectionHeld(Struct, frozen=True):
    """An election in ``partitions``. ``elected`` got a leader, ``unclean`` of them from outside the ISR."""

    kind: ElectionKind
    partitions: int
    elected: int
    unclean: int

    def text(self) -> str:
        """The event as a line for people."""
        unclean = f", {self.unclean:,} of them unclean" if self.unclean else ""
        leaderless = self.partitions - self.elected
        failed = f", {leaderless:,} without an eligible replica" if leaderless else ""
        return f"{kind_name(self.kind)} election: {self.elected:,} elected{unclean}{failed}"

    def record(self) -> ElectionEvent:
        """The event as data."""
        return ElectionEvent(self.text(), kind_name(self.kind), self.partitions, self.elected, self.unclean)


class StatesWritten(Struct, frozen=True):
    """One bulk write. Of the ``partitions`` written, ``created`` had no state before, ``elected`` got another leader,
    ``shrunk`` a smaller ISR, ``grown`` a larger one, and ``leaderless`` lost their leader; ``refused`` were not
    written."""

    partitions: int
    created: int
    elected: int
    shrunk: int
    leaderless: int
    refused: int
    grown: int = 0

    def text(self) -> str:
        """The event as a line for people."""
        parts = {
            "created": self.created,
            "with another leader": self.elected,
            "with a smaller ISR": self.shrunk,
            "with a larger ISR": self.grown,
            "without leader now": self.leaderless,
            "refused": self.refused,
        }
        counts = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
        return f"{counted(self.partitions, 'partition state')} written" + (f": {counts}" if counts else "")

    def record(self) -> StatesEvent:
        """The event as data."""
        return StatesEvent(self.text(), **asdict(self))


class RequestsSent(Struct, frozen=True):
    """Requests of one kind: ``requests`` to ``brokers``, with ``entries`` in all for ``partitions`` different ones.

    ``nbytes`` counts sizes, headers and bodies; None where the snapshot lacks what is in them.
    """

    api: Api
    brokers: int
    requests: int
    partitions: int
    entries: int
    nbytes: int | None

    def text(self) -> str:
        """The event as a line for people."""
        size = "" if self.nbytes is None else f", {size_text(self.nbytes)}"
        requests, brokers = counted(self.requests, "request"), counted(self.brokers, "broker")
        partitions = counted(self.partitions, "partition")
        return f"{self.api.value}: {requests} to {brokers}, {partitions}{size}"

    def record(self) -> RequestsEvent:
        """The event as data."""
        counts = self.brokers, self.requests, self.partitions, self.entries
        return RequestsEvent(self.text(), self.api.value, *counts, self.nbytes)


class TopicAction(StrEnum):
    """What was done to records of topics."""

    CREATED = "created"
    ASSIGNED = "assigned"
    MARKED = "marked for deletion"
    DELETED = "deleted"


class TopicsWritten(Struct, frozen=True):
    """Records of ``topics`` were written. Of the replicas in them, ``adding`` are being added, ``removing`` removed."""

    action: TopicAction
    topics: int
    adding: int = 0
    removing: int = 0

    def text(self) -> str:
        """The event as a line for people."""
        if self.action is not TopicAction.ASSIGNED:
            return f"{counted(self.topics, 'topic')} {self.action}"
        moves = {"being added": self.adding, "being removed": self.removing}
        moving = ", ".join(f"{counted(count, 'replica')} {what}" for what, count in moves.items() if count)
        return f"{counted(self.topics, 'topic assignment')} written" + (f": {moving}" if moving else "")

    def record(self) -> TopicsEvent:
        """The event as data."""
        return TopicsEvent(self.text(), **asdict(self))


class ElrChanged(Struct, frozen=True):
    """Eligible leader replicas of a KRaft cluster changed in ``partitions``: members that entered, left, and of those
    that left the ``elected`` ones, which lead now."""

    partitions: int
    entered: int
    left: int
    elected: int

    def text(self) -> str:
        """The event as a line for people."""
        parts = {"members enter": self.entered, "members leave": self.left, "of them elected": self.elected}
        counts = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
        return f"ELR of {counted(self.partitions, 'partition')}: {counts}"

    def record(self) -> ElrEvent:
        """The event as data."""
        return ElrEvent(self.text(), **asdict(self))


class RecordsWritten(Struct, frozen=True):
    """The controller of a KRaft cluster wrote records: how many of each type, and the bytes of their values."""

    types: Mapping[str, int]
    nbytes: int

    @property
    def count(self) -> int:
        """The number of records."""
        return sum(self.types.values())

    def text(self) -> str:
        """The event as a line for people."""
        types = ", ".join(f"{count:,} {name}" for name, count in self.types.items())
        return f"{counted(self.count, 'record')}, {size_text(self.nbytes)}: {types}"

    def record(self) -> RecordsEvent:
        """The event as data."""
        return RecordsEvent(self.text(), self.count, dict(self.types), self.nbytes)


TimelineEvent: TypeAlias = ElectionHeld | StatesWritten | RequestsSent | TopicsWritten | ElrChanged | RecordsWritten
EventRecord: TypeAlias = ElectionEvent | StatesEvent | RequestsEvent | TopicsEvent | ElrEvent | RecordsEvent


class MergedTimeline:
    """The events of several calls of the same kind. They are merged as if there had been one call.

    Equal events add up. Events of only some calls keep their order. The calls concern different partitions, so that
    counts of partitions add up.
    """

    def __init__(self) -> None:
        self._events: dict[tuple[object, ...], TimelineEvent] = {}
        self._receivers: dict[tuple[object, ...], Bool] = {}
        self._occurrences = Counter[tuple[object, ...]]()
        self._order: list[tuple[object, ...]] = []
        self._position = 0
        """Index in the order after the last event of this call."""

    def begin_call(self) -> None:
        """Begin another call."""
        self._occurrences.clear()
        self._position = 0

    def add(self, timeline_event: TimelineEvent, receivers: Bool | None = None) -> None:
        """Add an event of this call. ``receivers`` masks the brokers that received its requests."""
        kind = _kind(timeline_event)
        key = (*kind, self._occurrences[kind])
        self._occurrences[kind] += 1
        before = self._events.get(key)
        if before is None:
            self._order.insert(self._position, key)
        self._position = self._order.index(key) + 1
        if receivers is not None:
            self._receivers[key] = receivers | self._receivers.get(key, np.zeros(len(receivers), np.bool_))
        self._events[key] = timeline_event if before is None else _sum(before, timeline_event, self._receivers.get(key))

    def events(self) -> tuple[TimelineEvent, ...]:
        """All events, merged."""
        return tuple(self._events[key] for key in self._order)


def _kind(timeline_event: TimelineEvent) -> tuple[object, ...]:
    match timeline_event:
        case ElectionHeld():
            return ElectionHeld, timeline_event.kind
        case RequestsSent():
            return RequestsSent, timeline_event.api
        case TopicsWritten():
            return TopicsWritten, timeline_event.action
        case _:
            return (type(timeline_event),)


def _sum(before: TimelineEvent, now: TimelineEvent, receivers: Bool | None) -> TimelineEvent:
    """Both together. Brokers are those of ``receivers``; of topics, the present ones."""
    old = asdict(before)
    added = {name: old[name] + value for name, value in asdict(now).items() if type(value) is int and name != "nbytes"}
    if isinstance(now, RequestsSent) and receivers is not None:
        added["brokers"] = int(np.count_nonzero(receivers))
        sizes = (old["nbytes"], now.nbytes)
        return replace(now, **added, nbytes=None if None in sizes else sum(sizes))
    if isinstance(now, TopicsWritten):
        added = {"topics": added["topics"]}
    return replace(now, **added)


def kind_name(kind: ElectionKind) -> str:
    """``controlled shutdown`` and the like."""
    return kind.name.lower().replace("_", " ")


def size_text(nbytes: int) -> str:
    """``312 B``, ``4.5 KB``, ``263.1 MB``: decimal units."""
    size, unit = float(nbytes), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
