"""What the controller must answer to requests of reassignments."""

from __future__ import annotations

from kframe.errors import ErrorCode
from kframe.plugin.kraft_controller import (
    RequestRefused,
    reassignment,
)
from verification.kraft.simulation.expected.responses import difference, state_of_partition
from verification.kraft.simulation.image import Image
from verification.kraft.simulation.requests import Decided


def compare_reassignment(
    requested: reassignment.RequestedReassignment, image: Image, end: int, decided: Decided
) -> str | None:
    """The response to AlterPartitionReassignments of a partition. A cancellation may need an unclean election."""
    if isinstance(decided, RequestRefused):
        return f"a reassignment is refused: {decided}"
    (result,) = decided.response
    state = state_of_partition(image, requested.topic, requested.partition)
    expected = ErrorCode.NONE
    if state is None:
        expected = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif requested.replicas is None:
        origin = set(state.replicas) - set(state.adding)
        is_unclean = not origin & set(state.isr)
        if not (state.adding or state.removing):
            expected = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        elif not origin or (is_unclean and not image.is_unclean(image.topics[requested.topic])):
            expected = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    elif not all(each in image.brokers and image.brokers[each].takes_replicas for each in requested.replicas):
        expected = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    return difference(expected, result.error)


def compare_reassignments(image: Image, end: int, decided: Decided) -> str | None:
    """The response to ListPartitionReassignments of all partitions."""
    if isinstance(decided, RequestRefused):
        return f"a list is refused: {decided}"
    expected = {
        (image.names[topic_id], number): (state.replicas, state.adding, state.removing)
        for (topic_id, number), state in image.partitions.items()
        if state.adding or state.removing
    }
    listed = {(each.topic, each.partition): (each.replicas, each.adding, each.removing) for each in decided.response}
    return difference(expected, listed)
