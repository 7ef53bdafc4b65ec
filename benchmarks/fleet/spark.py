"""Compare a fleet on Spark with the engine alone: ``python -m benchmarks.fleet.spark``, for failovers or ``--sweep``.

Times are elapsed seconds. ``engine`` processes one cluster after another on one machine, from tables in memory to a
table of changed partitions. ``start`` is the start of a Spark session. ``first`` is the same failover on a cluster of
a thousand partitions: Spark's fixed cost. ``no_op`` passes the same rows through ``mapInArrow``. ``failover`` should
stay within ``limit``: three times ``engine`` plus ``no_op``. ``peak`` is the memory of this process, the JVM and the
Python workers (proportional set size), sampled during another run.

With ``--sweep`` every broker, every pair and every rack fails instead: ``sweep`` replaces ``failover``, its ``limit``
is two minutes, and ``engine`` is the time of ``kframe.whatif.sweep``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from benchmarks.timing import timed
from kframe.snapshot import Snapshot
from kframe.snapshot.generate import generate
from kframe.spark import failover, sweeping
from kframe.spark.rows import rows_of
from kframe.spark.scenarios import single_scenario
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS
from kframe.spark.session import session
from kframe.whatif import WhatIf, sweep
from kframe.whatif.sweep_export import failures_table

#: The most that a sweep of 100 brokers and a million partitions may take.
SWEEP_SECONDS_MAX: Final = 120


def main() -> None:
    """Measure and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=1_000_000, help="of each cluster")
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--driver-memory", default="1g")
    parser.add_argument("--sweep", action="store_true", help="sweep all failures instead of a failover")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = SWEEP if options.sweep else FAILOVER
        figures: dict[str, Any] = {**vars(options), "engine": 0.0, "rows": 0}
        for number in range(options.clusters):
            snapshot = generate(options.partitions, options.brokers, racks=4, seed=number)
            _write(snapshot, f"cluster-{number:03d}", Path(folder) / "whole")
            seconds, rows = timed(partial(work.alone, snapshot))
            figures["engine"] += seconds
            figures["rows"] += rows
        del snapshot
        _write(generate(1_000, options.brokers, racks=4), "small", Path(folder) / "small")
        figures |= _on_spark(Path(folder), options, work)
    figures["limit"] = SWEEP_SECONDS_MAX if options.sweep else 3 * figures["engine"] + figures["no_op"]
    print(json.dumps({name: round(value, 2) if isinstance(value, float) else value for name, value in figures.items()}))


@dataclass(frozen=True)
class Work:
    """What is measured: on one machine, on Spark. Both give the number of rows that come of it."""

    name: str
    alone: Callable[[Snapshot], int]
    on_spark: Callable[[Any, Sequence[Any]], int]


def _fail_alone(snapshot: Snapshot) -> int:
    rows: int = WhatIf(snapshot).fail([7]).to_arrow().num_rows
    return rows


def _fail_on_spark(spark: Any, tables: Sequence[Any]) -> int:
    partitions, brokers, clusters = tables
    rows: int = failover.failover(
        partitions, brokers, clusters, single_scenario(spark, "broker-7", brokers=[7])
    ).count()
    return rows


def _sweep_alone(snapshot: Snapshot) -> int:
    swept = sweep(snapshot)
    rows: int = failures_table(swept, swept.ranked()).num_rows
    return rows


def _sweep_on_spark(_: Any, tables: Sequence[Any]) -> int:
    """All rows of all columns are computed. A count alone would not need that."""
    partitions, brokers, clusters = tables
    swept = sweeping.sweep(partitions, brokers, clusters).persist()
    rows: int = swept.count()
    swept.unpersist()
    return rows


FAILOVER: Final = Work("failover", _fail_alone, _fail_on_spark)
SWEEP: Final = Work("sweep", _sweep_alone, _sweep_on_spark)


def _on_spark(folder: Path, options: argparse.Namespace, work: Work) -> dict[str, Any]:
    conf = {"spark.driver.memory": options.driver_memory, "spark.sql.shuffle.partitions": 2,
            "spark.local.dir": str(folder / "local")}  # fmt: skip
    start, spark = timed(lambda: session(options.master, conf=conf))
    spark.sparkContext.setLogLevel("ERROR")

    def read(path: Path) -> list[Any]:
        return [spark.read.parquet(str(path / table.name)) for table in (PARTITIONS, BROKERS, CLUSTERS)]

    partitions, brokers, clusters = read(folder / "whole")

    def same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def read_all() -> None:
        partitions.mapInArrow(same, partitions.schema).write.format("noop").mode("overwrite").save()

    first, _ = timed(lambda: work.on_spark(spark, read(folder / "small")))
    no_op, _ = timed(read_all)
    seconds, rows = timed(lambda: work.on_spark(spark, (partitions, brokers, clusters)))
    with _Memory() as memory:
        work.on_spark(spark, (partitions, brokers, clusters))
    spark.stop()
    return {"start": start, "first": first, "no_op": no_op, work.name: seconds, f"{work.name}_rows": rows,
            "peak_mib": memory.peak // 2**20}  # fmt: skip


def _write(snapshot: Snapshot, cluster: str, folder: Path) -> None:
    for table in (PARTITIONS, BROKERS, CLUSTERS):
        (folder / table.name).mkdir(parents=True, exist_ok=True)
        rows = pa.Table.from_batches(list(rows_of(snapshot, cluster, table)), table.schema)
        parquet.write_table(rows, folder / table.name / f"{cluster}.parquet", row_group_size=2**17)


class _Memory:
    """Samples what this process and its descendants hold."""

    peak = 0

    def __enter__(self) -> _Memory:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            self.peak = max(self.peak, sum(map(_resident_bytes, _process_tree(os.getpid()))))


def _process_tree(process: int) -> Iterator[int]:
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            text = children.read_text().split()
        except OSError:
            continue
        for child in text:
            yield from _process_tree(int(child))


def _resident_bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
