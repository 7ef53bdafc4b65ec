"""The checks of a plan, how bad their findings are, and the findings of one check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.arrays import Bool, Int32


class Severity(StrEnum):
    """How bad a finding is: an error keeps the plan, or that partition, from being carried out at all."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


_INVALID: Final = ErrorCode.INVALID_REPLICA_ASSIGNMENT
_UNKNOWN: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Check(StrEnum):
    """What can be found. The values are the names in the output."""

    severity: Severity
    text: str
    """The detail of each finding; empty where details differ."""
    error: ErrorCode | None
    """The error of the controller, or of Kafka's own tool. Neither refuses the others."""
    folded: str
    """What the partitions or topics have in common, where their details differ."""

    def __new__(
        cls, name: str, severity: Severity, text: str = "", error: ErrorCode | None = None, folded: str = ""
    ) -> Check:
        """A check whose value is its name."""
        check = str.__new__(cls, name)
        check._value_ = name
        check.severity, check.text, check.error, check.folded = severity, text, error, folded
        return check

    EMPTY_PLAN = "empty-plan", Severity.ERROR, "no partition in it"
    TOPIC_NAME = "topic-name", Severity.ERROR, "not a topic name that Kafka allows", _UNKNOWN
    PARTITION_NUMBER = "partition-number", Severity.ERROR, "a negative partition number", _UNKNOWN
    DUPLICATE_PARTITION = "duplicate-partition", Severity.ERROR, "appears earlier in the plan"
    EMPTY_REPLICAS = "empty-replicas", Severity.ERROR, "an empty replica list", _INVALID
    DUPLICATE_BROKER = "duplicate-broker", Severity.ERROR, "", _INVALID
    BROKER_ID = "broker-id", Severity.ERROR, "a negative broker id", _INVALID
    LOG_DIRS = "log-dirs", Severity.ERROR, "another number of log directories than of replicas"
    OBSERVERS = "observers", Severity.ERROR, "observers that are not the last replicas, or are all of them"
    UNKNOWN_TOPIC = "unknown-topic", Severity.ERROR, "no such topic in the snapshot", _UNKNOWN
    TOPIC_BEING_DELETED = "topic-being-deleted", Severity.ERROR, "the topic is being deleted", _UNKNOWN
    UNKNOWN_PARTITION = "unknown-partition", Severity.ERROR, "", _UNKNOWN
    UNKNOWN_BROKER = "unknown-broker", Severity.ERROR, "", _INVALID
    DEAD_BROKER = "dead-broker", Severity.ERROR, "", _INVALID
    DEAD_BROKER_STAYS = "dead-broker-stays", Severity.WARNING
    CORDONED_BROKER = "cordoned-broker", Severity.ERROR, "", _INVALID
    FENCED_BROKER = "fenced-broker", Severity.WARNING
    BROKER_SHUTTING_DOWN = "broker-shutting-down", Severity.WARNING
    NO_LEADER = "no-leader", Severity.WARNING, "no live leader: the reassignment cannot complete before there is one"
    ALREADY_MOVING = "already-moving", Severity.WARNING, "a reassignment is in progress; the plan replaces it"
    CANNOT_COMPLETE = (
        "cannot-complete",
        Severity.WARNING,
        "a stored adding or removing replica contradicts this target: cancel first",
    )
    MIN_ISR = "min-isr", Severity.WARNING
    FEWER_OBSERVERS = "fewer-observers", Severity.WARNING
    FEWER_REPLICAS = "fewer-replicas", Severity.WARNING
    RACKS = "racks", Severity.WARNING
    PLACEMENT_CONSTRAINTS = "placement-constraints", Severity.WARNING
    UNEVEN_REPLICATION = "uneven-replication", Severity.WARNING, "its partitions get different replication factors"
    MORE_REPLICAS = "more-replicas", Severity.INFO, "", None, "the replication factor becomes greater"
    CORDONED_DIRECTORIES = (
        "cordoned-directories",
        Severity.INFO,
        "",
        None,
        "some log directories of a broker are cordoned",
    )
    PARTIAL_TOPIC = "partial-topic", Severity.INFO, "", None, "the plan has some of their partitions"
    LOG_DIRECTORY = "log-directory", Severity.INFO, "a replica goes to a certain log directory of its broker"
    ORDER_ONLY = "order-only", Severity.INFO, "the same replicas in another order: only the preferred leader may change"
    NO_OP = "no-op", Severity.INFO, "the partition already has these replicas"


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """The findings of one check. They are positions in the plan (ascending), or topics by their number in it."""

    check: Check
    positions: Int32
    of_topics: bool = False
    lowered: Severity | None = None
    """The severity instead of that of the check, where the release of the cluster accepts what later ones refuse."""

    @staticmethod
    def at(check: Check, mask: Bool) -> Findings:
        """The finding at each partition of the plan that ``mask`` (k,) marks."""
        return Findings(check, np.flatnonzero(mask).astype(np.int32))

    @property
    def severity(self) -> Severity:
        """How bad the findings are."""
        return self.lowered or self.check.severity

    @property
    def is_folded(self) -> bool:
        """Whether a plan is expected to have the findings, so that one row is enough for several."""
        return len(self) > 1 and self.severity is Severity.INFO

    def __len__(self) -> int:
        return max(len(self.positions), self.check is Check.EMPTY_PLAN)
