"""Compare the build of this tree with that of another one: ``python -m benchmarks.limits.builds --beside TREE``.

TREE is a clone of an earlier commit whose kernels are compiled. Each row runs in new processes of both builds, in turn,
``--runs`` times. The median of the pairs' ratios compares them, so that a machine that changes between pairs does not
count. Events in memory have a digest of what they send, which must be equal. Both builds share an interpreter and its
libraries.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.clusters import MODES, generated_in
from benchmarks.limits.growth import EVENTS
from benchmarks.records import ROOT, IncrementalRecord, command_of, spread, table
from benchmarks.timing import execute

HEADINGS: Final = ("what", "earlier", "now", "times", "peak earlier", "peak now")
LEGEND: Final = (
    "Medians; times: of the pairs' ratios, with the least and the largest. Commands: processor seconds and peak of "
    "resident memory, from exec to exit. Events: seconds until all is decided, applied and encoded."
)
_IMPORT: Final = "from kframe import WhatIf"
#: An event of ten times the partitions on ten times the brokers.
_LARGEST: Final = "controller-failover"

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """What is measured: the arguments of Python. An event prints its seconds; of a command its process is measured."""

    name: str
    arguments: tuple[str, ...]
    is_event: bool = False


def rows(partitions: int, brokers: int, folder: Path) -> Iterator[Row]:
    """All rows; clusters are written to ``folder``."""
    cli = ("-m", "kframe.cli")
    yield Row("kframe --help", (*cli, "--help"))
    yield Row(_IMPORT, ("-c", _IMPORT))
    for mode in MODES:
        source = generated_in(folder, partitions, brokers, mode)
        yield Row(f"whatif fail, {mode}", (*cli, "whatif", "fail", str(source), "--brokers", "1"))
        yield Row(f"whatif sweep, {mode}", (*cli, "whatif", "sweep", str(source)))
    for name in EVENTS:
        yield _event(name, name, partitions, brokers)
    yield _event(f"{_LARGEST}, {10 * partitions:,}", _LARGEST, 10 * partitions, 10 * brokers)


def _event(row: str, name: str, partitions: int, brokers: int) -> Row:
    size = ("--partitions", str(partitions), "--brokers", str(brokers), "--runs", "1")
    return Row(row, ("-m", "kframe.cli", "bench", name, *size, "-o", "json"), is_event=True)


def measure(row: Row, trees: Mapping[str, Path], runs: int) -> Result:
    """The figures of each run of both builds. Raises CalledProcessError, and ValueError if answers differ."""
    figures: dict[str, list[Result]] = {name: [] for name in trees}
    for number in range(runs + 1):
        for name, tree in trees.items():
            figure = _run(row, tree)
            if number:  # The first run writes bytecode and reads files into memory.
                figures[name].append(figure)
    digests = {figure.get("digest") for results in figures.values() for figure in results}
    if len(digests) != 1:
        raise ValueError(f"{row.name}: digests {sorted(map(str, digests))}, expected equal ones")
    seconds, peaks = (
        {name: median(figure[key] for figure in results) for name, results in figures.items()}
        for key in ("seconds", "peak_bytes")
    )
    pairs = zip(figures["now"], figures["earlier"], strict=True)
    ratios = [now["seconds"] / earlier["seconds"] for now, earlier in pairs]
    return {"row": row.name, "seconds": seconds, "ratios": ratios, "peak_bytes": peaks, "runs": figures}


def _run(row: Row, tree: Path) -> Result:
    folders = [tree, tree / "simulator", *sorted((tree / "plugins").iterdir())]
    # Without it the folder in which this command runs would come before those of the tree.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONSAFEPATH": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *row.arguments]
    process = execute(command, environment=environment)
    if process.code != 0:
        raise subprocess.CalledProcessError(process.code, command, process.output, process.errors)
    if not row.is_event:
        return {"seconds": process.cpu_seconds, "peak_bytes": process.memory}
    result = json.loads(process.output)
    return {
        "seconds": result["seconds"]["ready"]["median"],
        "peak_bytes": process.memory,
        "digest": result["digest"],
    }


def lines(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """A table with its headings."""
    return [HEADINGS, *(_cells(result) for result in results)]


def _cells(result: Result) -> tuple[str, ...]:
    earlier, now = (result["seconds"][name] for name in ("earlier", "now"))
    peaks = (f"{result['peak_bytes'][name] / 1e6:.0f} MB" for name in ("earlier", "now"))
    return (result["row"], f"{earlier:.3f} s", f"{now:.3f} s", spread(result["ratios"]), *peaks)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and write a record after each row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits.builds", description=__doc__)
    parser.add_argument("--beside", type=Path, required=True, metavar="TREE", help="a clone of the earlier commit")
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", nargs="+", help="names of rows; by default all")
    parser.add_argument("--clusters-folder", type=Path, help="the generated clusters; a later run reads them again")
    parser.add_argument("--out", type=Path, required=True, help="the record")
    chosen = parser.parse_args(words)
    trees = {"earlier": chosen.beside.resolve(), "now": ROOT}
    commit = ["git", "-C", str(chosen.beside), "rev-parse", "HEAD"]
    earlier = subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip()
    results: list[Result] = []
    content = {"builds": results, "earlier_commit": earlier, "partitions": chosen.partitions, "brokers": chosen.brokers}
    record = IncrementalRecord(chosen.out, command_of("benchmarks.limits.builds", words), lambda: content)
    with tempfile.TemporaryDirectory(prefix="kframe-bench-") as scratch:
        for row in rows(chosen.partitions, chosen.brokers, chosen.clusters_folder or Path(scratch)):
            if row.name in (chosen.rows or [row.name]):
                with record.part(row.name):
                    results.append(measure(row, trees, chosen.runs))
    table(lines(results), LEGEND)
    return record.end()


if __name__ == "__main__":
    raise SystemExit(main())
