"""Measure kframe, and Kafka's classes beside it; print the figures, and keep everything in ``benchmarks/results``."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import against_kafka, growth, machine, peers, sweeping

RESULTS = Path(__file__).resolve().parent / "results"
PARTS = ("kafka", "requests", "alter-partition", "sweep")


def main(words: Sequence[str] | None = None) -> int:
    """Parse the command line, run, print, write."""
    arguments = _arguments(words)
    wanted = arguments.only or PARTS
    measured: dict[str, list[dict[str, Any]]] = {}
    if "kafka" in wanted:
        measured["rows"] = rows = _against_kafka(arguments)
        table([against_kafka.HEADINGS, *map(against_kafka.line, rows)], against_kafka.LEGEND)
    if "requests" in wanted:
        measured["requests"] = growth.of_requests(arguments.sizes, arguments.brokers, arguments.growth_runs)
        table(growth.lines(measured["requests"]), growth.LEGEND)
    if "alter-partition" in wanted:
        measured["alter_partition"] = [growth.of_cluster(arguments.clusters, arguments.brokers, arguments.runs)]
        table(growth.lines(measured["alter_partition"]), growth.LEGEND)
    if "sweep" in wanted:
        most = max(arguments.clusters)
        measured["sweep"] = [sweeping.of_pairs(most, brokers, arguments.sweep_runs) for brokers in arguments.swept]
        table(sweeping.lines(measured["sweep"]), sweeping.LEGEND)
    if arguments.out:
        command = ["python", "-m", "benchmarks", *(sys.argv[1:] if words is None else words)]
        write_record(Path(arguments.out), command, measured)
    return 0


def _against_kafka(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    lacking = None if arguments.no_peers else peers.missing()
    if lacking:
        print(f"no {lacking} on this machine: kframe alone is measured", file=sys.stderr)
    heap = None if arguments.no_peers or lacking else arguments.heap
    sizes, brokers = arguments.partitions, arguments.brokers
    return [
        row for size in sizes for row in against_kafka.compare(size, brokers, arguments.runs, arguments.peer_runs, heap)
    ]


def table(lines: Sequence[tuple[str, ...]], legend: str) -> None:
    """Print lines under each other, and what they mean."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    print(f"{legend}\n")


def write_record(path: Path, command: Sequence[str], measured: Mapping[str, Any]) -> None:
    """Keep figures with the time, the machine, the commit and the command."""
    path.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    document = {"when": now, "command": list(command), **machine.describe(), **measured}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="what to measure; all of it by default")
    parser.add_argument(
        "--partitions", type=int, nargs="+", default=[100_000, 1_000_000], help="beside Kafka's classes"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000, 200_000], help="of requests")
    parser.add_argument(
        "--clusters", type=int, nargs="+", default=[1_000, 1_000_000], help="for AlterPartition; the largest is swept"
    )
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=7, help="counted runs of kframe, beside Kafka's classes twice")
    parser.add_argument("--growth-runs", type=int, default=2, help="counted runs of each request")
    parser.add_argument("--swept", type=int, nargs="+", default=[100, 1_000], help="brokers of clusters that are swept")
    parser.add_argument("--sweep-runs", type=int, default=3, help="counted runs of each sweep")
    parser.add_argument("--peer-runs", type=int, default=3, help="runs of Kafka's classes after their warm-up")
    parser.add_argument("--heap", default="8g", help="heap of Kafka's classes")
    parser.add_argument("--no-peers", action="store_true", help="measure kframe alone")
    parser.add_argument("--out", help=f"write all figures as JSON, for example to {RESULTS.name}/NAME.json")
    return parser.parse_args(words)


if __name__ == "__main__":
    raise SystemExit(main())
