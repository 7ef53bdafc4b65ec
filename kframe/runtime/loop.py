"""The event loop of a controller. It handles an event, performs its effects, then takes the next event."""

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

from kframe.core.controller import ControllerCore
from kframe.errors import StoreError
from kframe.model import events
from kframe.model.effects import Effect
from kframe.model.events import ControllerState, EffectResult, Event, Reelect, ResignRequested, SessionExpired
from kframe.ports.clock import Clock
from kframe.ports.observer import Observer
from kframe.ports.store import Store
from kframe.ports.store_requests import Claim, Load, ReadController
from kframe.ports.transport import Transport
from kframe.runtime.contending import InstancesFirst
from kframe.runtime.event_logs import EventLogs
from kframe.runtime.metrics import Timers, measure
from kframe.runtime.observers import Observers
from kframe.runtime.perform import Performer
from kframe.runtime.queue import EventQueue
from kframe.runtime.status import Status

_log = logging.getLogger("kframe.runtime")

#: The event that ends a loop.
_FINAL_EVENT = ResignRequested()
#: After a second failure in a row, the delay of the next election; it doubles with each further failure.
RETRY_MS = 100.0
RETRY_MAX_MS = 30_000.0
#: Requests of clients that the controller may answer from its columns alone.
_READS = (events.InspectionRequested, events.ListReassignmentsRequested)
_CHANGES = (
    events.AlterConfigsRequested,
    events.CreatePartitionsRequested,
    events.CreateTopicsRequested,
    events.DeleteTopicsRequested,
    events.ElectionRequested,
    events.ReassignmentRequested,
)
#: How often a stopping loop checks whether its store is connected.
_CONNECTED_CHECK_S = 0.5


