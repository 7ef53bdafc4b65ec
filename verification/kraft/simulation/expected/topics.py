"""What the controller must answer to the creation and deletion of topics."""

from __future__ import annotations

from kframe.errors import ErrorCode
from kframe.plugin.kraft_controller import (
    RequestRefused,
    topic_requests,
)
from verification.kraft.simulation.expected.responses import difference
from verification.kraft.simulation.image import Image
from verification.kraft.simulation.requests import Decided


def compare_creation(topic: topic_requests.CreatableTopic, image: Image, end: int, decided: Decided) -> str | None:
    """The response to the creation of a topic by numbers. Fenced brokers get replicas too, beside one that is not
    (Kafka 4.4 ``StripedReplicaPlacer``). A partition whose brokers all stop is refused."""
    if isinstance(decided, RequestRefused):
        return f"a creation is refused: {decided}"
    expected = ErrorCode.NONE
    if topic.name in image.topics:
        expected = ErrorCode.TOPIC_ALREADY_EXISTS
    elif topic.replication_factor > len(image.brokers) or all(broker.fenced for broker in image.brokers.values()):
        expected = ErrorCode.INVALID_REPLICATION_FACTOR
    is_stopping = any(broker.in_shutdown and not broker.fenced for broker in image.brokers.values())
    if is_stopping and expected is ErrorCode.NONE and decided.response[0].error is ErrorCode.INVALID_REPLICATION_FACTOR:
        return None
    return difference(expected, decided.response[0].error)


def compare_deletion(name: str, image: Image, end: int, decided: Decided) -> str | None:
    """The response to the deletion of a topic."""
    if isinstance(decided, RequestRefused):
        return f"a deletion is refused: {decided}"
    expected = ErrorCode.NONE if name in image.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return difference(expected, decided.response[0].error)
