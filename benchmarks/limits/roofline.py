"""Compare each bulk kernel with memory bandwidth: ``python -m benchmarks.limits.roofline``.

For each kernel the bytes that it must touch (see ``kernel_cluster.py``), its time, and the ratio to a *limit* that
NumPy's compiled loops reach in the same run on one core:

- ``copy``: copying a large array, as STREAM does; for kernels that read all rows in order;
- ``gather``: ``take`` of the rows of one broker, in cache lines; for kernels that visit only those rows;
- ``scatter``: writing values in the order of a sort by broker; for kernels that sort.

``times`` is the kernel's time divided by the limit's. Above ``TIMES_MAX`` a note gives the reason. *In cache* is the
time per row when the columns fit into caches: the cost of the instructions alone. *All cores* is the time per row
with a thread on each core, each on its own rows: the best that ``prange`` could reach. Kernel and limit alternate, so
that other load affects both. Times are the least processor time of several runs; of all cores, elapsed time.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.limits.kernel_calls import calls_of
from benchmarks.limits.kernel_cluster import LINE_BYTES, Call, KernelCluster
from benchmarks.records import command_of, table, write_record
from kframe import kernels

#: How many times longer than the limit a kernel may take without a note.
TIMES_MAX: Final = 3.0
#: Entries of int32 in each of the arrays that are copied.
COPIED: Final = 2**25
#: Kernels whose limit is another than that of their rows.
LIMITS: Final[Mapping[str, str]] = {"build_replica_index": "scatter", "group_by_broker": "scatter"}
#: Partitions of two clusters whose columns lie in caches: their difference tells what a row takes there.
CACHED: Final = (20_000, 200_000)
#: Why a kernel stays beyond TIMES_MAX, each by what was measured (docs/explanation/performance.md).
NOTES: Final[Mapping[str, str]] = {
    "choose_leaders": "each row's candidates are looked up one by one, until one may lead",
    "plan_removals": "few rows of all have the broker; it is called with those that it is in, as one broker's are here",
    "size_replica_index": "a count in memory goes up for each replica, three a row",
    "build_replica_index": "each replica is written down in one of as many places as there are brokers",
    "group_by_broker": "two passes, and two arrays to put things into",
    "assign_replicas": "old lists and new ones are compared replica by replica, and flags merged",
    "count_failures": "two counts in memory go up for each row, and two more where racks share a row's replicas",
}
HEADINGS: Final = (
    "kernel",
    "rows",
    "bytes a row",
    "ns a row",
    "in cache",
    "all cores",
    "GB/s",
    "limit",
    "GB/s",
    "times",
)
LEGEND: Final = "times: the kernel's time over that of its limit, both from this run; * above 3, with a note below."

Record = dict[str, Any]


@dataclass(frozen=True)
class Limit:
    """What is done to find a limit, and the bytes that it moves."""

    work: Callable[[], object]
    nbytes: int


def seconds_of(work: Callable[[], object]) -> float:
    """Processor time of this thread."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def copying(count: int) -> Limit:
    """An array copied into another: bytes read and written."""
    source, target = np.ones(count, np.int32), np.zeros(count, np.int32)
    return Limit(lambda: np.copyto(target, source), 2 * source.nbytes)


