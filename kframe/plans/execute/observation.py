"""The observed state of the partitions of a plan, and the health of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from kframe.model.events import TopicPartition
from kframe.plans.execute.entries import ExecutedPartition, UnhealthyPartitions
from kframe.ports.administration import LogDirectory
from kframe.snapshot.metadata import ClusterDescription, DescribedPartition, PartitionReassignment


class Position(Enum):
    """Where a partition is between the start and the end of its reassignment."""

    AT_START = auto()
    AT_END = auto()
    REORDERED = auto()
    """It has the replicas of the start or the end in another order, as after a cancellation."""
    TO_START = auto()
    TO_END = auto()
    ELSEWHERE = auto()
    """It has, or moves to, other replicas. Metadata that lags behind the controller also looks like that."""
    DELETED = auto()
    UNKNOWN = auto()
    """Its broker does not list its log directories."""


class LogPaths(NamedTuple):
    """The log directory of a replica's log, and that of its future log with the bytes that it has."""

    current: str | None
    future: str | None
    future_bytes: int


@dataclass(frozen=True, slots=True)
class Observation:
    """Live brokers, partitions by name, and reassignments in progress."""

    live: frozenset[int]
    partitions: Mapping[TopicPartition, DescribedPartition]
    moving: Mapping[TopicPartition, PartitionReassignment]
    logs: Mapping[int, Mapping[TopicPartition, LogPaths]] = field(default_factory=dict)
    """By broker; without brokers that do not list their log directories."""

    @staticmethod
    def of(
        description: ClusterDescription, directories: Mapping[int, Iterable[LogDirectory]] | None = None
    ) -> Observation:
        """The part of a description, and of the listed log directories of brokers, that an execution needs."""
        partitions = {(partition.topic, partition.partition): partition for partition in description.partitions}
        live = frozenset(description.brokers) - frozenset(description.controllers)
        logs = {broker_id: log_paths(listed) for broker_id, listed in (directories or {}).items()}
        return Observation(live, partitions, description.reassignments or {}, logs)

    def position(self, partition: ExecutedPartition, start: tuple[int, ...], end: tuple[int, ...]) -> Position:
        """Where a partition is."""
        described = self.partitions.get(partition.name)
        if described is None:
            return Position.DELETED
        moving = self.moving.get(partition.name)
        if moving is not None:
            goal = tuple(replica for replica in moving.replicas if replica not in moving.removing)
            if goal == end or (set(goal) == set(end) != set(start)):
                return Position.TO_END
            return Position.TO_START if set(goal) == set(start) else Position.ELSEWHERE
        replicas = tuple(described.replicas)
        if replicas == end:
            return Position.AT_END
        if replicas == start:
            return Position.AT_START
        return Position.REORDERED if set(replicas) in (set(start), set(end)) else Position.ELSEWHERE

    def unhealthy(self, moved: Collection[TopicPartition]) -> UnhealthyPartitions:
        """Offline partitions, and under-replicated ones except the ``moved`` and other moving ones."""
        offline, under_replicated = [], []
        for name, described in self.partitions.items():
            if described.leader < 0:
                offline.append(name)
            elif len(described.isr) < len(described.replicas) and name not in moved and name not in self.moving:
                under_replicated.append(name)
        return UnhealthyPartitions(tuple(sorted(offline)), tuple(sorted(under_replicated)))


def log_paths(listed: Iterable[LogDirectory]) -> dict[TopicPartition, LogPaths]:
    """The log directories of the replicas of a broker."""
    paths: dict[TopicPartition, LogPaths] = {}
    for directory in listed:
        for log in directory.logs:
            name = log.topic, log.partition
            known = paths.get(name, LogPaths(None, None, 0))
            paths[name] = (
                LogPaths(known.current, directory.path, log.bytes)
                if log.is_future
                else known._replace(current=directory.path)
            )
    return paths
