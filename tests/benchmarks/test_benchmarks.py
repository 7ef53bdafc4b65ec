"""``python -m benchmarks`` at sizes of a test, and the arithmetic of its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import against_kafka, growth, peers
from benchmarks.__main__ import main


def test_the_exponent_of_a_power_law_is_found() -> None:
    sizes = [10, 100, 1_000, 5_000]
    assert growth.exponent(sizes, [3.0 * size**1.25 for size in sizes]) == pytest.approx(1.25)
    assert growth.exponent([10, 20], [4.0, 4.0]) == pytest.approx(0.0)


def ours(ready: float) -> dict[str, Any]:
    """A result of ``kframe bench``, as far as a row looks at it."""
    seconds = {phase: {"median": ready} for phase in ("ready", "decide", "encode")}
    return {"seconds": seconds, "state_bytes_per_partition": 68.0}


def test_a_ratio_is_kafkas_best_run_to_ours() -> None:
    parts = peers.PARTS["preferred-election"]
    figures = {parts[0]: {"seconds_min": 2.0}, parts[1]: {"seconds_min": 1.0}}
    row = against_kafka.row("preferred-election", 1_000, [ours(0.125), ours(0.25)], figures)
    assert (row["kafka_seconds"], row["target"]) == (3.0, 20)
    assert row["ratio"] == {"least": 12.0, "most": 24.0}
    line = dict(zip(against_kafka.HEADINGS, against_kafka.line(row), strict=True))
    assert (line["kframe ms"], line["Kafka ms"], line["ratio"], line["wanted"]) == ("250.00", "3000", "12 to 24", "20")


def test_every_bench_beside_kafkas_has_its_figures_and_target() -> None:
    assert set(peers.PARTS) == set(against_kafka.TARGETS)
    source = (peers.PEERS / "zk/src/main/scala/peerbench/zk/ZkController.scala").read_text()
    for part in sum(peers.PARTS.values(), ()):
        assert f'measure("{part.split(".")[1]}"' in source


def test_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "record.json"
    sizes = ["--partitions", "200", "--sizes", "100", "200", "--clusters", "100", "300"]
    runs = ["--brokers", "5", "--runs", "1", "--growth-runs", "1", "--no-peers", "--swept", "6", "--sweep-runs", "1"]
    assert main([*sizes, *runs, "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert [row["bench"] for row in record["rows"]] == list(against_kafka.TARGETS)
    assert [row["bench"] for row in record["requests"]] == list(growth.REQUESTS)
    for row in record["requests"]:
        assert row["partitions"] == [100, 200]
        assert row["exponent"] == pytest.approx(growth.exponent(row["partitions"], row["seconds"]))
    (alter,) = record["alter_partition"]
    assert alter["ratio"] == alter["seconds"][1] / alter["seconds"][0]
    (swept,) = record["sweep"]
    assert (swept["partitions"], swept["brokers"], swept["failures"]) == (300, 6, 6 + 15 + 4)
    assert swept["played_all"] == swept["seconds"]["played"] * 25
    assert record["command"][:3] == ["python", "-m", "benchmarks"]
    assert {"commit", "processor", "cores"} <= set(record)
    printed = capsys.readouterr().out
    assert "milliseconds at" in printed
    assert "reassignment-completion" in printed


def test_a_part_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "alter-partition", "--clusters", "100", "--brokers", "5", "--runs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["milliseconds", "at", "100", "ratio", "at", "most"]
    assert lines[1].split()[0] == "alter-partition"
    assert lines[1].split()[2:] == ["1.00", "2.0"]
