"""kframe's own benches, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def run(name: str, partitions: int, brokers: int, runs: int) -> dict[str, Any]:
    """The result of ``kframe bench`` (schema ``kframe.bench/v1``)."""
    command = [sys.executable, "-m", "kframe.cli", "bench", name, "--partitions", str(partitions), "-o", "json"]
    command += ["--brokers", str(brokers), "--runs", str(runs)]
    print(f"kframe {name}, {partitions:,} partitions", file=sys.stderr)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result
