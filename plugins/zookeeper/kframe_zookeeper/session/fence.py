"""Decide by the local clock whether a session is certain to live.

A server expires a session after the negotiated timeout without a request. The session lives at least that long after
the last answered request was sent, also after a partition, SIGSTOP or a long pause. After that time the
client acts as if the session had ended, until a response proves otherwise. kazoo would wait for the server forever.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

#: The trusted part of the timeout; the rest allows for clocks of different speed.
TRUSTED_PART: Final = 0.9


def _running_time_s() -> float:
    """Seconds since the machine was started, including the time that it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


#: A clock that advances while the machine is suspended, if the system has one.
CLOCK: Final[Callable[[], float]] = _running_time_s if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic


class Fence:
    """Open while the session is certain to live. Closed until the first response."""

    def __init__(self, now_s: Callable[[], float] = CLOCK) -> None:
        self.now_s = now_s
        self.timeout_s = 0.0
        """The negotiated session timeout."""
        self._contact_s = -math.inf
        self._ended = False

    def contact(self, sent_s: float) -> None:
        """The server has answered a request sent at ``sent_s``. Called by the thread that reads responses."""
        self._contact_s = max(self._contact_s, sent_s)

    def end(self) -> None:
        """Close the fence for good. The session has ended."""
        self._ended = True

    def is_open(self) -> bool:
        """Whether the session is certain to live."""
        return not self._ended and self.remaining_s() > 0

    def remaining_s(self) -> float:
        """Seconds until the fence closes without further responses. Not positive once it is closed."""
        return self._contact_s + self.timeout_s * TRUSTED_PART - self.now_s()
