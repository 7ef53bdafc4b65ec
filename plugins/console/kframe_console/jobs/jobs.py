"""Long computations: they run one after another in a thread of their own, show their progress, and can be cancelled.

A page waits for a result for a moment; if it is not ready, the page shows the progress of the job until it has ended.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from kframe.plugin import KframeError
from kframe.plugin.live import Progress
from kframe_console.allocator import release_memory
from kframe_console.jobs.computations import Overloaded

Value = TypeVar("Value")
JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]
#: Seconds that a page waits for a result before it shows the progress, which users see within 300 ms.
PAGE_WAIT_S: Final = 0.15


class Cancelled(KframeError):
    """A user has cancelled the computation."""


class Ending(NamedTuple):
    """The final state of a job."""

    state: JobState
    result: Any = None
    nbytes: int = 0
    problem: BaseException | None = None


@dataclass(slots=True, eq=False)
class Job:
    """A computation. ``done`` of ``total`` steps are complete; ``total`` 0 is unknown."""

    key: Hashable
    title: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: JobState = "waiting"
    done: int = 0
    total: int = 0
    result: Any = None
    nbytes: int = 0
    problem: BaseException | None = None
    _ended: Event = field(default_factory=Event)

    @property
    def has_ended(self) -> bool:
        """Whether the state is final."""
        return self._ended.is_set()

    def progress(self, done: int, total: int) -> None:
        """Set the progress. Raises Cancelled in the thread of a computation that was cancelled."""
        if self.has_ended:
            raise Cancelled(f"{self.title}: cancelled")
        self.done, self.total = done, total

    def wait(self, seconds: float) -> bool:
        """Whether the job ends within this time."""
        return self._ended.wait(seconds)

    def end(self, ending: Ending) -> None:
        """Set the final state."""
        self.state, self.result, self.nbytes, self.problem = ending
        self._ended.set()


class Unfinished(Exception):
    """The computation takes longer than PAGE_WAIT_S."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.title)
        self.job = job


class Jobs:
    """The jobs of a console: one runs, at most ``waiting_max`` wait.

    Results are retained up to ``bytes_max`` and ``results_max``; the least recently used are dropped first, and the
    last is retained whatever its size. Requests for the same key share a job.
    """

    results_max: Final = 64

    def __init__(self, waiting_max: int, bytes_max: int) -> None:
        self._waiting_max = waiting_max
        self.bytes_max: Final = bytes_max
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, "kframe-job")
        self._pending: dict[Hashable, Job] = {}
        self._ended: OrderedDict[Hashable, Job] = OrderedDict()

    def result(
        self, key: Hashable, title: str, compute: Callable[[Progress], Value], size: Callable[[Value], int]
    ) -> Value:
        """The result of a computation, which starts unless it has begun or ended; ``size`` states the result's bytes.

        Raises Unfinished if it takes longer than PAGE_WAIT_S, Overloaded if too many wait, Cancelled, and what
        ``compute`` raises. The next call after a failure tries again.
        """
        job = self._job(key, title, compute, size)
        if not job.wait(PAGE_WAIT_S):
            raise Unfinished(job)
        if job.state == "done":
            value: Value = job.result
            return value
        with self._lock:
            if self._ended.get(key) is job:
                del self._ended[key]
        raise job.problem or Cancelled(f"{job.title}: cancelled")

    def retained(self, key: Hashable) -> Any:
        """The retained result of a key, which counts as used now; None if there is none."""
        with self._lock:
            job = self._ended.get(key)
            if job is None or job.state != "done":
                return None
            self._ended.move_to_end(key)
            return job.result

    def drop(self, key: Hashable) -> None:
        """Drop an ended job, so that the next request computes its result again."""
        with self._lock:
            self._ended.pop(key, None)

    def results(self) -> list[Any]:
        """All retained results, the last used first."""
        with self._lock:
            return [job.result for job in reversed(self._ended.values()) if job.state == "done"]

    def find(self, job_id: str) -> Job | None:
        """The job with this id; None if it was dropped."""
        with self._lock:
            jobs = (*self._pending.values(), *self._ended.values())
        return next((job for job in jobs if job.id == job_id), None)

    def cancel(self, job: Job) -> None:
        """End a job, if it has not ended. Its thread stops at its next step."""
        with self._lock:
            if self._pending.get(job.key) is job:
                self._end(job, Ending("cancelled"))

    def close(self) -> None:
        """Cancel all jobs."""
        for job in list(self._pending.values()):
            self.cancel(job)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _job(self, key: Hashable, title: str, compute: Callable[[Progress], Any], size: Callable[[Any], int]) -> Job:
        with self._lock:
            if key in self._pending:
                return self._pending[key]
            if key in self._ended and self._ended[key].state != "cancelled":
                self._ended.move_to_end(key)
                return self._ended[key]
            if len(self._pending) > self._waiting_max:
                raise Overloaded(f"found {len(self._pending)} jobs, expected at most {self._waiting_max}: try later")
            job = self._pending[key] = Job(key, title)
            self._thread.submit(self._run, job, compute, size)
            return job

    def _run(self, job: Job, compute: Callable[[Progress], Any], size: Callable[[Any], int]) -> None:
        with self._lock:
            if job.has_ended:
                return
            job.state = "running"
        try:
            value = compute(job.progress)
            ending = Ending("done", value, size(value))
        except KframeError as problem:  # Without the frames, which refer to all columns of the cluster.
            ending = Ending("failed", problem=problem.with_traceback(None))
        except BaseException as problem:
            ending = Ending("failed", problem=problem)
        release_memory()
        with self._lock:
            if not job.has_ended:
                self._end(job, ending)

    def _end(self, job: Job, ending: Ending) -> None:
        del self._pending[job.key]
        job.end(ending)
        self._ended.pop(job.key, None)
        self._ended[job.key] = job
        nbytes = sum(ended.nbytes for ended in self._ended.values())
        while len(self._ended) > 1 and (nbytes > self.bytes_max or len(self._ended) > self.results_max):
            _, dropped = self._ended.popitem(last=False)
            nbytes -= dropped.nbytes
