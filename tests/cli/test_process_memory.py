"""Peak memory of ``kframe whatif fail`` as a process, by the partitions of the cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.clusters import generated
from benchmarks.limits.processes import run
from kframe.snapshot.content import Mode

SIZES = (200_000, 600_000)


@pytest.mark.extended
@pytest.mark.parametrize(
    "mode, bytes_max",
    [
        ("zookeeper", 235),  # 199 when this was written; another copy of the cluster takes 53
        ("kraft", 250),  # 212; another copy takes 67
    ],
)
def test_memory_per_partition_is_small(mode: Mode, bytes_max: int, tmp_path: Path) -> None:
    peaks = []
    for partitions in SIZES:
        source = tmp_path / str(partitions)
        generated(source, partitions, 50, mode)
        command = [sys.executable, "-m", "kframe.cli", "whatif", "fail", str(source), "--brokers", "1"]
        peaks.append(min(run(command)["peak_bytes"] for _ in range(2)))
    assert 53 < (peaks[1] - peaks[0]) / (SIZES[1] - SIZES[0]) < bytes_max
