"""Executions of plans on the live cluster: one runs at a time, in a thread of its own, recorded in a journal.

The journals are those of ``kframe plan execute``: ``kframe plan status``, ``pause``, ``resume`` and ``rollback`` take
them too. When the console ends, an execution stops where it is, and continues by its journal later.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

from msgspec import Struct

from kframe.plugin import InputError, KframeError, ParameterError
from kframe.plugin.admin import Administration
from kframe.plugin.plans import (
    CheckedExecution,
    ExecutionDocument,
    ExecutionEffect,
    ExecutionLimits,
    ExecutionProgress,
    ExecutionState,
    Executor,
    Goal,
    GoalChanged,
    Journal,
    PreparedPlan,
    check_cluster,
    check_execution,
    execution_document,
    read_journal,
    remaining_effect,
    take_request,
)
from kframe.plugin.settings import short_repr

_ID: Final = re.compile(r"[0-9a-f]{16}")
_SUFFIX: Final = ".journal"


class RunProgress(Struct):
    """The progress of a run. Bytes are 0 if no size is known; ``remaining_s`` is null until it can be estimated."""

    partitions: int
    total: int
    in_flight: int
    bytes: int
    total_bytes: int
    remaining_s: float | None


class ExecutionContent(Struct):
    """An execution: its journal as ``kframe plan status`` shows it, and its run in this console, if there is one.

    ``problem`` says why the last run here ended without a result, such as a cluster that cannot be reached.
    """

    id: str
    is_running: bool
    execution: ExecutionDocument
    progress: RunProgress | None
    problem: str | None


class _Run:
    """A thread that works towards the goal of a journal."""

    def __init__(
        self, connect: Callable[[], Administration], journal: Journal, state: ExecutionState, interval_s: float
    ) -> None:
        """Start the thread, which reads the cluster every ``interval_s`` seconds."""
        self._connect = connect
        self._journal = journal
        self._state = state
        self._interval_s = interval_s
        self._requested: Goal | None = None
        self._stop = Event()
        self.progress: RunProgress | None = None
        self.document = execution_document(state, journal.path, {}, executed=True)
        self.problem: str | None = None
        self._thread = Thread(target=self._work, name="kframe-execution", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def request(self, goal: Goal) -> None:
        """Change the goal to PAUSE or ABORT."""
        self._requested = goal

    def stop(self) -> None:
        """End after the present step, without a change of the goal."""
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            with self._journal, closing(self._connect()) as admin:
                self._execute(admin)
        except (KframeError, OSError) as problem:
            self.problem = str(problem)

    def _execute(self, admin: Administration) -> None:
        tracker = ExecutionProgress(admin, self._state, time.monotonic)
        executor = Executor(admin, self._journal, self._state)
        while not self._stop.is_set():
            requested, self._requested = self._requested, None
            executor.observe(admin.describe(), requested or take_request(self._journal.path))
            tracker.observe(executor.planner)
            unmoved = executor.planner.unmoved()
            ended = executor.step()
            self.progress = RunProgress(
                tracker.partitions,
                tracker.total,
                tracker.in_flight,
                tracker.bytes,
                tracker.total_bytes,
                tracker.remaining_s(),
            )
            self.document = execution_document(self._state, self._journal.path, unmoved, executed=True)
            if ended is not None:
                return
            self._stop.wait(self._interval_s)


class Executions:
    """The executions whose journals are in a folder, on the cluster at a URL. ``connect`` opens its admin API."""

    def __init__(self, url: str, connect: Callable[[], Administration], folder: Path, interval_s: float = 1.0) -> None:
        self._url = url
        self._connect = connect
        self._folder = folder
        self._interval_s = interval_s
        self._lock = Lock()
        self._run: tuple[str, _Run] | None = None
        """The last execution of this console, which may run."""

    @staticmethod
    def id_of(staged: PreparedPlan) -> str:
        """The id of the execution of a plan in stages: equal for equal stages."""
        return staged.digest[:16]

    def path_of(self, execution_id: str) -> Path:
        """The path of the journal of an execution, which need not have begun."""
        return self._folder / f"{execution_id}{_SUFFIX}"

    def ids(self) -> list[str]:
        """All executions in the folder, by id."""
        return sorted(path.stem for path in self._folder.glob(f"*{_SUFFIX}") if _ID.fullmatch(path.stem))

    def content(self, execution_id: str) -> ExecutionContent:
        """The state of an execution. Raises ParameterError for an unknown one."""
        run = self._run_of(execution_id)
        if run is not None:
            return ExecutionContent(execution_id, run.is_running, run.document, run.progress, run.problem)
        state, path = self._state(execution_id), self._path(execution_id)
        document = execution_document(state, path, state.refused, executed=True)
        return ExecutionContent(execution_id, False, document, None, None)

    def check(self, staged: PreparedPlan, limits: ExecutionLimits) -> CheckedExecution:
        """Check a plan against the live cluster. Raises StalePlan, and StoreError without a controller."""
        with closing(self._connect()) as admin:
            return check_execution(staged, admin, self._url, limits)

    def effect(self, execution_id: str, goal: Goal) -> ExecutionEffect | None:
        """The expected effect of the remaining moves; None if nothing moves. Raises ParameterError and StoreError."""
        with closing(self._connect()) as admin:
            return remaining_effect(self._state(execution_id), goal, admin)

    def start(self, staged: PreparedPlan, limits: ExecutionLimits) -> str:
        """Execute a plan. Returns the id. Raises StalePlan, StoreError, and InputError if the cluster refuses it."""
        checked = self.check(staged, limits)
        if checked.problems or checked.start is None:
            raise InputError(staged.plan.name, "; ".join(checked.problems[:3]), "a plan that the cluster accepts")
        execution_id = self.id_of(staged)
        with self._lock:
            self._check_idle()
            path = self.path_of(execution_id)
            self._begin(execution_id, Journal.create(path, checked.start), ExecutionState([checked.start]))
        return execution_id

    def change_goal(self, execution_id: str, goal: Goal) -> None:
        """Change the goal: PAUSE or ABORT of a running execution; any goal of one that does not run, which continues.

        Raises ParameterError, InputError for an execution that runs, and JournalError.
        """
        self._path(execution_id)
        with self._lock:
            run = self._run_of(execution_id)
            if run is not None and run.is_running and goal in (Goal.PAUSE, Goal.ABORT):
                run.request(goal)
                return
            self._check_idle()
            with closing(self._connect()) as admin:
                cluster_id = admin.describe().cluster_id
            journal, entries = Journal.resume(self._path(execution_id))
            try:
                state = ExecutionState(entries)
                check_cluster(state, cluster_id)
                entry = GoalChanged(goal, "requested in the console")
                journal.append(entry)
                state.apply(entry)
            except BaseException:
                journal.close()
                raise
            self._begin(execution_id, journal, state)

    def close(self) -> None:
        """Stop the run after its present step."""
        if self._run is not None:
            self._run[1].stop()

    def _begin(self, execution_id: str, journal: Journal, state: ExecutionState) -> None:
        self._run = execution_id, _Run(self._connect, journal, state, self._interval_s)

    def _run_of(self, execution_id: str) -> _Run | None:
        return self._run[1] if self._run is not None and self._run[0] == execution_id else None

    def _check_idle(self) -> None:
        if self._run is not None and self._run[1].is_running:
            raise InputError("execution", f"{self._run[0]}, which runs", "none; pause or abort it first")

    def _state(self, execution_id: str) -> ExecutionState:
        return ExecutionState(read_journal(self._path(execution_id)))

    def _path(self, execution_id: str) -> Path:
        path = self.path_of(execution_id)
        if not _ID.fullmatch(execution_id) or not path.is_file():
            raise ParameterError("execution", short_repr(execution_id), "the id of an execution")
        return path
