"""The controller at work: takes one event from the queue, performs what it asks for, and only then takes the next."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from kframe.core.controller import Controller
from kframe.errors import StoreError
from kframe.model.effects import Effect
from kframe.model.events import ControllerState, Elect, Event, ResignRequested, SessionExpired
from kframe.model.ports import Clock, Store, Transport
from kframe.runtime.perform import Performer
from kframe.runtime.queue import EventQueue

_log = logging.getLogger("kframe.runtime")

#: The event that ends a loop.
_LAST = ResignRequested()


class ControllerLoop:
    """One controller with its store, transport and queue.

    Drive it by hand with ``run_until_idle`` (embedded, what-if, simulation), or let ``start`` run it in a thread.
    """

    def __init__(self, controller: Controller, store: Store, transport: Transport, clock: Clock) -> None:
        self.controller = controller
        self.store = store
        self.transport = transport
        self.queue = EventQueue(clock)
        self.state = ControllerState.IDLE
        """What the controller is busy with; Kafka's ControllerState gauge."""
        self._tokens = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._performer = Performer(controller, store, transport, clock, self._reply, self.queue.put)
        self._thread: threading.Thread | None = None
        self._stopped = False

    def open(self) -> None:
        """Connect the store and the transport, and stand for election."""
        self.store.open(self.notify)
        self.transport.open(self.queue.put)
        self.queue.put(Elect())

    def adopt(self) -> None:
        """Connect, claim the role and go on as the controller that has run this cluster all along, without a failover.

        For what-ifs, where the store is ours alone. Raises StoreError if another controller holds the role.
        """
        self.store.open(self.notify)
        self.transport.open(self.queue.put)
        controller_epoch = self.store.claim(self.controller.controller_id)
        if controller_epoch is None:
            raise StoreError(f"controller {self.store.controller()} holds the role")
        self._settle(self.controller.adopt(self.store.load(), controller_epoch))

    def notify(self, event: Event) -> None:
        """Take an event from a port. The end of our session drops all that waits, and answers who waits for it."""
        if not isinstance(event, SessionExpired):
            self.queue.put(event)
            return
        for drained in self.queue.clear_and_put(event):
            self._settle(self.controller.preempt(drained))

    def submit(self, event: Callable[[int], Event]) -> Future[Any]:
        """Queue a caller's event, made from the token that it is given; the future gets the response. Thread-safe."""
        future: Future[Any] = Future()
        with self._lock:
            token = next(self._tokens)
            self._waiting[token] = future
        if self._stopped:
            self._settle(self.controller.preempt(event(token)))
        else:
            self.queue.put(event(token))
        return future

    def process(self, event: Event) -> None:
        """Handle one event to its end."""
        self.state = event.state
        try:
            self._settle(self.controller.step(event))
        except Exception as error:
            _log.exception("%s could not be handled; giving the role up", type(event).__name__)
            self._settle(self.controller.abandon(f"{type(error).__name__}: {error}"))
            self._fail_waiting(event, error)
        finally:
            self.state = ControllerState.IDLE

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

    def stop(self) -> None:
        """Resign, answer all who wait, and close store and transport."""
        for drained in self.queue.clear_and_put(_LAST):
            self._settle(self.controller.preempt(drained))
        if self._thread is not None:
            self._thread.join()
        else:
            self._run()
        self._stopped = True
        for drained in self.queue.clear_and_put(_LAST):
            self._settle(self.controller.preempt(drained))
        self.transport.close()
        self.store.close()

    def _run(self) -> None:
        """Handle events up to the one that stops us; what giving up the role sets off is nobody's business here."""
        event = None
        while event is not _LAST:
            event = self.queue.take(timeout_s=None)
            if event is not None:
                self.process(event)

    def _settle(self, effects: list[Effect]) -> None:
        """Perform effects, and hand answers back until the operation is over."""
        while effects:
            answer = self._performer.perform(effects)
            effects = self.controller.step(answer) if answer is not None else []

    def _reply(self, token: int, response: Any) -> None:
        with self._lock:
            future = self._waiting.pop(token, None)
        if future is not None:
            future.set_result(response)

    def _fail_waiting(self, event: Event, error: Exception) -> None:
        """Whoever waits for an event that failed learns why."""
        token = getattr(event, "token", 0)
        with self._lock:
            future = self._waiting.pop(token, None)
        if future is not None:
            future.set_exception(error)
