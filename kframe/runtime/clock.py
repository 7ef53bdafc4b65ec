"""The system clock; no other module reads it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class SystemClock:
    """``ports.Clock`` on monotonic time. Timers fire in threads of their own."""

    def __init__(self) -> None:
        self._timers: dict[str, threading.Timer] = {}
        self._lock = threading.Lock()

    def now_ms(self) -> float:
        """Monotonic time in milliseconds."""
        return time.monotonic() * 1000.0

    def schedule(self, name: str, delay_ms: float, fire: Callable[[], None]) -> None:
        """Call ``fire`` once, ``delay_ms`` from now. A timer of the same name is replaced."""
        timer = threading.Timer(delay_ms / 1000.0, fire)
        timer.daemon = True
        with self._lock:
            previous, self._timers[name] = self._timers.get(name), timer
        if previous is not None:
            previous.cancel()
        timer.start()

    def cancel(self, name: str) -> None:
        """Cancel a timer, if it is set."""
        with self._lock:
            timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
