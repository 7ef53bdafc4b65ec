"""Controllers in processes of their own that a test may kill or freeze at any moment.

They are forked from a server that has everything imported, so that one starts in a hundredth of a second.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

from kframe.plugin.server import Controller
from kframe.testing.controllers import ControllerLoop, controller_loop
from kframe_zookeeper.settings import ConnectSettings
from kframe_zookeeper.store import ZooKeeperStore
from kframe_zookeeper.testing.answering_brokers import AnsweringBrokers

_PATIENCE_S: Final = 120.0
#: An event may set off another, and that a third: broker answers, proposals, what they complete.
_ROUNDS: Final = 4
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])

#: Something to be done by a controller in its own process; a function of a module.
Task = Callable[[Controller], Any]


def build(controller_id: int, store: ZooKeeperStore, slow: tuple[int, ...] = ()) -> tuple[Controller, ControllerLoop]:
    """A controller, not opened yet, whose brokers are keen but for the ``slow`` ones; and its loop.

    Automatic leader rebalancing is off: it would run at an arbitrary time of a test.
    """
    config = {"auto.leader.rebalance.enable": "false"}
    loop = controller_loop(controller_id, store, AnsweringBrokers(slow), config=config)
    return Controller(loop), loop


def settle(controller: Controller) -> bool:
    """Wait until a controller has handled its events and their follow-ups. Return whether it is active then."""
    for _ in range(_ROUNDS):
        controller.list_reassignments().result(_PATIENCE_S)
    return controller.status().active


def requests_received(controller: Controller) -> int:
    """How many requests its brokers have received."""
    transport = controller.transport
    assert isinstance(transport, AnsweringBrokers)
    return transport.received


class Victim:
    """A controller in a process of its own."""

    def __init__(
        self, controller_id: int, settings: ConnectSettings, *, slow: tuple[int, ...] = (), takeover: bool = False
    ) -> None:
        """Start it; return when it has a session."""
        self._connection, theirs = _context.Pipe()
        self._process = _context.Process(
            target=_run, args=(theirs, controller_id, settings, slow, takeover), daemon=True
        )  # fmt: skip
        self._process.start()
        theirs.close()
        self._receive()

    def stand(self) -> None:
        """Let it stand for election."""
        self._connection.send(None)

    def do(self, task: Task) -> None:
        """Have ``task`` done there, sometime."""
        self._connection.send((task, False))

    def ask(self, question: Task) -> Any:
        """What ``question`` finds there."""
        self._connection.send((question, True))
        return self._receive()

    def settle(self) -> bool:
        """Wait until its queued events are handled. Return whether it is the active controller then."""
        return bool(self.ask(settle))

    def kill(self) -> None:
        """End the process as -9 does; it is gone when this returns."""
        self._process.kill()
        self._process.join()

    def freeze(self) -> None:
        """SIGSTOP."""
        os.kill(self._pid(), signal.SIGSTOP)

    def wake(self) -> None:
        """SIGCONT."""
        os.kill(self._pid(), signal.SIGCONT)

    def close(self) -> None:
        """End the process if it runs, and forget it."""
        self.kill()
        self._connection.close()
        self._process.close()

    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def _receive(self) -> Any:
        if not self._connection.poll(_PATIENCE_S):
            raise TimeoutError("the controller's process does not answer")
        return self._connection.recv()


def _run(
    connection: Connection, controller_id: int, settings: ConnectSettings, slow: tuple[int, ...], takeover: bool
) -> None:
    store = ZooKeeperStore(settings)
    controller, loop = build(controller_id, store, slow)
    controller.open(takeover=takeover)
    connection.send(None)
    connection.recv()
    loop.start()
    while True:
        task, asked = connection.recv()
        result = task(controller)
        if asked:
            connection.send(result)
