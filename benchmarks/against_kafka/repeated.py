"""Repeat the comparison with Kafka's ZooKeeper classes: ``python -m benchmarks.against_kafka.repeated``.

Each run is one of ``benchmarks.against_kafka``: kframe is measured before, between and after Kafka's classes under two
garbage collectors. The least ratio of a run is Kafka's best run by kframe's slowest median; all of them are kept, so
that a busy machine shows. Needs Maven and JDK 17.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.against_kafka.__main__ import Plan, alternate, rows
from benchmarks.records import LATEST, command_of, table, write_record
from benchmarks.report.ratios import Ratio, to_record

HEADINGS: Final = ("what", "partitions", "least of each run")
LEGEND: Final = "Kafka's best run under the better collector by kframe's slowest median."

Row = dict[str, Any]


def summary(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """A row for each event: the least ratio of every run, in order. ``runs`` has the rows of each comparison."""
    events = [row for row in runs[0] if row["bench"] != "memory"]
    return [
        {
            "bench": event["bench"],
            "partitions": event["partitions"],
            "brokers": event["brokers"],
            "least": [row["ratio"]["least"] for run in runs for row in run if row["bench"] == event["bench"]],
        }
        for event in events
    ]


def ratios(events: Sequence[Row]) -> list[Ratio]:
    """The least ratio of all runs."""
    return [
        Ratio(f"{event['bench']}/{event['partitions']}/{event['brokers']} beside kafka, every run", min(event["least"]))
        for event in events
    ]


def line(event: Row) -> tuple[str, ...]:
    """An event as cells under HEADINGS."""
    return event["bench"], f"{event['partitions']:,}", ", ".join(f"{ratio:.1f}" for ratio in event["least"])


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against_kafka.repeated", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=25, help="of each of kframe's benches")
    parser.add_argument("--peer-runs", type=int, default=2, help="of Kafka's classes, under each collector")
    parser.add_argument("--heap", default="8g")
    parser.add_argument("--out", type=Path, default=LATEST / "repeated.json")
    chosen = parser.parse_args(words)
    plan = Plan(chosen.brokers, chosen.runs, chosen.peer_runs, chosen.heap, elections_max=0)
    runs = [rows("zk", *alternate("zk", chosen.partitions, plan)) for _ in range(chosen.repeats)]
    events = summary(runs)
    figures = {"ratios": to_record(ratios(events)), "repeated": events, "measured": runs}
    write_record(chosen.out, command_of("benchmarks.against_kafka.repeated", words), figures)
    table([HEADINGS, *map(line, events)], LEGEND)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
