"""A process of kframe's controller, step by step, on a disk with faults."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

from kframe_kraft.controller import DecisionLoop, NotController, PeriodicTask
from kframe_kraft.disk import SnapshotId, read_checkpoint
from kframe_kraft.errors import LogWriteError
from kframe_kraft.quorum import FetchAnswer, FetchService, PendingFetch, ReplicaFetch
from kframe_kraft.server.environment import Environment
from kframe_kraft.server.node import VoterNode
from kframe_kraft.server.snapshotting import MetadataCopy

from kframe.errors import ErrorCode
from kframe.plugin import ElectionKind
from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import KraftContext, KraftElection, RequestRefused, broker_events
from kframe_simulator.simulation.scheduler import Callback, Scheduler
from verification.kraft.faulty_files import Faults, FaultyFiles, Stopped
from verification.kraft.simulation.expected.heartbeats import (
    compare_arrival,
    compare_expiry,
    compare_heartbeat,
    compare_memory,
)
from verification.kraft.simulation.expected.partitions import compare_timer
from verification.kraft.simulation.options import CONTROLLER, Options
from verification.kraft.simulation.processes import Process, Respond
from verification.kraft.simulation.releases import release_problem
from verification.kraft.simulation.requests import (
    Comparison,
    ControllerRequest,
    Decided,
    Done,
    FetchResponse,
    SnapshotRequest,
    SnapshotResponse,
)
from verification.kraft.simulation.segments import Retained
from verification.kraft.simulation.selectors import SimulatedSelector

#: Wall clock at the start, in milliseconds.
EPOCH_MS: Final = 1_700_000_000_000
#: Milliseconds between two looks at the size of the log, for snapshots.
_CHECK_MS: Final = 1_000.0


class ControllerProcess(Process):
    """Opens the directory and leads. Raises Stopped, LogError and LogWriteError while it starts."""

    def __init__(
        self,
        directory: Path,
        options: Options,
        faults: Faults,
        scheduler: Scheduler,
        on_step: Callable[[], None],
        on_decision: Callable[[Comparison, int, Decided], None],
        selector: SimulatedSelector | None,
    ) -> None:
        """``on_step`` is called after each step that may have changed the log or the high watermark. ``on_decision``
        gets each decision with its comparison, before the records are in the log."""
        super().__init__(CONTROLLER, scheduler)
        self.faults = faults
        self._random = faults.random
        self._ends_sessions = options.ends_sessions
        self.random = DrawnNumbers(faults.random)
        """The random numbers of the last decision."""
        self.snapshot_end = max((int(path.name[:20]) for path in directory.glob("*/*.checkpoint")), default=0)
        """The end of the snapshot that the log begins with."""
        self._on_step = on_step
        self._on_decision = on_decision
        self._pending: dict[PendingFetch, Respond] = {}
        self._is_deciding = self._is_syncing = self._is_completing = False
        self._deadline_ms: int | None = None
        self.slowness = 1.0
        """How many times slower than usual the disk is."""
        self._snapshot: Future[MetadataCopy] | None = None
        self.environment = Environment(
            clock=lambda: int(scheduler.now_ms * 1e6),
            wall_clock=lambda: int((EPOCH_MS + scheduler.now_ms) * 1e6),
            random=self.random,
            new_id=lambda: UUID(int=faults.random.getrandbits(128)),
            files=lambda path: FaultyFiles(path, faults),
        )
        self.node = VoterNode(directory, options.node_settings(), options.kraft_settings(), self.environment)
        self.loop: DecisionLoop | None = None
        self.selector = selector
        self._elections_max = options.elections_max
        self._retention = options.node_settings().retention
        self.first = self.node.log.end
        """The end of the log when the process has started."""
        try:
            self._lead()
        except (Stopped, LogWriteError):
            self.release()
            raise

    def _lead(self) -> None:
        self.loop = loop = self.node.become_leader(
            self._progress, {} if self.selector is None else dict.fromkeys(ElectionKind, self.selector)
        )
        self._fetches = FetchService(self.node.quorum, self.node.log)
        self._writer = self.node.snapshot_writer
        loop.schedule(self._compared(task) for task in self.node.tasks())
        self._sync_soon()
        self._decide_soon()
        self.after(_CHECK_MS, self._check_snapshot)

    def _compared(self, task: PeriodicTask) -> PeriodicTask:
        """A task whose errors are reported; decisions on sessions and leaders are compared."""
        limit = self._elections_max
        comparisons: dict[str, Comparison] = {
            "fence brokers without a session": compare_expiry,
            "elect preferred leaders": partial(compare_timer, KraftElection.PREFERRED, limit),
            "elect unclean leaders": partial(compare_timer, KraftElection.UNCLEAN, limit),
        }

        def event(context: KraftContext) -> ControllerResult[bool]:
            self._on_step()  # A decision of the same step may be in the log.
            try:
                result = task.event(context)
            except Exception as error:
                problem = f"the task {task.name!r} failed: {error!r}"
                self._on_decision(lambda *_: problem, self.node.log.end, ControllerResult((), None))
                raise
            if task.name in comparisons:
                self._on_decision(comparisons[task.name], self.node.log.end, result)
            return result

        return replace(task, event=event)

    @property
    def failure(self) -> str | None:
        """Why the controller no longer leads."""
        return None if self.loop is None else self.loop.failure

    def release(self) -> None:
        """End the process without a word to anybody, and let its directory go."""
        self.end()
        self.node.stop()

    # -- Requests.

    def handle(self, request: Any, source_id: int, respond: Respond) -> None:
        """See ``Process.handle``."""
        match request:
            case ReplicaFetch():
                self._fetch(request, respond)
            case SnapshotRequest():
                path = self.node.log.directory / request.snapshot_id.file_name
                content = [each.record for each in read_checkpoint(path).records()] if path.exists() else None
                respond(None if content is None else SnapshotResponse(content))
            case broker_events.BrokerHeartbeat():
                assert self.loop is not None
                reply = self.loop.heartbeat(request)
                end, leadership = self.node.log.end, self.node.quorum.leadership
                is_committed = leadership is not None and leadership.high_watermark == end
                arrived = ControllerResult((), reply)
                self._on_decision(partial(compare_arrival, request, is_committed), end, arrived)
                if reply is not None:
                    respond(reply)
                    return
                rule = ControllerRequest(
                    lambda context, end: broker_events.handle_heartbeat(context, request, end),
                    partial(compare_heartbeat, request, self._ends_sessions),
                )
                self._ask(rule, respond)
            case ControllerRequest():
                self._ask(request, respond)

    def _ask(self, request: ControllerRequest, respond: Respond) -> None:
        assert self.loop is not None
        future = self.loop.submit(lambda context: self._decided(request, context))
        future.add_done_callback(lambda done: self._respond(done, respond))
        self._decide_soon()

    def _decided(self, request: ControllerRequest, context: KraftContext) -> ControllerResult[Any]:
        """Decide a request, and have the decision compared."""
        end, comparison = self.node.log.end, request.comparison
        self.random.draws.clear()
        context.consulted.clear()
        self._on_decision(partial(compare_memory, context.heartbeats), end, ControllerResult((), None))
        try:
            result = request.rule(context, end)
        except RequestRefused as refusal:
            if comparison is not None:
                self._on_decision(comparison, end, refusal)
            raise
        except Exception as error:
            failure = f"a decision failed: {error!r}"
            self._on_decision(lambda *_: failure, end, RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR, ""))
            raise
        if comparison is not None:
            self._on_decision(comparison, end, result)
        if request.is_repeatable:
            problem = release_problem(context, request.rule, end, result)
            self._on_decision(lambda *_: problem, end, result)
        return result

    def _respond(self, future: Future[Any], respond: Respond) -> None:
        """Send the response. A request that finds no controller gets none."""
        if not self.is_running:
            return
        error = future.exception()
        if error is None:
            result = future.result()
            respond(Done() if result is None else result)
        elif isinstance(error, RequestRefused):
            respond(error)
        elif not isinstance(error, NotController):
            raise error

    def _fetch(self, request: ReplicaFetch, respond: Respond) -> None:
        answer = self._fetches.answer(request, self._now_ms())
        if isinstance(answer, FetchAnswer):
            respond(FetchResponse(answer, self.node.quorum.epoch))
        else:
            self._pending[answer] = respond
            self.after(answer.deadline - self._now_ms() + 1, self._complete)

    def _complete(self) -> None:
        self._is_completing = False
        for pending, answer in self._fetches.complete(self._now_ms()):
            self._pending.pop(pending)(FetchResponse(answer, self.node.quorum.epoch))

    def _now_ms(self) -> int:
        return int(self.scheduler.now_ms)

    # -- Steps.

    def _progress(self) -> None:
        """The log has grown, or the high watermark has risen."""
        if not self._is_completing:
            self._is_completing = True
            self.after(0, self._complete)
        self._sync_soon()

    def _decide_soon(self) -> None:
        if not self._is_deciding:
            self._is_deciding = True
            self.after(self._random.choice((0, 0, 0.1, 1, 5)), self._decide)

    def _decide(self) -> None:
        self._is_deciding = False
        loop = self.loop
        assert loop is not None
        self._step(loop.decide_next)
        if self.is_running and loop.waiting_events:
            self._decide_soon()
        deadline = loop.deadline_ms
        if self.is_running and deadline is not None and deadline != self._deadline_ms:
            self._deadline_ms = deadline
            self.after(deadline - self.scheduler.now_ms + 0.001, self._decide)

    def _sync_soon(self) -> None:
        """Sync after the time of the disk: events that are decided meanwhile share it, or the next one."""
        if not self._is_syncing:
            self._is_syncing = True
            self.after(self._random.choice((0.1, 0.5, 2, 10)) * self.slowness, self._sync)

    def _sync(self) -> None:
        self._is_syncing = False
        assert self.loop is not None
        self._step(self.loop.sync_next)

    def _step(self, step: Callback) -> None:
        """Take a step; the process may end in it."""
        try:
            step()
        except Stopped:
            self.release()
        self._on_step()

    # -- Snapshots.

    def _check_snapshot(self) -> None:
        self.after(_CHECK_MS, self._check_snapshot)
        if self.loop is not None and self._snapshot is None and self._writer.is_due():
            self._snapshot = self.loop.submit(self._writer.copy)
            self._snapshot.add_done_callback(lambda done: self.run(lambda: self._store(done)))
            self._decide_soon()

    def _store(self, copied: Future[MetadataCopy]) -> None:
        self._snapshot = None
        if copied.exception() is not None or self.loop is None:
            return
        self._writer.store(copied.result())
        snapshot_id = copied.result().snapshot_id
        self.loop.submit(lambda context: self._finished(snapshot_id))
        self._decide_soon()

    def _finished(self, snapshot_id: SnapshotId) -> ControllerResult[None]:
        """Let the retention decide, and compare what it has left."""
        log = self.node.log
        if snapshot_id not in log.snapshots:
            log.add_snapshot(snapshot_id)
        expected = Retained.of(log).cleaned(self._retention, self.environment.now_ms())
        result = self._writer.finish(snapshot_id)
        if (left := Retained.of(log)) != expected:
            problem = f"the retention leaves {left}, expected {expected}"
            self._on_decision(lambda *_: problem, log.end, result)
        return result


class DrawnNumbers:
    """Draws the first replicas of automatic assignments."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.draws: list[tuple[int, int]] = []
        """Each bound with its number."""

    def next_int(self, bound: int) -> int:
        """See ``RandomSource``."""
        self.draws.append((bound, self._random.randrange(bound)))
        return self.draws[-1][1]
