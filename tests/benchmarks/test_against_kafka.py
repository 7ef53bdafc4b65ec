"""The calculations of ``python -m benchmarks.against_kafka``: compared controllers and runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import timing
from benchmarks.against_kafka import __main__ as against_kafka
from benchmarks.against_kafka import kafka_classes, repeated
from benchmarks.against_kafka.__main__ import PAIRS, Plan
from benchmarks.live import __main__ as live

SCALA = kafka_classes.PEERS / "zk/src/main/scala/peerbench/zk/ZkController.scala"
SIZE = {"partitions": 1_000, "brokers": 10}


def ours(bench: str, ready: float, decide: float) -> dict[str, Any]:
    """A result of ``kframe bench`` with the fields that a row uses."""
    seconds = {phase: {"median": value} for phase, value in (("ready", ready), ("decide", decide))}
    return {"bench": bench, **SIZE, "seconds": seconds, "state_bytes_per_partition": 80.0}


def kraft(seconds: float, heap: int) -> kafka_classes.Figures:
    """Output of the KRaft classes with the fields that a row uses."""
    return {
        "kraft.broker_failure.generate_and_replay": {"seconds_min": seconds},
        "kraft.log_replay": {"seconds_min": 5.0, "heap_bytes_per_partition": heap},
    }


def test_ratio_uses_kafkas_faster_collector_and_our_median() -> None:
    runs = [ours("broker-failure", 9.0, decide) for decide in (0.5, 1.0, 0.25)]
    failure, memory = against_kafka.rows("kraft", runs, {"g1": kraft(8.0, 640), "parallel": kraft(4.0, 800)})
    assert (failure["collector"], failure["peer"]) == ("parallel", {"g1": 8.0, "parallel": 4.0})
    assert failure["ratio"] == {"least": 4.0, "median": 8.0, "most": 16.0}
    assert (memory["collector"], memory["ratio"]["median"]) == ("g1", 8.0)
    cells = dict(zip(against_kafka.HEADINGS, against_kafka.line(failure), strict=True))
    assert (cells["what"], cells["kframe"], cells["peer"]) == ("broker-failure: decide", "500.0", "4,000.0")
    assert [(ratio.name, ratio.value) for ratio in against_kafka.ratios([failure, memory], [])] == [
        ("broker-failure/1000/10 beside kraft", 8.0), ("memory/1000/10 beside kraft", 8.0),
    ]  # fmt: skip


def test_peer_time_is_sum_of_fastest_parts() -> None:
    pair = PAIRS["zk"][0]
    figures = {part: {"seconds_min": seconds} for part, seconds in zip(pair.parts, (2.0, 1.0), strict=True)}
    assert kafka_classes.best_seconds(figures, pair.parts) == 3.0


def test_kframe_runs_alternate_with_garbage_collectors(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def time_ours(bench: str, *_rest: int) -> dict[str, Any]:
        order.append(bench)
        return ours(bench, 1.0, 1.0)

    def time_theirs(work: kafka_classes.Work, collector: str, _heap: str) -> kafka_classes.Figures:
        order.append(f"{work.controller} {collector}")
        return kraft(1.0, 1)

    monkeypatch.setattr(timing, "run_bench", time_ours)
    monkeypatch.setattr(kafka_classes, "run", time_theirs)
    runs, figures = against_kafka.alternate("kraft", 1_000, Plan(10, 1, 1, "1g", 0))
    assert order == ["broker-failure", "kraft g1", "broker-failure", "kraft parallel", "broker-failure"]
    assert (len(runs), set(figures)) == (3, set(kafka_classes.COLLECTORS))


def test_largest_clusters_skip_election_of_all() -> None:
    plan = Plan(10, 1, 1, "1g", elections_max=1_000)
    assert [pair.bench for pair in plan.pairs("zk", 1_000)] == [
        "broker-failure", "controller-failover", "preferred-election",
    ]  # fmt: skip
    assert [pair.bench for pair in plan.pairs("zk", 1_001)] == ["broker-failure", "controller-failover"]
    assert "layout.partitions <= electionsMax" in SCALA.read_text()


def test_failed_part_does_not_discard_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first size is saved when the second one fails, and whole controllers are still measured."""

    def alternate(
        controller: str, partitions: int, _plan: Plan
    ) -> tuple[list[dict[str, Any]], dict[str, kafka_classes.Figures]]:
        if partitions > 1_000:
            raise subprocess.CalledProcessError(1, "java")
        return [ours("broker-failure", 1.0, 0.5)], {"g1": kraft(8.0, 640)}

    def alternate_runs(partitions: int, *_rest: object, alone: bool) -> list[dict[str, Any]]:
        assert [row["partitions"] for row in json.loads(out.read_text())["classes"]] == [1_000, 1_000], "kept by now"
        return []

    out = tmp_path / "peers.json"
    monkeypatch.setattr(kafka_classes, "missing", lambda: None)
    monkeypatch.setattr(against_kafka, "alternate", alternate)
    monkeypatch.setattr(live, "alternate_runs", alternate_runs)
    sizes = ["--partitions", "2000", "1000", "--live", "1000", "--alone"]
    assert against_kafka.main(["--only", "kraft", "live", *sizes, "--out", str(out)]) == 1
    record = json.loads(out.read_text())
    assert [row["bench"] for row in record["classes"]] == ["broker-failure", "memory"]
    assert record["failed"] == ["kraft classes, 2,000 partitions"]
    assert list(record["part_seconds"]) == [
        "kraft classes, 1,000 partitions", "kraft classes, 2,000 partitions", "whole controllers, 1,000 partitions",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "controller, source",
    [
        ("zk", "zk/src/main/scala/peerbench/zk/ZkController.scala"),
        ("kraft", "kraft/src/main/java/org/apache/kafka/controller/KRaftController.java"),
    ],
)
def test_peer_benchmarks_exist_in_sources(controller: str, source: str) -> None:
    text = (kafka_classes.PEERS / source).read_text()
    for part in sum((pair.parts for pair in PAIRS[controller]), ()):
        assert f'measure("{part.split(".")[1]}"' in text
    assert kafka_classes.HEAP_AFTER[controller].split(".")[1] in text


def test_smallest_ratio_of_repetitions_is_reported() -> None:
    runs = [
        [
            {"bench": "broker-failure", **SIZE, "ratio": {"least": least, "median": 2 * least, "most": 3 * least}},
            {"bench": "memory", **SIZE, "ratio": {"least": 1.0}},
        ]
        for least in (64.0, 57.5)
    ]
    (failure,) = repeated.summary(runs)
    assert failure["least"] == [64.0, 57.5]
    assert repeated.line(failure) == ("broker-failure", "1,000", "64.0, 57.5")
    assert [(ratio.name, ratio.value) for ratio in repeated.ratios([failure])] == [
        ("broker-failure/1000/10 beside kafka, every run", 57.5)
    ]
