"""The records of one partition in the batches of a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np

from kframe.plugin.kraft import records
from kframe_kraft.batches import RecordBatch
from kframe_kraft.records import decode_record

CHANGE: Final = records.PartitionChangeRecord.api_key
PARTITION: Final = records.PartitionRecord.api_key
PartitionState: TypeAlias = records.PartitionRecord | records.PartitionChangeRecord


def partition_pattern(topic_id: UUID, number: int) -> bytes:
    """The bytes in each record of a partition: both types begin with its number and the id of the topic."""
    return number.to_bytes(4, "big") + topic_id.bytes


def partition_rows(batch: RecordBatch, topic_id: UUID, number: int) -> Iterator[tuple[int, PartitionState]]:
    """The records of a partition in a batch of data with their numbers, the last first."""
    if partition_pattern(topic_id, number) not in batch.payload.tobytes():
        return
    api_keys = batch.frames().api_key
    for row in np.flatnonzero((api_keys == CHANGE) | (api_keys == PARTITION))[::-1].tolist():
        record = decode_record(batch.value(row), batch.name(row)).record
        assert isinstance(record, records.PartitionRecord | records.PartitionChangeRecord)
        if record.topic_id == topic_id and record.partition_id == number:
            yield row, record
