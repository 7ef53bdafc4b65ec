"""Shards: partition rows of one cluster, packed so that Spark moves them as one value.

A shard has any rows of its cluster, in any order, and a topic may be in several shards. The results of shards are
merged, so partition rows are not shuffled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kframe.model.columns import Int64
from kframe.model.lists import distinct_values
from kframe.spark.schema import INT, LONG, PARTITIONS, TEXT, FleetTable, to_stream, with_columns_of

#: Rows of a shard, or a batch more: some megabytes, which is much beside a controller's fixed cost and little beside
#: a worker's memory.
TARGET_ROWS: Final = 65_536
#: Rows that a packer holds, in shards, while the rows of many clusters come mixed.
OPEN_SHARDS: Final = 8

#: ``pieces`` are compressed Arrow streams of PARTITIONS without ``cluster``, ``rows`` in all; ``controller_epoch`` is
#: the highest that they name, null if they name none.
SHARDS: Final = FleetTable(
    "shards",
    pa.schema([("cluster", TEXT), ("rows", LONG), ("controller_epoch", INT), ("pieces", pa.list_(pa.binary()))]),
)
#: What is packed.
PACKED: Final = pa.schema([field for field in PARTITIONS.schema if field.name != "cluster"])
_CODED: Final = PACKED.set(0, pa.field("topic", pa.dictionary(pa.int32(), TEXT)))


def pack(batches: Iterable[pa.RecordBatch], target: int = TARGET_ROWS) -> Iterator[pa.RecordBatch]:
    """Rows of PARTITIONS in any order as rows of SHARDS with about ``target`` rows each.

    Columns that are missing are taken as unknown. Rows without a cluster are shards without one.
    """
    pending: dict[str | None, list[pa.Table]] = {}
    counts: dict[str | None, int] = {}
    for batch in batches:
        for name, part in _by_cluster(batch):
            for first in range(0, part.num_rows, target):
                piece = part.slice(first, target)
                pending.setdefault(name, []).append(piece)
                counts[name] = counts.get(name, 0) + piece.num_rows
                if counts[name] >= target:
                    yield _shard(name, pending.pop(name), counts.pop(name))
        while sum(counts.values()) > OPEN_SHARDS * target:
            largest = max(counts, key=counts.__getitem__)
            yield _shard(largest, pending.pop(largest), counts.pop(largest))
    for name, parts in pending.items():
        yield _shard(name, parts, counts[name])


def unpack(pieces: Iterable[bytes]) -> pa.Table:
    """The rows of a shard, by topic and partition. Topics are a dictionary."""
    tables = [pa.ipc.open_stream(piece).read_all() for piece in pieces]
    if len(tables) == 1:
        return tables[0]
    return _ordered(pa.concat_tables([_CODED.empty_table(), *tables]))


def _by_cluster(batch: pa.RecordBatch) -> Iterator[tuple[str | None, pa.Table]]:
    column = batch["cluster"]
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names, code = [*coded.dictionary.to_pylist(), None], coded.indices.fill_null(len(coded.dictionary)).to_numpy()
    table = with_columns_of(PACKED, batch)
    if len(distinct_values(code)) > 1:
        order = np.argsort(code, kind="stable")
        table, code = table.take(pa.array(order)), code[order]
    if not len(code):
        return
    starts = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]])).tolist()
    for first, end in zip(starts, [*starts[1:], len(code)], strict=True):
        yield names[code[first]], table.slice(first, end - first)


def _shard(name: str | None, parts: list[pa.Table], rows: int) -> pa.RecordBatch:
    table = _ordered(pa.concat_tables(parts))
    columns: list[Any] = [[name], [rows], [pc.max(table["controller_epoch"]).as_py()], [[to_stream(table)]]]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SHARDS.schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SHARDS.schema)


def _ordered(table: pa.Table) -> pa.Table:
    """By topic and partition, in one piece, names of the dictionary ascending."""
    topic, code = _ranked(table["topic"])
    key = code.astype(np.int64) << 32 | table["partition"].fill_null(-1).to_numpy()
    table = table.set_column(0, _CODED.field(0), topic)
    if not _ascending(key):
        table = table.take(pa.array(np.argsort(key, kind="stable")))
    return table.combine_chunks()


def _ranked(topic: pa.ChunkedArray) -> tuple[pa.DictionaryArray, Any]:
    coded = topic if pa.types.is_dictionary(topic.type) else topic.dictionary_encode()
    coded = coded.unify_dictionaries().combine_chunks()
    if isinstance(coded, pa.ChunkedArray):  # of no chunk
        coded = pa.array([], _CODED.field(0).type)
    order = pc.array_sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    code = rank[coded.indices.fill_null(0).to_numpy()] if len(order) else np.empty(0, np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(code), coded.dictionary.take(pa.array(order))), code


def _ascending(key: Int64) -> bool:
    return bool((key[1:] >= key[:-1]).all())
