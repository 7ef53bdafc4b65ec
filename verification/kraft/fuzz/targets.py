"""The fuzz targets: values of records, values of control records, and batches. The CRC of batches is made valid
again."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import numpy as np
from crc32c import crc32c
from kframe_kraft.batches import BatchPosition, encode_data_batch, read_batch
from kframe_kraft.batches.header import CHECKED_START
from kframe_kraft.batches.reading import Frames, RecordBatch
from kframe_kraft.columns.partitions import PARTITION, PARTITION_CHANGE, decode_rows, encode_rows
from kframe_kraft.errors import LogError, RecordError
from kframe_kraft.records import decode_control, decode_record, encode_control, encode_record

from verification.fuzz import Base, Batch, DecoderTarget, Outcome, bases_of, read_corpus
from verification.kraft.random_records import random_record

CORPUS: Final = Path(__file__).with_name("corpus.tsv")
#: Byte sequences that are likely to break readers of the flexible encoding.
PIECES: Final = [
    b"\x00",
    b"\x01",
    b"\x02",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\x80\x01",
    b"\xff\xff\x03",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 6,
    struct.pack(">i", -1),
    struct.pack(">i", 2**31 - 1),
    b"\x00" * 16,
    b"\x00\x00",
    b"\x01\x03\x02",
    b"\x01\x05\x02",
]
_CRC_START: Final = CHECKED_START - 4


class RecordCases:
    """Values of data records. A decoded record has bytes that decode to the same."""

    name = "record"
    pieces: Sequence[bytes] = PIECES
    share = 4

    def __init__(self, bases: Sequence[Base]) -> None:
        random = Random(1)
        self.bases = [*bases, *(Base("0", encode_record(*random_record(number, random))[:400]) for number in range(76))]

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The reason why each value is refused, or None."""
        return [_record(batch[i]) for i in range(len(batch))]


class ControlRecords:
    """Values of control records. The kind is the type."""

    name = "control record"
    pieces: Sequence[bytes] = PIECES
    share = 1

    def __init__(self, bases: Sequence[Base]) -> None:
        self.bases = bases

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The reason why each value is refused, or None."""
        return [_control(int(batch.kinds[i]), batch[i]) for i in range(len(batch))]


class Batches:
    """Batches, with a valid CRC. Kernels and codec must agree on partition records."""

    name = "batch"
    pieces: Sequence[bytes] = PIECES
    share = 4

    def __init__(self, bases: Sequence[Base]) -> None:
        random = Random(2)
        partitions = [number for number in range(76) if random_record(number, Random(1)).record.api_key in (3, 5)]
        position = BatchPosition(7, 2, 1_700_000_000_000)
        batches = [
            encode_data_batch([random_record(number, random) for number in random.sample(partitions, 3)], position)
            for _ in range(20)
        ]
        self.bases = [*bases, *(Base("0", raw) for raw in batches)]

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The reason why each batch or one of its records is refused, or None."""
        return [_batch(batch[i]) for i in range(len(batch))]


def targets() -> Sequence[DecoderTarget]:
    """All targets, with the corpus among their base cases."""
    corpus = read_corpus(CORPUS)
    return [
        RecordCases(bases_of(corpus, RecordCases.name)),
        ControlRecords(bases_of(corpus, ControlRecords.name)),
        Batches(bases_of(corpus, Batches.name)),
    ]


def _record(raw: bytes) -> Outcome:
    try:
        record, version = decode_record(raw)
    except RecordError as error:
        return str(error)
    # Unknown tags, wide varints and booleans above 1 are not written again. The text compares NaN as equal.
    assert str(decode_record(encode_record(record, version)).record) == str(record)
    return None


def _control(control_type: int, raw: bytes) -> Outcome:
    try:
        record = decode_control(struct.pack(">hh", 0, control_type), raw)
    except RecordError as error:
        return str(error)
    assert decode_control(*encode_control(record)) == record
    return None


def _batch(raw: bytes) -> Outcome:
    if len(raw) > CHECKED_START:
        raw = raw[:_CRC_START] + struct.pack(">I", crc32c(raw[CHECKED_START:])) + raw[CHECKED_START:]
    try:
        batch = read_batch(raw)
        if batch.header.is_control:
            batch.control_records()
            return None
        frames = batch.frames()
    except LogError as error:
        return str(error)
    reasons = [_agreement(batch, frames, row) for row in range(len(frames.api_key))]
    return next((reason for reason in reasons if reason), None)


def _agreement(batch: RecordBatch, frames: Frames, row: int) -> Outcome:
    """The reason why codec and kernels refuse a record, or None. A record of another type is the codec's alone."""
    reason = None
    try:
        record, version = decode_record(batch.value(row))
    except RecordError as error:
        reason = str(error)
    if frames.api_key[row] not in (PARTITION, PARTITION_CHANGE):
        return reason
    try:
        columns = decode_rows(batch, frames, np.array([row]))
    except RecordError:
        # The reason is the codec's, because decode_rows calls it first; without one, the error escapes.
        if reason is None:
            raise
        return reason
    assert reason is None, reason
    values, _ = encode_rows(columns, version)
    assert values.tobytes() == encode_record(record, version)
    return None
