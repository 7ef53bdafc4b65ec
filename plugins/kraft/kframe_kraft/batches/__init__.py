"""Record batches of the metadata log: message format 2 with CRC-32C, data or control records."""

from __future__ import annotations

from kframe_kraft.batches.blocks import RecordBlock, blocks_of
from kframe_kraft.batches.compression import Compression
from kframe_kraft.batches.header import BATCH_BYTES_MAX, BatchHeader
from kframe_kraft.batches.reading import RecordBatch, read_batch, read_batches
from kframe_kraft.batches.writing import (
    BatchPosition,
    encode_control_batch,
    encode_data_batch,
    encode_values,
    join_values,
)

__all__ = [
    "BATCH_BYTES_MAX",
    "BatchHeader",
    "BatchPosition",
    "Compression",
    "RecordBatch",
    "RecordBlock",
    "blocks_of",
    "encode_control_batch",
    "encode_data_batch",
    "encode_values",
    "join_values",
    "read_batch",
    "read_batches",
]
