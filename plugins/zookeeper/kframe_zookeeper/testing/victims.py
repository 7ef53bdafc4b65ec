"""Controllers in processes of their own, which tests kill or freeze at any time.

A fork server has all modules imported, so a process starts in 10 ms.
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
from kframe_zookeeper.testing.process import PATIENCE_S

#: An event may cause a second one, and that a third: broker answers, proposals, completed reassignments.
_ROUNDS: Final = 4
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])

#: A module-level function that runs in the process of a controller.
Task = Callable[[Controller], Any]


def build(controller_id: int, store: ZooKeeperStore, slow: tuple[int, ...] = ()) -> tuple[Controller, ControllerLoop]:
    """A controller that is not open yet, and its loop. All brokers but the ``slow`` ones join ISRs at once.

    Automatic leader rebalancing is off, because it would run at an arbitrary time of a test.
    """
    config = {"auto.leader.rebalance.enable": "false"}
    loop = controller_loop(controller_id, store, AnsweringBrokers(slow), config=config)
    return Controller(loop), loop


def settle(controller: Controller) -> bool:
    """Wait until a controller has handled its events and their follow-ups. Return whether it is active then."""
    for _ in range(_ROUNDS):
        controller.list_reassignments().result(PATIENCE_S)
    return controller.status().active


def requests_received(controller: Controller) -> int:
    """The number of requests that its brokers have received."""
    transport = controller.transport
    assert isinstance(transport, AnsweringBrokers)
    return transport.received


class Victim:
    """A controller in a process of its own."""

    def __init__(
        self, controller_id: int, settings: ConnectSettings, *, slow: tuple[int, ...] = (), takeover: bool = False
    ) -> None:
        """Start the process, and return when it has a session."""
        self._connection, theirs = _context.Pipe()
        self._process = _context.Process(
            target=_run, args=(theirs, controller_id, settings, slow, takeover), daemon=True
        )  # fmt: skip
        self._process.start()
        theirs.close()
        self._receive()

    def contend(self) -> None:
        """Let it contend for the role."""
        self._connection.send(None)

    def do(self, task: Task) -> None:
        """Run ``task`` in the process, without waiting for it."""
        self._connection.send((task, False))

    def ask(self, task: Task) -> Any:
        """Run ``task`` in the process, and return its result."""
        self._connection.send((task, True))
        return self._receive()

    def settle(self) -> bool:
        """Wait until its queued events are handled. Return whether it is the active controller then."""
        return bool(self.ask(settle))

    def kill(self) -> None:
        """Send SIGKILL. Wait for the end of the process."""
        self._process.kill()
        self._process.join()

    def freeze(self) -> None:
        """Send SIGSTOP."""
        os.kill(self._pid(), signal.SIGSTOP)

    def wake(self) -> None:
        """Send SIGCONT."""
        os.kill(self._pid(), signal.SIGCONT)

    def close(self) -> None:
        """End the process if it runs, and free its resources."""
        self.kill()
        self._connection.close()
        self._process.close()

    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def _receive(self) -> Any:
        if not self._connection.poll(PATIENCE_S):
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
        task, reply_expected = connection.recv()
        result = task(controller)
        if reply_expected:
            connection.send(result)
