"""The header of a record batch (Kafka ``DefaultRecordBatch``)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from kframe.plugin import counted
from kframe_kraft.errors import BatchError

#: Base offset and length; the length counts the bytes after it.
PREFIX: Final = struct.Struct(">qi")
#: Leader epoch, magic, CRC.
_EPOCH: Final = struct.Struct(">ibI")
#: The part that the CRC covers, from the attributes on.
_CHECKED: Final = struct.Struct(">hiqqqhii")
CHECKED_START: Final = PREFIX.size + _EPOCH.size
HEADER_BYTES: Final = CHECKED_START + _CHECKED.size
MAGIC: Final = 2
#: The position of the magic in a batch.
MAGIC_START: Final = PREFIX.size + 4
#: Largest batch that a KRaft leader writes (Kafka ``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``).
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
#: Larger batches are refused, so that a malformed length allocates no memory.
READ_BYTES_MAX: Final = 8 * BATCH_BYTES_MAX

COMPRESSION_MASK: Final = 0x07
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """A batch's header. Timestamps are milliseconds since the epoch. ``size`` is the whole batch in bytes."""

    base_offset: int
    size: int
    leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def is_control(self) -> bool:
        """Whether the batch has control records."""
        return bool(self.attributes & CONTROL)

    @property
    def is_compressed(self) -> bool:
        """Whether the records are compressed."""
        return bool(self.attributes & COMPRESSION_MASK)

    @property
    def next_offset(self) -> int:
        """The offset after the last record."""
        return self.base_offset + self.last_offset_delta + 1


def read_header(data: bytes | memoryview, position: int, where: str, remaining: int | None = None) -> BatchHeader:
    """Return the header of the batch at ``position``.

    ``left`` is the number of bytes from ``position`` to the end of the file; by default ``data`` is the whole file.
    Raises BatchError unless the whole batch is in the file and its header is that of a metadata log.
    """
    remaining = len(data) - position if remaining is None else remaining
    if remaining < HEADER_BYTES:
        raise BatchError(where, counted(remaining, "byte"), f"a batch header of {HEADER_BYTES}")
    base_offset, length = PREFIX.unpack_from(data, position)
    epoch, magic, crc = _EPOCH.unpack_from(data, position + PREFIX.size)
    if magic != MAGIC:
        raise BatchError(where, f"a batch of magic {magic}", f"magic {MAGIC}")
    size = length + PREFIX.size
    if not HEADER_BYTES <= size <= remaining:
        raise BatchError(
            where,
            f"a batch of {counted(size, 'byte')} with {remaining:,} left",
            f"at least {HEADER_BYTES}, within the file",
        )
    if size > READ_BYTES_MAX:
        raise BatchError(where, f"a batch of {size} bytes", f"at most {READ_BYTES_MAX}")
    header = BatchHeader(base_offset, size, epoch, crc, *_CHECKED.unpack_from(data, position + CHECKED_START))
    if base_offset < 0 or epoch < 0:
        raise BatchError(where, f"base offset {base_offset}, leader epoch {epoch}", "neither below 0")
    if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
        raise BatchError(
            where,
            f"{counted(header.record_count, 'record')}, last offset delta {header.last_offset_delta}",
            "deltas from 0 on",
        )
    return header


def pack_header(header: BatchHeader) -> bytes:
    """Return the bytes of a header."""
    return (
        PREFIX.pack(header.base_offset, header.size - PREFIX.size)
        + _EPOCH.pack(header.leader_epoch, MAGIC, header.crc)
        + pack_checked(header)
    )


def pack_checked(header: BatchHeader) -> bytes:
    """Return the bytes of a header that the CRC covers."""
    return _CHECKED.pack(
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
