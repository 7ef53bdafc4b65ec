"""Parts of all comparisons of responses."""

from __future__ import annotations

from typing import Any

from kframe.errors import ErrorCode
from kframe.plugin.kraft import ControllerResult, RecordAndVersion, records
from kframe.plugin.kraft_controller import RequestRefused
from verification.kraft.simulation.image import Image, PartitionKey, PartitionState
from verification.kraft.simulation.requests import Decided


def difference(expected: object, answered: object) -> str | None:
    """None if both are equal."""
    return None if answered == expected else f"the controller answers {answered}, expected {expected}"


def error_of(decided: Decided) -> ErrorCode:
    """The error of a refusal, NONE of another response."""
    return decided.error if isinstance(decided, RequestRefused) else ErrorCode.NONE


def is_stale(image: Image, broker_id: int, broker_epoch: int) -> bool:
    """Whether a request is of a process that is not registered."""
    broker = image.brokers.get(broker_id)
    return broker is None or broker.broker_epoch != broker_epoch


def state_of_partition(image: Image, topic: str, partition: int) -> PartitionState | None:
    """The state of a partition by names."""
    topic_id = image.topics.get(topic)
    return None if topic_id is None else image.partitions.get((topic_id, partition))


def changes_of(decided: ControllerResult[Any]) -> dict[PartitionKey, records.PartitionChangeRecord]:
    """The changes of partitions that a decision has as records."""
    return {
        (part.record.topic_id, part.record.partition_id): part.record
        for part in decided.parts
        if isinstance(part, RecordAndVersion) and isinstance(part.record, records.PartitionChangeRecord)
    }
