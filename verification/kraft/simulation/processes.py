"""Processes that run, freeze and end, and the requests between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kframe_simulator.simulation.network import Network
from kframe_simulator.simulation.scheduler import Callback, Scheduler

#: Sends the response of a request.
Respond: TypeAlias = Callable[[Any], None]


class Process:
    """A process with a node id. What happens to a frozen one waits; nothing happens to one that has ended."""

    def __init__(self, node_id: int, scheduler: Scheduler) -> None:
        self.node_id = node_id
        self.scheduler = scheduler
        self.is_running = True
        self._waiting: list[Callback] | None = None

    @property
    def is_frozen(self) -> bool:
        """Whether it is frozen."""
        return self._waiting is not None

    def handle(self, request: Any, source_id: int, respond: Respond) -> None:
        """Take a request. ``respond`` may be called later, or never."""
        raise NotImplementedError

    def after(self, delay_ms: float, callback: Callback) -> None:
        """Call ``callback`` in this process after a delay."""
        self.scheduler.after(delay_ms, lambda: self.run(callback))

    def run(self, callback: Callback) -> None:
        """Call ``callback``, or let it wait while the process is frozen."""
        if not self.is_running:
            return
        if self._waiting is not None:
            self._waiting.append(callback)
        else:
            callback()

    def freeze(self) -> None:
        """Stop until ``resume`` (SIGSTOP)."""
        if self._waiting is None:
            self._waiting = []

    def resume(self) -> None:
        """Go on with what has waited."""
        waiting, self._waiting = self._waiting or [], None
        for callback in waiting:
            self.run(callback)

    def end(self) -> None:
        """The process is gone, with all that it had in memory."""
        self.is_running, self._waiting = False, None


class Requests:
    """Requests over a network. Each gets its response, or None after a time."""

    def __init__(self, scheduler: Scheduler, network: Network) -> None:
        self._scheduler = scheduler
        self._network = network
        self._processes: dict[int, Process] = {}

    def serve(self, process: Process) -> None:
        """Send the requests for a node id to this process from now on."""
        self._processes[process.node_id] = process

    def ask(
        self, source: Process, target_id: int, request: Any, on_response: Respond, timeout_ms: float = 2_000.0
    ) -> None:
        """Send a request. ``on_response`` is called once in the process of the source, unless that has ended."""
        is_answered = False

        def finish(response: Any) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                source.run(lambda: on_response(response))

        def respond(response: Any) -> None:
            self._network.deliver(target_id, source.node_id, lambda: finish(response))

        def arrive() -> None:
            target = self._processes.get(target_id)
            if target is None or not target.is_running:
                respond(None)
            else:
                target.run(lambda: target.handle(request, source.node_id, respond))

        self._network.deliver(source.node_id, target_id, arrive)
        self._scheduler.after(timeout_ms, lambda: finish(None))
