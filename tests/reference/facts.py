"""The nouns of the reference model: what storage and the controller know of a partition, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

Key: TypeAlias = "tuple[str, int]"
#: A partition and the broker of one of its replicas.
Replica: TypeAlias = "tuple[Key, int]"
Entry: TypeAlias = "dict[str, Any]"

NONE = -1
DELETING = -2


class Undone(Exception):
    """Kafka's controller throws here; what has been written stays written."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who holds a partition; during a reassignment also who joins and who leaves."""

    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        return without(self.replicas, self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        return without(self.replicas, self.removing)

    def towards(self, target: Iterable[int]) -> Assignment:
        wanted = tuple(target)
        everybody = tuple(dict.fromkeys(wanted + self.origin))
        return Assignment(everybody, without(everybody, self.origin), without(everybody, wanted))

    def dropping(self, broker: int) -> Assignment:
        lists = ((one for one in names if one != broker) for names in (self.replicas, self.adding, self.removing))
        return Assignment(*map(tuple, lists))


@dataclass(frozen=True, slots=True)
class State:
    """Leadership of a partition; ``partition_epoch`` is the version of its record."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    controller_epoch: int = 0
    recovery: int = 0
    partition_epoch: int = 0

    def raised(self, leader: int | None = None, isr: tuple[int, ...] | None = None) -> State:
        """The next leader epoch."""
        return replace(
            self,
            leader=self.leader if leader is None else leader,
            isr=self.isr if isr is None else isr,
            leader_epoch=self.leader_epoch + 1,
        )


@dataclass(slots=True)
class Topic:
    """A topic as storage has it."""

    number: int
    """Stands for the topic id: never used twice."""
    assignments: dict[int, Assignment]
    config: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Storage:
    """All records, and the clock that numbers registrations."""

    topics: dict[str, Topic] = field(default_factory=dict)
    states: dict[Key, State] = field(default_factory=dict)
    brokers: dict[int, int] = field(default_factory=dict)
    """Broker epochs of the registered."""
    racks: dict[int, str | None] = field(default_factory=dict)
    reassignments: dict[Key, tuple[int, ...]] | None = None
    preferred: list[Key] | None = None
    marked: set[str] = field(default_factory=set)
    controller_epoch: int = 0
    counted: int = 0

    def next(self) -> int:
        self.counted += 1
        return self.counted

    def add_topic(self, name: str, assignments: dict[int, Assignment], config: dict[str, str]) -> None:
        self.topics[name] = Topic(self.next(), assignments, config)

    def drop_topic(self, name: str) -> None:
        self.topics.pop(name, None)
        self.marked.discard(name)
        self.states = {key: state for key, state in self.states.items() if key[0] != name}

    def store(self, key: Key, state: State, controller_epoch: int) -> State:
        """Write a state; returns it with its new version."""
        known = key in self.states
        version = state.partition_epoch + 1 if known else 0
        self.states[key] = replace(state, controller_epoch=controller_epoch, partition_epoch=version)
        return self.states[key]

    def partitions(self) -> dict[str, Entry]:
        """Every partition as a trace shows it."""
        keys = ((name, number) for name, topic in self.topics.items() for number in topic.assignments)
        return {name_of(key): self._entry(key) for key in sorted(keys)}

    def _entry(self, key: Key) -> Entry:
        assignment, state = self.topics[key[0]].assignments[key[1]], self.states.get(key)
        return {
            "replicas": list(assignment.replicas),
            "adding_replicas": list(assignment.adding),
            "removing_replicas": list(assignment.removing),
            "leader": state.leader if state else None,
            "isr": list(state.isr) if state else None,
            "leader_epoch": state.leader_epoch if state else None,
            "controller_epoch": state.controller_epoch if state else None,
            "leader_recovery_state": state.recovery if state else None,
            "partition_epoch": state.partition_epoch if state else None,
        }


def without(values: Iterable[int], gone: Iterable[int]) -> tuple[int, ...]:
    dropped = set(gone)
    return tuple(value for value in values if value not in dropped)


def name_of(key: Key) -> str:
    return f"{key[0]}-{key[1]}"


def key_of(name: str) -> Key:
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def hash_order(brokers: Iterable[int]) -> list[int]:
    """Broker ids in the iteration order of Scala's immutable HashMap (``tests/golden/COMPARE.md``)."""

    def improved(value: int) -> int:
        value = (value + ~(value << 9)) & 0xFFFFFFFF
        value ^= value >> 14
        value = (value + (value << 4)) & 0xFFFFFFFF
        return value ^ (value >> 10)

    def walk(items: list[tuple[int, int]], shift: int) -> list[int]:
        groups: dict[int, list[tuple[int, int]]] = {}
        for hashed, broker in items:
            groups.setdefault((hashed >> shift) & 31, []).append((hashed, broker))
        single = [group[0][1] for _, group in sorted(groups.items()) if len(group) == 1]
        return single + [
            broker for _, group in sorted(groups.items()) if len(group) > 1 for broker in walk(group, shift + 5)
        ]

    return walk([(improved(broker), broker) for broker in dict.fromkeys(brokers)], 0)
