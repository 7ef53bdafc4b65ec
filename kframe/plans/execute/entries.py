"""The entries of a journal, each an event in the execution of a plan."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from kframe.model.events import TopicPartition

#: The version of the format, in the first entry. Version 1 has no moves between log directories.
VERSION: Final = 2


class Goal(StrEnum):
    """What an execution works towards."""

    EXECUTE = "execute"
    """Move partitions to their targets, stage after stage."""
    PAUSE = "pause"
    """Start no partition, wait for those in flight, restore throttles, end."""
    ABORT = "abort"
    """Cancel what is in flight, restore throttles, end."""
    ROLLBACK = "rollback"
    """Move started partitions back to their origin, the last stage first."""


class RunResult(StrEnum):
    """How a run of an execution has ended."""

    COMPLETED = "completed"
    PAUSED = "paused"
    ABORTED = "aborted"
    ROLLED_BACK = "rolled back"
    INCOMPLETE = "incomplete"
    """Partitions were refused, or were reassigned by another client."""


class ResourceKind(StrEnum):
    """What a configuration belongs to."""

    TOPIC = "topic"
    BROKER = "broker"


class ConfigKey(Struct, frozen=True, array_like=True, order=True):
    """One configuration of a topic or broker; ``resource`` is the topic's name or the broker id."""

    kind: ResourceKind
    resource: str
    name: str


class ConfigEntry(Struct, frozen=True, array_like=True):
    """The own value of a configuration; null: it has none."""

    key: ConfigKey
    value: str | None


class _Named(Struct, frozen=True, array_like=True):
    """What belongs to a partition."""

    topic: str
    partition: int

    @property
    def name(self) -> TopicPartition:
        """Topic and number."""
        return self.topic, self.partition


class LogMove(Struct, frozen=True, array_like=True):
    """A replica of a broker and its log directory before and after; before is null for a replica that the plan adds."""

    broker_id: int
    origin: str | None
    target: str

    def ends(self, rolls_back: bool) -> tuple[str | None, str]:
        """The directories at the start and at the end of the move; a rollback has none of an added replica."""
        if not rolls_back:
            return self.origin, self.target
        assert self.origin is not None, "the replica leaves its broker"
        return self.target, self.origin


class ExecutedPartition(_Named, frozen=True, array_like=True):
    """A partition of a plan: its replicas before and after, its leader before (-1: none), bytes of a replica, and the
    replicas that are to be in certain log directories."""

    origin: tuple[int, ...]
    target: tuple[int, ...]
    leader: int
    replica_bytes: int | None
    directories: tuple[LogMove, ...] = ()

    def ends(self, rolls_back: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The replicas at the start and at the end of its reassignment."""
        return (self.target, self.origin) if rolls_back else (self.origin, self.target)

    def added(self, rolls_back: bool) -> set[int]:
        """The brokers that it is copied to."""
        start, end = self.ends(rolls_back)
        return set(end) - set(start)

    def directory_moves(self, rolls_back: bool) -> tuple[LogMove, ...]:
        """The moves between log directories. A rollback deletes the replicas that were added."""
        return self.copied_within if rolls_back else self.directories

    @property
    def copied_within(self) -> tuple[LogMove, ...]:
        """The moves that copy a log within its broker. A broker creates added replicas in their directory."""
        return tuple(move for move in self.directories if move.origin is not None)

    def copies(self, rolls_back: bool) -> int:
        """How many logs are copied, between brokers and within one."""
        return len(self.added(rolls_back)) + len(self.copied_within)


class AssignmentRequest(_Named, frozen=True, array_like=True):
    """A requested assignment; null cancels the reassignment of the partition."""

    replicas: tuple[int, ...] | None


class DirectoryRequest(_Named, frozen=True, array_like=True):
    """Log directories that replicas are to move to, by broker id. That of the present log cancels a move."""

    paths: tuple[tuple[int, str], ...]


class Refusal(_Named, frozen=True, array_like=True):
    """A refused change: the name of a topic, or of a broker with partition -1, and the name of Kafka's error.

    ``directory`` is that of a refused move between log directories, with its broker.
    """

    error: str
    directory: str = ""

    @property
    def text(self) -> str:
        """The error and the directory."""
        return f"{self.error} ({self.directory})" if self.directory else self.error


class ExecutionLimits(Struct, frozen=True):
    """The limits of an execution."""

    throttle: int | None
    """Bytes per second of replication per broker; null sets no throttle."""
    concurrency: int
    """The most partitions in flight."""
    max_under_replicated: int
    """The most new under-replicated partitions that the execution tolerates."""


class UnhealthyPartitions(Struct, frozen=True):
    """Partitions that are not healthy."""

    offline: tuple[TopicPartition, ...]
    under_replicated: tuple[TopicPartition, ...]


# The actions that change the cluster.


class ChangeConfigs(Struct, frozen=True, tag="configs"):
    """Set configurations to these values. ``restores``: they are the values that operators had set."""

    changes: tuple[ConfigEntry, ...]
    restores: bool


class ChangeAssignments(Struct, frozen=True, tag="assignments"):
    """Start, redirect or cancel reassignments."""

    assignments: tuple[AssignmentRequest, ...]


class ChangeDirectories(Struct, frozen=True, tag="directories"):
    """Start, redirect or cancel moves between log directories."""

    assignments: tuple[DirectoryRequest, ...]


class ElectPreferred(Struct, frozen=True, tag="elect"):
    """Elect the preferred leaders of partitions."""

    partitions: tuple[TopicPartition, ...]


Action: TypeAlias = ChangeConfigs | ChangeAssignments | ChangeDirectories | ElectPreferred


# The entries.


class ExecutionStarted(Struct, frozen=True, tag="started"):
    """The first entry: the plan, the cluster, the limits, and the unhealthy partitions at the start."""

    version: int
    plan: str
    plan_digest: str
    cluster_id: str | None
    url: str
    limits: ExecutionLimits
    stages: tuple[tuple[ExecutedPartition, ...], ...]
    unhealthy: UnhealthyPartitions


class GoalChanged(Struct, frozen=True, tag="goal"):
    """The goal from here on. ``unhealthy`` and ``limits`` replace what was valid until here; null leaves it."""

    goal: Goal
    reason: str
    unhealthy: UnhealthyPartitions | None = None
    limits: ExecutionLimits | None = None


class OriginalsSaved(Struct, frozen=True, tag="originals"):
    """The values of configurations before the execution changes them."""

    configs: tuple[ConfigEntry, ...]


class ActionIntended(Struct, frozen=True, tag="intent"):
    """An action that is about to be performed, and may have been."""

    action: Action


class ActionDone(Struct, frozen=True, tag="done"):
    """An action that was performed, and what the cluster has refused of it."""

    action: Action
    refusals: tuple[Refusal, ...]


class PartitionsSettled(Struct, frozen=True, tag="settled"):
    """Partitions that have their assignment by the goal."""

    partitions: tuple[TopicPartition, ...]


class RunEnded(Struct, frozen=True, tag="ended"):
    """A run has ended. Originals that could not be restored are still those of the journal."""

    result: RunResult
    reason: str


Entry: TypeAlias = (
    ExecutionStarted | GoalChanged | OriginalsSaved | ActionIntended | ActionDone | PartitionsSettled | RunEnded
)