def gathering(g: KernelCluster) -> Limit:
    """A column taken by the rows of ``g``: the lines they stand in, the rows, and what is put out."""
    rows, column, out = g.rows.astype(np.int64), g.p.leader_epoch, np.empty(g.k, np.int32)
    lines = len(np.unique(rows * column.itemsize // LINE_BYTES)) * LINE_BYTES
    return Limit(lambda: np.take(column, rows, out=out, mode="clip"), lines + rows.nbytes + out.nbytes)


def scattering(g: KernelCluster) -> Limit:
    """A number for each replica put where a stable sort by broker puts it."""
    brokers = g.replicas.values
    positions = np.empty(len(brokers), np.int64)
    positions[np.argsort(brokers, kind="stable")] = np.arange(len(brokers))
    values, out = brokers.copy(), np.empty_like(brokers)

    def put() -> None:
        out[positions] = values

    return Limit(put, positions.nbytes + values.nbytes + out.nbytes)


def measure(g: KernelCluster, runs: int, copied: int) -> list[Record]:
    """A row for each kernel on this cluster, in turn with its limit."""
    scattered = g.k < g.n
    limits = {"gather": gathering(g)} if scattered else {"copy": copying(copied)}
    usual, limits["scatter"] = next(iter(limits)), scattering(g)
    rows = []
    for name, call in calls_of(g).items():
        limit, work, seconds, rates = LIMITS.get(name, usual), _checked(g, name, call), [], []
        for _ in range(runs):
            rates.append(limits[limit].nbytes / seconds_of(limits[limit].work))
            call.before()
            seconds.append(seconds_of(work))
        nbytes, fastest = g.bytes_of(name, call), min(seconds)
        rows.append(
            {
                "kernel": name,
                "rows": "one broker's" if scattered else "all",
                "row_count": g.k,
                "bytes": nbytes,
                "seconds": fastest,
                "limit": limit,
                "limit_rate": max(rates),
                "times": fastest * max(rates) / nbytes,
            }
        )
    return rows


def in_cache(brokers: int, runs: int, sizes: Sequence[int]) -> dict[str, float]:
    """Seconds that each kernel takes for a row whose columns lie in caches: by the difference of two clusters."""
    rows, seconds = [], []
    for g in (KernelCluster(size, brokers, scattered=False) for size in sizes):
        rows.append(g.k)
        seconds.append({name: min(_times(g, name, call, runs)) for name, call in calls_of(g).items()})
    return {name: (seconds[1][name] - fastest) / (rows[1] - rows[0]) for name, fastest in seconds[0].items()}


def at_once(threads: int, partitions: int, brokers: int, runs: int) -> dict[str, float]:
    """Seconds that each kernel takes for a row when so many threads call it at once, each on a cluster of its own."""
    clusters = [KernelCluster(max(100, partitions // threads // 100 * 100), brokers) for _ in range(threads)]
    calls = [calls_of(g) for g in clusters]
    with ThreadPoolExecutor(threads) as pool:
        seconds = {name: min(_elapsed(pool, name, clusters, calls) for _ in range(runs)) for name in calls[0]}
    return {name: fastest / sum(g.k for g in clusters) for name, fastest in seconds.items()}


def _elapsed(
    pool: ThreadPoolExecutor, name: str, clusters: Sequence[KernelCluster], calls: Sequence[Mapping[str, Call]]
) -> float:
    works = [_checked(g, name, call[name]) for g, call in zip(clusters, calls, strict=True)]
    for call in calls:
        call[name].before()
    begun = time.perf_counter()
    list(pool.map(lambda work: work(), works))
    return time.perf_counter() - begun


def _times(g: KernelCluster, name: str, call: Call, runs: int) -> Iterator[float]:
    work = _checked(g, name, call)
    for _ in range(runs):
        call.before()
        yield seconds_of(work)


def why(row: Record) -> str:
    """Why a kernel is beyond its limit: a note, and how much of its time is not spent on waiting for memory."""
    reasons = [NOTES[row["kernel"]]] if row["kernel"] in NOTES else []
    if "cached_seconds" in row:
        elapsed, cached = row["seconds"] / row["row_count"], row["cached_seconds"]
        reasons.append(f"{cached * 1e9:.1f} ns a row with all of it in cache, {elapsed * 1e9:.1f} without")
    return "; ".join(reasons) or "no note yet"


def _checked(g: KernelCluster, name: str, call: Call) -> Callable[[], None]:
    """A call of a kernel. Its arguments are looked up now, which takes longer than some kernels do.

    It raises AssertionError if the result differs: then other work was timed.
    """
    kernel, arguments = getattr(kernels, name), list(g.arguments(name, call).values())

    def work() -> None:
        result = kernel(*arguments)
        if result != call.expected:
            raise AssertionError(f"{name} returned {result}, expected {call.expected}")

    return work


def line(row: Record) -> tuple[str, ...]:
    """A row as cells under HEADINGS."""
    count, seconds = row["row_count"], row["seconds"]
    return (
        row["kernel"],
        row["rows"],
        f"{row['bytes'] / count:.1f}",
        f"{seconds * 1e9 / count:.1f}",
        nanoseconds(row, "cached_seconds"),
        nanoseconds(row, "all_cores_seconds"),
        f"{row['bytes'] / seconds / 1e9:.1f}",
        row["limit"],
        f"{row['limit_rate'] / 1e9:.1f}",
        f"{row['times']:.1f}{'*' if row['times'] > TIMES_MAX else ''}",
    )


def nanoseconds(row: Record, figure: str) -> str:
    """Seconds that a row takes, as a cell. Nothing where that was not measured."""
    return f"{row[figure] * 1e9:.1f}" if figure in row else ""


def roofline(partitions: int, brokers: int, runs: int, copied: int = COPIED, cached: Sequence[int] = CACHED) -> Record:
    """All measurements: the limits, and a row for each kernel. Kernels run on all rows, and on those of one broker."""
    threads = os.cpu_count() or 1
    rows, seconds, together = [], in_cache(brokers, runs, cached), at_once(threads, partitions, brokers, runs)
    for scattered in (False, True):
        rows += measure(KernelCluster(partitions, brokers, scattered=scattered), runs, copied)
    for row in rows:
        if row["rows"] == "all":
            row["cached_seconds"], row["all_cores_seconds"] = seconds[row["kernel"]], together[row["kernel"]]
    return {"partitions": partitions, "brokers": brokers, "cores": threads, "kernels": rows}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits.roofline", description=__doc__)
    parser.add_argument("--partitions", type=int, default=5_000_000, help="a multiple of 100")
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--copied", type=int, default=COPIED, help="entries of each array that is copied")
    parser.add_argument("--cached", type=int, nargs=2, default=CACHED, help="partitions of two that caches hold")
    parser.add_argument("--out", help="write all figures as JSON, for example to benchmarks/results/NAME.json")
    chosen = parser.parse_args(words)
    results = roofline(chosen.partitions, chosen.brokers, chosen.runs, chosen.copied, chosen.cached)
    table([HEADINGS, *map(line, results["kernels"])], LEGEND)
    for row in results["kernels"]:
        if row["times"] > TIMES_MAX:
            print(f"* {row['kernel']}: {why(row)}")
    if chosen.out:
        write_record(Path(chosen.out), command_of("benchmarks.limits.roofline", words), {"roofline": results})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
