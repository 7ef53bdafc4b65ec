"""How the cost of a broker failure grows with the broker's replicas and with the cluster.

    python -m benchmarks.limits.failure_cost

Each cluster has a few extra brokers that lead a fixed number of partitions. These fail one after another, and the least
processor time of the whole event counts; it includes the in-memory store. One series grows the cluster, another the
replicas of these brokers, and a third sends one AlterPartition to larger and larger clusters. Each is fitted by a power
law.
"""

from __future__ import annotations

import argparse
import gc
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import timing
from benchmarks.limits import growth
from benchmarks.records import command_of, table, write_record
from kframe.bench.clusters import whole_cluster
from kframe.bench.controller import TimedController
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState

#: Brokers that fail, one after another.
FAILURES: Final = 7
HEADINGS: Final = ("series", "partitions", "hosted", "ms", "ready", "decide", "encode")
LEGEND: Final = (
    "ms: processor time of the whole event, the least of seven failures; ready, decide and encode: elapsed. Of "
    "AlterPartition elapsed, all bytes ready. With the exponent of each series."
)

Record = dict[str, Any]


def with_small_brokers(partitions: int, brokers: int, hosted: int, small: int = FAILURES) -> ClusterState:
    """A cluster with ``small`` further brokers. Each leads ``hosted`` partitions, spread over the cluster."""
    cluster = whole_cluster(partitions, brokers)
    p = cluster.partitions
    indexes = cluster.brokers.register(tuple(Registration(brokers + index, 1) for index in range(small)))
    rows = np.linspace(0, partitions, hosted * small, endpoint=False).astype(np.int32)
    owners = np.tile(indexes, hosted).astype(np.int32)
    p.leader[rows] = p.replica[p.slot_start[rows]] = p.isr[p.slot_start[rows]] = owners
    return cluster


def failure(partitions: int, brokers: int, hosted: int) -> Record:
    """The least of several failures of brokers that host just so much."""
    if hosted * FAILURES > partitions:
        raise ValueError(f"{FAILURES} brokers of {hosted} partitions each do not go into {partitions}")
    controller = TimedController(with_small_brokers(partitions, brokers, hosted))
    controller.adopt()
    gc.collect()
    seconds, phases_of_runs = [], []
    for index in range(FAILURES):
        controller.ensemble.unregister_brokers([brokers + index])
        begun = time.thread_time()
        with controller.watch.event() as phases:
            controller.run_until_idle()
        seconds.append(time.thread_time() - begun)
        phases_of_runs.append(phases)
    controller.expect_led(partitions)
    best = min(phases_of_runs, key=lambda phases: phases.ready_seconds)
    return {
        "partitions": partitions,
        "hosted": hosted,
        "seconds": min(seconds),
        "ready": best.ready_seconds,
        "decide": best.decide_seconds,
        "encode": best.encode_seconds,
        "made_bytes": phases_of_runs[0].made_bytes,
    }


def series(name: str, along: str, points: Sequence[Record]) -> Record:
    """Points with the exponent of their times along one of their sizes. At least two sizes."""
    fitted = growth.exponent([point[along] for point in points], [point["seconds"] for point in points])
    return {"series": name, "along": along, "points": list(points), "exponent": fitted}


def measure(clusters: Sequence[int], hosted: Sequence[int], brokers: int, runs: int) -> list[Record]:
    """All three series. They use the smallest of ``hosted`` in each of ``clusters``, and all of ``hosted`` in the
    largest."""
    logging.getLogger("kframe").addHandler(logging.NullHandler())  # the engine logs partitions that find no leader
    largest = max(clusters)
    alter = [timing.run_bench("alter-partition", size, brokers, runs)["seconds"]["ready"]["min"] for size in clusters]
    return [
        series("broker-failure", "partitions", [failure(size, brokers, min(hosted)) for size in clusters]),
        series("broker-failure", "hosted", [failure(largest, brokers, size) for size in hosted]),
        series(
            "alter-partition",
            "partitions",
            [
                {"partitions": size, "seconds": seconds, "hosted": 1}
                for size, seconds in zip(clusters, alter, strict=True)
            ],
        ),
    ]


def lines(series_list: Sequence[Record]) -> list[tuple[str, ...]]:
    """A table with its headings."""
    cells: list[tuple[str, ...]] = [HEADINGS]
    for row in series_list:
        for point in row["points"]:
            phases = (
                f"{point[phase] * 1000:.2f}" if phase in point else "-" for phase in ("ready", "decide", "encode")
            )
            size = f"{point['partitions']:,}", f"{point['hosted']:,}", f"{point['seconds'] * 1000:.3f}"
            cells.append((row["series"], *size, *phases))
        cells.append((f"^{row['exponent']:.2f}", f"by {row['along']}", "", "", "", "", ""))
    return cells


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits.failure_cost", description=__doc__)
    parser.add_argument(
        "--clusters",
        type=int,
        nargs="+",
        default=[10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000],
        help="partitions, multiples of 100",
    )
    parser.add_argument("--hosted", type=int, nargs="+", default=[1_000, 3_000, 10_000, 30_000, 100_000])
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3, help="of AlterPartition")
    parser.add_argument("--out", help="write all figures as JSON, for example to benchmarks/results/NAME.json")
    chosen = parser.parse_args(words)
    results = measure(chosen.clusters, chosen.hosted, chosen.brokers, chosen.runs)
    table(lines(results), LEGEND)
    if chosen.out:
        write_record(Path(chosen.out), command_of("benchmarks.limits.failure_cost", words), {"own_work": results})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
