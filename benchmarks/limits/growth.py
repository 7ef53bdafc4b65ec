"""How the cost of a request grows: with the partitions that it names, and with those of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from benchmarks import timing

#: One request for all partitions. Of a completion one request of each leader.
REQUESTS: Final = ("topic-creation", "reassignment-start", "reassignment-completion", "topic-deletion")
#: The largest exponent that still passes for linear growth.
EXPONENT_MAX: Final = 1.1
#: One request for one partition may cost so many times as much in a large cluster as in a small one.
RATIO_MAX: Final = 2.0
LEGEND: Final = "kframe: least milliseconds of one event, decided, applied and all bytes ready."

Result = dict[str, Any]


def of_requests(sizes: Sequence[int], brokers: int, runs: int) -> list[Result]:
    """Requests for more and more partitions, with the exponent of a power law fitted to their times."""
    return [_measured(name, sizes, brokers, runs, "exponent", EXPONENT_MAX) for name in REQUESTS]


def of_cluster(sizes: Sequence[int], brokers: int, runs: int) -> Result:
    """AlterPartition for one partition in larger and larger clusters, with how the last compares to the first."""
    return _measured("alter-partition", sizes, brokers, runs, "ratio", RATIO_MAX)


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """``b`` of ``seconds = a · size^b``, by least squares on the logarithms of at least two sizes."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def lines(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """A table with its headings. All results are of the same sizes."""
    figure = "exponent" if "exponent" in results[0] else "ratio"
    headings = ("milliseconds at", *(f"{size:,}" for size in results[0]["partitions"]), figure, "at most")
    return [headings, *((*_cells(result), f"{result[figure]:.2f}", str(result["target"])) for result in results)]


def _cells(result: Result) -> tuple[str, ...]:
    return (result["bench"], *(f"{seconds * 1000:.2f}" for seconds in result["seconds"]))


def _measured(name: str, sizes: Sequence[int], brokers: int, runs: int, figure: str, target: float) -> Result:
    results = [timing.run_bench(name, size, brokers, runs) for size in sizes]
    seconds = [result["seconds"]["ready"]["min"] for result in results]
    value = exponent(sizes, seconds) if figure == "exponent" else seconds[-1] / seconds[0]
    return {
        "bench": name,
        "partitions": list(sizes),
        "seconds": seconds,
        figure: value,
        "target": target,
        "kframe": results,
    }
