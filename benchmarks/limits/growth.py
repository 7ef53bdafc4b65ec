"""How the cost of an event grows with the partitions of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from benchmarks import timing

#: Events of one broker, of all partitions in one request, and of all in one request of each leader.
EVENTS: Final = (
    "broker-failure",
    "controller-failover",
    "topic-creation",
    "topic-deletion",
    "reassignment-start",
    "reassignment-completion",
    "alter-partition-storm",
)
#: The largest exponent that still passes for linear growth.
EXPONENT_MAX: Final = 1.05
LEGEND: Final = "kframe: least milliseconds of one event, decided, applied and all bytes ready."

Result = dict[str, Any]


def of_events(sizes: Sequence[int], brokers: int, runs: int) -> list[Result]:
    """Events in clusters of more and more partitions, with the exponent of a power law fitted to their times."""
    return [_measured(name, sizes, brokers, runs) for name in EVENTS]


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """``b`` of ``seconds = a · size^b``, by least squares on the logarithms of at least two sizes."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def lines(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """A table with its headings. All results are of the same sizes."""
    headings = ("milliseconds at", *(f"{size:,}" for size in results[0]["partitions"]), "exponent", "at most")
    return [headings, *((*_cells(result), f"{result['exponent']:.2f}", str(result["target"])) for result in results)]


def _cells(result: Result) -> tuple[str, ...]:
    return (result["bench"], *(f"{seconds * 1000:.2f}" for seconds in result["seconds"]))


def _measured(name: str, sizes: Sequence[int], brokers: int, runs: int) -> Result:
    results = [timing.run_bench(name, size, brokers, runs) for size in sizes]
    seconds = [result["seconds"]["ready"]["min"] for result in results]
    return {
        "bench": name,
        "partitions": list(sizes),
        "seconds": seconds,
        "exponent": exponent(sizes, seconds),
        "target": EXPONENT_MAX,
        "kframe": results,
    }
