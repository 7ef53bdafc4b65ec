"""Captured sizes are read as weights, from Parquet and CSV."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Final

import pytest

from kframe.errors import InputError
from kframe.plans.generate.captured_sizes import check_sizes_file, size_rows, write_sizes
from kframe.plans.generate.sizes import read_weights
from kframe.ports.administration import LogDirReplica
from tests.plans.generate.clusters import snapshot_of

SNAPSHOT: Final = snapshot_of({"a": [[1, 2], [2]], "b,c": [[2, 1]]}, {1: None, 2: None, 3: None})
#: Broker 3 has a log of a partition that is assigned to others, and broker 1 one of a deleted topic.
LOGS: Final = {
    1: {
        ("a", 0): LogDirReplica(10, "/x,y"),
        ("b,c", 0): LogDirReplica(2**40, "/x,y"),
        ("deleted", 0): LogDirReplica(5, "/x,y"),
    },
    2: {("a", 0): LogDirReplica(12, "/z"), ("a", 1): LogDirReplica(0, "/z")},
    3: {("a", 1): LogDirReplica(99, "/z")},
}
REPLICAS: Final = [
    [{"broker_id": 1, "bytes": 10, "log_dir": "/x,y"}, {"broker_id": 2, "bytes": 12, "log_dir": "/z"}],
    [{"broker_id": 2, "bytes": 0, "log_dir": "/z"}],
    [{"broker_id": 1, "bytes": 2**40, "log_dir": "/x,y"}],
]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_weights_are_sizes_of_largest_assigned_replicas(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"sizes{ending}"
    write_sizes(list(size_rows(SNAPSHOT, LOGS)), path)
    assert read_weights(path, SNAPSHOT).tolist() == [12, 0, 2**40]
    assert replicas_in(path) == REPLICAS


def replicas_in(path: Path) -> list[object]:
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        return [row["replicas"] for row in parquet.read_table(path).to_pylist()]
    with path.open(newline="") as file:
        return [json.loads(row["replicas"]) for row in csv.DictReader(file)]


def test_partition_without_size_has_no_row(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    write_sizes(list(size_rows(SNAPSHOT, {1: LOGS[1]})), path)
    with pytest.raises(InputError, match="no bytes of a-1"):
        read_weights(path, SNAPSHOT)


def test_unknown_suffix_and_existing_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").touch()
    for name, message in (("sizes.txt", "expected .parquet or .csv or .json"), ("sizes.csv", "already exists")):
        with pytest.raises(InputError, match=message):
            check_sizes_file(tmp_path / name, force=False)
    check_sizes_file(tmp_path / "sizes.csv", force=True)
