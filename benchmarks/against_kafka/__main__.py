"""Compare kframe with Kafka's own controller classes: ``python -m benchmarks.against_kafka``.

- ``zk``: Kafka 3.9's ZooKeeper controller classes.
- ``kraft``: Kafka's KRaft classes. Creating and applying their records is compared with the decisions of kframe's core,
  without encoding.

The classes run under two garbage collectors. The better one counts, by its best run. kframe's median is measured
before, between and after them. The record is written after each part, and a failing part does not stop the others.
Needs Maven and JDK 17 or newer. ``--partitions 10000`` takes few minutes. ``benchmarks.live`` compares whole
controllers.

With ``--repeats`` the least ratio of every repetition is kept, so that a busy machine shows: Kafka's best run under the
better collector by kframe's slowest median.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks import timing
from benchmarks.against_kafka import kafka_classes
from benchmarks.records import LATEST, IncrementalRecord, command_of, table
from benchmarks.report.ratios import Ratio, to_record

HEADINGS: Final = ("beside", "what", "partitions", "kframe", "peer", "collector", "least", "median", "most")
LEGEND: Final = (
    "Milliseconds, or bytes of a partition; least, median and most of the ratio, by kframe's medians of each turn. "
    "The peer: its best run under the better collector, warmed up."
)

REPEATED_HEADINGS: Final = ("what", "partitions", "least of each run")

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """A comparison. It has a ``phase`` of a kframe bench, and the sum of some of the peer's figures."""

    bench: str
    phase: str
    parts: tuple[str, ...]


ELECTION: Final = Pair(
    "preferred-election",
    "ready",
    ("zk.preferred_election_of_all.state_machines", "zk.preferred_election_of_all.serialise"),
)
PAIRS: Final[Mapping[str, tuple[Pair, ...]]] = {
    "zk": (
        Pair("broker-failure", "ready", ("zk.broker_failure.state_machines", "zk.broker_failure.serialise")),
        Pair(
            "controller-failover",
            "ready",
            ("zk.controller_failover.state_machines", "zk.controller_failover.serialise"),
        ),
        ELECTION,
    ),
    "kraft": (Pair("broker-failure", "decide", ("kraft.broker_failure.generate_and_replay",)),),
}
#: What the peers are called in names of ratios.
BESIDE: Final = {"zk": "kafka", "kraft": "kraft"}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    brokers: int
    runs: int
    peer_runs: int
    heap: str
    elections_max: int

    def pairs(self, controller: str, partitions: int) -> list[Pair]:
        """What is compared in a cluster of so many partitions: in the largest not the election of all leaders, which
        takes Kafka's classes minutes."""
        return [pair for pair in PAIRS[controller] if pair is not ELECTION or partitions <= self.elections_max]


def alternate(controller: str, partitions: int, plan: Plan) -> tuple[list[Result], dict[str, kafka_classes.Figures]]:
    """kframe, the peer under one collector, kframe, the peer under the other, kframe: all of kframe's results, and the
    peer's figures by collector."""
    ours = _ours(controller, partitions, plan)
    figures = {}
    for collector in kafka_classes.COLLECTORS:
        work = kafka_classes.Work(controller, partitions, plan.brokers, plan.peer_runs, plan.elections_max)
        figures[collector] = kafka_classes.run(work, collector, plan.heap)
        ours += _ours(controller, partitions, plan)
    return ours, figures


def _ours(controller: str, partitions: int, plan: Plan) -> list[Result]:
    return [
        timing.run_bench(pair.bench, partitions, plan.brokers, plan.runs) for pair in plan.pairs(controller, partitions)
    ]


def rows(controller: str, ours: Sequence[Result], figures: Mapping[str, kafka_classes.Figures]) -> list[Result]:
    """A row for each pair that was measured, and one for memory. ``ours`` are results of kframe's benches on one
    cluster."""
    size = {key: ours[0][key] for key in ("partitions", "brokers")}
    table_rows = []
    benches = {result["bench"] for result in ours}
    for pair in (pair for pair in PAIRS[controller] if pair.bench in benches):
        medians = [result["seconds"][pair.phase]["median"] for result in ours if result["bench"] == pair.bench]
        by_collector = {name: kafka_classes.best_seconds(figure, pair.parts) for name, figure in figures.items()}
        table_rows.append(row(controller, pair.bench, pair.phase, size, medians, by_collector))
    state_bytes = [result["state_bytes_per_partition"] for result in ours]
    heaps = {name: float(kafka_classes.heap_bytes(figure, controller)) for name, figure in figures.items()}
    return [*table_rows, row(controller, "memory", "bytes a partition", size, state_bytes, heaps)]


def row(
    controller: str, bench: str, phase: str, size: Mapping[str, int], ours: Sequence[float], theirs: Mapping[str, float]
) -> Result:
    """One comparison: the peer's better collector, and how many times as much it takes."""
    collector = min(theirs, key=lambda name: theirs[name])
    best = theirs[collector]
    ratio = {"least": best / max(ours), "median": best / statistics.median(ours), "most": best / min(ours)}
    return {
        "beside": BESIDE[controller],
        "bench": bench,
        "phase": phase,
        **size,
        "kframe": list(ours),
        "peer": dict(theirs),
        "collector": collector,
        "ratio": ratio,
    }


