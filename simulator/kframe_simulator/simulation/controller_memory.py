"""What a controller remembers, logs and fails at, as invariants compare it."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe.model.cluster import ClusterState
from kframe.model.ids import ReplicaFlag
from kframe.runtime.event_logs import STATE_CHANGE_LOGGER
from kframe_simulator.simulation.controllers import ControllerProcess


def lost_dirs_known(cluster: ClusterState, row: int | None) -> set[int]:
    """Replicas (broker ids) of a row that a controller knows to be in failed log directories."""
    if row is None:
        return set()
    return set(cluster.brokers.ids_of(cluster.partitions.flagged_replicas(row, ReplicaFlag.OFFLINE_DIR)))


def digest(cluster: ClusterState) -> bytes:
    """The known partitions, topics under deletion and registrations, as comparable bytes.

    They begin with the lengths of the columns, so that equal bytes are equal columns.
    """
    p, topics = cluster.partitions, cluster.topics
    columns: tuple[NDArray[Any], ...] = (
        np.array([len(p.topic), len(p.replica), len(topics.deleting), topics.known_count]),
        p.topic,
        p.partition_epoch,
        p.status,
        p.leader,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.replica,
        p.isr,
        p.replica_status,
        topics.deleting,
        topics.deletion_started,
        topics.deletion_halted,
        cluster.brokers.registered,
    )
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
