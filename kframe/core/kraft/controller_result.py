"""The decision of a KRaft controller on an event: records with their versions, and the response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.errors import ErrorCode, KframeError
from kframe.model.kraft.record_versions import RecordAndVersion

#: Most records of a batch, and of an atomic request (Kafka ``QuorumController.MAX_RECORDS_PER_USER_OP``).
RECORDS_MAX: Final = 10_000


class RequestRefused(KframeError):
    """A request that changes nothing and fails with an error of Kafka's protocol."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message


#: A part of a decision: a record, or changes of partitions in columns.
DecisionPart: TypeAlias = RecordAndVersion | PartitionChangeBatch
Response_co = TypeVar("Response_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ControllerResult(Generic[Response_co]):
    """The decision on an event (Kafka ``ControllerResult``)."""

    parts: Sequence[DecisionPart]
    """The records in the order of the log."""
    response: Response_co
    """The response to a request. None for other events."""
    atomic: bool = False
    """Whether all records are in one batch."""

    @property
    def records(self) -> list[RecordAndVersion]:
        """The records of the decision."""
        records: list[RecordAndVersion] = []
        for part in self.parts:
            records += [part] if isinstance(part, RecordAndVersion) else part.records()
        return records

    def batches(self) -> Iterator[list[RecordAndVersion]]:
        """The records in batches of at most RECORDS_MAX."""
        records = self.records
        for start in range(0, len(records), RECORDS_MAX):
            yield records[start : start + RECORDS_MAX]


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The result of a request for one partition."""

    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def check_record_count(parts: Sequence[DecisionPart]) -> None:
    """Refuse a request with more records than a batch may have (Kafka ``BoundedList``)."""
    count = sum(1 if isinstance(part, RecordAndVersion) else part.count for part in parts)
    if count > RECORDS_MAX:
        message = f"Unable to perform excessively large batch operation: {count:,} records."
        raise RequestRefused(ErrorCode.POLICY_VIOLATION, message)
