"""Measure kframe: ``python -m benchmarks`` (``make bench``); print the figures, and what they come to beside what they
should.

The suite (``benchmarks/suite``) times every bench at every size; requests for more and more partitions show how cost
grows; all failures are swept. What stands beside Kafka's controllers is measured by ``make bench-peers``, and here
taken from the last record of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import growth, sweeping, timed
from benchmarks.ratios import Held, Ratio, as_plain, held, lines, of_record, to_record
from benchmarks.records import LATEST, RESULTS, newest, table, write_record
from kframe.bench import BENCHES

PARTS = ("suite", "requests", "alter-partition", "sweep")
LEGEND = "where: this run, or the last record that has it. make bench-peers measures what stands beside others."


def main(words: Sequence[str] | None = None) -> int:
    """Parse the command line, run, print, write."""
    chosen = _arguments(words)
    wanted = chosen.only or PARTS
    measured: dict[str, list[dict[str, Any]]] = {}
    ratios: list[Ratio] = []
    tables: list[tuple[list[tuple[str, ...]], str]] = []
    if "suite" in wanted:
        measured["suite"] = results = timed.run(chosen.partitions, chosen.over, chosen.runs, chosen.benches)
        results += timed.run(chosen.largest, [1_000], chosen.runs, timed.LARGEST) if chosen.largest else []
        ratios += timed.ratios(results)
        tables.append(([timed.HEADINGS, *map(timed.line, results)], timed.LEGEND))
        tables.append(([timed.TIER_HEADINGS, *map(timed.tier_line, timed.tiers(results))], timed.TIER_LEGEND))
    if "requests" in wanted:
        measured["requests"] = growth.of_requests(chosen.sizes, chosen.brokers, chosen.growth_runs)
        ratios += [Ratio(f"growth of {one['bench']}", one["exponent"], less=True) for one in measured["requests"]]
        tables.append((growth.lines(measured["requests"]), growth.LEGEND))
    if "alter-partition" in wanted:
        measured["alter_partition"] = [growth.of_cluster(chosen.clusters, chosen.brokers, chosen.runs)]
        ratios += [Ratio("alter-partition beside a small cluster", measured["alter_partition"][0]["ratio"], less=True)]
        tables.append((growth.lines(measured["alter_partition"]), growth.LEGEND))
    if "sweep" in wanted:
        most = max(chosen.clusters)
        measured["sweep"] = [sweeping.of_pairs(most, brokers, chosen.sweep_runs) for brokers in chosen.swept]
        tables.append((sweeping.lines(measured["sweep"]), sweeping.LEGEND))
    command = ["python", "-m", "benchmarks", *(sys.argv[1:] if words is None else words)]
    against = targets(ratios)
    record = write_record(chosen.out, command, {"ratios": to_record(ratios), "targets": as_plain(against), **measured})
    if chosen.output == "json":
        print(json.dumps(record, indent=1))
        return 0
    for cells, legend in (*tables, (lines(against), LEGEND)):
        table(cells, legend)
    return 0


def targets(ratios: Sequence[Ratio]) -> list[Held]:
    """Every target beside these figures, and where they lack one beside the last record that has it."""
    kept = {record["file"]: of_record(record) for folder in (RESULTS, LATEST) for record in newest(folder)}
    return held(ratios, kept)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=PARTS, help="what to measure; all of it by default")
    add("--partitions", type=int, nargs="+", default=[100_000, 1_000_000], help="of clusters in the suite")
    add("--over", type=int, nargs="+", default=[10, 100, 1_000], metavar="BROKERS", help="of clusters in the suite")
    add("--benches", nargs="+", choices=BENCHES, default=(), metavar="NAME", help="of the suite; all by default")
    add("--largest", type=int, nargs="*", default=[], metavar="N", help="in memory over 1,000 brokers too: 10000000")
    add("--runs", type=int, default=3, help="counted runs of each bench")
    add("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000, 200_000], help="of requests")
    add("--clusters", type=int, nargs="+", default=[1_000, 1_000_000], help="for AlterPartition; the largest is swept")
    add("--brokers", type=int, default=100, help="of clusters for requests and AlterPartition")
    add("--growth-runs", type=int, default=2, help="counted runs of each request")
    add("--swept", type=int, nargs="+", default=[100, 1_000], help="brokers of clusters that are swept")
    add("--sweep-runs", type=int, default=3, help="counted runs of each sweep")
    add("-o", "--output", choices=("table", "json"), default="table", help="json: the whole record, and no tables")
    add("--out", type=Path, default=LATEST / "kframe.json", help="where the record goes; to keep it, results/NAME.json")
    return parser.parse_args(words)


if __name__ == "__main__":
    raise SystemExit(main())
