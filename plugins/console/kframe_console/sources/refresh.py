"""A thread that reads periodically, so that no page waits for a reading."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final

from kframe.plugin import KframeError

_LOG: Final = logging.getLogger("kframe.console")
#: Pages need the CPU more than readings do.
_PAUSE_FACTOR: Final = 2.0


@dataclass(slots=True)
class Refresher:
    """Calls ``read`` every ``interval_s`` seconds from ``start`` on, less often if it needs much CPU time.

    A pause is at least ``pause_factor`` times as long as the CPU time of the call before.
    """

    read: Callable[[], object]
    interval_s: float
    first_pause_s: float | None = None
    """Seconds before the first call, ``interval_s`` by default."""
    pause_factor: float = _PAUSE_FACTOR
    problem: str | None = None
    """Why the last call failed; None if it did not."""
    _stop: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        """Begin. It returns at once."""
        self._stop.clear()
        self._thread = Thread(target=self._run, name="kframe-console-refresh", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait up to 5 seconds for a call in progress."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5.0)

    def attempt(self) -> None:
        """Call ``read`` once."""
        try:
            self.read()
            self.problem = None
        except (KframeError, OSError) as problem:
            self.problem = str(problem)
        except Exception as problem:
            _LOG.exception("error in a reading")
            self.problem = f"an error in kframe: {type(problem).__name__}"

    def pause_s(self, cpu_s: float) -> float:
        """The seconds until the next call, if the last call took ``cpu_s`` seconds of CPU time."""
        return max(self.interval_s, self.pause_factor * cpu_s)

    def _run(self) -> None:
        pause_s = self.interval_s if self.first_pause_s is None else self.first_pause_s
        while not self._stop.wait(pause_s):
            start_s = time.thread_time()
            self.attempt()
            pause_s = self.pause_s(time.thread_time() - start_s)
