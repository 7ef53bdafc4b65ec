"""Run kframe and Kafka's classes in turn, print the ratios, and keep everything in ``benchmarks/results``."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine, peers

RESULTS = Path(__file__).resolve().parent / "results"
HEADINGS = ("bench", "partitions", "kframe ms", "decide", "encode", "Kafka ms", "ratio", "bytes a partition")


def main() -> int:
    """Parse the command line, run, print, write."""
    arguments = _arguments()
    lacking = None if arguments.no_peers else peers.missing()
    if lacking:
        print(f"no {lacking} on this machine: kframe alone is measured", file=sys.stderr)
    alone = arguments.no_peers or bool(lacking)
    rows = [row for partitions in arguments.partitions for row in _compare(partitions, arguments, alone)]
    _print(rows)
    if arguments.out:
        _write(rows, Path(arguments.out))
    return 0


def _compare(partitions: int, arguments: argparse.Namespace, alone: bool) -> list[dict[str, Any]]:
    """kframe, then Kafka, then kframe again, so that a machine that drifts shows in the spread."""
    before = {name: _kframe(name, partitions, arguments) for name in peers.PARTS}
    figures = {} if alone else peers.run(partitions, arguments.brokers, arguments.peer_runs, arguments.heap)
    after = {name: _kframe(name, partitions, arguments) for name in peers.PARTS}
    rows = []
    for name in peers.PARTS:
        row: dict[str, Any] = {"bench": name, "partitions": partitions, "kframe": [before[name], after[name]]}
        if figures:
            medians = [run["seconds"]["ready"]["median"] for run in row["kframe"]]
            row["kafka"] = figures
            row["kafka_seconds"] = peers.best_seconds(figures, name)
            row["ratio"] = {"least": row["kafka_seconds"] / max(medians), "most": row["kafka_seconds"] / min(medians)}
        rows.append(row)
    return rows


def _kframe(name: str, partitions: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One bench in a process of its own."""
    command = [sys.executable, "-m", "kframe", "bench", name, "--partitions", str(partitions), "-o", "json"]
    command += ["--brokers", str(arguments.brokers), "--runs", str(arguments.runs)]
    print(f"kframe {name}, {partitions:,} partitions", file=sys.stderr)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _print(rows: list[dict[str, Any]]) -> None:
    shown = [HEADINGS, *(_line(row) for row in rows)]
    widths = [max(len(line[column]) for line in shown) for column in range(len(HEADINGS))]
    for line in shown:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    print("kframe: median of its slower run, decided, applied and all bytes ready. Kafka: its best run, warmed up.")


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    slower = max(row["kframe"], key=lambda run: run["seconds"]["ready"]["median"])
    milliseconds = {phase: spread["median"] * 1000 for phase, spread in slower["seconds"].items()}
    kafka, ratio = row.get("kafka_seconds"), row.get("ratio")
    return (
        row["bench"],
        f"{row['partitions']:,}",
        f"{milliseconds['ready']:.2f}",
        f"{milliseconds['decide']:.2f}",
        f"{milliseconds['encode']:.2f}",
        f"{kafka * 1000:.0f}" if kafka else "-",
        f"{ratio['least']:.0f} to {ratio['most']:.0f}" if ratio else "-",
        f"{slower['state_bytes_per_partition']:.0f}",
    )


def _write(rows: list[dict[str, Any]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    document = {
        "when": now,
        "command": ["python", "-m", "benchmarks", *sys.argv[1:]],
        **machine.describe(),
        "rows": rows,
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=7, help="counted runs of kframe, twice")
    parser.add_argument("--peer-runs", type=int, default=3, help="runs of Kafka's classes after their warm-up")
    parser.add_argument("--heap", default="8g", help="heap of Kafka's classes")
    parser.add_argument("--no-peers", action="store_true", help="measure kframe alone")
    parser.add_argument("--out", help=f"write all figures as JSON, for example to {RESULTS.name}/NAME.json")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
