"""The suite of benches timed by pytest-benchmark, in a process of its own, and the ratios between its results."""

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
#: What fits into some gigabytes at ten million partitions and is over in minutes; those with targets first.
LARGEST: Final = ("controller-failover", "broker-failure", "alter-partition", "batching")
LARGEST_BROKERS: Final = 1_000
#: Counted runs of each.
LARGEST_RUNS: Final = 3
#: At most so many counted runs of each bench, and as many as fit into so many seconds: a run in a large cluster takes
#: seconds to get ready. Targets are of a hundred brokers.
RUNS: Final = 10
SECONDS, SECONDS_OF_TARGETS, BROKERS_OF_TARGETS = 2, 5, 100
#: Standard output is for results.
_STDERR: Final = 2
TIERS: Final = ("native", "bulk", "scalar")
HEADINGS: Final = ("partitions", "brokers", "bench", "ready ms", "least", "most", "decide", "choose", "encode")
LEGEND: Final = (
    "kframe: median milliseconds of one event, decided, applied and all bytes ready; least and most of all runs."
)
#: The benches that are there for each tier too, and what their ratios' names have before the tier: in one only the
#: partitions of a broker elect, which lie far apart, in the other all do, one after another.
OF_TIERS: Final = {"broker-failure": "", "election-of-all": "all-"}
TIER_HEADINGS: Final = ("partitions", "brokers", "bench", "selector", "choosing", "deciding")
TIER_LEGEND: Final = "How many times as long as with the built-in rule; the fastest run of each."

Result = dict[str, Any]


class Part(NamedTuple):
    """What is timed together, in a process of its own: the ``only`` benches, all if there are none, at a size."""

    partitions: int
    brokers: int
    only: tuple[str, ...] = ()
    runs: int | None = None
    """How often each is timed; as often as there is time for if nobody says."""


def parts(
    partitions: Iterable[int],
    brokers: Iterable[int],
    largest: Iterable[int],
    only: Sequence[str] = (),
    runs: int | None = None,
) -> list[Part]:
    """All sizes, the small ones first; of the ``largest``, which are in memory alone, each bench by itself, so that
    none finds the memory that another had."""
    together = [Part(*size, tuple(only), runs) for size in product(partitions, brokers)]
    alone = [name for name in LARGEST if not only or name in only]
    of_largest = runs or LARGEST_RUNS
    return together + [Part(size, LARGEST_BROKERS, (name,), of_largest) for size in largest for name in alone]


def run(part: Part) -> list[Result]:
    """The results (schema ``kframe.bench/v1``) of its benches. What goes on is told on standard error. Raises
    CalledProcessError if a bench fails or gives another answer than the known one; pytest has said which."""
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
    """For each size, and each bench that has tiers, what selectors of each tier cost beside the built-in rule."""
    found = []
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
                    found.append({**size, "bench": result["bench"], "tier": tier, **times})
    return found


def tier_line(found: Result) -> tuple[str, ...]:
    """A row of ``tiers`` as cells under TIER_HEADINGS."""
    size = (f"{found['partitions']:,}", f"{found['brokers']:,}")
    return (*size, found["bench"], found["tier"], f"{found['choose']:.2f}", f"{found['decide']:.2f}")


def ratios(results: Sequence[Result]) -> list[Ratio]:
    """What is compared between records, and seconds and memory of what is held against targets."""
    kept = []
    for one in tiers(results):
        size = f"{one['partitions']}/{one['brokers']}"
        tier = OF_TIERS[one["bench"]] + one["tier"]
        kept += [Ratio(f"{phase}-{tier}/{size}", one[phase], less=True) for phase in ("choose", "decide")]
    for result in results:
        if result["bench"] not in ("broker-failure", "controller-failover"):
            continue
        name = f"{result['bench']}/{result['partitions']}/{result['brokers']}"
        kept.append(Ratio(f"{name} bytes a partition", result["state_bytes_per_partition"], less=True))
        kept.append(Ratio(f"{name} seconds", result["seconds"]["ready"]["median"], less=True, absolute=True))
        if "resident_bytes" in result:
            kept.append(Ratio(f"{name} resident", result["resident_bytes"] / 2**30, less=True, absolute=True))
    return kept
