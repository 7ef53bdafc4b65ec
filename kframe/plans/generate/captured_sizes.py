"""Write the sizes of partitions on a live cluster as a file that ``sizes.read_weights`` reads.

JSON also has the log directories, as ``log_dirs.read_directories`` reads them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kframe.errors import InputError, pip_command
from kframe.model.events import TopicPartition
from kframe.ports.administration import LogDirectory, LogDirReplica
from kframe.snapshot import Snapshot
from kframe.whatif.files import check_file, replacing

#: What the name of a file may end in.
ENDINGS: Final = (".parquet", ".csv", ".json")
_COLUMNS: Final = ("topic", "partition", "bytes", "replicas")


def check_sizes_file(path: Path, *, force: bool) -> None:
    """Raise InputError unless the file may be written, in a format of ``ENDINGS`` that this environment writes."""
    check_file(path, ENDINGS, force=force)
    if path.suffix == ".parquet":
        _pyarrow(path)


def size_rows(
    snapshot: Snapshot, logs: Mapping[int, Mapping[TopicPartition, LogDirReplica]]
) -> Iterator[dict[str, Any]]:
    """A row for each partition of the snapshot whose size a broker knows, in the snapshot's order.

    ``bytes`` is the size of its largest replica, and ``replicas`` has broker, bytes and log directory of each assigned
    replica that is known.
    """
    names, lists = snapshot.topics.names, snapshot.partitions.replicas
    for topic, first, count in zip(names, snapshot.topics.first_rows, snapshot.topics.partition_counts, strict=True):
        for partition in range(int(count)):
            replicas = [
                {"broker_id": broker_id, "bytes": log.bytes, "log_dir": log.log_dir}
                for broker_id in lists[int(first) + partition].tolist()
                if (log := logs.get(broker_id, {}).get((topic, partition))) is not None
            ]
            if replicas:
                size = max(replica["bytes"] for replica in replicas)
                yield {"topic": topic, "partition": partition, "bytes": size, "replicas": replicas}


def write_sizes(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows as Parquet, or as CSV whose ``replicas`` are JSON, by the ending of the name. Raises InputError."""
    with replacing(path) as new:
        (_write_parquet if path.suffix == ".parquet" else _write_csv)(rows, new)


def write_directories(listed: Mapping[int, Sequence[LogDirectory]], path: Path) -> None:
    """Write the log directories of brokers as ``kafka-log-dirs`` prints them, with the sizes of their volumes."""
    brokers = [
        {"broker": broker_id, "logDirs": list(map(_directory, directories))}
        for broker_id, directories in listed.items()
    ]
    with replacing(path) as new:
        new.write_text(json.dumps({"version": 1, "brokers": brokers}), encoding="utf-8")


def _directory(directory: LogDirectory) -> dict[str, Any]:
    return {
        "logDir": directory.path,
        "error": directory.error,
        "totalBytes": directory.total_bytes,
        "usableBytes": directory.usable_bytes,
        "isCordoned": directory.is_cordoned,
        "partitions": [
            {"partition": f"{log.topic}-{log.partition}", "size": log.bytes, "isFuture": log.is_future}
            for log in directory.logs
        ],
    }


def _write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    pa, pq = _pyarrow(path)
    replica = pa.struct([("broker_id", pa.int32()), ("bytes", pa.int64()), ("log_dir", pa.string())])
    types = (pa.string(), pa.int32(), pa.int64(), pa.list_(replica))
    schema = pa.schema(list(zip(_COLUMNS, types, strict=True)))
    pq.write_table(pa.Table.from_pylist(list(rows), schema), path)


def _write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(_COLUMNS)
        table.writerows((*(row[name] for name in _COLUMNS[:-1]), json.dumps(row["replicas"])) for row in rows)


def _pyarrow(path: Path) -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as problem:
        expected = f"a name that ends in .csv, or the package: {pip_command('arrow')}"
        raise InputError(str(path), "no pyarrow", expected) from problem
    return pa, pq
