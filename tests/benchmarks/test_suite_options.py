"""``pytest benchmarks`` times the suite, with the options of pytest-benchmark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.architecture.source import ROOT

pytestmark = pytest.mark.extended

SELECTION: Final = "controller-failover and 1000-10"
NAMES: Final = {f"test_bench[controller-failover-1000-{brokers}]" for brokers in (10, 100, 1000)}


def run(*arguments: str) -> str:
    """The output of pytest, which must succeed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "benchmarks", "-k", SELECTION, *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def test_plain_run_prints_times() -> None:
    output = run()
    assert "Name (time in ms)" in output
    assert {name for name in NAMES if f"\n{name} " in output} == NAMES


@pytest.mark.parametrize(
    "arguments, rounds",
    [(("--benchmark-min-rounds=2",), 2), (("--benchmark-min-rounds=2", "--bench-runs=4"), 4), ((), 5)],
)
def test_json_has_rounds_and_times(tmp_path: Path, arguments: tuple[str, ...], rounds: int) -> None:
    path = tmp_path / "times.json"
    run("--benchmark-only", f"--benchmark-json={path}", *arguments)
    timed: list[dict[str, Any]] = json.loads(path.read_text())["benchmarks"]
    assert {entry["name"] for entry in timed} == NAMES
    assert [entry["stats"]["rounds"] for entry in timed] == [rounds] * len(NAMES)
    assert all(entry["stats"]["min"] > 0 for entry in timed)
    assert all(entry["extra_info"]["answer_known"] for entry in timed)


def test_disabled_timing_only_checks_answers() -> None:
    assert "Name (time in" not in run("--benchmark-disable")
