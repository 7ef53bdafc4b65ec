"""Record batches: Kafka's layout, round trips, compression, and refusals."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kframe_kraft.batches import (
    BATCH_BYTES_MAX,
    BatchPosition,
    Compression,
    encode_control_batch,
    encode_data_batch,
    encode_values,
    read_batch,
    read_batches,
)
from kframe_kraft.batches.compression import DECOMPRESSED_MAX, decompress
from kframe_kraft.errors import BatchError, RecordError
from kframe_kraft.kernels import _record_batches

from kframe.plugin.kraft import RecordAndVersion, control, records
from verification.kraft.compressed_batches import compress, compressed
from verification.kraft.record_strategies import control_records, versioned_records
from verification.reference import record_batches as reference_batches

pytestmark = pytest.mark.kernel

POSITION = BatchPosition(base_offset=17, leader_epoch=3, timestamp=1_700_000_000_000)
NO_OP = RecordAndVersion(records.NoOpRecord(), 0)
BATCH = encode_data_batch([NO_OP, NO_OP], POSITION)


def sealed(batch: bytes) -> bytes:
    """The batch with a new CRC."""
    return batch[:17] + struct.pack(">I", crc32c(batch[21:])) + batch[21:]


def test_layout_is_kafkas() -> None:
    record = bytes.fromhex("14 00 00 00 01 08 01140000 00")
    second = bytes.fromhex("14 00 00 02 01 08 01140000 00")
    header = struct.pack(">qiib", 17, 49 + 22, 3, 2)
    checked = struct.pack(">hiqqqhii", 0, 1, POSITION.timestamp, POSITION.timestamp, -1, -1, -1, 2) + record + second
    assert header + struct.pack(">I", crc32c(checked)) + checked == BATCH


@given(st.lists(versioned_records(), min_size=1, max_size=5), st.sampled_from(Compression))
def test_data_round_trip(versioned: list[RecordAndVersion], compression: Compression) -> None:
    encoded = compressed(encode_data_batch(versioned, POSITION), compression)
    batch = read_batch(encoded)
    assert batch.records() == versioned
    assert not batch.header.is_control
    assert batch.header.next_offset == 17 + len(versioned)
    frames = batch.frames()
    assert frames.api_key.tolist() == [record.api_key for record, _ in versioned]
    assert frames.version.tolist() == [version for _, version in versioned]


@given(st.lists(control_records(), min_size=1, max_size=3))
def test_control_round_trip(written: list[control.ControlRecord]) -> None:
    (batch,) = read_batches(encode_control_batch(written, POSITION))
    assert batch.header.is_control
    assert batch.control_records() == written


@pytest.mark.parametrize("position", range(21, len(BATCH)))
def test_changed_byte_is_refused_by_crc(position: int) -> None:
    changed = bytearray(BATCH)
    changed[position] ^= 1
    with pytest.raises(BatchError):
        read_batch(bytes(changed))


@pytest.mark.parametrize(
    "batch, reason",
    [
        (BATCH[:60], "60 bytes"),
        (BATCH[:-1], "82 left"),
        (BATCH[:16] + b"\x01" + BATCH[17:], "magic 1"),
        (BATCH[:8] + b"\x7f\xff\xff\xff" + BATCH[12:], "a batch of 2,147,483,659 bytes"),
        (sealed(BATCH[:57] + b"\x00\x00\x00\x03" + BATCH[61:]), "3 records"),
        (
            sealed(BATCH[:23] + b"\x7f\xff\xff\xfe" + BATCH[27:57] + b"\x7f\xff\xff\xff" + BATCH[61:]),
            "7 bytes a record",
        ),
        (sealed(BATCH[:22] + b"\x05" + BATCH[23:]), "compression codec 5"),
        (sealed(BATCH[:22] + b"\x20" + BATCH[23:]), "a key and a value"),
        (sealed(BATCH[:63] + b"\x02" + BATCH[64:]), "record 0 malformed"),
        (sealed(BATCH[:-1] + b"\x02"), "record 1 malformed"),
    ],
)
def test_malformed_batch_is_refused(batch: bytes, reason: str) -> None:
    with pytest.raises(BatchError, match=reason):
        read_batch(batch, where="segment")


def test_unknown_record_is_refused_with_its_offset() -> None:
    value = np.frombuffer(b"\x01\x63\x00\x00", np.uint8)
    batch = read_batch(encode_values(value, np.array([0, 4]), POSITION), where="segment")
    with pytest.raises(RecordError, match=r"offset 17.*record type 99"):
        batch.records()


def test_frame_of_another_version_is_refused() -> None:
    value = np.frombuffer(b"\x00\x14\x00\x00", np.uint8)
    with pytest.raises(RecordError, match="frame version 0"):
        read_batch(encode_values(value, np.array([0, 4]), POSITION)).frames()


def test_batch_above_the_limit_is_refused() -> None:
    name = RecordAndVersion(records.RemoveDelegationTokenRecord(token_id="n" * 32_767), 0)
    with pytest.raises(BatchError, match=f"at most {BATCH_BYTES_MAX}"):
        encode_data_batch([name] * 260, POSITION)
    with pytest.raises(BatchError, match="no records"):
        encode_data_batch([], POSITION)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_decompression_is_bounded(codec: Compression) -> None:
    with pytest.raises(BatchError, match=r"more than|above the limit"):
        decompress(codec, compress(codec, bytes(DECOMPRESSED_MAX + 1)), "batch")


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
@given(data=st.binary(max_size=40))
def test_malformed_compression_is_refused(codec: Compression, data: bytes) -> None:
    for raw in (data, compress(codec, b"a" * 100)[: len(data)], b"\x82SNAPPY\x00" + bytes(8) + data):
        try:
            decompress(codec, raw, "batch")
        except BatchError:
            continue


def columns(count: int) -> list[Any]:
    return [np.full(count, -7, dtype) for dtype in (np.int64, np.int32, np.int64, np.int32)]


@given(st.lists(st.binary(max_size=200), max_size=6), st.data())
def test_kernels_of_batches_equal_their_reference(values: list[bytes], data: st.DataObject) -> None:
    value_start = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=value_start[1:])
    raw = np.frombuffer(b"".join(values), np.uint8)
    capacity = data.draw(st.sampled_from([len(raw) + 20 * len(values), max(len(raw) - 1, 0)]))
    joined = []
    for module in (_record_batches, reference_batches):
        out, record_start = np.zeros(capacity, np.uint8), np.zeros(len(value_start), np.int64)
        size = module.join_records(raw, value_start, record_start, out)
        joined.append((size, out.tobytes() if size >= 0 else b"", record_start.tolist() if size >= 0 else []))
    assert joined[0] == joined[1]
    if joined[0][0] < 0:
        return
    payload = np.frombuffer(joined[0][1][: joined[0][0]], np.uint8).copy()
    if data.draw(st.booleans()) and len(payload):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    count = data.draw(st.integers(0, len(values) + 1))
    split = []
    for module in (_record_batches, reference_batches):
        out_columns = columns(count)
        end = module.split_records(payload, *out_columns)
        known = end if 0 <= end < count else count
        split.append((end, [column[:known].tolist() for column in out_columns], out_columns))
    assert split[0][:2] == split[1][:2]
    frames = []
    for module in (_record_batches, reference_batches):
        known = len(split[0][1][0])
        out_frames = [np.zeros(known, dtype) for dtype in (np.int32, np.int32, np.int64)]
        value_columns = [column[:known] for column in split[0][2][2:]]
        end = module.read_frames(payload, *value_columns, *out_frames)
        frames.append((end, [column[: known if end < 0 else end].tolist() for column in out_frames]))
    assert frames[0] == frames[1]
