"""``spark-submit --master`` on a standalone master with two workers has the same result as one machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from kframe.snapshot.generate import generate
from tests.snapshot.samples import ROOT
from tests.spark.fleets import snapshot_directory
from tests.spark.outcomes import reference_rows, scenario
from tests.spark.processes import BIN, IN_SPARK, LOCAL, environment, settings, standalone_cluster

FLEET = {f"cluster-{number}": generate(300, 5, racks=2, seed=number) for number in range(4)}


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Start a master; yield its address. Its workers of one core each have ``work-1`` and ``work-2``."""
    with standalone_cluster(tmp_path) as address:
        yield address


@pytest.mark.real
@pytest.mark.extended
def test_spark_submit_on_two_workers(master: str, tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    for name, snapshot in FLEET.items():
        snapshot_directory(tmp_path / "fleet" / name, snapshot)
    out = tmp_path / "out"
    conf = {
        **LOCAL,
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.executor.cores": 1,
        "spark.cores.max": 2,
        "spark.sql.shuffle.partitions": 2,
        "spark.local.dir": tmp_path / "local",
        "spark.scheduler.minRegisteredResourcesRatio": 1.0,
    }
    completed = subprocess.run(
        [
            BIN / "spark-submit",
            "--master",
            master,
            *settings(conf),
            ROOT / "examples" / "spark" / "submit.py",
            "spark",
            "failover",
            tmp_path / "fleet",
            "--brokers",
            "2",
            "--out",
            out,
            "-o",
            "jsonl",
            *IN_SPARK,
        ],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout[-4000:] + completed.stderr[-4000:]
    rows = [json.loads(line) for line in completed.stdout.splitlines() if line.startswith("{")]  # it mixes both streams
    assert [row["cluster"] for row in rows] == list(FLEET)
    changes = parquet.read_table(out / "changes").to_pylist()
    for name, snapshot in FLEET.items():
        expected = reference_rows(snapshot, scenario(brokers=[2], name="fail-2"), cluster=name)["changes"]
        mine = [{key: row[key] for key in expected[0]} for row in changes if row["cluster"] == name]
        assert sorted(mine, key=repr) == sorted(expected, key=repr)
    # A worker may have a second executor, in place of an executor that a busy machine kept from responding.
    assert all(list((tmp_path / f"work-{number}").glob("app-*/*")) for number in (1, 2))
