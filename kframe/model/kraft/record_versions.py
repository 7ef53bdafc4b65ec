"""The version of a record at a level of metadata.version (Kafka 4.4 ``MetadataVersion``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kframe.errors import RecordError
from kframe.model.kraft import records
from kframe.model.kraft.record_tables import TABLES

#: Levels of metadata.version that Kafka 4.4 reads; the lowest is 3.3-IV3.
LEVEL_MIN: Final = 7
LEVEL_MAX: Final = 33

#: The level from which each version is written, by version.
_LEVELS: Final[dict[type[records.MetadataRecord], tuple[int, ...]]] = {
    records.RegisterBrokerRecord: (1, 7, 8, 17, 30),
    records.PartitionRecord: (1, 17, 23),
    records.PartitionChangeRecord: (1, 17, 23),
    records.BrokerRegistrationChangeRecord: (6, 7, 17, 30),
    records.NoOpRecord: (5,),
    records.UserScramCredentialRecord: (11,),
    records.RemoveUserScramCredentialRecord: (11,),
    records.BeginTransactionRecord: (13,),
    records.EndTransactionRecord: (13,),
    records.AbortTransactionRecord: (13,),
    records.DelegationTokenRecord: (14,),
    records.RemoveDelegationTokenRecord: (14,),
    records.RegisterControllerRecord: (15,),
    records.ClearElrRecord: (23,),
    records.UnregisterControllerRecord: (33,),
}


class RecordAndVersion(NamedTuple):
    """A record and the version in which it is written (Kafka ``ApiMessageAndVersion``)."""

    record: records.MetadataRecord
    version: int


def newest_version(record: type[records.MetadataRecord], level: int) -> int:
    """Return the newest version of a type of records at a level of metadata.version. -1 if the level has none."""
    return sum(first <= level for first in _LEVELS.get(record, (1,))) - 1


def changed_versions(before: int, after: int) -> Iterator[tuple[type[records.MetadataRecord], int, int]]:
    """Yield the types of records whose newest version differs between two levels of metadata.version, with both
    versions; -1 where the level has none."""
    for record in _LEVELS:
        versions = newest_version(record, before), newest_version(record, after)
        if versions[0] != versions[1]:
            yield record, *versions


def record_version(record: records.MetadataRecord, level: int) -> int:
    """Return the version in which Kafka's controller writes this record at this level of metadata.version.

    That is the newest version of the level, except for registration changes: they use the lowest version that carries
    their content. Raises RecordError if no version of the level carries it.
    """
    name, newest = type(record).__name__, newest_version(type(record), level)
    if newest < 0:
        raise RecordError(name, f"metadata.version {level}", f"at least {_LEVELS[type(record)][0]}")
    needed = needed_version(record)
    if needed > newest:
        raise RecordError(f"{name} at metadata.version {level}", f"content of version {needed}", f"at most {newest}")
    return needed if isinstance(record, records.BrokerRegistrationChangeRecord) else newest


def needed_version(record: records.MetadataRecord) -> int:
    """Return the lowest version that carries the record's content."""
    table = TABLES[type(record)]
    needed = (
        field.since
        for field in table.fields
        if field.since and getattr(record, field.name) != table.defaults[field.name]
    )
    return max(needed, default=0)
