"""What is visible from outside of a controller: of one of its terms, and of its process."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from kframe.model.events import Event, TopicPartition
from kframe_simulator.simulation.reassignments import SentReplicas

#: One term: controller id, incarnation of its process, controller epoch.
Term = tuple[int, int, int]
#: A stored leadership state: leader, leader epoch, ISR, partition epoch.
Leadership = tuple[int, int, tuple[int, ...], int]
#: An assignment: replicas, adding replicas, removing replicas.
Assignment = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class Epochs(NamedTuple):
    """Leader epoch and partition epoch of a partition."""

    leader_epoch: int
    partition_epoch: int


@dataclass(slots=True)
class TermFacts:
    """The facts of one term."""

    leaving: dict[int, int] = field(default_factory=dict)
    """Broker epoch by broker of the ControlledShutdown requests."""
    granted: dict[int, int] = field(default_factory=dict)
    """Broker epoch by broker of the last ControlledShutdown requests that were granted."""
    announced: dict[TopicPartition, Epochs] = field(default_factory=dict)
    """The epochs of partitions in the last UpdateMetadata."""
    sent_assignments: dict[TopicPartition, tuple[Assignment, Event | None]] = field(default_factory=dict)
    """The assignments of partitions in the last LeaderAndIsr, and the events that first sent them."""
    sent_replicas: SentReplicas = field(default_factory=SentReplicas)
    deleting: set[str] = field(default_factory=set)
    """Topics that were announced as being deleted."""
    unreadable: dict[TopicPartition, int] = field(default_factory=dict)
    """The leader epochs, at the start of the term, of existing partitions that were unreadable then."""
    unreadable_topics: set[str] = field(default_factory=set)
    """Existing topics that were unreadable at the start of the term."""
    sent_deletions: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    """By replica (partition, broker) with a deleting StopReplica: the number of resumptions before the last one."""
    storage_errors: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    """By replica (partition, broker) whose broker has last responded KAFKA_STORAGE_ERROR: its broker epoch."""
    deleted_states: defaultdict[TopicPartition, set[Leadership]] = field(default_factory=lambda: defaultdict(set))
    """All states of topics that a later controller has deleted: this one may still know them."""


@dataclass(slots=True)
class ProcessFacts:
    """The facts of one controller process."""

    failures: list[float] = field(default_factory=list)
    """When, by its own clock, operations have failed since it was last controller after an event."""
    failed_before: int = 0
    expiries_handled: int = 0
    """The number of session expiries that it has handled."""
    last_event: Event | None = None
    marks_before: set[str] = field(default_factory=set)
    """Topics marked for deletion at the start of its current event."""
    last_read: dict[TopicPartition, int] = field(default_factory=dict)
    """The state versions that it has last read or written."""
