"""Named pipes that a test writes while a command reads them, and a timer without a delay."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class ImmediateTimer:
    """Replaces ``threading.Timer``: it fires when it starts, so that a test of a delay does not wait."""

    def __init__(self, _delay_s: float, function: Callable[[], None]) -> None:
        self._function = function
        self.daemon = False

    def start(self) -> None:
        """Call the function."""
        self._function()

    def cancel(self) -> None:
        """Do nothing: the function has been called."""


@contextmanager
def written_pipe(path: Path, content: bytes) -> Iterator[None]:
    """Make a named pipe, which another thread writes. The block reads it."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[content])
    writer.start()
    yield
    writer.join()
