"""Timing of calls in this process, and of kframe's commands in child processes."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")
#: The memory that the system reports of a process includes that of its parent at the start, so the parent is small.
_LAUNCHER: Final = """
import os, resource, sys
pid = os.fork()
if not pid:
    if seconds := int(sys.argv[2]):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    os.execvp(sys.argv[3], sys.argv[3:])
_, status, used = os.wait4(pid, 0)
with open(sys.argv[1], "w") as file:
    print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=file)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


@dataclass(frozen=True, slots=True)
class Process:
    """What a process printed and used: seconds of user and system time, and its largest resident set in bytes."""

    code: int
    output: str
    errors: str
    cpu_seconds: float
    wall_seconds: float
    memory: int


def execute(command: Sequence[object], seconds_max: int = 0, environment: Mapping[str, str] | None = None) -> Process:
    """Run a command with at most ``seconds_max`` of processor time (0: no limit), and wait for it."""
    with (
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryFile("w+") as errors,
        tempfile.NamedTemporaryFile("r") as usage,
    ):
        begun = time.monotonic()
        launcher = [sys.executable, "-SEc", _LAUNCHER, usage.name, str(seconds_max), *map(str, command)]
        code = subprocess.Popen(launcher, stdout=output, stderr=errors, env=environment).wait()
        seconds = time.monotonic() - begun
        cpu_seconds, memory = map(float, usage.read().split())
        output.seek(0)
        errors.seek(0)
        return Process(code, output.read(), errors.read(), cpu_seconds, seconds, int(memory) * 1024)


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
