"""A process that waits for SIGTERM or SIGINT ends at every signal, whenever it arrives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Final

from kframe.cli.stop_signal import StopSignal

#: Signals arrive 1 to 60 microseconds after a timer is set: before, while and after the wait begins.
ROUNDS: Final = """
import random, signal
from kframe.cli import stop_signal
stop_signal.SIGNALS = (signal.SIGALRM,)
draw = random.Random(1)
for _ in range(5000):
    with stop_signal.StopSignal() as stop:
        signal.setitimer(signal.ITIMER_REAL, 1e-6 * draw.randint(1, 60))
        stop.wait()
"""


def test_no_signal_is_lost_before_wait_begins() -> None:
    assert subprocess.run([sys.executable, "-c", ROUNDS], timeout=120, check=False).returncode == 0


def test_wait_without_a_signal_ends_at_its_timeout() -> None:
    with StopSignal() as stop:
        assert not stop.wait(0.0)
        assert not stop


def test_signal_before_wait_counts() -> None:
    with StopSignal() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait()
        assert stop


def test_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with StopSignal():
        pass
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_second_signal_ends_process() -> None:
    program = (
        "import os, signal\n"
        "from kframe.cli.stop_signal import StopSignal\n"
        "with StopSignal() as stop:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    stop.wait()\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == -signal.SIGTERM
