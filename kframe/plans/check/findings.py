"""The checks of a plan, how bad their findings are, and the findings of one check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kframe.model.arrays import Int32


class Severity(StrEnum):
    """How bad a finding is: an error keeps the plan, or that partition, from being carried out at all."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Check(StrEnum):
    """What can be found. The values are the names in the output."""

    EMPTY_PLAN = "empty-plan"
    TOPIC_NAME = "topic-name"
    PARTITION_NUMBER = "partition-number"
    DUPLICATE_PARTITION = "duplicate-partition"
    EMPTY_REPLICAS = "empty-replicas"
    DUPLICATE_BROKER = "duplicate-broker"
    BROKER_ID = "broker-id"
    LOG_DIRS = "log-dirs"
    OBSERVERS = "observers"
    UNKNOWN_TOPIC = "unknown-topic"
    TOPIC_BEING_DELETED = "topic-being-deleted"
    UNKNOWN_PARTITION = "unknown-partition"
    UNKNOWN_BROKER = "unknown-broker"
    DEAD_BROKER = "dead-broker"
    DEAD_BROKER_STAYS = "dead-broker-stays"
    CORDONED_BROKER = "cordoned-broker"
    FENCED_BROKER = "fenced-broker"
    BROKER_SHUTTING_DOWN = "broker-shutting-down"
    NO_LEADER = "no-leader"
    ALREADY_MOVING = "already-moving"
    CANNOT_COMPLETE = "cannot-complete"
    MIN_ISR = "min-isr"
    FEWER_OBSERVERS = "fewer-observers"
    FEWER_REPLICAS = "fewer-replicas"
    RACKS = "racks"
    UNEVEN_REPLICATION = "uneven-replication"
    MORE_REPLICAS = "more-replicas"
    CORDONED_DIRECTORIES = "cordoned-directories"
    PARTIAL_TOPIC = "partial-topic"
    ORDER_ONLY = "order-only"
    NO_OP = "no-op"


_WARNINGS: Final = frozenset(
    {
        Check.DEAD_BROKER_STAYS,
        Check.NO_LEADER,
        Check.ALREADY_MOVING,
        Check.FEWER_REPLICAS,
        Check.RACKS,
        Check.UNEVEN_REPLICATION,
        Check.FENCED_BROKER,
        Check.BROKER_SHUTTING_DOWN,
        Check.CANNOT_COMPLETE,
        Check.MIN_ISR,
        Check.FEWER_OBSERVERS,
    }
)
_INFOS: Final = {Check.MORE_REPLICAS, Check.CORDONED_DIRECTORIES, Check.PARTIAL_TOPIC, Check.ORDER_ONLY, Check.NO_OP}
SEVERITY: Final = {
    check: Severity.WARNING if check in _WARNINGS else Severity.INFO if check in _INFOS else Severity.ERROR
    for check in Check
}


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """The findings of one check. They are positions in the plan (ascending), or topics by their number in it."""

    check: Check
    positions: Int32
    of_topics: bool = False
    lowered: Severity | None = None
    """The severity instead of that of the check, where the release of the cluster accepts what later ones refuse."""

    def __len__(self) -> int:
        return max(len(self.positions), self.check is Check.EMPTY_PLAN)
