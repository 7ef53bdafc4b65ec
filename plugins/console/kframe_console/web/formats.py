"""Tables as CSV and Parquet, a block of rows at a time, so that an export of all rows needs little memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from kframe.plugin.columns import Int32
from kframe_console.tables.table import ColumnTable


def csv_blocks(table: ColumnTable, rows: Int32) -> Iterator[bytes]:
    """``rows`` as CSV, as the commands of kframe print it: lists with commas, unknown values empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    for block in table.blocks(rows):
        columns = [[_csv_cell(value) for value in column.values(block)] for column in table.columns.values()]
        writer.writerows(zip(*columns, strict=True))
        yield _taken(buffer).encode()
    yield _taken(buffer).encode()


def parquet_blocks(table: ColumnTable, rows: Int32) -> Iterator[bytes]:
    """``rows`` as a Parquet file. Each block is a row group."""
    sink = _Drain()
    blocks = list(table.blocks(rows)) or [rows]
    writer: Any = None
    for block in blocks:
        part = pa.table({name: column.arrow_column(block) for name, column in table.columns.items()})
        if writer is None:
            writer = parquet.ParquetWriter(sink, part.schema)
        writer.write_table(part)
        yield sink.take()
    writer.close()
    yield sink.take()


class _Drain(io.RawIOBase):
    """A file that Parquet is written to, whose bytes are taken as they come."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """How many bytes were written."""
        return self._position

    def write(self, data: Any) -> int:
        """Keep a copy of the bytes until they are taken."""
        self._parts.append(bytes(data))
        self._position += len(self._parts[-1])
        return len(self._parts[-1])

    def take(self) -> bytes:
        """The bytes since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _taken(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
