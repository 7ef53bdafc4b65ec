"""Workers of kframe's sessions run the Python of the driver, wherever ``PATH`` leads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import kframe.spark

spark = kframe.spark.session("local[1]")
columns = ["topic", "partition", "replicas", "leader", "isr"]
partitions = spark.createDataFrame([("t", 0, [1, 2], 1, [1, 2]), ("t", 1, [2], 2, [2])], columns)
print(*kframe.spark.whatif(partitions, brokers=[2]).select("newly_offline", "problem").first())
"""
#: What Spark's start scripts call, besides Java.
SHELL = ("bash", "dirname")


@pytest.mark.real
def test_workers_run_without_a_python_on_path(tmp_path: Path) -> None:
    """The environment has Java and a shell; Python is started by its absolute path."""
    for name in ("java", *SHELL):
        path = shutil.which(name)
        assert path is not None
        (tmp_path / name).symlink_to(Path(path).resolve())
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**variables, "PATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr[-4000:]
    assert completed.stdout.split() == ["1", "None"]
