"""Read the sizes of partitions from Parquet, CSV or JSON."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np

from kframe.errors import InputError
from kframe.model.columns import Int32, Int64
from kframe.snapshot import Snapshot
from kframe.snapshot.decode import decode
from kframe.snapshot.files import InputFile, read_document

_COLUMNS: Final = ("topic", "partition", "bytes")
_PARQUET: Final = b"PAR1"


class PartitionSize(msgspec.Struct):
    """The size of one replica of a partition."""

    topic: str
    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    bytes: Annotated[int, msgspec.Meta(ge=0, le=2**53)]


_JSON: Final = msgspec.json.Decoder(list[PartitionSize])


def read_weights(source: InputFile | str, snapshot: Snapshot) -> Int64:
    """(n,) bytes of a replica of each row of the snapshot, from the columns topic, partition and bytes.

    The format follows from the content. Raises InputError for a malformed file, for a partition that it lacks and for a
    partition that it names twice. Partitions that the snapshot lacks are ignored.
    """
    path = Path(source) if isinstance(source, str) else source
    document = read_document(path)
    if document.startswith(_PARQUET):
        topics, partition, size = _parquet(document, str(path))
    elif document.lstrip().startswith(b"["):
        rows = decode(_JSON, document, str(path))
        topics = [row.topic for row in rows]
        partition = np.array([row.partition for row in rows], np.int32)
        size = np.array([row.bytes for row in rows], np.int64)
    else:
        topics, partition, size = _csv(document, str(path))
    return _aligned(topics, partition, size, snapshot, str(path))


def _parquet(document: bytes, where: str) -> tuple[list[str], Int32, Int64]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as problem:
        raise InputError(where, "a Parquet file without pyarrow", "kframe-controller[arrow] installed") from problem
    try:
        table = pq.read_table(io.BytesIO(document), columns=list(_COLUMNS))
        columns = [table[name] for name in _COLUMNS]
        if any(column.null_count for column in columns):
            raise InputError(where, "a null", "a value in each of topic, partition and bytes")
        size = columns[2].cast(pa.int64()).to_numpy()
        partition = columns[1].cast(pa.int32()).to_numpy()
        topics: list[str] = columns[0].cast(pa.string()).to_pylist()
    except (pa.ArrowException, KeyError, OSError) as problem:
        raise InputError(where, str(problem).partition("\n")[0], "columns topic, partition and bytes") from problem
    if len(size) and int(size.min()) < 0:
        raise InputError(where, f"bytes {int(size.min())}", "0 or more")
    return topics, partition, size


def _csv(document: bytes, where: str) -> tuple[list[str], Int32, Int64]:
    rows = csv.DictReader(io.StringIO(document.decode(errors="replace")))
    if not set(_COLUMNS) <= set(rows.fieldnames or ()):
        header = ",".join(rows.fieldnames or ())[:60]
        raise InputError(
            f"{where}:1", repr(header), "a header with topic, partition and bytes, or Parquet, or a JSON list"
        )
    topics: list[str] = []
    partition: list[int] = []
    size: list[int] = []
    for row in rows:
        texts = row["partition"] or "", row["bytes"] or ""
        if not all(text.isascii() and text.isdecimal() and len(text) < 16 for text in texts):
            raise InputError(f"{where}:{rows.line_num}", repr(",".join(texts)), "a partition and bytes, as integers")
        if int(texts[0]) > 2**31 - 1:
            raise InputError(f"{where}:{rows.line_num}", texts[0], "a partition below 2147483648")
        topics.append(row["topic"])
        partition.append(int(texts[0]))
        size.append(int(texts[1]))
    return topics, np.array(partition, np.int32), np.array(size, np.int64)


def _aligned(topics: list[str], partition: Int32, size: Int64, snapshot: Snapshot, where: str) -> Int64:
    facts = snapshot.topics
    numbers = {name: index for index, name in enumerate(facts.names)}
    topic = np.array([numbers.get(name, -1) for name in topics], np.int64)
    known = topic >= 0
    known[known] = partition[known] < facts.partition_counts[topic[known]]
    rows = facts.first_rows[topic[known]] + partition[known]
    times = np.bincount(rows, minlength=len(snapshot))
    if (times > 1).any():
        raise InputError(where, f"{facts.name_of_row(int(times.argmax()))} twice", "each partition once")
    if (times == 0).any():
        raise InputError(
            where, f"no bytes of {facts.name_of_row(int(times.argmin()))}", "each partition of the snapshot"
        )
    weights = np.zeros(len(snapshot), np.int64)
    weights[rows] = size[known]
    return weights
