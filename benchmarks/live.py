"""Whole controllers on a real ZooKeeper, Kafka 3.9.1's and kframe's in turn: ``python -m benchmarks.live``.

Each life gets a server and a cluster of its own, with brokers that only answer (``peers/zk_failover.py``, which keeps
the clock for both from outside). Before a controller starts, the bulk reads and writes that kframe's failover and its
broker's failure cannot do without are timed alone on that same server (``plugins/zookeeper/bench_raw.py``), which
also warms the server up, for Kafka's lives as for ours; each of ours is held against those of its own server. Kafka is
compared by its best life, kframe by its slowest. ``--alone`` sizes are kframe's only. Needs Maven and JDK 17 for
Kafka's jars.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.ratios import Ratio, to_record
from benchmarks.records import table, write_record

ROOT: Final = Path(__file__).resolve().parent.parent
SCRIPT: Final = ROOT / "benchmarks" / "peers" / "zk_failover.py"
RAW: Final = f"{sys.executable} {ROOT / 'plugins' / 'zookeeper' / 'bench_raw.py'} {{zookeeper}}"
KFRAME: Final = (
    f"{sys.executable} -m kframe controller run --zookeeper {{zookeeper}} --id {{id}} "
    "--listener PLAINTEXT://127.0.0.1:{port} --log-level WARN"
)
#: The raw requests that each event is held against.
EVENTS: Final = {"failover": "read_seconds", "broker-failure": "write_seconds"}
HEADINGS: Final = ("event", "partitions", "kframe s", "Kafka s", "ratio", "raw s", "times raw")
LEGEND: Final = (
    "kframe: its slowest life. Kafka: its best one. raw: the requests alone on kframe's server, median of the lives. "
    "times raw: each life by the raw requests on its own server, median (least to most)."
)

Record = dict[str, Any]


def lives(partitions: int, brokers: int, runs: int, heap: str, *, alone: bool) -> Iterator[Record]:
    """Every measurement of one size, Kafka's and kframe's lives in turn."""
    jars: Path = import_module("kframe_zookeeper.testing.kafka").jars()
    for run in range(runs):
        for ours in (True,) if alone else (False, True):
            command = [sys.executable, str(SCRIPT), "--jars", str(jars), "--partitions", str(partitions)]
            command += ["--brokers", str(brokers), "--heap", heap, "--first", RAW]
            command += ["--name", "kframe", "--controller", KFRAME] if ours else []
            print(f"{partitions:,} partitions, {'kframe' if ours else 'Kafka'}, life {run + 1}", file=sys.stderr)
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
            about = {"run": run, "partitions": partitions}
            yield from (about | one for one in counted(map(json.loads, done.stdout.splitlines()), ours=ours))


def counted(told: Iterable[Record], *, ours: bool) -> Iterator[Record]:
    """What a life has ``told``; before one of Kafka's the raw requests only warm its server up."""
    return (one for one in told if ours or one["bench"] != "raw")


def rows(measured: Sequence[Record]) -> list[Record]:
    """What comes of the measurements: a row for each event and size."""
    found = []
    for partitions in dict.fromkeys(one["partitions"] for one in measured):
        here = [one for one in measured if one["partitions"] == partitions]
        raw = {one["run"]: one for one in here if one["bench"] == "raw"}
        for event, requests in EVENTS.items():
            timed = [one for one in here if one["bench"] == event]
            lives_of = {
                who: {one["run"]: one["seconds"] for one in timed if one["controller"] == who}
                for who in ("kframe", "kafka-3.9.1")
            }
            ours, kafka = (list(one.values()) for one in lives_of.values())
            alone = {run: one[requests] for run, one in raw.items()}
            brokers = next(one["brokers"] for one in here if one["bench"] == event)
            row: Record = {"event": event, "partitions": partitions, "brokers": brokers}
            row |= {"kframe": ours, "kafka": kafka, "raw": statistics.median(alone.values())}
            row["times_raw"] = [seconds / alone[run] for run, seconds in lives_of["kframe"].items()]
            row["ratio"] = min(kafka) / max(ours) if kafka else None
            found.append(row)
    return found


def ratios(found: Sequence[Record]) -> list[Ratio]:
    """What is compared between records, and the seconds of kframe's slowest lives."""
    kept = []
    for row in found:
        name = f"live {row['event']}/{row['partitions']}/{row['brokers']}"
        kept += [Ratio(f"{name} beside kafka", row["ratio"])] if row["ratio"] else []
        kept.append(Ratio(f"{name} beside raw", statistics.median(row["times_raw"]), less=True))
        kept.append(Ratio(f"{name} seconds", max(row["kframe"]), less=True, absolute=True))
    return kept


def line(row: Record) -> tuple[str, ...]:
    """A row as cells under HEADINGS."""
    kafka, ratio = row["kafka"], row["ratio"]
    return (
        row["event"], f"{row['partitions']:,}", f"{max(row['kframe']):.2f}", f"{min(kafka):.1f}" if kafka else "-",
        f"{ratio:.1f}" if ratio else "-", f"{row['raw']:.2f}", spread(row["times_raw"]),
    )  # fmt: skip


def spread(ratios: Sequence[float]) -> str:
    """The median of some ratios, with the least and the most of several."""
    told = f"{statistics.median(ratios):.2f}"
    return told if len(ratios) == 1 else f"{told} ({min(ratios):.2f} to {max(ratios):.2f})"


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument(
        "--partitions", type=int, nargs="*", default=[20_000, 100_000], help="beside Kafka's controller"
    )
    parser.add_argument("--alone", type=int, nargs="*", default=[], help="sizes at which kframe is measured alone")
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--runs", type=int, default=2, help="lives of each controller at each size")
    parser.add_argument("--heap", default="3g", help="of each JVM, ZooKeeper's included")
    parser.add_argument("--out", help="write all figures as JSON, for example to benchmarks/results/NAME.json")
    chosen = parser.parse_args(words)
    measured: list[Record] = []
    for alone, sizes in ((False, chosen.partitions), (True, chosen.alone)):
        for size in sizes:
            measured += lives(size, chosen.brokers, chosen.runs, chosen.heap, alone=alone)
    found = rows(measured)
    table([HEADINGS, *map(line, found)], LEGEND)
    if chosen.out:
        command = ["python", "-m", "benchmarks.live", *(sys.argv[1:] if words is None else words)]
        write_record(
            Path(chosen.out), command, {"ratios": to_record(ratios(found)), "rows": found, "measured": measured}
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
