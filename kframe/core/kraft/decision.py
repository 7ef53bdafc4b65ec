"""What a KRaft controller decides on an event: records with their versions, and the answer to the request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

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
    """A request changes nothing. Its answer is an error of Kafka's protocol."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message


@dataclass(frozen=True, slots=True)
class ControllerResult:
    """Records in the order of the log. ``atomic`` records are in one batch. ``response`` answers the request."""

    records: list[RecordAndVersion] = field(default_factory=list)
    atomic: bool = False
    response: Any = None

    def batches(self) -> Iterator[list[RecordAndVersion]]:
        """The records in batches of at most RECORDS_MAX."""
        for start in range(0, len(self.records), RECORDS_MAX):
            yield self.records[start : start + RECORDS_MAX]


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The result of a request for one partition."""

    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def check_record_count(records: list[RecordAndVersion]) -> None:
    """Refuse a request with more records than a batch may have (Kafka ``BoundedList``)."""
    if len(records) > RECORDS_MAX:
        message = f"Unable to perform excessively large batch operation: {len(records):,} records."
        raise RequestRefused(ErrorCode.POLICY_VIOLATION, message)


def partition_version(level: int) -> int:
    """Version of Partition and PartitionChange records at a ``metadata.version``."""
    return 2 if level >= MetadataLevel.ELR else int(level >= MetadataLevel.DIRECTORIES)


def register_broker_version(level: int) -> int:
    """Version of RegisterBroker records at a ``metadata.version``."""
    levels = (MetadataLevel.BROKER_MIGRATION, MetadataLevel.DIRECTORIES, MetadataLevel.CORDONED_DIRECTORIES)
    return 1 + sum(level >= threshold for threshold in levels)
