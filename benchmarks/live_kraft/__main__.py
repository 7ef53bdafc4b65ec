"""Compare Kafka 4.4's controller and kframe as running KRaft controllers: ``python -m benchmarks.live_kraft``.

Each run starts a controller on a copy of the same directory, whose snapshot has the cluster. Compiled brokers fetch its
log, discard it, and send heartbeats; what they see at which time is all that is measured, but for memory and processor
time. Runs of both controllers follow on one another. Needs Maven, JDK 17 or newer, and a C compiler.

A broker failure counts from the end of the broker's session. It is held against the same bytes alone: written with one
fdatasync, then sent to each broker over loopback. Kafka has an ample heap where time counts, and the smallest one that
passes a run where memory counts; ``--find-heap`` tries larger ones until a run passes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks.live_kraft import followers, measurements
from benchmarks.live_kraft.controllers import KAFKA, KFRAME, Setup, write_directory
from benchmarks.records import LATEST, IncrementalRecord, command_of, table
from kframe.errors import KframeError

#: Kafka's heap, by partitions: ample for times, and the smallest with which it passes a run (``--find-heap``).
AMPLE_HEAPS: Final[Mapping[int, str]] = {10_000: "512m", 100_000: "1g", 1_000_000: "4g", 2_000_000: "8g"}
SMALLEST_HEAPS: Final[Mapping[int, str]] = {10_000: "64m", 100_000: "192m", 1_000_000: "1536m", 2_000_000: "3g"}
#: The heaps that ``--find-heap`` tries.
CANDIDATES: Final = (
    "64m",
    "96m",
    "128m",
    "192m",
    "256m",
    "384m",
    "512m",
    "768m",
    "1g",
    "1536m",
    "2g",
    "3g",
    "4g",
    "6g",
)
_REST_BROKERS: Final = 100
HEADINGS: Final = ("partitions", "what", "kframe", "Kafka 4.4.0", "ratio")

Row = dict[str, Any]
#: Measures a controller of a kind on a copy of a directory, in a folder.
Measure: TypeAlias = Callable[[str, Path, Path, Setup], Iterator[Row]]


def perform(setup: Setup, measure: Measure, kinds: Sequence[str], runs: int) -> Iterator[Row]:
    """The rows of a measurement of each controller in turn, each on a copy of the same directory."""
    with tempfile.TemporaryDirectory() as scratch:
        original = Path(scratch) / "original"
        write_directory(original, setup)
        for number in range(runs):
            for kind in kinds:
                folder = Path(scratch) / f"{number}-{kind}"
                folder.mkdir()
                facts = {"controller": kind, "partitions": setup.partitions, "run": number}
                for row in measure(kind, original, folder, setup):
                    yield {**facts, **row}


def rows(measured: Sequence[Row]) -> list[Row]:
    """Medians of each figure by size, and Kafka's by kframe's."""
    result = []
    keys = dict.fromkeys(
        (row["partitions"], row["what"], figure)
        for row in measured
        for figure in row
        if figure not in ("controller", "partitions", "run", "what")
    )
    for partitions, what, figure in keys:
        medians = {
            kind: statistics.median(values)
            for kind in (KFRAME, KAFKA)
            if (values := [row[figure] for row in measured if _is(row, kind, partitions, what) and figure in row])
        }
        ratio = medians[KAFKA] / medians[KFRAME] if len(medians) == 2 and medians[KFRAME] else None
        result.append({"partitions": partitions, "what": what, "figure": figure, "ratio": ratio, **medians})
    return result


def _is(row: Row, kind: str, partitions: int, what: str) -> bool:
    return (row["controller"], row["partitions"], row["what"]) == (kind, partitions, what)


def line(row: Row) -> tuple[str, ...]:
    """A row as cells under HEADINGS."""
    return (
        f"{row['partitions']:,}",
        f"{row['what']}: {row['figure'].replace('_', ' ')}",
        *(f"{row[kind]:,.4g}" if kind in row else "-" for kind in (KFRAME, KAFKA)),
        "-" if row["ratio"] is None else f"{row['ratio']:.1f}",
    )


def find_heap(setup: Setup) -> str:
    """The first of CANDIDATES with which Kafka passes a run."""
    for heap in CANDIDATES:
        try:
            list(perform(Setup(setup.program, setup.partitions, setup.brokers, heap), measurements.run, [KAFKA], 1))
        except (RuntimeError, OSError, KframeError) as error:
            print(f"{heap}: {error}", flush=True)
        else:
            return heap
    raise RuntimeError(f"no heap up to {CANDIDATES[-1]} is enough")


def _all_steps(setups: Sequence[Setup], program: Path) -> Iterator[tuple[str, Setup, Measure]]:
    """The measurements without observers, in their order, with their titles."""
    for setup in setups:
        small = replace(setup, heap=SMALLEST_HEAPS.get(setup.partitions, setup.heap))
        yield f"memory of {setup.partitions:,} partitions", small, measurements.memory
        yield f"{setup.partitions:,} partitions", setup, measurements.run
    resting = Setup(program, 10_000, _REST_BROKERS, AMPLE_HEAPS[10_000])
    yield f"rest with {_REST_BROKERS} brokers", resting, measurements.at_rest


def _with_observers(setups: Sequence[Setup], observers: int) -> Iterator[tuple[str, Setup, Measure]]:
    for setup in setups:
        title = f"{setup.partitions:,} partitions, {observers:,} observers"
        yield title, replace(setup, observers=observers), measurements.observed


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.live_kraft", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--partitions", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--observers", type=int, help="measure heartbeats and creations while so many fetch, and stop")
    parser.add_argument("--runs", type=int, default=5, help="of each controller at each size")
    parser.add_argument("--find-heap", action="store_true", help="print the smallest heap of each size, and stop")
    parser.add_argument("--alone", action="store_true", help="kframe without Kafka")
    parser.add_argument("--out", type=Path, default=LATEST / "live-kraft.json")
    chosen = parser.parse_args(words)
    kinds = [KFRAME] if chosen.alone else [KAFKA, KFRAME]
    measured: list[Row] = []
    command = command_of("benchmarks.live_kraft", words)
    record = IncrementalRecord(chosen.out, command, lambda: {"rows": rows(measured), "measured": measured})
    with tempfile.TemporaryDirectory() as folder:
        program = followers.compiled(Path(folder))
        setups = [Setup(program, size, chosen.brokers, AMPLE_HEAPS.get(size, "8g")) for size in chosen.partitions]
        if chosen.find_heap:
            for setup in setups:
                print(f"{setup.partitions:,}: {find_heap(setup)}")
            return 0
        steps = _with_observers(setups, chosen.observers) if chosen.observers else _all_steps(setups, program)
        for title, setup, measure in steps:
            with record.part(title):
                for row in perform(setup, measure, kinds, chosen.runs):
                    measured.append(row)
    table([HEADINGS, *map(line, rows(measured))], f"Medians of {chosen.runs} runs in turn.")
    return record.end()


if __name__ == "__main__":
    raise SystemExit(main())
