"""``python -m benchmarks`` at small sizes. Also its calculations."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.limits import growth
from benchmarks.report.targets import TARGETS
from benchmarks.suite import timed
from tests.architecture.source import ROOT


def failure(bench: str, choose: float, decide: float, brokers: int = 100) -> dict[str, Any]:
    """A result of ``kframe bench`` with the fields that ratios use."""
    spread = {
        phase: {"min": value, "median": value}
        for phase, value in (("choose", choose), ("decide", decide), ("ready", 9.0))
    }
    return {
        "bench": bench,
        "partitions": 1_000,
        "brokers": brokers,
        "seconds": spread,
        "state_bytes_per_partition": 80.0,
        "resident_bytes": 2**29,
    }


def test_tiers_are_compared_with_built_in_rule_of_same_size() -> None:
    results = [
        failure("broker-failure", 1.0, 10.0),
        failure("broker-failure-bulk", 3.0, 12.0),
        failure("broker-failure-native", 9.0, 9.0, brokers=10),
        failure("election-of-all", 5.0, 10.0),
        failure("election-of-all-bulk", 7.0, 11.0),
    ]
    size = {"partitions": 1_000, "brokers": 100, "tier": "bulk"}
    assert timed.tiers(results) == [
        {**size, "bench": "broker-failure", "choose": 3.0, "decide": 1.2},
        {**size, "bench": "election-of-all", "choose": 1.4, "decide": 1.1},
    ]
    assert [timed.tier_line(tier)[2:] for tier in timed.tiers(results)] == [
        ("broker-failure", "bulk", "3.00", "1.20"),
        ("election-of-all", "bulk", "1.40", "1.10"),
    ]
    by_name = {ratio.name: (ratio.value, ratio.less, ratio.absolute) for ratio in timed.ratios(results)}
    assert by_name == {
        "choose-bulk/1000/100": (3.0, True, False),
        "decide-bulk/1000/100": (1.2, True, False),
        "choose-all-bulk/1000/100": (1.4, True, False),
        "decide-all-bulk/1000/100": (1.1, True, False),
        "broker-failure/1000/100 bytes a partition": (80.0, True, False),
        "broker-failure/1000/100 seconds": (9.0, True, True),
        "broker-failure/1000/100 resident": (0.5, True, True),
    }


#: All kinds of decisions, writes and requests. The storm reaches rows whose slots exceed 16 bits.
OF_REFERENCE_KERNELS = ("rack-failure", "reassignment-start", "topic-creation-storm", "topic-deletion")


@pytest.mark.extended
def test_known_answers_equal_reference_kernels() -> None:
    """No compiled kernel is used."""
    words = ["benchmarks/suite", "-q", "-p", "no:cacheprovider", f"--bench-only={','.join(OF_REFERENCE_KERNELS)}"]
    code = (
        "from verification.reference.kernels import use_reference_kernels; use_reference_kernels();"
        "import pytest; pytest.console_main()"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code, *words, "--bench-brokers=10"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout
    assert f"{len(OF_REFERENCE_KERNELS)} passed" in completed.stdout


@pytest.mark.extended
def test_suite_runs_all_benches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "record.json"
    sizes = ["--partitions", "1000", "--over", "10", "--sizes", "100", "200"]
    runs = ["--brokers", "5", "--runs", "1", "--growth-runs", "1"]
    names = ["broker-failure", "broker-failure-native", "batching"]
    assert main([*sizes, *runs, "--benches", *names, "--out", str(out), "-o", "json"]) == 0
    record = json.loads(out.read_text())
    assert json.loads(capsys.readouterr().out) == record
    assert [row["bench"] for row in record["suite"]] == names
    assert all(row["answer_known"] for row in record["suite"])
    assert [row["bench"] for row in record["requests"]] == list(growth.EVENTS)
    for row in record["requests"]:
        assert row["partitions"] == [100, 200]
        assert row["exponent"] == pytest.approx(growth.exponent(row["partitions"], row["seconds"]))
    assert record["command"][:3] == ["python", "-m", "benchmarks"]
    assert {"commit", "processor", "cores"} <= set(record)
    assert {"choose-native/1000/10", "growth of topic-creation"} <= {ratio["name"] for ratio in record["ratios"]}
    assert [target["name"] for target in record["targets"]] == list(TARGETS)
    assert list(record["part_seconds"]) == ["suite, 1,000 partitions, 10 brokers", "requests"]
    assert record["failed"] == []
