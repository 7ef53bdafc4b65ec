"""Controllers in processes of their own, which tests kill or freeze at any time.

A fork server has all modules imported, so a process starts in 10 ms.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Collection, Mapping
from multiprocessing.connection import Connection
from typing import Any, Final

import numpy as np
from kframe_zookeeper.session.settings import ConnectSettings
from kframe_zookeeper.store.store import ZooKeeperStore

from kframe.embedded import Api, EmbeddedBrokers, Request, VirtualClock
from kframe.plugin.cluster import ClusterState
from kframe.plugin.columns import Ragged
from kframe.plugin.server import Controller
from kframe.plugin.transport import AlterPartitionRequested, ControlRequests, RequestedPartitions
from kframe.testing.waiting import PATIENCE_S
from verification.support.controllers import ControllerLoop, controller_loop

#: The last version of AlterPartition with topic names instead of ids.
_BY_NAME: Final = 1
#: An event may cause a second one, and that a third: broker answers, proposals, completed reassignments.
_ROUNDS: Final = 4
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])

#: A module-level function that runs in the process of a controller.
Task = Callable[[Controller], Any]


class RespondingBrokers(EmbeddedBrokers):
    """Embedded brokers that answer at once, and whose replicas join the ISR, as a reassignment needs.

    Each leader that learns of its partition proposes an ISR: all live replicas except new ones on ``slow`` brokers.
    """

    def __init__(self, slow: Collection[int] = ()) -> None:
        super().__init__(VirtualClock())
        self._slow = frozenset(slow)
        self.received = 0
        """The number of requests that brokers have received."""

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Answer a batch, and send the proposals of the leaders."""
        super().send(cluster, requests)
        live = cluster.brokers.ids_of(np.flatnonzero(cluster.brokers.live))
        for request in self.take():
            self.received += 1
            if request["api"] != Api.STOP_REPLICA and request["broker"] in live:
                self._propose(cluster, request, [broker for broker in live if broker not in self._slow])

    def _propose(self, cluster: ClusterState, request: Request, ready: Collection[int]) -> None:
        led = {name: state for name, state in request["partitions"].items() if state["leader"] == request["broker"]}
        proposed = {name: _in_sync(state, ready) for name, state in led.items()}
        names = [name for name, isr in proposed.items() if isr != tuple(led[name]["isr"])]
        if not names or self._notify is None:
            return
        split = [name.rpartition("-") for name in names]
        index = cluster.brokers.find(request["broker"])
        self._notify(
            AlterPartitionRequested(
                request["broker"], int(cluster.brokers.broker_epoch[index]), _BY_NAME,
                RequestedPartitions.of((topic, int(number)) for topic, _, number in split),
                np.array([led[name]["leader_epoch"] for name in names], np.int32),
                np.array([led[name]["partition_epoch"] for name in names], np.int32),
                np.zeros(len(names), np.uint8), Ragged.of([proposed[name] for name in names]),
            )
        )  # fmt: skip


def _in_sync(state: Mapping[str, Any], ready: Collection[int]) -> tuple[int, ...]:
    """The assigned members of the ISR, then the replicas that are ready to join."""
    isr = tuple(replica for replica in state["isr"] if replica in state["replicas"])
    return isr + tuple(replica for replica in state["replicas"] if replica in ready and replica not in isr)


def build(controller_id: int, store: ZooKeeperStore, slow: tuple[int, ...] = ()) -> tuple[Controller, ControllerLoop]:
    """A controller that is not open yet, and its loop. All brokers but the ``slow`` ones join ISRs at once.

    Automatic leader rebalancing is off, because it would run at an arbitrary time of a test.
    """
    config = {"auto.leader.rebalance.enable": "false"}
    loop = controller_loop(controller_id, store, RespondingBrokers(slow), config=config)
    return Controller(loop), loop


def settle(controller: Controller) -> bool:
    """Wait until a controller has handled its events and their follow-ups. Return whether it is active then."""
    for _ in range(_ROUNDS):
        controller.list_reassignments().result(PATIENCE_S)
    return controller.status().active


def requests_received(controller: Controller) -> int:
    """The number of requests that its brokers have received."""
    transport = controller.transport
    assert isinstance(transport, RespondingBrokers)
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

    def start(self) -> None:
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
        """Send SIGKILL, and wait for the end of the process. May be called again."""
        self._process.kill()
        self._process.join()

    def pause(self) -> None:
        """Send SIGSTOP."""
        os.kill(self._pid(), signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT."""
        os.kill(self._pid(), signal.SIGCONT)

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
