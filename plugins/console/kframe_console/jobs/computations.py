"""Computations in a bounded number of threads. A bounded number waits; all others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from kframe.plugin import KframeError

Result = TypeVar("Result")


class Overloaded(KframeError):
    """Too many computations wait."""


class Computations:
    """Threads for computations: at most ``running_max`` run, and ``waiting_max`` wait."""

    def __init__(self, running_max: int, waiting_max: int) -> None:
        self._running_max = running_max
        self._admitted_max = running_max + waiting_max
        self._admitted = 0
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, compute: Callable[[], Result]) -> Result:
        """The result of ``compute``. Raises Overloaded, and what ``compute`` raises."""
        if self._admitted >= self._admitted_max:
            raise Overloaded(
                f"found {self._admitted} computations, expected fewer than {self._admitted_max}: try later"
            )
        if self._limiter is None:  # It needs the running event loop.
            self._limiter = anyio.CapacityLimiter(self._running_max)
        self._admitted += 1
        try:
            return await anyio.to_thread.run_sync(compute, limiter=self._limiter)
        finally:
            self._admitted -= 1
