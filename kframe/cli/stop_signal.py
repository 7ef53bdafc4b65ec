"""Waiting for SIGTERM and SIGINT without losing one."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Final, Self

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopSignal:
    """Waits for SIGTERM or SIGINT, and is True after one. A second signal ends the process as without a handler.

    The interpreter writes each signal to a pipe (``signal.set_wakeup_fd``). Waiting for a ``threading.Event`` that a
    handler sets may block for ever: a signal that arrives right before the wait begins runs no handler until the wait
    ends. Use it in the main thread, as a context manager, which restores the handlers.
    """

    def __init__(self) -> None:
        self._arrived = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def __enter__(self) -> Self:
        self._wakeup_fd = signal.set_wakeup_fd(self._writer)
        self._handlers = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_fd)
        os.close(self._reader)
        os.close(self._writer)

    def __bool__(self) -> bool:
        return self._arrived

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a signal, for ``timeout_s`` seconds at most. Return whether one has arrived."""
        if not self._arrived:
            readable, _, _ = select.select([self._reader], [], [], timeout_s)
            self._arrived = bool(readable)
        return self._arrived

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        self._arrived = True
