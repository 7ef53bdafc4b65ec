"""A controller process: the real event loop, executed effect by effect, with process faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, Final, Protocol

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.model.config import ControllerConfig
from kframe.model.effects import Effect
from kframe.model.elections import LeaderSelector
from kframe.model.events import Event
from kframe.model.ids import ElectionKind
from kframe.ports.store_requests import StoreRequest
from kframe.runtime.loop import ControllerLoop
from kframe_simulator.simulation.ensemble import SimEnsemble
from kframe_simulator.simulation.network import ENSEMBLE
from kframe_simulator.simulation.scheduler import ProcessClock
from kframe_simulator.simulation.store import SimStore
from kframe_simulator.simulation.transport import RequestListener, SimTransport

#: Ids of controllers begin here, above those of brokers.
FIRST_ID: Final = 1000
#: The duration of a store call, and of any other effect.
CALL_MS: Final = 1.0
STEP_MS: Final = 0.1
#: The delay until the ensemble reconnects a process that continues.
RECONNECT_MS: Final = 5.0


class ControllerHost(RequestListener, Protocol):
    """The storage of a simulation, and what a controller process reports to it."""

    @property
    def ensemble(self) -> SimEnsemble: ...

    def event_begins(self, process: ControllerProcess, event: Event) -> None: ...
    def event_ended(self, process: ControllerProcess, event: Event) -> None: ...


class ControllerProcess:
    """One controller process, across its restarts."""

    def __init__(
        self,
        simulation: ControllerHost,
        number: int,
        config: ControllerConfig,
        session_timeout_ms: float,
        request_timeout_ms: float,
        selectors: Mapping[ElectionKind, LeaderSelector],
    ) -> None:
        self.controller_id = FIRST_ID + number
        self.incarnation = 0
        self.running = self.paused = False
        self.event: Event | None = None
        """The event in progress."""
        self.stop_after: int | None = None
        """The number of effects before the process crashes."""
        self.pause_after: tuple[int, float] | None = None
        """The number of effects before the process pauses, and the duration of the pause."""
        self.stop_in: tuple[tuple[type[Event], ...], int] | None = None
        """The kinds of events in which the process crashes, and the number of effects before that."""
        self.stop_after_request: type[StoreRequest[Any]] | None = None
        """The process crashes right after this store call."""
        self.effects = 0
        """The effects performed in the current event."""
        self.loop: ControllerLoop
        self.store: SimStore
        self.transport: SimTransport
        self.clock: ProcessClock
        self._simulation, self._config, self._selectors = simulation, config, selectors
        self._session_timeout_ms, self._request_timeout_ms = session_timeout_ms, request_timeout_ms
        self._steps: Iterator[Effect] | None = None
        self._next: Effect | None = None
        self._planned = False
        self._callers: dict[Future[Any], Callable[[Any], None]] = {}

    @property
    def active(self) -> bool:
        """Whether it believes itself controller."""
        return self.running and self.loop.controller.active

    @property
    def idle(self) -> bool:
        """Whether no event is pending."""
        return not self.running or (self._steps is None and len(self.loop.queue) == 0)

    @property
    def busy(self) -> bool:
        """Whether it is within an event."""
        return self._steps is not None

    def start(self) -> None:
        """Start a new process, unless one runs."""
        if self.running:
            return
        self.incarnation += 1
        self.running, self.paused = True, False
        self.stop_after = self.pause_after = self.stop_in = self.stop_after_request = None
        simulation = self._simulation
        self.clock = ProcessClock(simulation.scheduler)
        self.store = SimStore(
            simulation.ensemble,
            simulation.scheduler,
            simulation.network,
            self.clock,
            self.controller_id,
            self._session_timeout_ms,
        )
        self.transport = SimTransport(simulation, self.controller_id, self._request_timeout_ms)
        controller = ControllerCore(self.controller_id, self._config, Selection(self._selectors))
        self.loop = ControllerLoop(controller, self.store, self.transport, self.clock)
        self.loop.open()

    def crash(self) -> None:
        """End as by kill -9, at any point."""
        if not self.running:
            return
        self.running, self._steps, self._next, self.event = False, None, None, None
        self.transport.stop()
        self.clock.stop()
        self.store.vanish()
        callers, self._callers = self._callers, {}
        for respond in callers.values():
            respond(None)

    def pause(self) -> None:
        """Pause the process as SIGSTOP does."""
        if self.running and not self.paused:
            self.paused = True
            self.clock.hold()
            self.transport.pause()
            self.store.break_link()

    def resume(self) -> None:
        """Continue after a pause."""
        if not self.running or not self.paused:
            return
        self.paused = False
        self.clock.resume()
        self.transport.resume()
        self._simulation.scheduler.after(RECONNECT_MS, self.reconnect)

    def reconnect(self) -> None:
        """Reconnect the process to the ensemble, if the network allows it."""
        if self.running and not self.paused and not self._cut_off():
            self.store.restore_link()

    def check_link(self) -> None:
        """Notice that the link to the ensemble was cut or restored."""
        if self.running and not self.paused:
            self.store.break_link() if self._cut_off() else self.store.restore_link()

    def _cut_off(self) -> bool:
        network, own = self._simulation.network, self.controller_id
        return network.is_cut(own, ENSEMBLE) or network.is_cut(ENSEMBLE, own)

    def ask(self, event: Callable[[int], Event], read: Callable[[Any], Any], respond: Callable[[Any], None]) -> None:
        """Send a request to the controller. ``respond`` gets the response converted by ``read``, or None if the process
        ends."""
        future = self.loop.submit(event, read)
        self._callers[future] = respond
        future.add_done_callback(self._on_response)

    def _on_response(self, future: Future[Any]) -> None:
        respond = self._callers.pop(future, None)
        if respond is not None:
            respond(None if future.exception() is not None else future.result())

    def schedule_pending(self) -> None:
        """Schedule the handling of pending events."""
        if self._planned or not self.running or self.paused:
            return
        if self._steps is not None or len(self.loop.queue):
            self._plan(STEP_MS)

    def _plan(self, delay_ms: float) -> None:
        self._planned = True
        self._simulation.scheduler.after(delay_ms, self._step)

    def _step(self) -> None:
        """Perform one effect. Otherwise take the next event."""
        self._planned = False
        if not self.running or self.paused:
            return
        if self._stopped():
            return
        if isinstance(self._next, StoreRequest) and not self.store.linked:
            self._plan(20.0)  # The call waits for the connection.
            return
        if self._steps is None:
            self.event = self.loop.queue.take()
            if self.event is None:
                return
            self.effects = 0
            self._simulation.event_begins(self, self.event)
            self._steps = self.loop.handle(self.event)
        steps = self._steps
        self._next = next(steps, None)
        self.effects += 1
        if self._next is None:
            self._end()
        else:
            self._plan(CALL_MS if isinstance(self._next, StoreRequest) else STEP_MS)

    def _stopped(self) -> bool:
        """Whether a fault crashed or paused the process within the event."""
        if self._steps is None:
            return False
        if self.stop_after is not None and self.effects >= self.stop_after:
            self.crash()
            return True
        if self.stop_in is not None and isinstance(self.event, self.stop_in[0]) and self.effects >= self.stop_in[1]:
            self.crash()
            return True
        if self.pause_after is not None and self.effects >= self.pause_after[0]:
            (_, for_ms), self.pause_after = self.pause_after, None
            self.pause()
            self._simulation.scheduler.after(for_ms, self.resume)
            return True
        return False

    def _end(self) -> None:
        event, self.event, self._steps = self.event, None, None
        assert event is not None
        self._simulation.event_ended(self, event)
        self.schedule_pending()
