"""The two reassignment protocols, selected by ``reassignment.protocol``: Kafka's present one, and that of Kafka 0.8."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.core.context import Context, Operation
from kframe.core.reassignment import partition_reassignment, protocol_08
from kframe.core.topics import unknown_brokers
from kframe.core.topics.replica_assignment import reassigned_to
from kframe.errors import ErrorCode
from kframe.model.arrays import Int32, Ragged
from kframe.model.lists import without_values


@dataclass(frozen=True, slots=True)
class ReassignmentProtocol:
    """What one protocol does at each event. Rows are unique and ascending."""

    submit: Callable[[Context, Int32, Ragged], Operation[Int32]]
    """Start reassignments that a client requests, to lists of broker indexes. Return the failed rows."""
    failure: ErrorCode
    """The response for a failed row."""
    supersedes_stored: bool
    """Whether a request replaces a stored reassignment of the same partition."""
    submit_stored: Callable[[Context], Operation[Int32]]
    """Start or resume the reassignments in ``/admin/reassign_partitions``. Return the rows in progress."""
    on_isr_change: Callable[[Context, Int32], Operation[None]]
    """Complete reassignments of these rows whose targets are in sync."""
    resume: Callable[[Context, Int32], Operation[None]]
    """Continue reassignments that the assignments of these rows show."""
    reassign_from_unknown_brokers: Callable[[Context, Int32], Operation[None]]
    """Reassign these rows away from nodes that are no brokers."""


def _submit(context: Context, rows: Int32, targets: Ragged) -> Operation[Int32]:
    return (yield from partition_reassignment.reassign(context, rows, reassigned_to(context, rows, targets)))


def _reassign_from_unknown_brokers(context: Context, rows: Int32) -> Operation[None]:
    rows, targets = unknown_brokers.replacements(context, rows)
    yield from _submit(context, rows, targets)


def _resume_nothing(context: Context, rows: Int32) -> Operation[None]:
    """Kafka 0.8 stores reassignments only in ``/admin/reassign_partitions``."""
    yield from ()


def _report_unknown_brokers(context: Context, rows: Int32) -> Operation[None]:
    """In Kafka 0.8 only operators reassign."""
    context.log_refused("Partition", rows, "is assigned to a node that is no broker: reassign it")
    yield from ()


KIP_455: Final = ReassignmentProtocol(
    submit=_submit,
    failure=ErrorCode.UNKNOWN_SERVER_ERROR,
    supersedes_stored=True,
    submit_stored=partition_reassignment.reassign_stored,
    on_isr_change=partition_reassignment.complete_where_in_sync,
    resume=partition_reassignment.resume,
    reassign_from_unknown_brokers=_reassign_from_unknown_brokers,
)
KAFKA_08: Final = ReassignmentProtocol(
    submit=protocol_08.submit,
    failure=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    supersedes_stored=False,
    submit_stored=protocol_08.submit_stored,
    on_isr_change=protocol_08.complete,
    resume=_resume_nothing,
    reassign_from_unknown_brokers=_report_unknown_brokers,
)


def protocol_of(context: Context) -> ReassignmentProtocol:
    """The protocol that the configuration selects."""
    return KAFKA_08 if context.config["reassignment.protocol"] == "0.8" else KIP_455


def resume_all(context: Context) -> Operation[None]:
    """At failover: the stored reassignments first, then all others that the assignments show."""
    protocol = protocol_of(context)
    resumed = yield from protocol.submit_stored(context)
    reassigning = context.cluster.partitions.reassigning_rows()
    yield from protocol.resume(context, without_values(reassigning, resumed).astype(np.int32))


def reassign_from_unknown_brokers(context: Context) -> Operation[None]:
    """Reassign partitions with a state away from nodes that are no brokers. Another controller brought them online."""
    _, rows = unknown_brokers.assigned_rows(context)
    if len(rows):
        yield from protocol_of(context).reassign_from_unknown_brokers(context, rows)
