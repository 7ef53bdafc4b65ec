"""The operations that each engine plays in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from kframe.model.tables import Targets

#: The replicas of each partition, by broker ids; None lets the controller place them.
Assignments: TypeAlias = Sequence[Sequence[int]] | None


@dataclass(frozen=True, slots=True)
class BrokersRestart:
    """Restart brokers; see ``WhatIf.restart``."""

    brokers: tuple[int, ...]
    together: bool
    clean: bool | None
    repair_directories: bool


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """Create a topic; ``seed`` seeds the numbers that Kafka draws to place replicas. Counts of -1 are the defaults."""

    name: str
    partitions: int
    replication_factor: int
    assignments: Assignments
    seed: int


@dataclass(frozen=True, slots=True)
class PartitionsCreation:
    """Add partitions to a topic until it has ``count``."""

    name: str
    count: int
    assignments: Assignments
    seed: int


@dataclass(frozen=True, slots=True)
class TopicsDeletion:
    """Delete topics, each named once."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReassignmentRequest:
    """Reassign partitions, each named once, and play the reassignment to its end."""

    targets: Targets


@dataclass(frozen=True, slots=True)
class BrokersFencing:
    """Fence brokers whose processes go on."""

    brokers: tuple[int, ...]
    together: bool


@dataclass(frozen=True, slots=True)
class BrokersUnfencing:
    """Unfence brokers."""

    brokers: tuple[int, ...]
    together: bool


@dataclass(frozen=True, slots=True)
class DirectoriesFailure:
    """Log directories of a broker fail."""

    broker_id: int
    directories: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class FeaturesUpdate:
    """Update feature levels, all or none; ``unsafe`` permits downgrades that lose metadata."""

    levels: Mapping[str, int]
    unsafe: bool


Request: TypeAlias = (
    BrokersRestart
    | TopicCreation
    | PartitionsCreation
    | TopicsDeletion
    | ReassignmentRequest
    | BrokersFencing
    | BrokersUnfencing
    | DirectoriesFailure
    | FeaturesUpdate
)
