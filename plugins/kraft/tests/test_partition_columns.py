"""The kernels of partition records: against the table-driven codec, and against their reference implementation."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kframe_kraft.batches import BatchPosition, encode_data_batch, read_batch
from kframe_kraft.columns.partitions import ID_LISTS, PARTITION, PARTITION_CHANGE, decode_rows, encode_rows
from kframe_kraft.errors import RecordError
from kframe_kraft.kernels import _partition_records
from kframe_kraft.records import encode_record

from kframe.plugin.kraft import TABLES, RecordAndVersion, records
from verification.kraft.record_strategies import struct_values
from verification.reference import partition_records as reference_partitions

pytestmark = pytest.mark.kernel

POSITION = BatchPosition(base_offset=0, leader_epoch=1, timestamp=0)
KINDS: dict[int, Any] = {PARTITION: records.PartitionRecord, PARTITION_CHANGE: records.PartitionChangeRecord}


def partition_records(kind: int, version: int) -> st.SearchStrategy[list[RecordAndVersion]]:
    record = struct_values(TABLES[KINDS[kind]], version)
    return st.lists(st.builds(RecordAndVersion, record, st.just(version)), min_size=1, max_size=5)


def rows_of(versioned: list[RecordAndVersion]) -> Any:
    batch = read_batch(encode_data_batch(versioned, POSITION))
    return decode_rows(batch, batch.frames(), np.arange(len(versioned)))


@pytest.mark.parametrize("kind", KINDS)
@given(version=st.integers(0, 2), data=st.data())
def test_columns_have_the_content_of_records(kind: int, version: int, data: st.DataObject) -> None:
    versioned = data.draw(partition_records(kind, version))
    columns = rows_of(versioned)
    for i in range(len(versioned)):
        record: Any = versioned[i].record
        assert columns.partition_id[i] == record.partition_id
        assert columns.topic_id[i].tobytes() == record.topic_id.bytes
        assert (columns.leader[i], columns.leader_recovery_state[i]) == (record.leader, record.leader_recovery_state)
        if kind == PARTITION:
            epochs = columns.leader_epoch[i], columns.partition_epoch[i]
            assert epochs == (record.leader_epoch, record.partition_epoch)
        for name in ID_LISTS:
            lists, values = columns.ids[name], getattr(record, name)
            assert bool(lists.present[i]) == (values is not None)
            assert tuple(lists.lists[i].tolist()) == (values or ())
        directories = columns.directories
        ids = directories.values[directories.offsets[i] : directories.offsets[i + 1]]
        assert tuple(UUID(bytes=row.tobytes()) for row in ids) == (record.directories or ())
    values, value_start = encode_rows(columns, version)
    written = [values[value_start[i] : value_start[i + 1]].tobytes() for i in range(len(versioned))]
    assert written == [encode_record(*record) for record in versioned]


def empty_outputs(kind: int, count: int) -> list[Any]:
    fixed = [
        np.zeros(count, np.int32),
        np.zeros((count, 16), np.uint8),
        np.zeros(count, np.int32),
        np.zeros(count, np.int8),
    ]
    epochs = [np.zeros(count, np.int32), np.zeros(count, np.int32)] if kind == PARTITION else []
    return [*fixed, *epochs, np.zeros((7, count), np.int64), np.full((7, count), -9, np.int32)]


@pytest.mark.parametrize("kind", KINDS)
@given(version=st.integers(0, 3), data=st.data())
def test_parsers_equal_their_reference_on_mutated_bytes(kind: int, version: int, data: st.DataObject) -> None:
    written = data.draw(partition_records(kind, min(version, 2)))
    bodies = [encode_record(*record)[3:] for record in written]
    ends = np.cumsum([len(body) for body in bodies]).astype(np.int64)
    starts = ends - np.array([len(body) for body in bodies])
    payload = np.frombuffer(b"".join(bodies), np.uint8).copy()
    for _ in range(data.draw(st.integers(0, 2))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        ends[-1] += data.draw(st.integers(-2, 1))
    versions = np.full(len(bodies), version, np.int32)
    results = []
    for module in (_partition_records, reference_partitions):
        parse = module.parse_partitions if kind == PARTITION else module.parse_changes
        outputs = empty_outputs(kind, len(bodies))
        malformed = parse(payload, starts, ends, versions, *outputs)
        known = len(bodies) if malformed < 0 else malformed
        *fixed, list_start, list_count = outputs
        list_start[list_count < 0] = 0
        fixed_rows = [column[:known].tolist() for column in fixed]
        results.append((malformed, fixed_rows, list_start[:, :known].tolist(), list_count[:, :known].tolist()))
    assert results[0] == results[1]


@given(st.lists(st.tuples(st.integers(-2, 40), st.integers(-1, 4)), max_size=4), st.integers(0, 5))
def test_copies_equal_their_reference(lists: list[tuple[int, int]], capacity: int) -> None:
    payload = np.arange(37, dtype=np.uint8)
    starts = np.array([start for start, _ in lists], np.int64)
    offsets = np.concatenate([[0], np.cumsum([count for _, count in lists])]).astype(np.int32)
    for name, shape, dtype in (("copy_ids", (capacity,), np.int32), ("copy_directories", (capacity, 16), np.uint8)):
        results = []
        for module in (_partition_records, reference_partitions):
            out = np.zeros(shape, dtype)
            copied = getattr(module, name)(payload, starts, offsets, out)
            results.append((copied, out.tolist() if copied >= 0 else None))
        assert results[0] == results[1], name


@pytest.mark.parametrize("kind", KINDS)
@given(version=st.integers(0, 2), capacity=st.integers(0, 400), data=st.data())
def test_writers_equal_their_reference(kind: int, version: int, capacity: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 3))
    generator = np.random.default_rng(data.draw(st.integers(0, 1000)))
    ids, directories = generator.integers(-3, 9, 12, np.int32), generator.integers(0, 9, (4, 16), np.uint8)
    list_start = generator.integers(-1 if data.draw(st.booleans()) else 0, 4, (7, count), np.int64)
    list_count = generator.integers(0 if kind == PARTITION else -1, 4, (7, count), np.int32)
    if version < 2:
        list_count[4:6] = -1
    if version < 1:
        list_count[6] = -1
    fixed = [
        generator.integers(-3, 9, count, np.int32),
        generator.integers(0, 9, (count, 16), np.uint8),
        generator.integers(-2, 3, count, np.int32),
        generator.integers(-1, 2, count, np.int8),
    ]
    if kind == PARTITION:
        fixed += [generator.integers(-1, 9, count, np.int32), generator.integers(-1, 9, count, np.int32)]
    results = []
    for module in (_partition_records, reference_partitions):
        write = module.write_partitions if kind == PARTITION else module.write_changes
        out, value_start = np.zeros(capacity, np.uint8), np.zeros(count + 1, np.int64)
        size = write(version, *fixed, ids, directories, list_start, list_count, value_start, out)
        results.append((size, out.tobytes() if size >= 0 else b"", value_start.tolist() if size >= 0 else []))
    assert results[0] == results[1]


def test_malformed_row_is_refused_with_its_offset() -> None:
    change = records.PartitionChangeRecord(partition_id=1, topic_id=UUID(int=200), isr=(1, 2))
    batch = read_batch(encode_data_batch([RecordAndVersion(change, 0)] * 2, POSITION), where="segment")
    payload = batch.payload.copy()
    payload[batch.frames().body_start[1] + 20] = 99
    object.__setattr__(batch, "payload", payload)
    with pytest.raises(RecordError, match="offset 1, PartitionChangeRecord version 0"):
        decode_rows(batch, batch.frames(), np.arange(2))


def test_lists_that_a_version_lacks_are_refused() -> None:
    partition = records.PartitionRecord(
        topic_id=UUID(int=200),
        replicas=(1,),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        directories=(UUID(int=300),),
        eligible_leader_replicas=(2,),
    )
    columns = rows_of([RecordAndVersion(partition, 2)])
    with pytest.raises(RecordError, match="ELR in version 1"):
        encode_rows(columns, 1)
    without_elr = rows_of(
        [
            RecordAndVersion(
                records.PartitionRecord(
                    topic_id=UUID(int=200),
                    replicas=(1,),
                    isr=(1,),
                    removing_replicas=(),
                    adding_replicas=(),
                    directories=(UUID(int=300),),
                ),
                1,
            )
        ]
    )
    with pytest.raises(RecordError, match="directories in version 0"):
        encode_rows(without_elr, 0)
    with pytest.raises(RecordError, match="version 3"):
        encode_rows(columns, 3)
