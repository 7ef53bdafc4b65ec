"""Where replicas of new partitions go, for the same random numbers: Kafka 4.4's ``StripedReplicaPlacer``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Final, TypeVar

from verification.kraft.simulation.image import Image

T = TypeVar("T")
#: Slots of a new ``HashMap`` of Java.
_SLOTS: Final = 16


class Draws:
    """Takes the numbers that the controller drew. ``is_other``: it drew within other bounds."""

    def __init__(self, drawn: Sequence[tuple[int, int]]) -> None:
        self._drawn = list(drawn)
        self.is_other = False

    def next(self, bound: int) -> int:
        """The next number, 0 if the controller drew another one."""
        if not self._drawn or self._drawn[0][0] != bound:
            self.is_other = True
            return 0
        return self._drawn.pop(0)[1]

    def shuffle(self, values: list[T]) -> None:
        """Exchange the last place with a random one, then the one before, and so on (``Collections.shuffle``)."""
        for last in reversed(range(1, len(values))):
            chosen = self.next(last + 1)
            values[last], values[chosen] = values[chosen], values[last]

    @property
    def is_complete(self) -> bool:
        """Whether the controller drew these numbers and no more."""
        return not self.is_other and not self._drawn


@dataclass(slots=True)
class _Ring:
    """Brokers in turn. A partition that asks begins one broker after the one before that asked."""

    brokers: list[int]
    first: int = 0
    asked_by: int = 0
    taken: int = 0

    def take(self, partition: int) -> int | None:
        """The next broker for a partition, None if it has all of them."""
        if partition != self.asked_by and self.brokers:
            self.first, self.asked_by, self.taken = self.first + 1, partition, 0
        if self.taken == len(self.brokers):
            return None
        self.taken += 1
        return self.brokers[(self.first + self.taken - 1) % len(self.brokers)]


def place(image: Image, draws: Draws, partitions: int, factor: int) -> list[tuple[int, ...]] | None:
    """The replicas of new partitions. None if the brokers are too few, or all fenced."""
    memories = image.soft.brokers
    usable = [
        broker_id
        for broker_id in sorted(image.brokers)
        if image.brokers[broker_id].takes_replicas and not memories[broker_id].is_stopping
    ]
    unfenced = [broker_id for broker_id in usable if not memories[broker_id].fenced]
    racks = dict.fromkeys(image.brokers[broker_id].rack for broker_id in usable)
    names = sorted(racks, key=lambda name: (name is not None, name))
    rings = {
        (name, fenced): _Ring(
            [each for each in usable if image.brokers[each].rack == name and memories[each].fenced == fenced]
        )
        for name in _java_order(list(racks))
        for fenced in (True, False)
    }
    for ring in rings.values():
        ring.first = draws.next(len(ring.brokers)) if ring.brokers else 0
    start = draws.next(len(names)) if names else 0
    if not unfenced or factor > len(usable):
        return None
    result, round_start = [], 0
    for number in range(partitions):
        if number - round_start == len(unfenced) > 1:
            draws.shuffle(names)
            for ring in rings.values():
                draws.shuffle(ring.brokers)
            round_start = number
        order = [names[(start + number + step) % len(names)] for step in range(len(names))]
        result.append(_replicas(order, rings, number - round_start, factor))
    return result


def _java_order(names: Sequence[str | None]) -> list[str | None]:
    """The order in which Java's ``HashMap`` lists names that are added in their order."""
    slots = _SLOTS
    while 4 * len(names) > 3 * slots:
        slots *= 2

    def slot(name: str | None) -> int:
        units = [] if name is None else memoryview(name.encode("utf-16-le")).cast("H").tolist()
        code: int = sum(unit * 31**power for power, unit in enumerate(reversed(units))) % 2**32
        return (code ^ (code // 2**16)) % slots

    return sorted(names, key=slot)


def _replicas(
    order: list[str | None], rings: dict[tuple[str | None, bool], _Ring], partition: int, factor: int
) -> tuple[int, ...]:
    """The first is of the first rack that has an unfenced one, the others of the racks in turn: that rack is skipped
    once, and unfenced ones come before fenced ones."""
    replicas: list[int] = []
    leader_rack = None
    for name in order:
        leader = rings[name, False].take(partition)
        if leader is not None:
            replicas, leader_rack = [leader], name
            break
    turn = [name for name in order if name != leader_rack]
    for name in chain(turn, cycle(order)):
        if len(replicas) == factor:
            break
        broker = rings[name, False].take(partition)
        if broker is None:
            broker = rings[name, True].take(partition)
        replicas += [] if broker is None else [broker]
    return tuple(replicas)
