"""Notes about the controller event in progress."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe.model.cluster import ClusterState
from kframe.model.events import TopicPartition
from kframe.model.ids import ReplicaFlag
from kframe.ports.store_requests import StoreRequest
from kframe.runtime.event_logs import STATE_CHANGE_LOGGER
from kframe_simulator.broker.messages import LeaderAndIsr
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.controllers import ControllerProcess


def lost_dirs_known(cluster: ClusterState, row: int | None) -> set[int]:
    """Replicas (broker ids) of a row that a controller knows to be in failed log directories."""
    if row is None:
        return set()
    return set(cluster.brokers.ids_of(cluster.partitions.flagged_replicas(row, ReplicaFlag.OFFLINE_DIR)))


@dataclass(slots=True)
class Notes:
    """The effects of a controller event so far."""

    written: list[TopicPartition] = field(default_factory=list)
    topics: dict[str, Mapping[int, Row]] = field(default_factory=dict)
    """Written topics, before the event."""
    deposed: list[tuple[TopicPartition, int]] = field(default_factory=list)
    """Partitions with a new leader, and the previous leader."""
    notified: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """Partitions of LeaderAndIsr requests, and the receiving broker."""
    requests: Counter[type[StoreRequest[Any]]] = field(default_factory=Counter)
    """Calls of the store."""
    overwritten: set[TopicPartition] = field(default_factory=set)
    """Partitions whose states other clients have written during the event."""
    first_sent_as_new: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """The subset of ``notified`` whose first request marks the replica as new."""
    last_epochs: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    """By entry of ``notified``: the last leader epoch."""
    registered: Mapping[int, int] = field(default_factory=dict)
    """Broker epoch by broker of the channels before the event."""
    sent_live_brokers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The live brokers in the last UpdateMetadata of each broker."""
    created: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """Partitions that got their first state: its ISR."""
    elections: set[TopicPartition] = field(default_factory=set)
    """Partitions of the preferred election that the event has read."""
    noticed: set[TopicPartition] = field(default_factory=set)
    """Partitions of the ISR change notifications that the event has read."""
    reassignments: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """The content of ``/admin/reassign_partitions`` before the event first wrote it."""
    unread: set[str] = field(default_factory=set)
    """Topics whose record was unreadable when the event read it."""
    knowledge: bytes = b""
    """The controller's memory before a broker's response. Empty for other events."""
    failures: int = 0
    """Failed operations and calls before the event."""

    def leader_and_isr(self, broker_id: int, message: LeaderAndIsr) -> None:
        """A LeaderAndIsr request was queued for a broker."""
        for key, state in message.partitions.items():
            entry = key, broker_id
            if state.is_new and entry not in self.notified:
                self.first_sent_as_new.add(entry)
            self.notified.add(entry)
            self.last_epochs[entry] = max(state.leader_epoch, self.last_epochs.get(entry, state.leader_epoch))

    def unaware(self, registered: Collection[int]) -> tuple[int, ...]:
        """Brokers that were not sent an UpdateMetadata after the live brokers changed."""
        if self.registered.keys() == set(registered):
            return ()
        now = tuple(sorted(registered))
        return tuple(key for key in now if self.sent_live_brokers.get(key) != now)

    def not_sent_as_new(self, rows: Mapping[TopicPartition, Row]) -> tuple[tuple[TopicPartition, int], ...]:
        """Replicas (partition, broker) that the event has created, or added to ``rows``, and whose first request does
        not mark them as new. A broker with a failed log directory then takes the replica offline, and refuses later
        requests for it. Created are the members of a first ISR. As in Kafka, a replica that is not live at the creation
        of its partition is never new (3.9 ``ZkReplicaStateMachine``, OnlineReplica)."""
        added = {
            (previous.key, broker)
            for name, before in self.topics.items()
            for number, previous in before.items()
            if (name, number) in rows
            for broker in set(rows[name, number].adding) - set(previous.replicas)
        }
        new = {entry for entry in self.notified if entry[1] in self.created.get(entry[0], ()) or entry in added}
        return tuple(sorted(new - self.first_sent_as_new))


def digest(cluster: ClusterState) -> bytes:
    """The known partitions, topics under deletion and registrations, as comparable bytes."""
    p, topics = cluster.partitions, cluster.topics
    columns: tuple[NDArray[Any], ...] = (
        p.topic, p.partition_epoch, p.state, p.leader, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr,
        p.replica_flags, p.replica_state, topics.deleting, topics.deletion_started, topics.deletion_halted,
        np.array(topics.known_count), cluster.brokers.registered,
    )  # fmt: skip
    return b"".join([column.tobytes() for column in columns])


def failures_of(process: ControllerProcess) -> int:
    """The number of failed operations and failed store calls of a process."""
    return process.loop.controller.failures + process.store.failed_calls


class ErrorCatcher(logging.Handler):
    """Keeps the last logged error, which explains a failed event, and all warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last: str | None = None
        self.warnings: list[str] = []
        """Messages of level warning and above in the current event."""

    def emit(self, record: logging.LogRecord) -> None:
        """Save a record."""
        if record.name not in ("kframe.runtime", "kframe.controller", STATE_CHANGE_LOGGER):
            return
        self.warnings.append(record.getMessage())
        if record.levelno < logging.ERROR or record.name == STATE_CHANGE_LOGGER:
            return
        error = record.exc_info[1] if record.exc_info else None
        self.last = record.getMessage() if error is None else f"{type(error).__name__}: {error}"
