"""An event loop in a thread of its own, for as long as a server runs."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress


class LoopThread:
    """Runs what an asynchronous context manager begins, until ``stop``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def start(self, serving: AbstractAsyncContextManager[object]) -> None:
        """Enter ``serving`` in a new thread. Raises what it raises."""
        started: Future[None] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(serving, started)), name=self._name, daemon=True
        )
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread.join()
            self._thread = None
            raise

    def stop(self) -> None:
        """Leave it, and end the thread. May be called again."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        loop, stopping = self._loop, self._stopping
        if loop is not None and stopping is not None:
            with suppress(RuntimeError):  # The event loop has ended already.
                loop.call_soon_threadsafe(stopping.set)
        thread.join()

    async def _run(self, serving: AbstractAsyncContextManager[object], started: Future[None]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with serving:
                started.set_result(None)
                await self._stopping.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)
