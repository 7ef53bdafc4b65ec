"""What the machine alone needs for the work of each row: ``python -m benchmarks.limits.floors``.

The floor of an event in memory is the time in which NumPy copies the encoded bytes once to pages that the process has,
and reads the state of all partitions once, and in which Python makes an object for each request. The floor of a command
is the processor time of a Python that only imports the libraries and reads the columns of the snapshot with them.
Sides are measured in turn; medians are compared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.clusters import MODES, generated_in
from benchmarks.records import IncrementalRecord, command_of, table
from benchmarks.timing import execute, run_bench
from kframe.wire.apis import LEADER_AND_ISR
from kframe.wire.request import requests_of

HEADINGS: Final = ("what", "kframe", "floor", "times", "of which copies", "reads", "requests")
LEGEND: Final = "Medians. Events: elapsed seconds. Commands: processor seconds from exec to exit."
#: Events of all partitions.
EVENTS: Final = ("topic-creation", "topic-deletion", "alter-partition-storm", "reassignment-completion")
_LARGE_EVENT: Final = "controller-failover"
_BLOCK_BYTES: Final = 8 * 2**20
_HELP: Final = "import click"
_IMPORT: Final = "import numpy"
_READ: Final = """
import sys
from pathlib import Path

import click, msgspec, numpy
from pyarrow import parquet

for path in sorted(Path(sys.argv[1]).glob("*.parquet")):
    file = parquet.ParquetFile(path)
    for number in range(file.num_row_groups):
        file.read_row_group(number)
"""

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and a program that does what no such command can leave out: the arguments of Python."""

    name: str
    arguments: tuple[str, ...]
    floor: tuple[str, ...]


def commands(partitions: int, brokers: int, folder: Path) -> list[Command]:
    """The commands of the rows. Clusters are generated in ``folder``."""
    cli = ("-m", "kframe.cli")
    rows = [
        Command("kframe --help", (*cli, "--help"), ("-c", _HELP)),
        Command("from kframe import WhatIf", ("-c", "from kframe import WhatIf"), ("-c", _IMPORT)),
    ]
    for mode in MODES:
        source = str(generated_in(folder, partitions, brokers, mode))
        whatif = (*cli, "whatif", "fail", source, "--brokers", "1")
        rows.append(Command(f"whatif fail, {mode}", whatif, ("-c", _READ, source)))
    return rows


def measure_command(command: Command, runs: int) -> Result:
    """Processor seconds and peaks of both, in turn. Raises CalledProcessError."""
    figures: dict[str, list[tuple[float, int]]] = {"kframe": [], "floor": []}
    for number in range(runs + 1):
        for name, arguments in (("kframe", command.arguments), ("floor", command.floor)):
            process = execute([sys.executable, *arguments])
            if process.code != 0:
                raise subprocess.CalledProcessError(process.code, arguments, process.output, process.errors)
            if number:  # The first run writes bytecode and reads files into memory.
                figures[name].append((process.cpu_seconds, process.memory))
    seconds = {name: median(cpu for cpu, _ in each) for name, each in figures.items()}
    peaks = {name: median(peak for _, peak in each) for name, each in figures.items()}
    return {"what": command.name, "kframe": seconds["kframe"], "floor": seconds["floor"], "peak_bytes": peaks}


def measure_event(name: str, partitions: int, brokers: int, runs: int) -> Result:
    """Seconds of an event of all partitions, and of the three parts of its floor, per event."""
    bench = run_bench(name, partitions, brokers, runs)
    parts = {
        "copies": _median(_copying(bench["made_bytes"]), runs),
        "reads": _median(_reading(int(bench["state_bytes_per_partition"] * partitions)), runs),
        "requests": _median(lambda: _make_requests(bench["requests"]), runs),
    }
    return {
        "what": f"{name}, {partitions:,}",
        "kframe": bench["seconds"]["ready"]["median"],
        "floor": sum(parts.values()),
        "parts": parts,
        **{key: bench[key] for key in ("made_bytes", "requests", "state_bytes_per_partition", "digest")},
    }


def _copying(nbytes: int) -> Callable[[], None]:
    """Copies so many bytes, block by block, to pages that are there."""
    block, pages = np.ones(min(nbytes, _BLOCK_BYTES), np.uint8), np.ones(max(nbytes, 1), np.uint8)

    def copy() -> None:
        for start in range(0, nbytes, _BLOCK_BYTES):
            part = pages[start : start + _BLOCK_BYTES]
            part[:] = block[: len(part)]

    return copy


def _reading(nbytes: int) -> Callable[[], None]:
    columns = np.ones(max(nbytes // 8, 1), np.int64)

    def read() -> None:
        np.bitwise_or.reduce(columns)

    return read


def _make_requests(count: int) -> None:
    brokers, prefixes, bodies, partitions = repeat(1, count), repeat(b""), repeat(memoryview(b"")), repeat(1)
    deque(requests_of(LEADER_AND_ISR.api_key, 7, brokers, prefixes, bodies, partitions), maxlen=0)


def _median(work: Callable[[], None], runs: int) -> float:
    durations = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        durations.append(time.perf_counter() - begun)
    return median(durations)


def lines(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """A table with its headings."""
    return [HEADINGS, *(_cells(result) for result in results)]


def _cells(result: Result) -> tuple[str, ...]:
    parts = result.get("parts", {})
    seconds = [f"{parts[name]:.3f} s" if name in parts else "-" for name in ("copies", "reads", "requests")]
    times = f"{result['kframe'] / result['floor']:.1f}"
    return (result["what"], f"{result['kframe']:.3f} s", f"{result['floor']:.3f} s", times, *seconds)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and write a record after each row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits.floors", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--largest", type=int, default=10_000_000, help="of the failover, on ten times the brokers")
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--clusters-folder", type=Path, help="the generated clusters; a later run reads them again")
    parser.add_argument("--out", type=Path, required=True, help="the record")
    chosen = parser.parse_args(words)
    results: list[Result] = []
    record = IncrementalRecord(chosen.out, command_of("benchmarks.limits.floors", words), lambda: {"floors": results})
    sizes = [(name, chosen.partitions, chosen.brokers) for name in EVENTS]
    with tempfile.TemporaryDirectory(prefix="kframe-bench-") as scratch:
        for command in commands(chosen.partitions, chosen.brokers, chosen.clusters_folder or Path(scratch)):
            with record.part(command.name):
                results.append(measure_command(command, chosen.runs))
    for name, partitions, brokers in [*sizes, (_LARGE_EVENT, chosen.largest, 10 * chosen.brokers)]:
        with record.part(name):
            results.append(measure_event(name, partitions, brokers, min(chosen.runs, 3)))
    table(lines(results), LEGEND)
    return record.end()


if __name__ == "__main__":
    raise SystemExit(main())
