"""Time the suite with pytest-benchmark in a separate process, and compute ratios between its results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from benchmarks.report.ratios import Ratio

SUITE: Final = Path(__file__).resolve().parent
#: Benches that fit into a few gigabytes and minutes at ten million partitions. Those with targets are first.
LARGEST: Final = ("controller-failover", "broker-failure", "alter-partition", "batching")
LARGEST_BROKERS: Final = 1_000
#: Benches whose seconds have targets; those of failures have targets of memory too.
FAILURES: Final = ("broker-failure", "controller-failover")
ADMINISTRATION: Final = (
    "topic-creation",
    "topic-deletion",
    "alter-partition-storm",
    "reassignment-start",
    "reassignment-completion",
)
#: Counted runs of each.
LARGEST_RUNS: Final = 3
#: Limits of counted runs and seconds for each bench: preparing a run of a large cluster takes seconds. Targets refer to
#: clusters of a hundred brokers, which get more time.
RUNS: Final = 10
SECONDS, SECONDS_OF_TARGETS, BROKERS_OF_TARGETS = 2, 5, 100
#: Standard output is for results.
_STDERR: Final = 2
TIERS: Final = ("native", "bulk", "scalar")
HEADINGS: Final = ("partitions", "brokers", "bench", "ready ms", "least", "most", "decide", "choose", "encode")
LEGEND: Final = (
    "kframe: median milliseconds of one event, decided, applied and all bytes ready; least and most of all runs."
)
#: Benches that exist for each selector tier, with the prefix of their ratios' names. One elects for the scattered rows
#: of a broker, the other for all rows in order.
OF_TIERS: Final = {"broker-failure": "", "election-of-all": "all-"}
TIER_HEADINGS: Final = ("partitions", "brokers", "bench", "selector", "choosing", "deciding")
TIER_LEGEND: Final = "How many times as long as with the built-in rule; the fastest run of each."

Result = dict[str, Any]


class Part(NamedTuple):
    """Benches timed together in one process: ``only`` these, or all, at one size."""

    partitions: int
    brokers: int
    only: tuple[str, ...] = ()
    runs: int | None = None
    """Counted runs of each. By default as many as fit into the time limit."""


def parts(
    partitions: Iterable[int],
    brokers: Iterable[int],
    largest: Iterable[int],
    only: Sequence[str] = (),
    runs: int | None = None,
) -> list[Part]:
    """All parts, small sizes first. Each bench of the ``largest`` sizes gets its own process and thus fresh memory."""
    together = [Part(*size, tuple(only), runs) for size in product(partitions, brokers)]
    alone = [name for name in LARGEST if not only or name in only]
    of_largest = runs or LARGEST_RUNS
    return together + [Part(size, LARGEST_BROKERS, (name,), of_largest) for size in largest for name in alone]


def run(part: Part) -> list[Result]:
    """The results of the benches (schema ``kframe.bench/v1``). Progress goes to standard error.

    Raises CalledProcessError if a bench fails or its answer differs from the known one.
    """
    seconds = SECONDS_OF_TARGETS if part.brokers == BROKERS_OF_TARGETS else SECONDS
    often = [f"--bench-runs={part.runs}"] if part.runs else [f"--bench-runs={RUNS}", f"--bench-seconds={seconds}"]
    with TemporaryDirectory(prefix="kframe-bench-") as folder:
        out = Path(folder) / "benchmark.json"
        command = [sys.executable, "-m", "pytest", str(SUITE), "-v", "--no-header"]
        command += ["--benchmark-enable", "--benchmark-quiet", f"--benchmark-json={out}", *often]
        command += [f"--bench-partitions={part.partitions}", f"--bench-brokers={part.brokers}"]
        command += [f"--bench-only={','.join(part.only)}"] if part.only else []
        subprocess.run(command, stdout=_STDERR, check=True, cwd=SUITE.parent.parent)
        document = json.loads(out.read_text(encoding="utf-8"))
    return [benchmark["extra_info"] for benchmark in document["benchmarks"]]


def line(result: Result) -> tuple[str, ...]:
    """A result as cells under HEADINGS."""
    seconds = result["seconds"]
    ready = (f"{seconds['ready'][name] * 1000:.3f}" for name in ("median", "min", "max"))
    phases = (
        f"{seconds[phase]['median'] * 1000:.3f}" if phase in seconds else "-"
        for phase in ("decide", "choose", "encode")
    )
    return (f"{result['partitions']:,}", f"{result['brokers']:,}", result["bench"], *ready, *phases)


def tiers(results: Sequence[Result]) -> list[Result]:
    """The cost of selectors of each tier relative to the built-in rule. There is a result for each size and bench with
    tiers."""
    rows = []
    for result in results:
        if result["bench"] not in OF_TIERS:
            continue
        size = {key: result[key] for key in ("partitions", "brokers")}
        for tier in TIERS:
            for other in results:
                if other["bench"] == f"{result['bench']}-{tier}" and size.items() <= other.items():
                    times = {
                        phase: other["seconds"][phase]["min"] / result["seconds"][phase]["min"]
                        for phase in ("choose", "decide")
                    }
                    rows.append({**size, "bench": result["bench"], "tier": tier, **times})
    return rows


def tier_line(row: Result) -> tuple[str, ...]:
    """A row of ``tiers`` as cells under TIER_HEADINGS."""
    size = (f"{row['partitions']:,}", f"{row['brokers']:,}")
    return (*size, row["bench"], row["tier"], f"{row['choose']:.2f}", f"{row['decide']:.2f}")


def ratios(results: Sequence[Result]) -> list[Ratio]:
    """The ratios that records compare, and seconds and memory that have targets."""
    collected: list[Ratio] = []
    for row in tiers(results):
        size = f"{row['partitions']}/{row['brokers']}"
        tier = OF_TIERS[row["bench"]] + row["tier"]
        collected += [Ratio(f"{phase}-{tier}/{size}", row[phase], less=True) for phase in ("choose", "decide")]
    for result in results:
        name = f"{result['bench']}/{result['partitions']}/{result['brokers']}"
        if result["bench"] in (*FAILURES, *ADMINISTRATION):
            collected.append(Ratio(f"{name} seconds", result["seconds"]["ready"]["median"], less=True, absolute=True))
        if result["bench"] not in FAILURES:
            continue
        collected.append(Ratio(f"{name} bytes a partition", result["state_bytes_per_partition"], less=True))
        if "resident_bytes" in result:
            collected.append(Ratio(f"{name} resident", result["resident_bytes"] / 2**30, less=True, absolute=True))
    return collected
