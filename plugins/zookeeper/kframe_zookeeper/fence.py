"""Whether a session can still be ours, by our own clock: what ZooKeeper cannot tell us while we do not hear it.

A server ends a session that it has not heard for the negotiated timeout. It heard us at the earliest when we sent what
it has answered: from then on the session lives for that timeout, whatever happened to us since (a partition, a
SIGSTOP, a long garbage collection elsewhere). Past that moment we act as if it had ended, until an answer proves
otherwise; kazoo by itself would wait for the server's word for ever.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

#: The part of the timeout that we count on; the rest is for clocks that run at different speeds.
TRUSTED_PART: Final = 0.9


def _running_time_s() -> float:
    """Seconds since the machine was started, those that it slept included where the system counts them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


#: A clock that goes on while the machine sleeps, where there is one.
CLOCK: Final[Callable[[], float]] = _running_time_s if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic


class Fence:
    """Open while the session is certain to live. Shut from the beginning, until the first contact."""

    def __init__(self, now_s: Callable[[], float] = CLOCK) -> None:
        self.now_s = now_s
        self.timeout_s = 0.0
        """The timeout that was negotiated for the session."""
        self._contact_s = -math.inf
        self._ended = False

    def contact(self, sent_s: float) -> None:
        """The server has answered what we sent at ``sent_s``. Called by the one thread that reads answers."""
        self._contact_s = max(self._contact_s, sent_s)

    def end(self) -> None:
        """The session is over; the fence stays shut whatever is heard."""
        self._ended = True

    def is_open(self) -> bool:
        """Whether what is sent now can only be done in the session that it was made for."""
        return not self._ended and self.left_s() > 0

    def left_s(self) -> float:
        """Seconds until the fence shuts unless something is heard; not positive once it is shut."""
        return self._contact_s + self.timeout_s * TRUSTED_PART - self.now_s()
