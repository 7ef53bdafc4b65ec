"""Kill or freeze the active kframe controller among standbys and Kafka brokers, and record each failover.

    python -m benchmarks.live.failovers --kills 200 --freezes 20 --out docs/evidence/failovers.json

Starts ZooKeeper, three Kafka brokers and four kframe controllers. ``docs/evidence/failovers.md`` describes the record.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.records import describe_machine
from verification.kafka_wire.failovers import INSTANCES, SESSION_MS, STANDBYS_MIN, failover_cluster


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. The exit code is 1 if a kill cost more than one controller epoch."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.failovers", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often the active instance is killed (SIGKILL)")
    parser.add_argument("--freezes", type=int, default=20, help="how often it is frozen (SIGSTOP) beyond its session")
    parser.add_argument("--out", type=Path, help="write the record to this file")
    options = parser.parse_args(arguments)
    failovers: list[Any] = []
    with tempfile.TemporaryDirectory() as folder, failover_cluster(Path(folder)) as cluster:
        brokers_before = cluster.epochs_of_elected_brokers()
        for run, count in ((cluster.kill, options.kills), (cluster.freeze, options.freezes)):
            for _ in range(count):
                failovers.append(run())
                print(f"{len(failovers)}: {failovers[-1]}", flush=True)
        won_by_brokers = cluster.epochs_of_elected_brokers()[len(brokers_before) :]
    record = {
        "schema": "kframe.failovers/v1",
        "machine": describe_machine(),
        "command": f"python -m benchmarks.live.failovers --kills {options.kills} --freezes {options.freezes}",
        "brokers": 3,
        "instances": len(INSTANCES),
        "standbys_at_least": STANDBYS_MIN,
        "session_timeout_ms": SESSION_MS,
        "controller_epochs_won_by_brokers": won_by_brokers,
        "summary": [_summary(cause, failovers) for cause in ("killed", "frozen")],
    }
    text = json.dumps(record, indent=1)
    print(text)
    if options.out is not None:
        rows = ",\n  ".join(json.dumps(asdict(failover)) for failover in failovers)
        options.out.write_text(f'{text[:-2]},\n "failovers": [\n  {rows}\n ]\n}}\n')
    return 1 if any(failover.cause == "killed" and failover.controller_epochs != 1 for failover in failovers) else 0


def _summary(cause: str, failovers: Sequence[Any]) -> dict[str, Any]:
    """Counts of one cause. Also quantiles of the time until another instance was active (seconds)."""
    chosen = [failover for failover in failovers if failover.cause == cause]
    elected, active = ([getattr(failover, name) for failover in chosen] for name in ("elected_s", "active_s"))
    return {
        "cause": cause,
        "failovers": len(chosen),
        "controller_epochs": dict(sorted(Counter(str(failover.controller_epochs) for failover in chosen).items())),
        "winners": dict(sorted(Counter(str(failover.winner) for failover in chosen).items())),
        "elected_s": _quantiles(elected),
        "active_s": _quantiles(active),
    }


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {}
    values = np.quantile(seconds, (0.0, 0.5, 0.99, 1.0))
    return dict(zip(("least", "median", "p99", "most"), (round(float(value), 3) for value in values), strict=True))


if __name__ == "__main__":
    sys.exit(main())