class ControllerLoop:
    """A controller with its store, transport and queue.

    A program calls ``run_until_idle`` (embedded, what-if, simulation), or ``start`` runs the loop in a thread.
    """

    def __init__(
        self,
        controller: ControllerCore,
        store: Store,
        transport: Transport,
        clock: Clock,
        observers: Iterable[tuple[str, Observer]] = (),
        *,
        instances_first: bool = False,
    ) -> None:
        """``observers`` receive every step, by name. ``instances_first``: see ``contending``."""
        self.controller = controller
        self.store = store
        self.transport = transport
        self.queue = EventQueue(clock)
        self.state = ControllerState.IDLE
        """The kind of event being handled. Kafka's ControllerState gauge."""
        self.timers = Timers()
        self.observers = Observers(observers)
        self._clock = clock
        self._logs = EventLogs(controller, clock)
        self._tokens = itertools.count(1)
        self._futures: dict[int, tuple[Future[Any], Callable[[Any], Any]]] = {}
        self._completed: deque[tuple[Future[Any], Any]] = deque()
        self._lock = threading.Lock()
        self._performer = Performer(controller, store, transport, clock, self._reply, self.queue.put)
        self._contention = InstancesFirst(controller, store, clock, self.queue.put) if instances_first else None
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._failures = self._counted_failures = 0
        self._next_election_ms = float("-inf")
        self._publish()

    def open(self, *, takeover: bool = False) -> None:
        """Connect the store and the transport, and queue the election. ``takeover`` takes the role from its holder."""
        self.open_store()
        self.start_election(takeover=takeover)

    def open_store(self) -> None:
        """Connect the store. ``start_election`` follows, or ``store.close``."""
        self.store.open(self.notify)

    def start_election(self, *, takeover: bool = False) -> None:
        """Connect the transport and queue the election, once the store is open."""
        self.transport.open(self.queue.put, self.store.may_act)
        self.queue.put(Reelect(takeover))

    def adopt(self) -> None:
        """Connect and claim the role. Continue as the controller of the loaded cluster, without a failover.

        For what-ifs, which have a store of their own. Raises StoreError if another controller holds the role.
        """
        self.store.open(self.notify)
        self.transport.open(self.queue.put, self.store.may_act)
        controller_epoch = self.store.perform(Claim(self.controller.controller_id))
        if controller_epoch is None:
            raise StoreError(f"controller {self.store.perform(ReadController()).controller_id} holds the role")
        self._settle(self.controller.adopt(self.store.perform(Load()), controller_epoch))
        self._publish()

    def notify(self, event: Event) -> None:
        """Queue an event of the store or transport. SessionExpired drains the queue and answers drained requests."""
        if not isinstance(event, SessionExpired):
            self.queue.put(event)
            return
        for drained in self.queue.clear_and_put(event):
            self._settle(self.controller.preempt(drained))

    def submit(
        self, event: Callable[[int], Event], read: Callable[[Any], Any] = lambda response: response
    ) -> Future[Any]:
        """Queue the event that ``event`` makes from a token. The result of the future is ``read(response)``.

        ``read`` is called before the columns change again. The future cannot be cancelled, because the controller
        executes a queued request in any case. Thread-safe.
        """
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            token = next(self._tokens)
            self._futures[token] = future, read
            if not self._stopped:
                self.queue.put(event(token))
                return future
        self._settle(self.controller.preempt(event(token)))
        return future

    def process(self, event: Event) -> None:
        """Handle an event completely."""
        for _ in self.handle(event):
            pass

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle an event, and yield each effect right before it is performed.

        A simulator lets the cluster change between two effects, or drops the iterator to stop the controller in the
        middle of an event.
        """
        if isinstance(event, Reelect) and self._clock.now_ms() < self._next_election_ms:
            return  # a timer repeats it
        started_ms, self.state = self._clock.now_ms(), event.state
        self._logs.begin()
        try:
            if self.controller.active and self._may_be_outdated(event):
                self._settle(self.controller.preempt(event))
            else:
                yield from self._advance(event)
            self._contend(event)
            self._publish()
        except Exception as error:
            _log.exception("%s could not be handled; resigning", type(event).__name__)
            self._abandon(event, error)
            self._contend(event)
            self._publish()
        finally:
            duration_ms = self._clock.now_ms() - started_ms
            self.timers.add(event.state, duration_ms)
            self._logs.finish(event, duration_ms)
            self.state = ControllerState.IDLE
            self._deliver()

    def run_until_idle(self) -> int:
        """Handle events until none waits. Return how many."""
        handled = 0
        while (event := self.queue.take()) is not None:
            self.process(event)
            handled += 1
        return handled

    def start(self) -> None:
        """Handle events in a thread of its own until ``stop``."""
        self._thread = threading.Thread(target=self._run, name="controller-event-thread", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the thread of ``start`` handles events."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Resign and answer all pending requests. Then close store and transport."""
        self.finish()
        self.close()

    def finish(self) -> None:
        """Resign and answer all pending requests. Later requests are refused at once. ``close`` follows."""
        for drained in self.queue.clear_and_put(_FINAL_EVENT):
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
        for drained in self.queue.clear_and_put(_FINAL_EVENT):
            self._settle(self.controller.preempt(drained))

    def close(self) -> None:
        """Close transport and store, after ``finish``."""
        self.transport.close()
        self.store.close()

    def _close_unreachable(self, ended: threading.Event) -> None:
        """Until the last event has ``ended``, close a store without connection. An event may wait for it."""
        while not ended.wait(_CONNECTED_CHECK_S):
            if not self.store.connected():
                _log.warning("storage cannot be reached: the role ends with the session")
                self.store.close()
                return

    def _run(self) -> None:
        """Handle events up to the last one. Events that the resignation causes are dropped."""
        event = None
        while event is not _FINAL_EVENT:
            event = self.queue.take(timeout_s=None)
            if event is not None:
                self.process(event)

    def _advance(self, cause: Event | EffectResult | None) -> Iterator[Effect]:
        """Pass an event to the controller, and perform its effects. Pass results back until the operation ends."""
        while cause is not None:
            effects, result = self.controller.step(cause), None
            self._logs.stepped()
            self.observers.stepped(cause, effects)
            for effect in effects:
                yield effect
                result = self._performer.perform_effect(effect)
                self._logs.performed(effect, result)
            cause = result  # only the last effect can have a result

    def _may_be_outdated(self, event: Event) -> bool:
        """Whether the response to a client could miss changes of another controller.

        Writes are fenced, but reads, and refusals such as TOPIC_ALREADY_EXISTS, come from the columns. A change waits
        for the store to confirm the role, as a request to a broker does. A read does not wait.
        """
        if isinstance(event, _READS):
            return not self.store.may_act()
        try:
            return isinstance(event, _CHANGES) and not self._performer.confirms_role()
        except StoreError:
            return True

    def _settle(self, effects: list[Effect]) -> None:
        """Perform effects outside of a step."""
        for _ in self._advance(self._performer.perform(effects)):
            pass
        self._deliver()

    def _abandon(self, event: Event, error: Exception) -> None:
        """Resign after an unexpected error. A further error is only logged."""
        try:
            effects = self.controller.abandon(f"{type(error).__name__}: {error}")
            self._logs.stepped()
            self.observers.stepped(event, effects)
            self._settle(effects)
        except Exception:
            _log.exception("the resignation failed")
        self._fail_future(event, error)

    def _contend(self, event: Event) -> None:
        """Contend for the role after an event, before the status shows the active controller.

        So a standby that is ready notices the end of the active controller's process.
        """
        self._note_failure()
        if self._contention is not None and self._clock.now_ms() >= self._next_election_ms:
            self._contention.handled(event)

    def _note_failure(self) -> None:
        """Delay the next election after repeated failures, because the free role would be won and lost at once."""
        if self.controller.failures == self._counted_failures:
            self._failures = 0 if self.controller.active else self._failures
            return
        self._counted_failures = self.controller.failures
        if self._failures > 0:
            delay_ms = min(RETRY_MS * 2.0 ** min(self._failures - 1, 16), RETRY_MAX_MS)
            self._next_election_ms = self._clock.now_ms() + delay_ms
            self._clock.schedule("retry-election", delay_ms, lambda: self.queue.put(Reelect()))
        self._failures += 1

    def status(self) -> Status:
        """The status of the controller. Thread-safe."""
        return replace(self._status, state=self.state, events_waiting=len(self.queue))

    def metrics(self) -> dict[str, float]:
        """All metrics by the names of ``kframe.runtime.metrics``. Thread-safe."""
        quarantined = len(self.store.quarantined())
        return measure(self.status(), self.timers, self.queue.times, self.transport.queues(), quarantined)

    def _publish(self) -> None:
        """Update the status after an event, as Kafka 3.9 refreshes its gauges."""
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
            future, read = self._futures.pop(token, (None, None))
        if future is None or read is None:
            return
        try:
            self._completed.append((future, read(response)))
        except Exception as error:
            future.set_exception(error)

    def _deliver(self) -> None:
        """Complete the futures of a handled event, now that status and metrics are up to date."""
        with suppress(IndexError):  # empty, perhaps because another thread took the last
            while True:
                future, value = self._completed.popleft()
                future.set_result(value)

    def _fail_future(self, event: Event, error: Exception) -> None:
        """Pass the error to the future of the failed event."""
        token = getattr(event, "token", 0)
        with self._lock:
            future, _ = self._futures.pop(token, (None, None))
        if future is not None:
            future.set_exception(error)
