"""Limits log lines per second and counts suppressed lines."""

from __future__ import annotations

from collections.abc import Callable


class RateLimit:
    """A token bucket that refills ``per_second`` tokens each second. Not thread-safe."""

    def __init__(self, per_second: int, now_ms: Callable[[], float]) -> None:
        """``now_ms`` is a monotonic clock in milliseconds."""
        self.per_second = per_second
        self._now_ms = now_ms
        self._remaining = float(per_second)
        self._filled_ms = now_ms()
        self._suppressed = 0

    @property
    def available(self) -> int:
        """Tokens available now."""
        now_ms = self._now_ms()
        self._remaining = min(self.per_second, self._remaining + (now_ms - self._filled_ms) * self.per_second / 1000)
        self._filled_ms = now_ms
        return int(self._remaining)

    def take(self, count: int = 1) -> bool:
        """Take ``count`` tokens, or count them as suppressed and return False."""
        if count > self.available:
            self._suppressed += count
            return False
        self._remaining -= count
        return True

    def take_suppressed(self) -> int:
        """The number suppressed since the last call."""
        suppressed, self._suppressed = self._suppressed, 0
        return suppressed
