"""Time the work on one cluster by the number of cores: ``python -m benchmarks.fleet.scaling``.

Fails every two brokers of a cluster of 1,000,000 partitions, each pair a scenario of ``kframe spark failover``, on
local[1] and local[2]. ``--work sweep`` times ``kframe spark sweep`` instead: with ``--mode kraft`` several tasks count
the failures of the cluster. Seconds are elapsed times from exec to exit, the fastest of ``--rounds`` counts. ``start``
is the time of a process that starts a session and stops it. Without it, two cores should take little more than half.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from benchmarks.clusters import generated
from benchmarks.fleet.commands import RACKS
from benchmarks.records import LATEST, ROOT, command_of, table, write_record
from benchmarks.timing import run_kframe, timed
from kframe.snapshot.content import Mode

HEADINGS: Final = ("master", "failures", "start s", "spark s", "speedup")
LEGEND: Final = "Fastest of each. speedup: seconds without start of the first master by those of this one."
_START: Final = "import sys; from kframe.spark.sessions import session; session(sys.argv[1]).stop()"


def measure(
    folder: Path, work: str, mode: Mode, partitions: int, brokers: int, masters: Sequence[str], rounds: int
) -> list[dict[str, Any]]:
    """Seconds of the work on all pairs of brokers of a cluster, by master."""
    generated(folder / "exports" / "cluster", partitions, brokers, mode, racks=RACKS)
    pairs = list(combinations(range(brokers), 2))
    scenarios = folder / "pairs.jsonl"
    scenarios.write_text("".join(json.dumps({"scenario": f"{a}-{b}", "brokers": [a, b]}) + "\n" for a, b in pairs))
    run_kframe("spark", "ingest", folder / "exports", "--out", folder / "fleet", "--master", masters[0])
    command = {
        "failover": ("failover", folder / "fleet", "--scenarios", scenarios),
        "sweep": ("sweep", folder / "fleet"),
    }
    rows: list[dict[str, Any]] = [
        {"master": master, "failures": len(pairs), "start": [], "spark": []} for master in masters
    ]
    for _ in range(rounds):
        for row in rows:
            play = ("spark", *command[work], "--master", row["master"])
            row["start"].append(timed(partial(_start, row["master"]))[0])
            row["spark"].append(timed(partial(run_kframe, *play))[0])
    return rows


def _start(master: str) -> None:
    subprocess.run([sys.executable, "-c", _START, master], check=True, cwd=ROOT, capture_output=True)


def lines(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The masters as cells under HEADINGS."""
    work = [min(row["spark"]) - min(row["start"]) for row in rows]
    return [
        (
            row["master"],
            str(row["failures"]),
            f"{min(row['start']):.1f}",
            f"{min(row['spark']):.1f}",
            f"{work[0] / seconds:.2f}",
        )
        for row, seconds in zip(rows, work, strict=True)
    ]


def main() -> None:
    """Measure, print, and keep the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", choices=("failover", "sweep"), default="failover")
    parser.add_argument("--mode", choices=("zookeeper", "kraft"), default="zookeeper")
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=12)
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local[2]"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=LATEST / "fleet-scaling.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kframe-bench-") as scratch:
        (Path(scratch) / "exports").mkdir()
        rows = measure(
            Path(scratch),
            options.work,
            options.mode,
            options.partitions,
            options.brokers,
            options.masters,
            options.rounds,
        )
    names = ("work", "mode", "partitions", "brokers")
    figures = {**{name: getattr(options, name) for name in names}, "masters": rows}
    write_record(options.out, command_of("benchmarks.fleet.scaling"), figures)
    table([HEADINGS, *lines(rows)], LEGEND)


if __name__ == "__main__":
    main()
