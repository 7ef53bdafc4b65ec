"""Read the sizes of partitions from Parquet, CSV, JSON or the output of ``kafka-log-dirs``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np

from kframe.errors import InputError, pip_command
from kframe.model.arrays import Int32, Int64
from kframe.model.events import TopicPartition
from kframe.plans.generate.log_dirs import BYTES_MAX, is_log_dirs, read_log_dirs
from kframe.ports.administration import LogDirectory
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


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaSizes:
    """The bytes of a replica of partitions: parallel columns. ``where`` names their source in error messages."""

    topics: Sequence[str]
    partition: Int32
    bytes: Int64
    where: str

    @staticmethod
    def of_directories(listed: Mapping[int, Iterable[LogDirectory]], where: str) -> ReplicaSizes:
        """The largest replica of each partition in log directories by broker. Future logs do not count."""
        sizes: dict[TopicPartition, int] = {}
        for directories in listed.values():
            for log in (log for directory in directories for log in directory.logs if not log.is_future):
                name = (log.topic, log.partition)
                sizes[name] = max(log.bytes, sizes.get(name, 0))
        partition = np.array([number for _, number in sizes], np.int32)
        return ReplicaSizes([topic for topic, _ in sizes], partition, np.array([*sizes.values()], np.int64), where)

    def weights(self, snapshot: Snapshot, absent: int | None = None) -> Int64:
        """(n,) the bytes by row of the snapshot, ``absent`` for each partition without a size.

        Partitions that the snapshot lacks are ignored. Raises InputError for a partition that is twice in the columns,
        or not at all if ``absent`` is None, and for more than BYTES_MAX bytes of all replicas together.
        """
        facts = snapshot.topics
        numbers = {name: index for index, name in enumerate(facts.names)}
        topic = np.array([numbers.get(name, -1) for name in self.topics], np.int64)
        known = topic >= 0
        known[known] = self.partition[known] < facts.partition_counts[topic[known]]
        rows = facts.first_rows[topic[known]] + self.partition[known]
        times = np.bincount(rows, minlength=len(snapshot))
        if (times > 1).any():
            raise InputError(self.where, f"{facts.name_of_row(int(times.argmax()))} twice", "each partition once")
        if absent is None and (times == 0).any():
            actual = f"no bytes of {facts.name_of_row(int(times.argmin()))}"
            raise InputError(self.where, actual, "each partition of the snapshot")
        weights = np.full(len(snapshot), absent or 0, np.int64)
        weights[rows] = self.bytes[known]
        total = float((weights.astype(np.float64) * snapshot.partitions.replicas.counts).sum())
        if total > BYTES_MAX:
            raise InputError(self.where, f"{total:,.0f} bytes of all replicas together", f"at most {BYTES_MAX:,}")
        return weights


def read_weights(source: InputFile | str, snapshot: Snapshot) -> Int64:
    """(n,) bytes of a replica of each row of the snapshot: ``read_sizes`` and ``ReplicaSizes.weights``."""
    return read_sizes(source).weights(snapshot)


def read_sizes(source: InputFile | str) -> ReplicaSizes:
    """The columns topic, partition and bytes of a file, whose format follows from its content.

    What ``kafka-log-dirs`` prints has the largest replica. Raises InputError for a malformed file.
    """
    path = Path(source) if isinstance(source, str) else source
    document = read_document(path, expected="sizes of partitions")
    if document.startswith(_PARQUET):
        columns = _parquet(document, str(path))
    elif document.lstrip().startswith(b"["):
        rows = decode(_JSON, document, str(path))
        check_unique_keys(document, str(path), dict.fromkeys((b"topic", b"partition", b"bytes"), len(rows)))
        partition = np.array([row.partition for row in rows], np.int32)
        columns = [row.topic for row in rows], partition, np.array([row.bytes for row in rows], np.int64)
    elif is_log_dirs(document):
        columns = read_log_dirs(document, str(path))
    else:
        columns = _csv(document, str(path))
    return ReplicaSizes(*columns, str(path))


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
