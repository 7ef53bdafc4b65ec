"""Kafka's own controller classes on the same cluster (``benchmarks/peers``; needs Maven and JDK 17 or newer)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

PEERS: Final = Path(__file__).resolve().parent / "peers"
#: Which of the peers' figures make up what kframe does in one bench.
PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "broker-failure": ("zk.broker_failure.state_machines", "zk.broker_failure.serialise"),
    "controller-failover": ("zk.controller_failover.state_machines", "zk.controller_failover.serialise"),
    "preferred-election": ("zk.preferred_election_of_all.state_machines", "zk.preferred_election_of_all.serialise"),
}


def missing() -> str | None:
    """What the machine lacks to run the peers; None if nothing."""
    lacking = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    return " and ".join(lacking) or None


def run(partitions: int, brokers: int, runs: int, heap: str) -> dict[str, dict[str, Any]]:
    """Warm Kafka's classes up, time ``runs`` lives with the parallel collector, and return the figures by name."""
    environment = os.environ | {
        "BROKERS": str(brokers),
        "RUNS": str(runs),
        "HEAP": heap,
        "CONTROLLERS": "zk",
        "JVM_OPTS": "-server -XX:+UseParallelGC",
    }
    done = subprocess.run(
        [str(PEERS / "run.sh"), str(partitions)], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    figures = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {figure["bench"]: figure for figure in figures}


def best_seconds(figures: Mapping[str, Mapping[str, Any]], bench: str) -> float:
    """The peers' best run of a bench: state machines and serialising, each at its fastest, their store left out."""
    return sum(float(figures[part]["seconds_min"]) for part in PARTS[bench])
