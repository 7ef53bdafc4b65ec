"""kframe and Kafka's own classes in turn, on the same cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks import engine, peers

#: How many times as fast as Kafka's classes kframe has to be.
TARGETS: Final[Mapping[str, float]] = {"broker-failure": 50, "controller-failover": 50, "preferred-election": 20}
HEADINGS: Final = ("bench", "partitions", "kframe ms", "decide", "encode", "Kafka ms", "ratio", "wanted", "bytes each")
LEGEND: Final = (
    "kframe: median of its slower run, decided, applied and all bytes ready. Kafka: its best run, warmed up."
)

Result = dict[str, Any]


def compare(partitions: int, brokers: int, runs: int, peer_runs: int, heap: str | None) -> list[Result]:
    """kframe, then Kafka, then kframe again, so that a machine that drifts shows in the spread; a row for each bench.

    Without a ``heap`` for Kafka's classes kframe is measured alone.
    """
    before = {name: engine.run(name, partitions, brokers, runs) for name in TARGETS}
    figures = {} if heap is None else peers.run(partitions, brokers, peer_runs, heap)
    after = {name: engine.run(name, partitions, brokers, runs) for name in TARGETS}
    return [row(name, partitions, [before[name], after[name]], figures) for name in TARGETS]


def row(name: str, partitions: int, ours: Sequence[Result], figures: Mapping[str, Result]) -> Result:
    """What is kept of one bench; ``figures`` are all that the peers measured on that cluster, if they were run."""
    found: Result = {"bench": name, "partitions": partitions, "kframe": list(ours)}
    if figures:
        medians = [run["seconds"]["ready"]["median"] for run in ours]
        kafka = peers.best_seconds(figures, name)
        found |= {"kafka": dict(figures), "kafka_seconds": kafka, "target": TARGETS[name]}
        found["ratio"] = {"least": kafka / max(medians), "most": kafka / min(medians)}
    return found


def line(found: Result) -> tuple[str, ...]:
    """A row as cells under HEADINGS."""
    slower = max(found["kframe"], key=lambda run: run["seconds"]["ready"]["median"])
    milliseconds = {phase: spread["median"] * 1000 for phase, spread in slower["seconds"].items()}
    kafka, ratio = found.get("kafka_seconds"), found.get("ratio")
    return (
        found["bench"],
        f"{found['partitions']:,}",
        f"{milliseconds['ready']:.2f}",
        f"{milliseconds['decide']:.2f}",
        f"{milliseconds['encode']:.2f}",
        f"{kafka * 1000:.0f}" if kafka else "-",
        f"{ratio['least']:.0f} to {ratio['most']:.0f}" if ratio else "-",
        f"{TARGETS[found['bench']]:.0f}",
        f"{slower['state_bytes_per_partition']:.0f}",
    )
