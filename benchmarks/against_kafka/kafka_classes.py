"""Kafka's own controller classes on the same cluster (``peerbench/``; needs Maven and JDK 17 or newer)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PEERS: Final = Path(__file__).resolve().parent / "peerbench"
#: Options of the JVM by collector. G1's are those of Kafka's own start script.
COLLECTORS: Final[Mapping[str, str]] = {
    "g1": "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35",
    "parallel": "-server -XX:+UseParallelGC",
}
#: The stage after which a controller has taken over and holds a cluster, by controller.
HEAP_AFTER: Final[Mapping[str, str]] = {"zk": "zk.controller_failover.state_machines", "kraft": "kraft.log_replay"}

Figures = Mapping[str, Mapping[str, Any]]


def missing() -> str | None:
    """What the machine lacks to run the peers. None if nothing."""
    tools = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    return " and ".join(tools) or None


@dataclass(frozen=True, slots=True)
class Work:
    """What is asked of the classes of ``controller`` (zk, kraft): ``runs``, in which all preferred leaders are
    elected too in clusters of at most ``elections_max`` partitions."""

    controller: str
    partitions: int
    brokers: int
    runs: int
    elections_max: int


def run(work: Work, collector: str, heap: str) -> Figures:
    """Warm the classes up, time them, and return the figures by name."""
    environment = os.environ | {
        "BROKERS": str(work.brokers),
        "RUNS": str(work.runs),
        "HEAP": heap,
        "CONTROLLERS": work.controller,
        "ELECTIONS_MAX": str(work.elections_max),
        "JVM_OPTS": COLLECTORS[collector],
    }
    print(f"{work.controller} classes, {collector}, {work.partitions:,} partitions", file=sys.stderr)
    done = subprocess.run(
        [str(PEERS / "run.sh"), str(work.partitions)], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    figures = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {figure["bench"]: figure for figure in figures}


def best_seconds(figures: Figures, parts: tuple[str, ...]) -> float:
    """The best run of what ``parts`` make up together, each at its fastest, their store left out."""
    return sum(float(figures[part]["seconds_min"]) for part in parts)


def heap_bytes(figures: Figures, controller: str) -> int:
    """Bytes of heap for each partition once the controller has taken over."""
    return int(figures[HEAP_AFTER[controller]]["heap_bytes_per_partition"])
