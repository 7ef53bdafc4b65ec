"""Compare Kafka 3.9.1 and kframe as running controllers on a real ZooKeeper: ``python -m benchmarks.live``.

In production a controller takes over on a ZooKeeper that has run for days. So the runs of both controllers follow on
one another on one warmed-up server with brokers that only respond (``controllers.py`` measures both from outside).
Each run starts with the same cluster.

Right before each run the bulk reads and writes that a failover and a broker failure need are timed alone
(``raw_requests.py``), after a pause, as before a real event. Each run of kframe is compared with those before it. In
the first two runs of each controller the server's JIT compiler is still active; they are reported separately and do
not count. Kafka counts by its best run, kframe by its slowest. At ``--alone`` sizes only kframe runs. Needs Maven and
JDK 17.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.live.controllers import KAFKA, KFRAME, Setup, perform_runs
from benchmarks.records import LATEST, command_of, table, write_record
from benchmarks.report.ratios import Ratio, to_record

#: The raw requests that each event is held against, after a pause; the same back to back are called so with AT_ONCE.
EVENTS: Final = {"failover": "read_seconds", "broker-failure": "write_seconds"}
AT_ONCE: Final = "_at_once"
#: Runs of each controller in which the server still compiles: at 20,000 and at 100,000 partitions its compiler took
#: 0.2 to 0.4 s of processor time in the first failover, up to 0.3 in the second, and 0.01 in the third.
WARMING: Final = 2
#: Of each controller; two that count show how far they are apart.
RUNS: Final = WARMING + 2
HEADINGS: Final = (
    "event",
    "partitions",
    "kframe s",
    "first runs",
    "Kafka s",
    "ratio",
    "raw s",
    "times raw",
    "raw at once",
    "times that",
)
LEGEND: Final = (
    f"kframe: its slowest run but the first {WARMING}, which stand beside. Kafka: its best one. raw: the requests "
    "alone right before, each round after a pause, median of the runs that count; at once: round after round. times "
    "raw: each of these runs by its raw requests, median (least to most)."
)

Record = dict[str, Any]


def alternate_runs(partitions: int, brokers: int, runs: int, heap: str, *, alone: bool) -> Iterator[Record]:
    """Every measurement of one size, Kafka's and kframe's runs in turn."""
    from verification.zookeeper.kafka import jars  # Needs the plugin, which not every caller has.

    setup = Setup(jars(), partitions, brokers, replication_factor=3, heap=heap)
    return perform_runs(setup, [KFRAME] if alone else [KAFKA, KFRAME], runs)


def rows(measured: Sequence[Record]) -> list[Record]:
    """What comes of the measurements: a row for each event and size."""
    return [
        _row(event, [measurement for measurement in measured if measurement["partitions"] == partitions])
        for partitions in dict.fromkeys(measurement["partitions"] for measurement in measured)
        for event in EVENTS
    ]


def _row(event: str, measured: Sequence[Record]) -> Record:
    """One event in clusters of one size. Where there are few runs the last one counts."""
    ours = [measurement for measurement in measured if measurement["controller"] != KAFKA]
    alone, at_once = (
        {row["life"]: float(row[EVENTS[event] + kind]) for row in ours if row["bench"] == "raw"}
        for kind in ("", AT_ONCE)
    )
    kframe_seconds = {row["life"]: row["seconds"] for row in ours if row["bench"] == event}
    compiler = {row["life"]: row["compiler_seconds"] for row in ours if row["bench"] == event}
    counted = [run for run in kframe_seconds if run >= WARMING] or [max(kframe_seconds)]
    kafka = [
        measurement["seconds"]
        for measurement in measured
        if measurement["controller"] == KAFKA and measurement["bench"] == event
    ]
    kframe = [kframe_seconds[run] for run in counted]
    return {
        "event": event,
        "partitions": measured[0]["partitions"],
        "brokers": measured[0]["brokers"],
        "kframe": kframe,
        "first_lives": [seconds for run, seconds in kframe_seconds.items() if run < min(counted)],
        "compiler": [compiler[run] for run in sorted(compiler)],
        "kafka": kafka,
        "raw": statistics.median(alone[run] for run in counted),
        "times_raw": [kframe_seconds[run] / alone[run] for run in counted],
        "raw_at_once": statistics.median(at_once[run] for run in counted),
        "times_raw_at_once": [kframe_seconds[run] / at_once[run] for run in counted],
        "ratio": min(kafka) / max(kframe) if kafka else None,
    }


def ratios(rows: Sequence[Record]) -> list[Ratio]:
    """What is compared between records, and the seconds of kframe's slowest runs."""
    result = []
    for row in rows:
        name = f"live {row['event']}/{row['partitions']}/{row['brokers']}"
        result += [Ratio(f"{name} beside kafka", row["ratio"])] if row["ratio"] else []
        result.append(Ratio(f"{name} beside raw", statistics.median(row["times_raw"]), less=True))
        result.append(Ratio(f"{name} beside raw at once", statistics.median(row["times_raw_at_once"]), less=True))
        result.append(Ratio(f"{name} seconds", max(row["kframe"]), less=True, absolute=True))
    return result


def line(row: Record) -> tuple[str, ...]:
    """A row as cells under HEADINGS."""
    kafka, ratio = row["kafka"], row["ratio"]
    first = ", ".join(f"{seconds:.3f}" for seconds in row["first_lives"])
    return (
        row["event"],
        f"{row['partitions']:,}",
        f"{max(row['kframe']):.3f}",
        first or "-",
        f"{min(kafka):.1f}" if kafka else "-",
        f"{ratio:.1f}" if ratio else "-",
        f"{row['raw']:.3f}",
        spread(row["times_raw"]),
        f"{row['raw_at_once']:.3f}",
        spread(row["times_raw_at_once"]),
    )


def spread(ratios: Sequence[float]) -> str:
    """The median of some ratios. Of several also the least and the most."""
    text = f"{statistics.median(ratios):.2f}"
    return text if len(ratios) == 1 else f"{text} ({min(ratios):.2f} to {max(ratios):.2f})"


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument(
        "--partitions", type=int, nargs="*", default=[20_000, 100_000], help="beside Kafka's controller"
    )
    parser.add_argument("--alone", type=int, nargs="*", default=[], help="sizes at which kframe is measured alone")
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each controller at each size")
    parser.add_argument("--heap", default="3g", help="of each JVM, ZooKeeper's included")
    parser.add_argument("--out", type=Path, default=LATEST / "live.json", help="to keep it, results/NAME.json")
    chosen = parser.parse_args(words)
    measured: list[Record] = []
    for alone, sizes in ((False, chosen.partitions), (True, chosen.alone)):
        for size in sizes:
            measured += alternate_runs(size, chosen.brokers, chosen.runs, chosen.heap, alone=alone)
    results = rows(measured)
    table([HEADINGS, *map(line, results)], LEGEND)
    figures = {"ratios": to_record(ratios(results)), "rows": results, "measured": measured}
    write_record(chosen.out, command_of("benchmarks.live", words), figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
