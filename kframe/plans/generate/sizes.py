"""Read the sizes of partitions from Parquet, CSV, JSON or the output of ``kafka-log-dirs``."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np

from kframe.errors import InputError, pip_command
from kframe.model.arrays import Int32, Int64
from kframe.plans.generate.log_dirs import BYTES_MAX, is_log_dirs, read_log_dirs
from kframe.snapshot import Snapshot
from kframe.snapshot.decode import check_unique_keys, decode
from kframe.snapshot.files import InputFile, read_document

_COLUMNS: Final = ("topic", "partition", "bytes")
_PARQUET: Final = b"PAR1"


class PartitionSize(msgspec.Struct):
    """The size of one replica of a partition."""

    topic: str
    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    bytes: Annotated[int, msgspec.Meta(ge=0, le=BYTES_MAX)]


_JSON: Final = msgspec.json.Decoder(list[PartitionSize])


def read_weights(source: InputFile | str, snapshot: Snapshot) -> Int64:
    """(n,) bytes of a replica of each row of the snapshot, from the columns topic, partition and bytes.

    The format follows from the content; what ``kafka-log-dirs`` prints has the largest replica. Raises InputError for a
    malformed file, for a partition that it lacks or names twice, and for more than BYTES_MAX bytes, also of all
    replicas together. Partitions that the snapshot lacks are ignored.
    """
    path = Path(source) if isinstance(source, str) else source
    document = read_document(path, expected="sizes of partitions")
    if document.startswith(_PARQUET):
        topics, partition, size = _parquet(document, str(path))
    elif document.lstrip().startswith(b"["):
        rows = decode(_JSON, document, str(path))
        check_unique_keys(document, str(path), dict.fromkeys((b"topic", b"partition", b"bytes"), len(rows)))
        topics = [row.topic for row in rows]
        partition = np.array([row.partition for row in rows], np.int32)
        size = np.array([row.bytes for row in rows], np.int64)
    elif is_log_dirs(document):
        topics, partition, size = read_log_dirs(document, str(path))
    else:
        topics, partition, size = _csv(document, str(path))
    return _aligned(topics, partition, size, snapshot, str(path))


def _parquet(document: bytes, where: str) -> tuple[list[str], Int32, Int64]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as problem:
        raise InputError(where, "a Parquet file without pyarrow", f"the package: {pip_command('arrow')}") from problem
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
    for name, values, limit in (("partition", partition, 2**31 - 1), ("bytes", size, BYTES_MAX)):
        wrong = values[(values < 0) | (values > limit)]
        if len(wrong):
            raise InputError(where, f"{name} {int(wrong[0])}", f"0 to {limit}")
    return topics, partition, size


def _csv(document: bytes, where: str) -> tuple[list[str], Int32, Int64]:
    rows = csv.DictReader(io.StringIO(document.decode(errors="replace")), strict=True)
    try:
        return _csv_columns(rows, where)
    except csv.Error as problem:
        actual = f"malformed CSV ({problem})"
        raise InputError(f"{where}:{rows.reader.line_num}", actual, "lines of topic,partition,bytes") from problem


def _csv_columns(rows: csv.DictReader[str], where: str) -> tuple[list[str], Int32, Int64]:
    names = list(rows.fieldnames or ())
    if any(names.count(name) != 1 for name in _COLUMNS):
        raise InputError(
            f"{where}:1",
            repr(",".join(names)[:60]),
            "a header with topic, partition and bytes once each, or Parquet, a JSON list, or kafka-log-dirs --describe",
        )
    topics: list[str] = []
    partition: list[int] = []
    size: list[int] = []
    for row in rows:
        texts = row["partition"] or "", row["bytes"] or ""
        if not all(text.isascii() and text.isdecimal() and len(text) < 40 for text in texts):
            raise InputError(f"{where}:{rows.line_num}", repr(",".join(texts)), "a partition and bytes, as integers")
        for name, text, limit in zip(_COLUMNS[1:], texts, (2**31 - 1, BYTES_MAX), strict=True):
            if int(text) > limit:
                raise InputError(f"{where}:{rows.line_num}", f"{name} {text}", f"0 to {limit}")
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
    total = float((weights.astype(np.float64) * snapshot.partitions.replicas.counts).sum())
    if total > BYTES_MAX:
        raise InputError(where, f"{total:,.0f} bytes of all replicas together", f"at most {BYTES_MAX:,}")
    return weights
