"""Time a sweep of all failures, and a single failure on the engine."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.timing import timed
from kframe.snapshot import Health, generate
from kframe.whatif import WhatIf
from kframe.whatif.engines.settings import config_of
from kframe.whatif.engines.zookeeper.sweep import sweep_of
from kframe.whatif.engines.zookeeper.sweep_counts import count_failures

#: The most that a sweep of pairs may take.
SECONDS_MAX: Final = 120
RACKS: Final = 4
#: Some of everything that makes failures differ.
HEALTH: Final = Health(under_replicated=0.05, preferred_replica_imbalance=0.1, unclean=0.2, min_insync=2)
LEGEND: Final = (
    "kframe: median seconds on one core. columns: a cluster from a snapshot; count: one pass; work out: every failure. "
    "played: one pair by the engine times all failures, the cluster taken over each time."
)
HEADINGS: Final = ("sweep of", "brokers", "failures", "columns", "count", "work out", "all", "at most", "played")

Result = dict[str, Any]


def of_pairs(partitions: int, brokers: int, runs: int) -> Result:
    """Sweep a cluster this often. Play one pair of its brokers as often."""
    logging.getLogger("kframe").addHandler(logging.NullHandler())  # the engine logs partitions that find no leader
    snapshot = generate(partitions, brokers, 3, racks=RACKS, health=HEALTH)
    settings = config_of(snapshot)
    seconds: dict[str, list[float]] = {"columns": [], "count": [], "work_out": [], "played": []}
    failures = 0
    for _ in range(runs):
        cluster = _timed(seconds["columns"], snapshot.to_cluster)
        counts = _timed(seconds["count"], lambda: count_failures(cluster, settings))  # noqa: B023
        swept = _timed(seconds["work_out"], lambda: sweep_of(counts))  # noqa: B023
        failures = len(swept)
        _timed(seconds["played"], lambda: WhatIf(snapshot).fail([0, 1]))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "partitions": partitions,
        "brokers": brokers,
        "failures": failures,
        "seconds": medians,
        "all": medians["columns"] + medians["count"] + medians["work_out"],
        "target": SECONDS_MAX,
        "played_all": medians["played"] * failures,
    }


def lines(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """A table with its headings."""
    return [HEADINGS, *map(_line, results)]


def _line(result: Result) -> tuple[str, ...]:
    seconds = result["seconds"]
    return (
        f"{result['partitions']:,}",
        f"{result['brokers']:,}",
        f"{result['failures']:,}",
        *(f"{seconds[name]:.2f}" for name in ("columns", "count", "work_out")),
        f"{result['all']:.2f}",
        str(result["target"]),
        f"{result['played_all']:,.0f}",
    )


def _timed(seconds: list[float], work: Callable[[], Any]) -> Any:
    elapsed, result = timed(work)
    seconds.append(elapsed)
    return result
