"""Compare the reassignment plans of kframe, Kafka, kafka-tools, KAFKA-19048 and solvers; write a record.

Needs Maven, JDK 17 or newer, and the package index. Rebalancer runs where Python 3.12 or newer is on PATH.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.against_kafka.kafka_classes import missing
from benchmarks.plans import peers
from benchmarks.plans.clusters import CLUSTERS, EXACT, Case, cases
from benchmarks.plans.peers import Run
from benchmarks.plans.quality import better_than, row_of
from benchmarks.records import LATEST, IncrementalRecord, command_of, table
from kframe.snapshot import write_snapshot

HEADINGS: Final = (
    "cluster",
    "goal",
    "planner",
    "moves",
    "GB",
    "bound",
    "gap",
    "balance",
    "rack viol.",
    "leaders",
    "CPU s",
    "MiB",
)
LEGEND: Final = (
    "bound: what every plan must copy, in replicas or GB; gap: cost above it; balance and leaders: greatest load over "
    "the mean; CPU s and MiB: of the whole process"
)
#: Partitions beyond which kafka-tools is not run: its lists make each move cost as much as a broker has partitions.
_TOOLS_MAX: Final = 100_000


def measured(case: Case, seconds_max: int) -> Iterator[dict[str, Any]]:
    """A row for each planner; kframe is first."""
    with tempfile.TemporaryDirectory(prefix="plans-") as name:
        folder = Path(name)
        write_snapshot(case.snapshot, folder / "snapshot")
        peers.write_files(case, folder)
        runs: list[Callable[[], Run]] = [lambda: peers.kframe(case, folder, seconds_max)]
        if case.cluster in (EXACT[:1] if case.by_size else EXACT):
            runs.append(lambda: peers.kframe(case, folder, seconds_max, exact=True))
        if not case.by_size:
            runs += [
                lambda: peers.kafka(case, folder, seconds_max),
                lambda: peers.minimal_movement(case, folder, seconds_max),
            ]
        if len(case.snapshot) <= _TOOLS_MAX:
            runs.append(lambda: peers.kafka_tools(case, folder, seconds_max))
        runs += [
            lambda: peers.rebalancer(case, folder, seconds_max),
            lambda: peers.cp_sat(case, folder, seconds_max),
            lambda: peers.highs(case, folder, seconds_max),
        ]
        for run in runs:
            row = row_of(case, run())
            print(*line(row), sep="  ", file=sys.stderr, flush=True)
            yield row


def line(row: dict[str, Any]) -> tuple[str, ...]:
    """A row as cells under HEADINGS."""
    names = (row["cluster"], row["goal"], row["tool"])
    used = (f"{row['cpu_seconds']:.2f}", f"{row['memory'] / 2**20:,.0f}")
    if row["error"] is not None:
        return (*names, "failed", *["-"] * 6, *used)
    by_size = row["goal"] == "rebalance bytes"
    bound, gap = "-", "-"
    if row["bound"] is not None:
        cost = row["bytes"] if by_size else row["moves"]
        bound = f"{row['bound'] / 1e9:,.1f}" if by_size else f"{row['bound']:,}"
        gap = f"{(cost - row['bound']) / max(row['bound'], 1):.3%}" + (" !" if row["limits_reached"] is False else "")
    return (
        *names,
        f"{row['moves']:,}",
        f"{row['bytes'] / 1e9:,.1f}",
        bound,
        gap,
        f"{row['balance']:.4f}",
        f"{row['rack_violations']:,}",
        f"{row['leader_balance']:.3f}",
        *used,
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write. The exit code is 1 if a peer costs less at equal balance, or if a part failed."""
    chosen = _arguments(words)
    if lacking := missing():
        print(f"no {lacking} on this machine", file=sys.stderr)
        return 2
    peers.prepare()
    rows: list[dict[str, Any]] = []
    better: list[dict[str, Any]] = []
    command = command_of("benchmarks.plans", words)
    record = IncrementalRecord(chosen.out, command, lambda: {"rows": rows, "better_peers": better})
    for name in chosen.clusters:
        with record.part(name):
            for case in cases(CLUSTERS[name](), name):
                result = []
                for row in measured(case, chosen.seconds):
                    result.append(row)
                    rows.append(row)
                    record.save()
                better += [row for row in result[1:] if row["tool"] != "kframe --exact" and better_than(row, result[0])]
    table([HEADINGS, *map(line, rows)], LEGEND)
    for row in better:
        print(f"{row['cluster']}, {row['goal']}: {row['tool']} costs less at equal balance", file=sys.stderr)
    return record.end() or int(bool(better))


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description=__doc__)
    parser.add_argument("--clusters", nargs="+", choices=list(CLUSTERS), default=list(CLUSTERS))
    parser.add_argument("--seconds", type=int, default=120, help="processor time of a run at most")
    parser.add_argument("--out", type=Path, default=LATEST / "plans.json", help="where the record goes")
    return parser.parse_args(words)


if __name__ == "__main__":
    raise SystemExit(main())
