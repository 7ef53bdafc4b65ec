"""Options drawn from a seed. They are cluster, settings and fault classes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Final

#: The inter-broker protocols to draw from: the present one, the oldest with topic ids in AlterPartition, and protocols
#: whose leaders write ISRs.
PROTOCOLS: Final = ("3.9", "3.9", "3.9", "3.4", "2.8", "2.7", "2.6")


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """A topic that exists from the start: replica lists by partition, and its settings."""

    name: str
    assignments: tuple[tuple[int, ...], ...]
    unclean: bool
    min_insync: int


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """Settings of a producer."""

    acks: int
    """The acks setting: -1 (all), 1 or 0."""
    idempotent: bool = False
    """Whether records have sequences, so that a broker detects duplicates."""
    transactional: bool = False
    """Whether each batch of writes is one transaction."""


#: The kinds of producers. A simulation has a random subset.
PRODUCERS: Final = (
    ProducerOptions(-1, idempotent=True),
    ProducerOptions(-1, idempotent=True, transactional=True),
    ProducerOptions(-1),
    ProducerOptions(1),
    ProducerOptions(0),
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a simulation. Times are milliseconds."""

    seed: int
    brokers: tuple[int, ...]
    racks: int
    controllers: int
    topics: tuple[TopicOptions, ...]
    protocol: str
    strict: bool
    """kframe.alter.partition.strict."""
    rebalance: bool
    """auto.leader.rebalance.enable."""
    session_timeout_ms: float
    request_timeout_ms: float
    delay_ms: tuple[float, float]
    """The least and the most delay of a message."""
    faults: tuple[str, ...]
    """The fault classes of the simulation."""
    actions: int
    """The number of faults and operations."""
    gap_ms: float
    """The mean time between two actions."""
    producers: tuple[ProducerOptions, ...] = ()
    quiescence: bool = False
    """Whether invariants are also checked at quiescence, before stopped processes restart."""
    hold_last: bool = False
    """kframe.last.replica.hold."""
    selector: str | None = None
    """A plugin's leader selector for all elections."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for people and for files."""
        return asdict(self)

    @property
    def config(self) -> dict[str, object]:
        """The controllers' settings, by Kafka's keys."""
        return {
            "inter.broker.protocol.version": self.protocol,
            "kframe.alter.partition.strict": self.strict,
            "kframe.failover.check.epochs": True,
            "kframe.reassignment.strict": True,
            "kframe.last.replica.hold": self.hold_last,
            "auto.leader.rebalance.enable": self.rebalance,
            "leader.imbalance.check.interval.seconds": 20,
        }


def draw_options(seed: int, fault_classes: tuple[str, ...]) -> Options:
    """The options of a seed. Half of the simulations use only half of the fault classes, so that the others occur
    alone."""
    random = Random(f"options/{seed}")
    brokers = tuple(range(1, random.randint(3, 5) + 1))
    faults = fault_classes
    if random.random() < 0.5:
        faults = tuple(sorted(random.sample(fault_classes, len(fault_classes) // 2)))
    slow = random.random() < 0.2
    return Options(
        seed=seed,
        brokers=brokers,
        racks=random.choice((0, 2, 3)),
        controllers=random.choice((1, 2, 2, 3)),
        topics=tuple(_draw_topic(random, f"t{number}", brokers) for number in range(random.randint(1, 3))),
        protocol=random.choice(PROTOCOLS),
        strict=random.random() < 0.3,
        rebalance=random.random() < 0.5,
        session_timeout_ms=random.choice((3_000.0, 6_000.0)),
        request_timeout_ms=random.choice((1_500.0, 4_000.0)),
        delay_ms=(1.0, 80.0) if slow else (0.3, 4.0),
        faults=faults,
        actions=random.randint(30, 50),
        gap_ms=random.choice((150.0, 400.0, 1_200.0)),
        producers=tuple(random.sample(PRODUCERS, random.randint(2, 4))),
        quiescence=random.random() < 0.4,
        hold_last=random.random() < 0.15,
    )


def _draw_topic(random: Random, name: str, brokers: tuple[int, ...]) -> TopicOptions:
    factor = min(random.choice((1, 2, 3, 3, 3)), len(brokers))
    lists = tuple(tuple(random.sample(brokers, factor)) for _ in range(random.randint(1, 3)))
    return TopicOptions(name, lists, random.random() < 0.2, random.randint(1, factor))
