"""What the controller must answer to requests of reassignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kframe.errors import ErrorCode
from kframe.plugin.kraft import records
from kframe.plugin.kraft_controller import (
    Release,
    RequestRefused,
    reassignment,
)
from verification.kraft.simulation.completion import TargetState, without
from verification.kraft.simulation.expected.responses import changes_of, difference, state_of_partition
from verification.kraft.simulation.image import Image, PartitionKey, PartitionState, merged
from verification.kraft.simulation.requests import Decided


def compare_reassignment(
    requests: Sequence[reassignment.RequestedReassignment],
    allows_factor_change: bool,
    release: Release,
    image: Image,
    end: int,
    decided: Decided,
) -> str | None:
    """The response to AlterPartitionReassignments, and its changes."""
    if isinstance(decided, RequestRefused):
        return f"a reassignment is refused: {decided}"
    changes = changes_of(decided)
    for requested, result in zip(requests, decided.response, strict=True):
        problem = _problem(image, requested, result.error, changes, allows_factor_change, release)
        if problem is not None:
            return problem
    known = {(image.topics.get(each.topic), each.partition) for each in requests}
    return None if changes.keys() <= known else f"a reassignment changes other partitions: {changes.keys() - known}"


def _problem(
    image: Image,
    requested: reassignment.RequestedReassignment,
    answered: ErrorCode,
    changes: Mapping[PartitionKey, records.PartitionChangeRecord],
    allows_factor_change: bool,
    release: Release,
) -> str | None:
    state = state_of_partition(image, requested.topic, requested.partition)
    error = _error(image, requested, state, allows_factor_change)
    if answered is not error:
        return difference(error, answered)
    change = None if state is None else changes.get((image.topics[requested.topic], requested.partition))
    if state is None or error is not ErrorCode.NONE:
        return None if change is None else "a refused reassignment changes the partition"
    after = state if change is None else merged(state, change)
    target = _target(requested, state).completed(release)
    directories = dict(zip(state.replicas, state.directories, strict=True))
    expected = tuple(directories.get(each) or image.default_directory(each) for each in target.replicas)
    if not target.matches(after) or after.directories != expected:
        return f"a reassignment leaves {after}, expected {target} in {expected}"
    return None


def _error(
    image: Image,
    requested: reassignment.RequestedReassignment,
    state: PartitionState | None,
    allows_factor_change: bool,
) -> ErrorCode:
    """The error of a request. A cancellation may need an unclean election."""
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    replicas = requested.replicas
    if replicas is None:
        origin = without(state.replicas, state.adding)
        is_unclean = not set(origin) & set(state.isr)
        if not (state.adding or state.removing):
            return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        if not origin or (is_unclean and not image.is_unclean(image.topics[requested.topic])):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        return ErrorCode.NONE
    if not replicas or len(set(replicas)) < len(replicas) or not all(map(image.may_assign, replicas)):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not allows_factor_change and len(replicas) != len(without(state.replicas, state.removing)):
        return ErrorCode.INVALID_REPLICATION_FACTOR
    return ErrorCode.NONE


def _target(requested: reassignment.RequestedReassignment, state: PartitionState) -> TargetState:
    """The replicas that a request asks for, before a reassignment completes at once."""
    if requested.replicas is None:
        origin = without(state.replicas, state.adding)
        return TargetState(origin, without(state.isr, state.adding) or origin[:1], (), ())
    adding = tuple(sorted(set(requested.replicas) - set(state.replicas)))
    removing = tuple(sorted(set(state.replicas) - set(requested.replicas)))
    # An empty list leaves the stored one, as in Kafka.
    return TargetState(requested.replicas + removing, state.isr, adding or state.adding, removing or state.removing)


def compare_reassignments(
    topics: Sequence[tuple[str, Sequence[int]]] | None, image: Image, end: int, decided: Decided
) -> str | None:
    """The response to ListPartitionReassignments of named partitions, or of all."""
    if isinstance(decided, RequestRefused):
        return f"a list is refused: {decided}"
    expected = {
        (image.names[topic_id], number): (state.replicas, state.adding, state.removing)
        for (topic_id, number), state in image.partitions.items()
        if (state.adding or state.removing)
        and (topics is None or any(image.names[topic_id] == name and number in numbers for name, numbers in topics))
    }
    listed = {(each.topic, each.partition): (each.replicas, each.adding, each.removing) for each in decided.response}
    return difference(expected, listed)
