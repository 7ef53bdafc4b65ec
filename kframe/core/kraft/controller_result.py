"""The decision of a KRaft controller on an event: records with their versions, and the response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from kframe.errors import ErrorCode, KframeError
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.records import MetadataRecord

#: Most records of a batch, and of an atomic request (Kafka ``QuorumController.MAX_RECORDS_PER_USER_OP``).
RECORDS_MAX: Final = 10_000


class RecordAndVersion(NamedTuple):
    """A record and the version in which it is written (Kafka ``ApiMessageAndVersion``)."""

    record: MetadataRecord
    version: int


class RequestRefused(KframeError):
    """A request that changes nothing and fails with an error of Kafka's protocol."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message


class RecordGroup(Protocol):
    """Records in columns. Record objects are created only when they are read."""

    @property
    def count(self) -> int:
        """The number of records."""

    def records(self) -> list[RecordAndVersion]:
        """The records in the order of the log."""


#: A part of a decision.
DecisionPart: TypeAlias = RecordAndVersion | RecordGroup


def records_of(parts: Iterable[DecisionPart]) -> list[RecordAndVersion]:
    """All records of a decision."""
    records: list[RecordAndVersion] = []
    for part in parts:
        records += [part] if isinstance(part, RecordAndVersion) else part.records()
    return records


@dataclass(frozen=True, slots=True)
class ControllerResult:
    """A decision in the order of the log. ``atomic`` records are in one batch. ``response`` answers the request."""

    parts: Sequence[DecisionPart] = ()
    atomic: bool = False
    response: Any = None

    @property
    def records(self) -> list[RecordAndVersion]:
        """The records of the decision."""
        return records_of(self.parts)

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


def partition_version(level: int) -> int:
    """Version of Partition and PartitionChange records at a ``metadata.version``."""
    return 2 if level >= MetadataLevel.ELR else int(level >= MetadataLevel.DIRECTORIES)
