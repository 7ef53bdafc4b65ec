"""Clocks that tests move while a process runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verification.zookeeper.clocks import Clocks, missing

#: Prints how far the system clock is ahead of the monotonic clock, for each line of input.
PROGRAM = "import sys, time\nfor _ in sys.stdin: print(time.time() - time.monotonic(), flush=True)"
HOUR_S = 3_600


def test_clock_change_is_visible_to_running_process(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    clocks = Clocks(tmp_path / "clocks")
    environment = {**os.environ, **clocks.environment("moved")}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        command, env=environment, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for hours in (0, 1, -1, 0):
            clocks.move("moved", hours * HOUR_S)
            process.stdin.write("\n")
            moved_s = float(process.stdout.readline()) - (time.time() - time.monotonic())
            assert round(moved_s / HOUR_S) == hours