def line(row: Result) -> tuple[str, ...]:
    """A row as cells under HEADINGS."""
    unit = 1 if row["bench"] == "memory" else 1000
    name = row["bench"] if row["phase"] == "ready" else f"{row['bench']}: {row['phase']}"
    ours, theirs = statistics.median(row["kframe"]) * unit, row["peer"][row["collector"]] * unit
    ratio = (f"{row['ratio'][name]:.1f}" for name in ("least", "median", "most"))
    return (row["beside"], name, f"{row['partitions']:,}", f"{ours:,.1f}", f"{theirs:,.1f}", row["collector"], *ratio)


def ratios(rows: Sequence[Result]) -> list[Ratio]:
    """What is compared between records: the median ratios."""
    return [
        Ratio(f"{row['bench']}/{row['partitions']}/{row['brokers']} beside {row['beside']}", row["ratio"]["median"])
        for row in rows
    ]


def summary(runs: Sequence[Sequence[Result]]) -> list[Result]:
    """A row for each event: the least ratio of every run, in order. ``runs`` has the rows of each comparison."""
    return [
        {
            **{key: event[key] for key in ("beside", "bench", "partitions", "brokers")},
            "least": [row["ratio"]["least"] for run in runs for row in run if row["bench"] == event["bench"]],
        }
        for event in runs[0]
        if event["bench"] != "memory"
    ]


def repeated_ratios(events: Sequence[Result]) -> list[Ratio]:
    """The least ratio of all runs."""
    return [
        Ratio(
            f"{event['bench']}/{event['partitions']}/{event['brokers']} beside {event['beside']}, every run",
            min(event["least"]),
        )
        for event in events
    ]


def repeated_line(event: Result) -> tuple[str, ...]:
    """An event as cells under REPEATED_HEADINGS."""
    return event["bench"], f"{event['partitions']:,}", ", ".join(f"{ratio:.1f}" for ratio in event["least"])


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    chosen = _arguments(words)
    if missing_tools := kafka_classes.missing():
        print(f"no {missing_tools} on this machine: there is nothing to compare with", file=sys.stderr)
        return 2
    results = Measurements()
    record = IncrementalRecord(chosen.out, command_of("benchmarks.against_kafka", words), results.as_record)
    for controller in PAIRS:
        if controller in chosen.only:
            _classes(controller, chosen, results, record)
    if results.classes:
        table([HEADINGS, *map(line, results.classes)], LEGEND)
    if results.repeated:
        table([REPEATED_HEADINGS, *map(repeated_line, results.repeated)], LEGEND)
    return record.end()


@dataclass
class Measurements:
    """The figures so far."""

    classes: list[Result] = field(default_factory=list)
    measured: list[Result] = field(default_factory=list)
    repeated: list[Result] = field(default_factory=list)

    def as_record(self) -> dict[str, Any]:
        """The content of a record."""
        figures = to_record([*ratios(self.classes), *repeated_ratios(self.repeated)])
        return {"ratios": figures, "classes": self.classes, "repeated": self.repeated, "measured": self.measured}


def _classes(controller: str, chosen: argparse.Namespace, results: Measurements, record: IncrementalRecord) -> None:
    for partitions in sorted(chosen.partitions):
        with record.part(f"{controller} classes, {partitions:,} partitions"):
            peer_runs = chosen.peer_runs or (1 if partitions >= 1_000_000 and controller == "zk" else 2)
            plan = Plan(chosen.brokers, chosen.runs, peer_runs, chosen.heap, chosen.elections_max)
            repetitions = []
            for _ in range(chosen.repeats):
                ours, figures = alternate(controller, partitions, plan)
                results.measured.append({"kframe": ours, "peer": controller, "figures": figures})
                repetitions.append(rows(controller, ours, figures))
            if chosen.repeats == 1:
                results.classes += repetitions[0]
            else:
                results.repeated += summary(repetitions)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against_kafka", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=PAIRS, default=list(PAIRS), help="what to measure; all of it by default")
    add("--partitions", type=int, nargs="+", default=[100_000, 1_000_000], help="of clusters for the classes")
    add("--brokers", type=int, default=100, help="of these clusters")
    add("--runs", type=int, default=7, help="counted runs of kframe in each turn")
    add("--peer-runs", type=int, help="runs of the classes after their warm-up; 2, of the largest clusters 1")
    add("--elections-max", type=int, default=100_000, help="the largest clusters of which all leaders are elected too")
    add("--repeats", type=int, default=1, help="repetitions, of which only the least ratios are kept")
    add("--heap", default="8g", help="of the classes")
    add("--out", type=Path, default=LATEST / "peers.json", help="where the record goes; to keep it, results/NAME.json")
    return parser.parse_args(words)


if __name__ == "__main__":
    raise SystemExit(main())
