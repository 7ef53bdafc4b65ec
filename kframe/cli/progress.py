"""Progress of long operations on stderr: only if stderr is a terminal, and after two seconds.

An operation that waits for a server says so after two seconds, also where stderr is no terminal.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TextIO

from kframe.cli.verbosity import is_quiet

DELAY_SECONDS: Final = 2.0


class Timer(Protocol):
    """A timer that calls a function once (``threading.Timer``)."""

    def start(self) -> None:
        """Start it."""

    def cancel(self) -> None:
        """Stop it."""


class ProgressLine:
    """Called with (done, total). Draws nothing unless standard error is a terminal, and nothing under ``-q``."""

    def __init__(self, label: str, stream: TextIO, clock: Callable[[], float]) -> None:
        self._label, self._stream, self._clock = label, stream, clock
        self._watched = stream.isatty() and not is_quiet()
        self._begun = clock()
        self._bar: Any = None
        self._task: Any = None
        self._timer: Timer | None = None

    def await_first(self, awaited: str, timer: Callable[[float, Callable[[], None]], Timer]) -> None:
        """Print what is awaited if there is no progress within DELAY_SECONDS; nothing under ``-q``."""
        if not is_quiet():
            self._timer = timer(DELAY_SECONDS, lambda: self._print(f"waiting for {awaited}"))
            self._timer.start()

    def __call__(self, done: int, total: int) -> None:
        """Draw the progress, once DELAY_SECONDS have passed."""
        self._stop_timer()
        if not self._watched or (self._bar is None and self._clock() - self._begun < DELAY_SECONDS):
            return
        if self._bar is None:
            self._start()
        self._bar.update(self._task, completed=done, total=total)

    def close(self) -> None:
        """Erase the line."""
        self._stop_timer()
        if self._bar is not None:
            self._bar.stop()

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _print(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(file=self._stream), transient=True)
        self._task = self._bar.add_task(self._label, total=None)
        self._bar.start()


@contextmanager
def progress(
    label: str,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
    *,
    awaited: str = "",
    timer: Callable[[float, Callable[[], None]], Timer] | None = None,
) -> Iterator[ProgressLine]:
    """A progress line during the block. Rich (and its NO_COLOR) determines the style.

    ``awaited`` names what must respond before there is progress.
    """
    line = ProgressLine(label, sys.stderr if stream is None else stream, clock)
    if awaited:
        line.await_first(awaited, timer or _daemon_timer)
    try:
        yield line
    finally:
        line.close()


def _daemon_timer(delay_s: float, function: Callable[[], None]) -> Timer:
    """A timer that does not delay the end of the process."""
    timer = threading.Timer(delay_s, function)
    timer.daemon = True
    return timer
