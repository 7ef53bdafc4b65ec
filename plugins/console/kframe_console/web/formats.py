"""Tables as CSV and Parquet, a block of rows at a time, so that an export of all rows needs little memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from kframe.plugin.columns import Int32
from kframe_console.tables.table import ColumnTable


def csv_blocks(table: ColumnTable, rows: Int32) -> Iterator[bytes]:
    """``rows`` as CSV, as the commands of kframe print it: lists with commas, unknown values empty."""
    yield ",".join(table.columns).encode() + b"\n"
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    for block in table.blocks(rows):
        arrays = {name: _csv_array(column.arrow_column(block)) for name, column in table.columns.items()}
        sink = pa.BufferOutputStream()
        csv.write_csv(pa.table(arrays), sink, options)
        yield sink.getvalue().to_pybytes()


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
    """A file for ``ParquetWriter``, from which ``take`` removes the written bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The number of written bytes."""
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


def _csv_array(array: Any) -> Any:
    """Values of CSV: lists and maps as texts, and nulls as empty ones."""
    kind = array.type
    if pa.types.is_map(kind):
        texts = [
            None if value is None else ",".join(f"{name}={text}" for name, text in value) for value in array.to_pylist()
        ]
        return pa.array(texts, pa.string())
    if pa.types.is_list(kind):
        from pyarrow import compute  # Its functions take 5 MB.

        return compute.binary_join(array.cast(pa.list_(pa.string())), ",")
    return array
