"""The calculations of ``python -m benchmarks.against_kafka``: compared controllers and runs."""

from __future__ import annotations

from typing import Any

from benchmarks.against_kafka import __main__ as against_kafka
from benchmarks.against_kafka import kafka_classes

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
    assert [(ratio.name, ratio.value) for ratio in against_kafka.ratios([failure, memory])] == [
        ("broker-failure/1000/10 beside kraft", 8.0),
        ("memory/1000/10 beside kraft", 8.0),
    ]


def test_smallest_ratio_of_repetitions_is_reported() -> None:
    runs = [
        [
            {
                "beside": "kafka",
                "bench": "broker-failure",
                **SIZE,
                "ratio": {"least": least, "median": 2 * least, "most": 3 * least},
            },
            {"bench": "memory", **SIZE, "ratio": {"least": 1.0}},
        ]
        for least in (64.0, 57.5)
    ]
    (failure,) = against_kafka.summary(runs)
    assert failure["least"] == [64.0, 57.5]
    assert against_kafka.repeated_line(failure) == ("broker-failure", "1,000", "64.0, 57.5")
    assert [(ratio.name, ratio.value) for ratio in against_kafka.repeated_ratios([failure])] == [
        ("broker-failure/1000/10 beside kafka, every run", 57.5)
    ]
