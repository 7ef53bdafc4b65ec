"""Run a fleet on two worker processes; kill one of them, then a Python worker.

``test_killed.py`` runs this in a separate process, since a process has only one Spark. It prints the killed processes,
and whether the result equals that of one machine.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

import kframe.spark
from kframe.snapshot.generate import generate
from kframe.spark.schema import PARTITIONS
from kframe.spark.sessions import session
from tests.spark import jvm
from tests.spark.outcomes import assert_same_rows, reference_rows, scenario
from tests.spark.test_functions import frames, rows_in, without_problems


def main(directory: Path) -> None:
    """Run scenarios, kill processes, compare results."""
    conf = jvm.SETTINGS | {
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.local.dir": str(directory / "local"),
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": 2,
    }  # fmt: skip
    spark = session("local-cluster[2,1,512]", app_name="kframe-killed", conf=conf)
    spark.sparkContext.setLogLevel("OFF")
    snapshot = generate(2_000, 6, racks=3)
    fleet = frames(spark, {"east": snapshot})
    deadly = fleet["partitions"].mapInArrow(lambda batches: _killing(batches, directory), PARTITIONS.ddl)
    played = kframe.spark.whatif(fleet | {"partitions": deadly}, brokers=[2], table="changes")
    results = {"changes": without_problems(rows_in(played))}
    expected = reference_rows(snapshot, scenario(brokers=[2], name="fail-2"))
    assert_same_rows(results, {"changes": expected["changes"]})
    killed = sorted(file.name for file in directory.iterdir() if file.suffix == ".killed")
    print(json.dumps({"killed": killed, "rows": {name: len(rows) for name, rows in results.items()}}))
    spark.stop()


def _killing(batches: Iterable[pa.RecordBatch], directory: Path) -> Iterator[pa.RecordBatch]:
    """Return the rows unchanged. The first two tasks fail after their first batch."""
    first = True
    for batch in batches:
        yield batch
        if first:
            first = False
            _die_once(directory / "worker.killed", os.getpid())
            _die_once(directory / "executor.killed", _parent(os.getppid()))


def _die_once(mark: Path, process: int) -> None:
    try:
        mark.open("x").close()
    except FileExistsError:
        return
    os.kill(process, signal.SIGKILL)


def _parent(process: int) -> int:
    """Return the executor, whose child is the daemon that forks Python workers."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
