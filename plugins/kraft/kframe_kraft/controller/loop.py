"""The threads of an active controller: one decides events in their order, one makes the log durable.

A caller without threads takes the same steps one by one: ``schedule``, then ``decide_next`` and ``sync_next``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias, TypeVar

from kframe.plugin import CommitObserver, ErrorCode, KframeError
from kframe.plugin.kraft_controller import ElectionCounts, RequestRefused, broker_events
from kframe.plugin.transport import Samples
from kframe_kraft.controller.decider import Decided, Decider, Event, WritableLog
from kframe_kraft.controller.tasks import PeriodicTask, TaskSchedule
from kframe_kraft.errors import LogWriteError
from kframe_kraft.quorum import Leadership

_log = logging.getLogger("kframe.kraft")

T = TypeVar("T")
#: An event, its future, and when it was submitted.
_Submitted: TypeAlias = tuple[Event[Any], "Future[Any]", int]
_STOP: Final = None


@dataclass(frozen=True, slots=True)
class EventTimes:
    """Milliseconds that events have waited in the queue, and that their decisions have taken."""

    waiting: Samples = field(default_factory=Samples)
    deciding: Samples = field(default_factory=Samples)


class NotController(KframeError):
    """The node is not the active controller any more."""


class DecisionLoop:
    """Decides until ``stop``, or until the log cannot be written: then ``failure`` says why, and it no longer leads."""

    def __init__(
        self,
        decider: Decider,
        log: WritableLog,
        leadership: Leadership,
        on_progress: Callable[[], None],
        clock: Callable[[], int] = time.monotonic_ns,
        wall_clock: Callable[[], int] = time.time_ns,
        observer: CommitObserver | None = None,
    ) -> None:
        """``on_progress`` is called, in any thread, after the log has grown or the high watermark has risen. ``clock``
        is monotonic, ``wall_clock`` counts from 1970; both are in nanoseconds."""
        self._decider = decider
        self._log = log
        self._leadership = leadership
        self._on_progress = on_progress
        self._clock = clock
        self._wall_clock = wall_clock
        self._observer = observer
        self._tasks = TaskSchedule((), 0)
        self._queue: SimpleQueue[_Submitted | None] = SimpleQueue()
        #: For each session with heartbeats since the last event, when the last arrived, and the offset that the last of
        #: the answered ones reported.
        self._contacts: dict[tuple[int, int], tuple[int, int | None]] = {}
        self._waiting: deque[tuple[Decided[Any], Future[Any]]] = deque()
        self._responding = threading.Lock()
        self._appended = threading.Condition()
        self._end = log.end
        self._synced = -1
        self._stopping = False
        self._threads: list[threading.Thread] = []
        self.failure: str | None = None
        self.times = EventTimes()

    @property
    def waiting_events(self) -> int:
        """Events that wait for their decision."""
        return self._queue.qsize()

    @property
    def elections(self) -> ElectionCounts:
        """Unclean elections and others outside the ISR, since the start."""
        return self._decider.elections

    def start(self, tasks: Iterable[PeriodicTask] = ()) -> None:
        """Start the threads. The periods of ``tasks`` begin now."""
        self.schedule(tasks)
        for name, run in (("kframe-decide", self._decide_all), ("kframe-sync", self._sync_all)):
            thread = threading.Thread(target=run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End the threads; events that wait get NotController. May be called again."""
        self._end_with(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._threads.clear()

    def submit(self, event: Event[T]) -> Future[T]:
        """Decide an event. The future has the response once its records are committed, or the refusal."""
        future: Future[T] = Future()
        self._queue.put((event, future, self._clock()))
        if self._stopping:
            self._refuse_queued()
        return future

    def heartbeat(self, heartbeat: broker_events.BrokerHeartbeat) -> broker_events.BrokerHeartbeatReply | None:
        """Note that a heartbeat has arrived, so that no session ends while events wait.

        Returns the reply if it changes nothing and the registration is committed; otherwise the heartbeat is an event.
        """
        metadata = self._decider.context.metadata
        registration = metadata.brokers.registrations.get(heartbeat.broker_id)
        reply = broker_events.steady_reply(registration, heartbeat, metadata.metadata_version)
        high_watermark = self._leadership.high_watermark
        # The end is read after the registration, and written before it: a registration in this state is at least there.
        is_committed = high_watermark is not None and self._decider.registrations_end <= high_watermark
        if self._stopping or not is_committed:
            reply = None
        session = heartbeat.broker_id, heartbeat.broker_epoch
        offset = self._contacts.get(session, (0, None))[1] if reply is None else heartbeat.metadata_offset
        self._contacts[session] = self._clock(), offset
        return reply

    # -- The steps.

    def schedule(self, tasks: Iterable[PeriodicTask]) -> None:
        """Run ``tasks`` when they are due. Their periods begin now."""
        self._tasks = TaskSchedule(tasks, self._now_ms())

    @property
    def deadline_ms(self) -> int | None:
        """When the next task is due, in milliseconds of the monotonic clock. None without tasks."""
        return self._tasks.deadline

    def decide_next(self, wait_s: float | None = 0) -> None:
        """Decide the next event, which may take ``wait_s`` seconds to arrive (None: any time), and run due tasks."""
        try:
            submitted = self._queue.get(timeout=wait_s)
        except Empty:
            submitted = None
        if submitted is not None:
            self._decide(*submitted)
        self._run_due()

    def sync_next(self) -> None:
        """Make durable what was appended, and respond to what is committed then."""
        try:
            self._synced = self._log.sync()
        except LogWriteError as error:
            self._end_with(str(error))
            return
        if self._leadership.note_synced(self._synced):
            self._respond()
            self._on_progress()

    # -- The thread that decides.

    def _decide_all(self) -> None:
        while not self._stopping:
            deadline = self._tasks.deadline
            self.decide_next(None if deadline is None else max(deadline - self._now_ms(), 0) / 1000)
        self._refuse_queued()

    def _decide(self, event: Event[Any], future: Future[Any], submitted_ns: int) -> None:
        started_ns = self._clock()
        self.times.waiting.add((started_ns - submitted_ns) / 1e6)
        try:
            self._enter(event, future)
        except RequestRefused as refusal:
            _refuse(future, refusal)
        except Exception as error:
            _log.exception("a decision failed; its request is refused")
            _refuse(future, RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"The decision failed: {error!r}"))
        self.times.deciding.add((self._clock() - started_ns) / 1e6)

    def _run_due(self) -> None:
        """Run the tasks that are due. A task that cannot decide is tried again later, and the controller leads on."""
        tasks = self._tasks
        for task in tasks.due(self._now_ms()):
            if self._stopping:
                return
            try:
                has_more = self._enter(task.event, Future())
            except Exception:
                _log.exception("task %s failed; it runs again later", task.name)
                tasks.failed(task, self._now_ms())
            else:
                tasks.ran(task, self._now_ms(), has_more=has_more)

    def _enter(self, event: Event[T], future: Future[T]) -> T:
        """Decide an event, append and apply the decision, and let its response wait for the high watermark.

        An exception means that nothing has changed. A failure after that ends the role, since the log has records that
        the metadata may lack.
        """
        decider = self._decider
        context, first = decider.context, decider.end
        context.now_ns = self._clock()
        while self._contacts:
            session, (contact_ns, steady_offset) = self._contacts.popitem()
            broker_events.note_contact(context, session, contact_ns, steady_offset)
        result = event(context)
        try:
            for end in decider.append(result, self._wall_clock() // 1_000_000):
                self._note_appended(end)
            decider.apply(result, first)
        except LogWriteError as error:
            self._give_up(future, str(error))
        except Exception as error:
            if decider.end == first:
                raise
            _log.exception("a decision cannot be written and applied; this node gives the role up")
            self._give_up(future, f"a decision cannot be written and applied: {error!r}")
        else:
            with self._appended:
                self._waiting.append((Decided(first, self._end, result), future))
            self._respond()  # A sync may have covered it.
        return result.response

    def _give_up(self, future: Future[Any], failure: str) -> None:
        _refuse(future, NotController(failure))
        self._end_with(failure)

    def _note_appended(self, end: int) -> None:
        """Have a batch made durable and sent, while the next one is encoded, or the decision is applied."""
        with self._appended:
            self._end = end
            self._appended.notify()
        self._on_progress()

    def _now_ms(self) -> int:
        return self._clock() // 1_000_000

    # -- The thread that makes durable.

    def _sync_all(self) -> None:
        while True:
            with self._appended:
                self._appended.wait_for(lambda: self._stopping or self._end > self._synced)
                if self._stopping:
                    return
            self.sync_next()

    def _respond(self) -> None:
        """Complete the futures whose records are committed, in the order of the log."""
        high_watermark = self._leadership.high_watermark
        while True:
            with self._responding:
                with self._appended:
                    if not self._waiting or high_watermark is None or self._waiting[0][0].end > high_watermark:
                        return
                    decided, future = self._waiting.popleft()
                if self._observer is not None and decided.end > decided.first:
                    self._observer.committed(decided.first, decided.result)
            with suppress(InvalidStateError):
                future.set_result(decided.result.response)

    # -- The end.

    def _end_with(self, failure: str | None) -> None:
        with self._appended:
            if failure is not None and self.failure is None:
                self.failure = failure
            self._stopping = True
            self._appended.notify()
        self._refuse_queued()
        self._on_progress()

    def _refuse_queued(self) -> None:
        """Refuse the events that wait for a decision, or for the high watermark, and wake the thread that decides."""
        problem = NotController(self.failure or "the controller has stopped")
        with self._appended:
            refused = [future for _, future in self._waiting]
            self._waiting.clear()
        with suppress(Empty):
            while True:
                submitted = self._queue.get_nowait()
                refused += [] if submitted is None else [submitted[1]]
        self._queue.put(_STOP)
        for future in refused:
            _refuse(future, problem)


def _refuse(future: Future[Any], error: KframeError) -> None:
    with suppress(InvalidStateError):  # Its client has gone.
        future.set_exception(error)
