"""Changes of partitions in columns, and as records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int32, Ragged, UInt8
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import PartitionChangeRecord


class PartitionChangeBatch(Struct, frozen=True, eq=False):
    """Changes of rows in columns. A mask says whether a record has the field. Lists have one entry a row.

    Only ``records`` and ``records_by_row`` create an object for each partition.
    """

    metadata: ClusterMetadata
    """The metadata to which brokers, topics and directories refer by index."""
    version: int
    """The version of the records."""
    rows: Int32
    leader: Int32
    writes_leader: Bool
    isr: Ragged
    writes_isr: Bool
    elr: Ragged
    writes_elr: Bool
    last_known_elr: Ragged
    writes_last_known_elr: Bool
    replicas: Ragged
    writes_replicas: Bool
    directories: Ragged
    """Empty if the event cannot change any."""
    writes_directories: Bool
    adding: Ragged
    writes_adding: Bool
    removing: Ragged
    writes_removing: Bool
    recovery: UInt8
    writes_recovery: Bool

    @property
    def changed(self) -> Bool:
        """(k,) whether the row has a record."""
        changed: Bool = self.writes_leader | self.writes_recovery
        for name in RECORD_LISTS:
            changed |= getattr(self, f"writes_{name}")
        return changed

    @property
    def count(self) -> int:
        """The number of records."""
        return int(np.count_nonzero(self.changed))

    def records(self) -> list[RecordAndVersion]:
        """The records of the rows that change, in the order of the rows."""
        return [record for record in self.records_by_row() if record is not None]

    def records_by_row(self) -> list[RecordAndVersion | None]:
        """The record of each row, or None where nothing changes. ELRs ascend by broker id."""
        metadata, changed = self.metadata, np.flatnonzero(self.changed)
        fields: list[dict[str, Any]] = [{} for _ in range(len(changed))]
        ids = np.append(metadata.brokers.ids, np.int32(NO_LEADER))  # index -1 is NO_LEADER
        broker_ids = ids.tolist()
        for name, field_name in RECORD_LISTS.items():
            for position, values in _written_lists(getattr(self, name), getattr(self, f"writes_{name}"), changed):
                if name == "directories":
                    fields[position][field_name] = metadata.directories.ids_of(values)
                else:
                    brokers = [broker_ids[value] for value in values]
                    fields[position][field_name] = tuple(sorted(brokers) if name == "elr" else brokers)
        for position, leader in _written_values(ids[self.leader], self.writes_leader, changed):
            fields[position]["leader"] = leader
        for position, recovery in _written_values(self.recovery, self.writes_recovery, changed):
            fields[position]["leader_recovery_state"] = recovery
        records: list[RecordAndVersion | None] = [None] * len(self.rows)
        rows, topic_ids = self.rows[changed], metadata.topics.ids
        topics = metadata.partitions.topic[rows].tolist()
        numbers = metadata.partitions.partition[rows].tolist()
        for index, topic, number, record_fields in zip(changed.tolist(), topics, numbers, fields, strict=True):
            record = PartitionChangeRecord(partition_id=number, topic_id=topic_ids[topic], **record_fields)
            records[index] = RecordAndVersion(record, self.version)
        return records


#: The lists of a change and the fields of its record.
RECORD_LISTS: Final = {
    "isr": "isr",
    "elr": "eligible_leader_replicas",
    "last_known_elr": "last_known_elr",
    "replicas": "replicas",
    "directories": "directories",
    "adding": "adding_replicas",
    "removing": "removing_replicas",
}


def _written_lists(lists: Ragged, writes: Bool, changed: NDArray[np.intp]) -> Iterator[tuple[int, list[int]]]:
    """The position among ``changed``, and the list, of each row that writes it."""
    positions = np.flatnonzero(writes[changed])
    written = lists.take(changed[positions])
    offsets, values = written.offsets.tolist(), written.values.tolist()
    for index, position in enumerate(positions.tolist()):
        yield position, values[offsets[index] : offsets[index + 1]]


def _written_values(values: NDArray[Any], writes: Bool, changed: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    positions = np.flatnonzero(writes[changed])
    return zip(positions.tolist(), values[changed[positions]].tolist(), strict=True)
