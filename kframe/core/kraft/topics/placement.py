"""Placement of the replicas of new partitions over racks (Kafka 4.4 ``StripedReplicaPlacer``).

Draws come in Kafka's order, so that ``JavaRandom`` with Kafka's seed gives Kafka's placement.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.random_source import RandomSource, shuffle
from kframe.errors import ErrorCode


def distribute_replicas(context: KraftContext, partitions: int, factor: int) -> list[tuple[int, ...]]:
    """Broker ids of the replicas of ``partitions`` new partitions.

    Raises RequestRefused if there are fewer usable brokers than ``factor``, or none of them is unfenced.
    """
    racks = _Racks(context)
    if factor <= 0:
        raise _refusal(f"the replication factor is {factor}, but must be positive.")
    if not racks.unfenced_count:
        raise _refusal("all brokers are currently fenced, or have all their log directories cordoned.")
    if factor > racks.broker_count:
        raise _refusal(f"the replication factor is {factor}, but only {racks.broker_count} broker(s) are usable.")
    return [racks.next_replicas(factor) for _ in range(partitions)]


def _refusal(problem: str) -> RequestRefused:
    return RequestRefused(ErrorCode.INVALID_REPLICATION_FACTOR, f"Unable to replicate the partition: {problem}")


@dataclass(slots=True)
class _BrokerRing:
    """Brokers of a rack in round-robin order. Each partition begins one broker further."""

    brokers: list[int] = field(default_factory=list)
    index: int = 0
    offset: int = 0
    epoch: int = 0

    def begin(self, random: RandomSource) -> None:
        if self.brokers:
            self.brokers.sort()
            self.offset = random.next_int(len(self.brokers))

    def next(self, epoch: int) -> int | None:
        """The next broker for partition number ``epoch``; None if it has all of them."""
        if not self.brokers:
            return None
        if self.epoch != epoch:
            self.epoch, self.index = epoch, 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.index >= len(self.brokers):
            return None
        broker = self.brokers[(self.index + self.offset) % len(self.brokers)]
        self.index += 1
        return broker


@dataclass(slots=True)
class _Rack:
    fenced: _BrokerRing = field(default_factory=_BrokerRing)
    unfenced: _BrokerRing = field(default_factory=_BrokerRing)

    def next(self, epoch: int) -> int | None:
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class _Racks:
    """The usable brokers by rack. Brokers without a rack are in the rack None, which sorts first."""

    def __init__(self, context: KraftContext) -> None:
        self._random = context.random
        racks: dict[str | None, _Rack] = {}
        self.broker_count = self.unfenced_count = 0
        registrations = context.metadata.brokers.registrations
        for broker_id, state in sorted(context.heartbeats.brokers.items()):
            registration = registrations.get(broker_id)
            if registration is None or state.controlled_shutdown_offset >= 0:
                continue
            if not registration.has_uncordoned_directory:
                continue
            rack = racks.setdefault(registration.rack, _Rack())
            (rack.fenced if state.fenced else rack.unfenced).brokers.append(broker_id)
            self.broker_count += 1
            self.unfenced_count += not state.fenced
        self._racks = {name: racks[name] for name in _in_hash_order(list(racks))}
        for rack in self._racks.values():
            rack.fenced.begin(self._random)
            rack.unfenced.begin(self._random)
        self._names = sorted(racks, key=lambda name: (name is not None, name or ""))
        self._offset = self._random.next_int(len(self._names)) if self._names else 0
        self._epoch = 0

    def next_replicas(self, factor: int) -> tuple[int, ...]:
        """The replicas of the next partition."""
        if self._epoch == self.unfenced_count > 1:
            self._shuffle()
        if self._offset == len(self._names):
            self._offset = 0
        leader_rack, leader = self._leader()
        brokers, position = [leader], self._offset
        skips_leader_rack = True
        while len(brokers) < factor:
            if skips_leader_rack and position == leader_rack:
                skips_leader_rack = False
            else:
                broker = self._racks[self._names[position]].next(self._epoch)
                if broker is not None:
                    brokers.append(broker)
            position = (position + 1) % len(self._names)
        self._epoch += 1
        self._offset += 1
        return tuple(brokers)

    def _leader(self) -> tuple[int, int]:
        """The rack, and the first unfenced broker from the starting rack on."""
        position = self._offset
        while (leader := self._racks[self._names[position]].unfenced.next(self._epoch)) is None:
            position = (position + 1) % len(self._names)
        return position, leader

    def _shuffle(self) -> None:
        shuffle(self._names, self._random)
        for rack in self._racks.values():
            shuffle(rack.fenced.brokers, self._random)
            shuffle(rack.unfenced.brokers, self._random)
        self._epoch = 0


def _in_hash_order(names: list[str | None]) -> list[str | None]:
    """The names in the order of Java's ``HashMap``, from which Kafka draws."""
    size = 16
    while len(names) > size * 3 // 4:
        size *= 2
    return sorted(names, key=lambda name: _spread_hash(name) & (size - 1))


def _spread_hash(name: str | None) -> int:
    """Java's hash of an optional string, as ``HashMap`` spreads it."""
    code = 0
    encoded = (name or "").encode("utf-16-be")
    for index in range(0, len(encoded), 2):
        code = (31 * code + int.from_bytes(encoded[index : index + 2], "big")) % 2**32
    return code ^ code >> 16
