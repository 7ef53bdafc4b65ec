"""The controller at work: takes one event from the queue, performs what it asks for, and only then takes the next."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

# Numpy imports it when ``unique`` is first called: not in the middle of a failover.
import numpy.ma  # noqa: F401

from kframe.core.controller import Controller
from kframe.errors import StoreError
from kframe.model.effects import Effect
from kframe.model.events import Answer, ControllerState, Elect, Event, ResignRequested, SessionExpired
from kframe.model.ports import Clock, Store, Transport
from kframe.registry.specs import Observer
from kframe.runtime.contending import InstancesFirst
from kframe.runtime.event_logs import EventLogs
from kframe.runtime.metrics import Timers, measure
from kframe.runtime.observers import Observers
from kframe.runtime.perform import Performer
from kframe.runtime.queue import EventQueue
from kframe.runtime.status import Status

_log = logging.getLogger("kframe.runtime")

#: The event that ends a loop.
_LAST = ResignRequested()
#: Whoever fails once may stand for election again at once; from then on after this long, twice as long each time.
RETRY_MS = 100.0
RETRY_MOST_MS = 30_000.0
#: How often a loop that stops looks whether its store can be reached.
_UNREACHABLE_LOOK_S = 0.5


class ControllerLoop:
    """One controller with its store, transport and queue.

    Drive it by hand with ``run_until_idle`` (embedded, what-if, simulation), or let ``start`` run it in a thread.
    """

    def __init__(
        self,
        controller: Controller,
        store: Store,
        transport: Transport,
        clock: Clock,
        observers: Iterable[tuple[str, Observer]] = (),
        *,
        instances_first: bool = False,
    ) -> None:
        """``observers`` are shown every step, each under its name; ``instances_first``: see ``contending``."""
        self.controller = controller
        self.store = store
        self.transport = transport
        self.queue = EventQueue(clock)
        self.state = ControllerState.IDLE
        """What the controller is busy with; Kafka's ControllerState gauge."""
        self.timers = Timers()
        self.observers = Observers(observers)
        self._clock = clock
        self._logs = EventLogs(controller, clock)
        self._tokens = itertools.count(1)
        self._waiting: dict[int, tuple[Future[Any], Callable[[Any], Any]]] = {}
        self._answered: deque[tuple[Future[Any], Any]] = deque()
        self._lock = threading.Lock()
        self._performer = Performer(controller, store, transport, clock, self._reply, self.queue.put)
        self._contention = InstancesFirst(controller, store, clock, self.queue.put) if instances_first else None
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._failures = self._failures_seen = 0
        self._stands_again_ms = float("-inf")
        self._publish()

    def open(self, *, takeover: bool = False) -> None:
        """Connect the store and the transport, and stand for election; ``takeover`` takes the role from its holder."""
        self.open_store()
        self.stand(takeover=takeover)

    def open_store(self) -> None:
        """Connect the store. ``stand`` follows, or ``store.close``."""
        self.store.open(self.notify)

    def stand(self, *, takeover: bool = False) -> None:
        """Connect the transport and stand for election, once the store is open."""
        self.transport.open(self.queue.put, self.store.may_act)
        self.queue.put(Elect(takeover))

    def adopt(self) -> None:
        """Connect, claim the role and go on as the controller that has run this cluster all along, without a failover.

        For what-ifs, where the store is ours alone. Raises StoreError if another controller holds the role.
        """
        self.store.open(self.notify)
        self.transport.open(self.queue.put, self.store.may_act)
        controller_epoch = self.store.claim(self.controller.controller_id)
        if controller_epoch is None:
            raise StoreError(f"controller {self.store.controller()} holds the role")
        self._settle(self.controller.adopt(self.store.load(), controller_epoch))
        self._publish()

    def notify(self, event: Event) -> None:
        """Take an event from a port. The end of our session drops all that waits, and answers who waits for it."""
        if not isinstance(event, SessionExpired):
            self.queue.put(event)
            return
        for drained in self.queue.clear_and_put(event):
            self._settle(self.controller.preempt(drained))

    def submit(
        self, event: Callable[[int], Event], read: Callable[[Any], Any] = lambda response: response
    ) -> Future[Any]:
        """Queue a caller's event, made from the token that it is given; the future gets what ``read`` makes of the
        response while the columns are as they were when it was given. Thread-safe.

        The future cannot be cancelled: what was asked of a controller is done, whoever still waits for it.
        """
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            token = next(self._tokens)
            self._waiting[token] = future, read
            if not self._stopped:
                self.queue.put(event(token))
                return future
        self._settle(self.controller.preempt(event(token)))
        return future

    def process(self, event: Event) -> None:
        """Handle one event to its end."""
        for _ in self.handle(event):
            pass

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event, and yield each effect right before it is performed.

        Whoever drives the loop by hand can let the world go on between two effects, or drop the rest for good: that is
        how a simulator stops a controller in the middle of an event.
        """
        if isinstance(event, Elect) and self._clock.now_ms() < self._stands_again_ms:
            return  # a timer repeats it
        started_ms, self.state = self._clock.now_ms(), event.state
        self._logs.begin()
        try:
            yield from self._advance(event)
            self._publish()
        except Exception as error:
            _log.exception("%s could not be handled; giving the role up", type(event).__name__)
            self._abandon(event, error)
            self._publish()
        finally:
            self._note_failure()
            if self._contention is not None and self._clock.now_ms() >= self._stands_again_ms:
                self._contention.handled(event)
            duration_ms = self._clock.now_ms() - started_ms
            self.timers.add(event.state, duration_ms)
            self._logs.finish(event, duration_ms)
            self.state = ControllerState.IDLE
            self._deliver()

    def run_until_idle(self) -> int:
        """Handle events until none waits; return how many."""
        handled = 0
        while (event := self.queue.take()) is not None:
            self.process(event)
            handled += 1
        return handled

    def start(self) -> None:
        """Run in a thread of its own until ``stop``."""
        self._thread = threading.Thread(target=self._run, name="controller-event-thread", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the thread that ``start`` has started handles events."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Resign, answer all who wait, and close store and transport."""
        self.finish()
        self.close()

    def finish(self) -> None:
        """Resign and answer all who wait; requests that come later are refused at once. ``close`` follows."""
        for drained in self.queue.clear_and_put(_LAST):
            self._settle(self.controller.preempt(drained))
        ended = threading.Event()
        threading.Thread(target=self._close_unreachable, args=(ended,), name="controller-stop", daemon=True).start()
        if self._thread is not None:
            self._thread.join()
        else:
            self._run()
        ended.set()
        with self._lock:
            self._stopped = True
        for drained in self.queue.clear_and_put(_LAST):
            self._settle(self.controller.preempt(drained))

    def close(self) -> None:
        """Close transport and store, after ``finish``."""
        self.transport.close()
        self.store.close()

    def _close_unreachable(self, ended: threading.Event) -> None:
        """Until the last event has ``ended``, close a store that cannot be reached: an event may wait for it."""
        while not ended.wait(_UNREACHABLE_LOOK_S):
            if not self.store.connected():
                _log.warning("storage cannot be reached: the role is given up when it ends our session")
                self.store.close()
                return

    def _run(self) -> None:
        """Handle events up to the one that stops us; what giving up the role sets off is nobody's business here."""
        event = None
        while event is not _LAST:
            event = self.queue.take(timeout_s=None)
            if event is not None:
                self.process(event)

    def _advance(self, cause: Event | Answer | None) -> Iterator[Effect]:
        """Hand the controller an event, perform what it asks for, and hand answers back until its operation is over."""
        while cause is not None:
            effects, answer = self.controller.step(cause), None
            self._logs.stepped()
            self.observers.stepped(cause, effects)
            for effect in effects:
                yield effect
                answer = self._performer.perform_one(effect)
                self._logs.performed(effect, answer)
            cause = answer  # only the last effect is ever answered

    def _settle(self, effects: list[Effect]) -> None:
        """Perform effects that no step has asked for."""
        for _ in self._advance(self._performer.perform(effects)):
            pass
        self._deliver()

    def _abandon(self, event: Event, error: Exception) -> None:
        """Give the role up for an error that nobody foresaw; what fails at that too is only logged."""
        try:
            effects = self.controller.abandon(f"{type(error).__name__}: {error}")
            self._logs.stepped()
            self.observers.stepped(event, effects)
            self._settle(effects)
        except Exception:
            _log.exception("the role could not be given up in order")
        self._fail_waiting(event, error)

    def _note_failure(self) -> None:
        """After failures in a row hold elections back: the role that we gave up is free, to be taken and lost again."""
        if self.controller.failures == self._failures_seen:
            self._failures = 0 if self.controller.active else self._failures
            return
        self._failures_seen = self.controller.failures
        if self._failures > 0:
            delay_ms = min(RETRY_MS * 2.0 ** min(self._failures - 1, 16), RETRY_MOST_MS)
            self._stands_again_ms = self._clock.now_ms() + delay_ms
            self._clock.schedule("stand-again", delay_ms, lambda: self.queue.put(Elect()))
        self._failures += 1

    def status(self) -> Status:
        """How things stand; may be asked from any thread."""
        return replace(self._status, state=self.state, events_waiting=len(self.queue))

    def metrics(self) -> dict[str, float]:
        """Everything measured, by the names of ``kframe.runtime.metrics``; may be asked from any thread."""
        quarantined = len(self.store.quarantined())
        return measure(self.status(), self.timers, self.queue.times, self.transport.queues(), quarantined)

    def _publish(self) -> None:
        """Make known how things stand after an event (Kafka 3.9 refreshes its gauges then, too)."""
        controller = self.controller
        faults: Counter[str] = Counter()
        for (name, _), count in controller.selection.faults.items():
            faults[name] += count
        self._status = Status(
            controller_id=controller.controller_id,
            active=controller.active,
            active_controller=controller.active_controller,
            controller_epoch=controller.controller_epoch,
            state=self.state,
            events_waiting=len(self.queue),
            gauges=controller.gauges(),
            meters=dict(controller.counters),
            selector_faults=faults,
            observer_failures=dict(self.observers.failures),
        )

    def _reply(self, token: int, response: Any) -> None:
        with self._lock:
            future, read = self._waiting.pop(token, (None, None))
        if future is None or read is None:
            return
        try:
            self._answered.append((future, read(response)))
        except Exception as error:
            future.set_exception(error)

    def _deliver(self) -> None:
        """Hand out the answers to an event that is over: whoever gets one finds status and metrics up to date."""
        with suppress(IndexError):  # none is left, perhaps because another thread has handed out the last
            while True:
                future, value = self._answered.popleft()
                future.set_result(value)

    def _fail_waiting(self, event: Event, error: Exception) -> None:
        """Whoever waits for an event that failed learns why."""
        token = getattr(event, "token", 0)
        with self._lock:
            future, _ = self._waiting.pop(token, (None, None))
        if future is not None:
            future.set_exception(error)
