"""The thread that handles fired watches, reconnects and ended sessions.

kazoo's own threads only queue tasks. So events keep their order, and blocking work never keeps kazoo from reading
answers.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Final

from kframe_zookeeper.session.session import SessionOver

_log = logging.getLogger("kframe.zookeeper")

#: Seconds that ``stop`` waits for a running task.
_STOP_S: Final = 10.0

Task = Callable[[], None]


class Worker:
    """A thread with a task queue that also runs ``beat`` every ``beat_s`` seconds."""

    def __init__(self, beat: Task, beat_s: Callable[[], float]) -> None:
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._beat = beat
        self._beat_s = beat_s
        self._thread = threading.Thread(target=self._run, name="kframe-zookeeper", daemon=True)
        self._thread.start()

    def put(self, task: Task) -> None:
        """Queue a task."""
        self._tasks.put(task)

    def stop(self) -> None:
        """End after the queued tasks. Returns at once when called by a task."""
        self._tasks.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        next_s = time.monotonic() + self._beat_s()
        while True:
            try:
                task = self._tasks.get(timeout=max(next_s - time.monotonic(), 0.0))
            except queue.Empty:
                task = self._beat
            if task is None:
                return
            try:
                task()
            except SessionOver as error:
                _log.info("%s", error)  # The store handles it.
            except Exception:
                _log.exception("ZooKeeper task %s failed", getattr(task, "__qualname__", task))
            if task == self._beat:
                next_s = time.monotonic() + self._beat_s()
