"""The steps of one controller process: take an event, or perform the next store call.

A step ends before the next store call, so that other steps may come between two calls. The code between two calls, with
its sends, affects no other process and runs at once, as in ``kframe.runtime.perform.Performer``. With ``fine`` each
batch of requests is a step of its own, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kframe_simulator.search import invariants, storage
from kframe_simulator.search.subject import Subject
from kframe_simulator.search.values import (
    ARMED,
    BROKERS_CHANGED,
    CHANGED,
    ELECT,
    EXPIRED,
    FOLLOWS,
    ControllerSession,
    QueuedProposal,
    Stored,
)

_EVENTS: Final = {ELECT: "Reelect", CHANGED: "ControllerChanged", BROKERS_CHANGED: "BrokersChanged"}


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step."""

    stored: Stored
    process: ControllerSession
    acts: tuple[tuple[Any, ...], ...]
    """Effects of the core, in order. "send" for each sent batch."""
    notified: tuple[int, ...]
    """The notifications of the other controllers, in order."""
    broken: tuple[str, ...]


@dataclass(slots=True)
class _Progress:
    """A step in progress."""

    stored: Stored
    process: ControllerSession
    acts: list[tuple[Any, ...]] = field(default_factory=list)
    notified: list[int] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    not_contacted: set[int] = field(default_factory=set)
    """Connected brokers that have received no request yet."""


class ControllerRules:
    """The rules of all processes. ``subjects`` by controller."""

    def __init__(
        self, subjects: dict[int, Subject], fenced: bool, fine: bool, unclean: bool, target: tuple[int, ...]
    ) -> None:
        self.subjects = subjects
        self._fenced, self._fine, self._unclean, self._target = fenced, fine, unclean, target

    def waiting(self, process: ControllerSession) -> list[str]:
        """The notifications that the process can take now."""
        if process.flags & EXPIRED:
            return ["SessionExpired"]
        return [name for flag, name in _EVENTS.items() if process.flags & flag]

    def resting(self, controller: int, process: ControllerSession) -> bool:
        """Whether the core is between two events."""
        return self.subjects[controller].nodes[process.node].ask is None

    def take(self, controller: int, stored: Stored, process: ControllerSession, name: str) -> StepResult:
        """Take a notification."""
        if name == "SessionExpired":
            process = process._replace(flags=ARMED | ELECT, claim=0)
        else:
            (flag,) = (flag for flag, item in _EVENTS.items() if item == name)
            process = process._replace(flags=process.flags & ~flag)
        return self._take(controller, _Progress(stored, process), (name,))

    def serve(
        self, controller: int, stored: Stored, process: ControllerSession, broker: int, request: QueuedProposal | int
    ) -> StepResult:
        """Take a broker's request. It is an AlterPartition, or a ControlledShutdown, given by its broker epoch."""
        if isinstance(request, QueuedProposal):
            return self._take(controller, _Progress(stored, process._replace(task=broker)), ("alter", broker, request))
        return self._take(controller, _Progress(stored, process._replace(task=10 + broker)), ("leave", broker, request))

    def move(self, controller: int, stored: Stored, process: ControllerSession, *replicas: int) -> StepResult:
        """Take an operator's reassignment request for the partition. Without replicas its cancellation."""
        return self._take(controller, _Progress(stored, process._replace(task=20)), ("move", *replicas))

    def call(self, controller: int, stored: Stored, process: ControllerSession) -> StepResult:
        """Perform the call that the core waits for."""
        progress = _Progress(stored, process)
        self._call(controller, progress)
        return self._end(controller, progress)

    def _take(self, controller: int, progress: _Progress, event: tuple[Any, ...]) -> StepResult:
        self._run(controller, progress, event)
        if not self.resting(controller, progress.process):
            self._call(controller, progress)
        return self._end(controller, progress)

    def _end(self, controller: int, progress: _Progress) -> StepResult:
        node = self.subjects[controller].nodes[progress.process.node]
        if node.ask is None:
            progress.process = progress.process._replace(task=0)
            progress.broken += invariants.remembered(node, progress.process, progress.stored)
        if progress.not_contacted and not self._fine:
            progress.broken.append(
                f"I14: brokers {sorted(progress.not_contacted)} are connected and received no request"
            )
        return StepResult(
            progress.stored, progress.process, tuple(progress.acts), tuple(progress.notified), tuple(progress.broken)
        )

    def _call(self, controller: int, progress: _Progress) -> None:
        node, before = self.subjects[controller].nodes[progress.process.node], progress.stored
        assert node.ask is not None
        if node.ask[0] == "send":
            self._run(controller, progress, self._send(progress, node.ask[1]))
            return
        called = storage.call(controller, before, progress.process, node.ask, self._fenced)
        if called.wrote:
            progress.broken += invariants.written(before, called.stored, progress.process, node, self._unclean)
        progress.broken += invariants.assigned(before, called.stored, progress.process, self._target)
        progress.stored, progress.process = called.stored, called.process
        progress.notified += [called.notified] if called.notified else []
        self._run(controller, progress, called.result)

    def _run(self, controller: int, progress: _Progress, message: tuple[Any, ...]) -> None:
        """Run the core to its next call."""
        subject = self.subjects[controller]
        while True:
            before = subject.nodes[progress.process.node]
            number, done = subject.step(progress.process.node, message)
            node = subject.nodes[number]
            progress.process = progress.process._replace(node=number)
            progress.acts += done
            progress.broken += invariants.transitions_are_valid(before, node)
            progress.broken += invariants.silent(message, node, progress.process)
            progress.broken += invariants.acted(done, progress.process, message[0] == "failed", node.ask is None)
            if any(kind == "reply" for kind, *_ in done):
                progress.process = progress.process._replace(task=0)  # The remaining work is the controller's own.
            for kind, *content in done:
                progress.not_contacted |= set(content[0]) if kind == "open" else set()
            self._resigned(controller, progress, done)
            if node.ask is None or node.ask[0] != "send":
                return
            progress.broken += invariants.batch_is_valid(node.ask[1], node, progress.process, progress.not_contacted)
            if self._fine:
                return
            message = self._send(progress, node.ask[1])

    def _send(self, progress: _Progress, messages: tuple[Any, ...]) -> tuple[Any, ...]:
        """Send a batch while the role is certain (``Store.may_act``)."""
        if not progress.process.claim or progress.process.flags & EXPIRED:
            return ("failed", "session")
        progress.acts.append(("send", messages))
        return ("done", "send")

    def _resigned(self, controller: int, progress: _Progress, done: tuple[tuple[Any, ...], ...]) -> None:
        for kind, *content in done:
            if kind != "resigned":
                continue
            if content[1]:
                progress.stored, released = storage.release(controller, progress.stored, progress.process)
                progress.process = progress.process._replace(flags=progress.process.flags & ~FOLLOWS)
                if released:
                    progress.notified.append(ELECT)
                    progress.process = storage.notify(progress.process, ELECT)
            progress.process = progress.process._replace(claim=0)
            progress.not_contacted.clear()
