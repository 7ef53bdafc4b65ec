"""Progress of long operations on stderr: only if stderr is a terminal, and after two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

from kframe.cli.verbosity import is_quiet

DELAY_SECONDS: Final = 2.0


class ProgressLine:
    """Called with (done, total). Draws nothing unless standard error is a terminal, and nothing under ``-q``."""

    def __init__(self, label: str, stream: TextIO, clock: Callable[[], float]) -> None:
        self._label, self._stream, self._clock = label, stream, clock
        self._watched = stream.isatty() and not is_quiet()
        self._begun = clock()
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Draw the progress, once DELAY_SECONDS have passed."""
        if not self._watched or (self._bar is None and self._clock() - self._begun < DELAY_SECONDS):
            return
        if self._bar is None:
            self._start()
        self._bar.update(self._task, completed=done, total=total)

    def close(self) -> None:
        """Erase the line."""
        if self._bar is not None:
            self._bar.stop()

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(file=self._stream), transient=True)
        self._task = self._bar.add_task(self._label, total=None)
        self._bar.start()


@contextmanager
def progress(
    label: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[ProgressLine]:
    """A progress line during the block. Rich (and its NO_COLOR) determines the style."""
    line = ProgressLine(label, sys.stderr if stream is None else stream, clock)
    try:
        yield line
    finally:
        line.close()
