"""The progress bar appears only on a terminal, after two seconds, on stderr."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable

import pytest

from kframe.cli.live import awaited
from kframe.cli.progress import DELAY_SECONDS, progress
from tests.snapshot.samples import ROOT


class Terminal(io.StringIO):
    """A stream that is a terminal, or not."""

    def __init__(self, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    "tty, delay_s, expected",
    [(True, DELAY_SECONDS, True), (True, DELAY_SECONDS - 0.1, False), (False, DELAY_SECONDS * 10, False)],
    ids=["terminal", "too soon", "no terminal"],
)
def test_bar_is_drawn_only_on_terminals_after_delay(
    tty: bool, delay_s: float, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream, clock = Terminal(tty), Clock()
    with progress("reading", stream, clock) as tick:
        tick(1, 10)
        assert stream.getvalue() == ""
        clock.seconds += delay_s
        tick(5, 10)
    assert ("reading" in stream.getvalue()) is expected


def test_bar_is_drawn_once_and_removed_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream, clock = Terminal(True), Clock()

    def fail_half_way() -> None:
        with progress("reading", stream, clock) as tick:
            clock.seconds += 3
            for done in range(3):
                tick(done, 10)
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h") == 1


class FiredTimer:
    """A timer that a test fires."""

    def __init__(self, delay_s: float, function: Callable[[], None]) -> None:
        self.delay_s, self.function = delay_s, function
        self.is_started = self.is_cancelled = False

    def start(self) -> None:
        self.is_started = True

    def cancel(self) -> None:
        self.is_cancelled = True


@pytest.mark.parametrize("tty", [True, False])
def test_what_is_awaited_is_named_after_a_delay_without_progress(tty: bool) -> None:
    stream, timers = Terminal(tty), list[FiredTimer]()

    def timer(delay_s: float, function: Callable[[], None]) -> FiredTimer:
        timers.append(FiredTimer(delay_s, function))
        return timers[-1]

    with progress("reading", stream, Clock(), awaited="a leader", timer=timer) as tick:
        assert (timers[0].delay_s, timers[0].is_started, stream.getvalue()) == (DELAY_SECONDS, True, "")
        timers[0].function()
        assert stream.getvalue() == "waiting for a leader\n"
        tick(1, 2)
        assert timers[0].is_cancelled
    with progress("reading", stream, Clock(), awaited="a leader", timer=timer):
        pass
    assert timers[1].is_cancelled
    with progress("reading", stream, Clock(), timer=timer):
        pass
    assert len(timers) == 2


@pytest.mark.parametrize(
    "url, expected",
    [
        ("kraft://a:1", "a leader of the quorum at kraft://a:1"),
        ("zookeeper://a:1/k", "zookeeper://a:1/k"),
        ("kafka://a:1,b:2", "a controller of the cluster at kafka://a:1,b:2"),
    ],
)
def test_clusters_are_named_while_they_are_awaited(url: str, expected: str) -> None:
    assert awaited(url) == expected


def test_rich_is_not_loaded_without_a_terminal() -> None:
    code = """
import sys
from kframe.cli.progress import progress
with progress("x") as tick:
    tick(1, 2)
print("rich" in sys.modules)
"""
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert (completed.stdout, completed.stderr) == ("False\n", "")
