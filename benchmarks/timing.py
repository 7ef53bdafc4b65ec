"""Timing of calls in this process, and of kframe's commands in child processes."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Elapsed seconds of a call, and its result. Garbage is collected before the clock starts."""
    gc.collect()
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def run_kframe(*arguments: object) -> str:
    """Standard output of a ``kframe`` command. Raises CalledProcessError, with standard error, if it fails."""
    command = [sys.executable, "-m", "kframe.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def run_bench(name: str, partitions: int, brokers: int, runs: int) -> dict[str, Any]:
    """The result of ``kframe bench`` (schema ``kframe.bench/v1``)."""
    print(f"kframe {name}, {partitions:,} partitions", file=sys.stderr)
    size = ("--partitions", partitions, "--brokers", brokers, "--runs", runs)
    result: dict[str, Any] = json.loads(run_kframe("bench", name, *size, "-o", "json"))
    return result
