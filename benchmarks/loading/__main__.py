"""Measure the reading of a cluster from each text format: processor time and peak memory; write a record. Needs Linux.

Each reading is a new process. It imports the readers before the time starts. The peak is that of the whole process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.records import LATEST, ROOT, IncrementalRecord, command_of, table
from benchmarks.report.ratios import Ratio, to_record
from kframe.bench.texts import TEXTS, topics_of
from kframe.snapshot import Snapshot, generate

BROKERS: Final = 100
CONFIGS: Final = {"min.insync.replicas": "2", "retention.ms": "604800000"}
#: Not a format of snapshots: the reassignment is read as ``kframe plan check`` reads it.
PLAN: Final = "plan"
HEADINGS: Final = ("format", "MB", "CPU s", "peak MB", "peak / file", "before MB")
LEGEND: Final = (
    "CPU s: least of all runs, without imports; peak MB: of the process; before MB: its memory before it reads"
)
#: Prints processor seconds, the peak of the memory, the memory before reading (both in kB), and the partitions.
_READ: Final = """
import sys, time
from pathlib import Path
{imports}
def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
before, begun = resident(), time.process_time()
rows = len({read}(Path(sys.argv[1]), *sys.argv[2:]))
print(time.process_time() - begun, resident(), before, rows)
"""
_SNAPSHOT: Final = _READ.format(imports="from kframe.snapshot import read_snapshot", read="read_snapshot")
_PLAN: Final = _READ.format(imports="from kframe.plans.file.read import load_plan", read="load_plan")


def measure(name: str, path: Path, partitions: int, runs: int) -> dict[str, Any]:
    """Read a file ``runs`` times; the least time and the greatest peak. Raises RuntimeError for another size."""
    words = [sys.executable, "-c", _PLAN if name == PLAN else _SNAPSHOT, str(path)] + ([] if name == PLAN else [name])
    results = []
    for _ in range(runs):
        output = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        if int(output[3]) != partitions:
            raise RuntimeError(f"{path} has {output[3]} partitions, not {partitions}")
        results.append((float(output[0]), 1024 * int(output[1]), 1024 * int(output[2])))
    size = path.stat().st_size
    return {
        "format": name,
        "bytes": size,
        "cpu_seconds": round(min(result[0] for result in results), 3),
        "peak_bytes": max(result[1] for result in results),
        "bytes_before": results[0][2],
    }


def write_cluster(snapshot: Snapshot, format_name: str, path: Path) -> None:
    """Write a cluster, its topics in the order of a hash table as Kafka's tools print them."""
    order = np.random.default_rng(1).permutation(len(snapshot.topics)).tolist()
    with path.open("w", encoding="utf-8") as file:
        file.writelines(TEXTS[format_name](topics_of(snapshot, order), range(BROKERS), CONFIGS))


def ratios_of(partitions: int, rows: Sequence[dict[str, Any]]) -> list[Ratio]:
    """The figures that have targets."""
    ratios = []
    for row in rows:
        ratios.append(Ratio(f"read {row['format']}/{partitions} seconds", row["cpu_seconds"], True, True))
        ratios.append(Ratio(f"read {row['format']}/{partitions} memory", row["peak_bytes"] / row["bytes"], True, True))
    return ratios


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    size, peak = row["bytes"], row["peak_bytes"]
    return (
        row["format"],
        f"{size / 1e6:.0f}",
        f"{row['cpu_seconds']:.2f}",
        f"{peak / 1e6:.0f}",
        f"{peak / size:.2f}",
        f"{row['bytes_before'] / 1e6:.0f}",
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--formats", nargs="+", choices=[*TEXTS, PLAN], default=[*TEXTS, PLAN])
    parser.add_argument("--out", type=Path, default=LATEST / "loading.json", help="where the record goes")
    chosen = parser.parse_args(words)
    rows: list[dict[str, Any]] = []
    command = command_of("benchmarks.loading", words)
    record = IncrementalRecord(
        chosen.out,
        command,
        lambda: {
            "partitions": chosen.partitions,
            "loading": rows,
            "ratios": to_record(ratios_of(chosen.partitions, rows)),
        },
    )
    snapshot = generate(chosen.partitions, BROKERS, 3, seed=1)
    with tempfile.TemporaryDirectory(prefix="loading-") as folder:
        for name in chosen.formats:
            with record.part(name):
                path = Path(folder) / name
                write_cluster(snapshot, "reassignment" if name == PLAN else name, path)
                rows.append(measure(name, path, chosen.partitions, chosen.runs))
                path.unlink()
    table([HEADINGS, *map(_line, rows)], LEGEND)
    return record.end()


if __name__ == "__main__":
    raise SystemExit(main())
