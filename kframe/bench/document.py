"""The document of a benchmark. ``kframe.bench.run`` adds the counts of its workload, whose names differ."""

from __future__ import annotations

from msgspec import Struct


class SecondsRecord(Struct):
    """Seconds of a phase over the runs."""

    min: float
    median: float
    max: float


class BenchRecord(Struct):
    """Times of a benchmark by phase, and counts of one run: ``kframe bench``."""

    bench: str
    partitions: int
    brokers: int
    replication_factor: int
    runs: int
    events: int
    seconds: dict[str, SecondsRecord]
    digest: str | None
    kframe: str
    python: str
    numpy: str
