"""Killed processes do not change the result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.real
@pytest.mark.extended
def test_killed_worker_and_executor_do_not_change_results(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    completed = subprocess.run(
        [sys.executable, "-m", "tests.spark.killed_fleet", str(tmp_path)], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}, check=False, start_new_session=True,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr[-4000:]
    report = json.loads(completed.stdout.splitlines()[-1])
    assert report["killed"] == ["executor.killed", "worker.killed"]
    assert min(report["rows"].values()) > 0
    assert report["rows"].keys() == {"changes"}
