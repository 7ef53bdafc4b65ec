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
from kframe.runtime.event_logs import STATE_CHANGE_LOGGER
from kframe_simulator.broker.messages import LeaderAndIsr
from kframe_simulator.simulation.control_requests import Row
from kframe_simulator.simulation.controllers import ControllerProcess


def lost_dirs_known(cluster: ClusterState, row: int | None) -> set[int]:
    """Replicas (broker ids) of a row that a controller knows to be on dead log directories."""
    if row is None:
        return set()
    return set(cluster.brokers.ids_of(cluster.partitions.flagged_replicas(row, ReplicaFlag.OFFLINE_DIR)))


@dataclass(slots=True)
class Notes:
    """What an event of a controller has done so far."""

    written: list[TopicPartition] = field(default_factory=list)
    topics: dict[str, Mapping[int, Row]] = field(default_factory=dict)
    """Topics that were written, as they were before."""
    deposed: list[tuple[TopicPartition, int]] = field(default_factory=list)
    """Partitions that got another leader, and who led them before."""
    told: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """Partitions of LeaderAndIsr requests, and whom they are for."""
    calls: Counter[str] = field(default_factory=Counter)
    """Calls of the store."""
    called_new: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """Those of them that say that the replica is new."""
    first_told: dict[tuple[TopicPartition, int], tuple[int, bool]] = field(default_factory=dict)
    """By them the last leader epoch, and whether the first request of that calls the replica new."""
    registered: Mapping[int, int] = field(default_factory=dict)
    """Broker epoch by broker of the channels that there were before it."""
    live_told: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The live brokers that each broker was told last."""
    created: set[TopicPartition] = field(default_factory=set)
    """Partitions that got their first state."""
    elections: set[TopicPartition] = field(default_factory=set)
    """Partitions for which an operator has left a preferred election, as it has read."""
    noticed: set[TopicPartition] = field(default_factory=set)
    """Partitions whose ISRs leaders have stored, as it has read."""
    reassignments: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """What operators had left to be reassigned before it first wrote that."""
    knowledge: bytes = b""
    """What the controller knew before a broker's answer; empty for other events."""
    failures: int = 0
    """Failed operations and calls before it."""

    def leader_and_isr(self, broker_id: int, message: LeaderAndIsr) -> None:
        """A LeaderAndIsr stands in the queue of a broker."""
        self.told.update((key, broker_id) for key in message.partitions)
        self.called_new.update((key, broker_id) for key, state in message.partitions.items() if state.is_new)
        for key, state in message.partitions.items():
            known, _ = self.first_told.get((key, broker_id), (-1, False))
            if state.leader_epoch > known:
                self.first_told[key, broker_id] = state.leader_epoch, state.is_new

    def unaware(self, registered: Collection[int]) -> tuple[int, ...]:
        """Brokers that were not told who is registered now, where others were before."""
        if self.registered.keys() == set(registered):
            return ()
        now = tuple(sorted(registered))
        return tuple(key for key in now if self.live_told.get(key) != now)

    def not_called_new(self, rows: Mapping[TopicPartition, Row]) -> tuple[tuple[TopicPartition, int], ...]:
        """Replicas (partition, broker) that the event has made, or added to ``rows``, and that were not called new. One
        that was added has to be with the last leader epoch: what comes later under that is passed over."""
        added = {
            (was.key, broker)
            for name, before in self.topics.items()
            for number, was in before.items()
            if (name, number) in rows
            for broker in set(rows[name, number].adding) - set(was.replicas)
        }
        made = {
            notified_broker for notified_broker in self.told if notified_broker[0] in self.created
        } - self.called_new
        return tuple(
            sorted(
                made
                | {notified_broker for notified_broker in added & self.told if not self.first_told[notified_broker][1]}
            )
        )


def digest(cluster: ClusterState) -> bytes:
    """All that is known of partitions, topics under deletion and registrations, as bytes that can be compared."""
    p, topics = cluster.partitions, cluster.topics
    columns: tuple[NDArray[Any], ...] = (
        p.topic, p.partition_epoch, p.state, p.leader, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr,
        p.replica_flags, p.replica_state, topics.deleting, topics.deletion_started, topics.deletion_halted,
        np.array(topics.known_count), cluster.brokers.registered,
    )  # fmt: skip
    return b"".join([column.tobytes() for column in columns])


def failures_of(process: ControllerProcess) -> int:
    """Operations of a process that failed, and calls of its store that did."""
    return process.loop.controller.failures + process.store.failed_calls


class ErrorCatcher(logging.Handler):
    """Keeps the last error that was logged, so that a failed event can say of what it failed, and all warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last: str | None = None
        self.warnings: list[str] = []
        """What controllers have logged in this event, from warnings on."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        if record.name not in ("kframe.runtime", "kframe.controller", STATE_CHANGE_LOGGER):
            return
        self.warnings.append(record.getMessage())
        if record.levelno < logging.ERROR or record.name == STATE_CHANGE_LOGGER:
            return
        error = record.exc_info[1] if record.exc_info else None
        self.last = record.getMessage() if error is None else f"{type(error).__name__}: {error}"
