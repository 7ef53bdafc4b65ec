"""Measure kframe and compare with the targets: ``python -m benchmarks`` (``make bench``).

The suite (``benchmarks/suite``) times every bench at every size. Events in clusters of more and more partitions show
how cost grows. The record is written after each part, and a failing part does not stop the others. Comparisons with
Kafka's controllers come from the last record of ``python -m benchmarks.against_kafka``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.limits import growth
from benchmarks.records import LATEST, RESULTS, IncrementalRecord, command_of, newest, table
from benchmarks.report.ratios import Ratio, TargetResult, as_plain, compare_targets, lines, of_record, to_record
from benchmarks.suite import timed
from kframe.bench import BENCHES

Result = dict[str, Any]
LEGEND: Final = "where: this run, or the last record that has it. benchmarks.against_kafka compares with Kafka."


def main(words: Sequence[str] | None = None) -> int:
    """Parse the command line, run, print, write."""
    chosen = _arguments(words)
    results = Measurements()
    record = IncrementalRecord(chosen.out, command_of("benchmarks", words), results.as_record)
    for part, measure in PARTS.items():
        if part in (chosen.only or PARTS):
            measure(chosen, results, record)
    if chosen.output == "json":
        print(json.dumps(record.document, indent=1))
        return record.end()
    for cells, legend in (*results.tables(), (lines(targets(results.ratios())), LEGEND)):
        table(cells, legend)
    return record.end()


@dataclass
class Measurements:
    """The figures so far, by part."""

    suite: list[Result] = field(default_factory=list)
    requests: list[Result] = field(default_factory=list)

    def ratios(self) -> list[Ratio]:
        """The ratios that are compared between records and with targets."""
        growths = [Ratio(f"growth of {request['bench']}", request["exponent"], less=True) for request in self.requests]
        return [*timed.ratios(self.suite), *growths]

    def as_record(self) -> dict[str, Any]:
        """The content of a record."""
        ratios = self.ratios()
        parts = {key: rows for key, rows in vars(self).items() if rows}
        return {"ratios": to_record(ratios), "targets": as_plain(targets(ratios)), **parts}

    def tables(self) -> Iterator[tuple[list[tuple[str, ...]], str]]:
        """Tables of the record for readers, with the meaning of each."""
        if self.suite:
            yield [timed.HEADINGS, *map(timed.line, self.suite)], timed.LEGEND
            yield [timed.TIER_HEADINGS, *map(timed.tier_line, timed.tiers(self.suite))], timed.TIER_LEGEND
        if self.requests:
            yield growth.lines(self.requests), growth.LEGEND


def _suite(chosen: argparse.Namespace, results: Measurements, record: IncrementalRecord) -> None:
    for part in timed.parts(chosen.partitions, chosen.over, chosen.largest, chosen.benches, chosen.runs):
        bench_name = f", {part.only[0]}" if len(part.only) == 1 else ""
        with record.part(f"suite, {part.partitions:,} partitions, {part.brokers:,} brokers{bench_name}"):
            results.suite += timed.run(part)


def _requests(chosen: argparse.Namespace, results: Measurements, record: IncrementalRecord) -> None:
    with record.part("requests"):
        results.requests += growth.of_events(chosen.sizes, chosen.brokers, chosen.growth_runs)


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Measurements, IncrementalRecord], None]]] = {
    "suite": _suite,
    "requests": _requests,
}


def targets(ratios: Sequence[Ratio]) -> list[TargetResult]:
    """Every target with these figures. Missing ones come from the last record that has them."""
    records = {record["file"]: of_record(record) for folder in (RESULTS, LATEST) for record in newest(folder)}
    return compare_targets(ratios, records)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=PARTS, help="what to measure; all of it by default")
    add("--partitions", type=int, nargs="*", default=[100_000, 1_000_000], help="of clusters in the suite")
    add("--over", type=int, nargs="+", default=[10, 100, 1_000], metavar="BROKERS", help="of clusters in the suite")
    add("--benches", nargs="+", choices=BENCHES, default=(), metavar="NAME", help="of the suite; all by default")
    add("--largest", type=int, nargs="*", default=[], metavar="N", help="in memory over 1,000 brokers too: 10000000")
    add("--runs", type=int, help="counted runs of each bench; by default 5, of large clusters fewer")
    add("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000, 200_000], help="of growing clusters")
    add("--brokers", type=int, default=100, help="of these clusters")
    add("--growth-runs", type=int, default=2, help="counted runs of each of their events")
    add("-o", "--output", choices=("table", "json"), default="table", help="json: the whole record, and no tables")
    add("--out", type=Path, default=LATEST / "kframe.json", help="where the record goes; to keep it, results/NAME.json")
    return parser.parse_args(words)


if __name__ == "__main__":
    raise SystemExit(main())
