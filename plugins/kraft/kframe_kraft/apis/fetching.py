"""Fetch requests on the event loop: delayed ones wait there, and cost no thread."""

from __future__ import annotations

import asyncio
import time
from asyncio import Future, TimerHandle
from collections.abc import Sequence
from typing import Final

from kframe_kraft.quorum import FetchAnswer, FetchService, PendingFetch, ReplicaFetch

#: Requests that are answered before others are served: a heartbeat must not wait for thousands of responses.
_AT_ONCE: Final = 32


class Fetching:
    """Answers Fetch requests of all replicas. Its methods run on the event loop, except for ``progress``."""

    def __init__(self, service: FetchService, loop: asyncio.AbstractEventLoop) -> None:
        self._service = service
        self._loop = loop
        self._answers: dict[PendingFetch, Future[FetchAnswer]] = {}
        self._timer: TimerHandle | None = None
        self._timer_ms: int | None = None
        self._is_notified = False

    async def answer(self, request: ReplicaFetch) -> FetchAnswer:
        """The answer, once there is a result, or after the time that the request may wait."""
        answer = self._service.answer(request, now_ms())
        if isinstance(answer, FetchAnswer):
            return answer
        future: Future[FetchAnswer] = self._loop.create_future()
        self._answers[answer] = future
        self._schedule()
        try:
            return await future
        finally:
            self._service.forget(answer)
            self._answers.pop(answer, None)

    def progress(self) -> None:
        """The log has grown, or the high watermark has risen. May be called in any thread."""
        if not self._is_notified:
            self._is_notified = True
            self._loop.call_soon_threadsafe(self._on_progress)

    def _on_progress(self) -> None:
        self._is_notified = False
        self._complete()

    def _complete(self) -> None:
        self._answer_all(self._service.complete(now_ms()))
        self._schedule()

    def _answer_all(self, answered: Sequence[tuple[PendingFetch, FetchAnswer]]) -> None:
        """Answer some now, and the others when the event loop has served other requests."""
        for pending, answer in answered[:_AT_ONCE]:
            future = self._answers.get(pending)
            if future is not None and not future.done():
                future.set_result(answer)
        if len(answered) > _AT_ONCE:
            self._loop.call_soon(self._answer_all, answered[_AT_ONCE:])

    def _schedule(self) -> None:
        """Have ``_complete`` called when the next request must be answered."""
        deadline = self._service.deadline
        if self._timer is not None:
            if deadline == self._timer_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline
        wait_s = None if deadline is None else max(deadline - now_ms(), 0) / 1000
        self._timer = None if wait_s is None else self._loop.call_later(wait_s, self._on_deadline)

    def _on_deadline(self) -> None:
        self._timer = None
        self._complete()


def now_ms() -> int:
    """The time of the monotonic clock, in milliseconds."""
    return time.monotonic_ns() // 1_000_000
