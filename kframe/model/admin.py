"""Administrative requests as plain records. They concern topics, partitions, settings and feature levels."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from msgspec import Struct, field

from kframe.model.config import ControllerConfig


class NewTopic(Struct, frozen=True):
    """A topic to create. It has replica lists by partition, or counts (-1: the configured default)."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] | None = None
    config: Mapping[str, str] = field(default_factory=dict)

    def counts(self, config: ControllerConfig) -> tuple[int, int]:
        """Number of partitions and replication factor, with defaults applied."""
        partitions = config["num.partitions"] if self.partitions == -1 else self.partitions
        factor = config["default.replication.factor"] if self.replication_factor == -1 else self.replication_factor
        return partitions, factor


class NewPartitions(Struct, frozen=True):
    """A request to grow a topic to ``count`` partitions. ``assignments`` has the replicas of the new partitions."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


class ConfigOperation(IntEnum):
    """How a setting changes (IncrementalAlterConfigs)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(Struct, frozen=True):
    """Changes of the settings of a topic. ``topic`` None means all brokers."""

    topic: str | None
    operations: tuple[tuple[ConfigOperation, str, str | None], ...]


class FeatureUpdate(Struct, frozen=True):
    """A feature level to finalise. ``downgrade`` allows a lower one."""

    name: str
    level: int
    downgrade: bool = False
