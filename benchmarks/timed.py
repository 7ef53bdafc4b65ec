"""The suite of benches timed by pytest-benchmark, in a process of its own, and the ratios between its results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.ratios import Ratio

SUITE: Final = Path(__file__).resolve().parent / "suite"
#: What fits into some gigabytes at ten million partitions and is over in minutes.
LARGEST: Final = ("broker-failure", "rack-failure", "controller-failover", "alter-partition", "batching")
#: Standard output is for results.
_STDERR: Final = 2
TIERS: Final = ("native", "bulk", "scalar")
HEADINGS: Final = ("partitions", "brokers", "bench", "ready ms", "least", "most", "decide", "choose", "encode")
LEGEND: Final = (
    "kframe: median milliseconds of one event, decided, applied and all bytes ready; least and most of all runs."
)
TIER_HEADINGS: Final = ("partitions", "brokers", "selector", "choosing", "deciding")
TIER_LEGEND: Final = "How many times as long as with the built-in rule, when a broker fails; the fastest run of each."

Result = dict[str, Any]


def run(partitions: Sequence[int], brokers: Sequence[int], runs: int, only: Sequence[str] = ()) -> list[Result]:
    """The results (schema ``kframe.bench/v1``) of every bench at every size. Raises CalledProcessError if one of them
    fails or gives another answer than the known one; pytest has said which."""
    with TemporaryDirectory(prefix="kframe-bench-") as folder:
        out = Path(folder) / "benchmark.json"
        command = [sys.executable, "-m", "pytest", str(SUITE), "-q", "--benchmark-enable", "--benchmark-quiet"]
        command += [f"--benchmark-json={out}", f"--bench-runs={runs}", f"--bench-partitions={_listed(partitions)}"]
        command += [f"--bench-brokers={_listed(brokers)}", *([f"--bench-only={','.join(only)}"] if only else [])]
        subprocess.run(command, stdout=_STDERR, check=True, cwd=SUITE.parent.parent)
        document = json.loads(out.read_text(encoding="utf-8"))
    return [one["extra_info"] for one in document["benchmarks"]]


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


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
    """For each size what selectors of each tier cost beside the built-in rule."""
    found = []
    for result in results:
        if result["bench"] != "broker-failure":
            continue
        size = {key: result[key] for key in ("partitions", "brokers")}
        for tier in TIERS:
            for other in results:
                if other["bench"] == f"broker-failure-{tier}" and size.items() <= other.items():
                    times = {
                        phase: other["seconds"][phase]["min"] / result["seconds"][phase]["min"]
                        for phase in ("choose", "decide")
                    }
                    found.append({**size, "tier": tier, **times})
    return found


def tier_line(found: Result) -> tuple[str, ...]:
    """A row of ``tiers`` as cells under TIER_HEADINGS."""
    size = (f"{found['partitions']:,}", f"{found['brokers']:,}")
    return (*size, found["tier"], f"{found['choose']:.2f}", f"{found['decide']:.2f}")


def ratios(results: Sequence[Result]) -> list[Ratio]:
    """What is compared between records, and seconds and memory of what is held against targets."""
    kept = []
    for one in tiers(results):
        size = f"{one['partitions']}/{one['brokers']}"
        kept += [Ratio(f"{phase}-{one['tier']}/{size}", one[phase], less=True) for phase in ("choose", "decide")]
    for one in results:
        if one["bench"] not in ("broker-failure", "controller-failover"):
            continue
        name = f"{one['bench']}/{one['partitions']}/{one['brokers']}"
        kept.append(Ratio(f"{name} bytes a partition", one["state_bytes_per_partition"], less=True))
        kept.append(Ratio(f"{name} seconds", one["seconds"]["ready"]["median"], less=True, absolute=True))
        if "resident_bytes" in one:
            kept.append(Ratio(f"{name} resident", one["resident_bytes"] / 2**30, less=True, absolute=True))
    return kept
