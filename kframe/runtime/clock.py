"""Real time; the only module that reads it."""

from __future__ import annotations

import time


class SystemClock:
    """Monotonic time of this machine."""

    def now_ms(self) -> float:
        """Milliseconds since some fixed moment."""
        return time.monotonic() * 1000.0
