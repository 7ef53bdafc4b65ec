"""Controllers in processes of their own, which tests kill or freeze at any time.

A fork server has all modules imported, so a process starts in 10 ms.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final

from kframe_zookeeper.session.settings import ConnectSettings
from kframe_zookeeper.store.store import ZooKeeperStore

from kframe.embedded import VirtualClock
from kframe.plugin.cluster import ClusterState
from kframe.plugin.controller import Controller
from kframe.plugin.transport import ControlRequests
from kframe.testing.waiting import PATIENCE_S
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.outgoing import AlterPartition, AlterPartitionResponseData, Peer
from kframe_simulator.replication.conversion import alter_partition_event, alter_partition_reply
from kframe_simulator.replication.transport import ReplicatingBrokers
from verification.support.controllers import ControllerLoop, controller_loop

#: An event may cause a second one, and that a third: broker answers, proposals, completed reassignments.
_ROUNDS: Final = 4
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])

#: A module-level function that runs in the process of a controller.
Task = Callable[[Controller], Any]


class ModelledBrokers(ReplicatingBrokers):
    """The simulator's brokers, which respond and replicate at once. ``slow`` brokers respond, but fetch nothing.

    So replicas on slow brokers do not join ISRs. The models of a process begin with empty logs.
    """

    def __init__(self, slow: Collection[int] = ()) -> None:
        super().__init__(VirtualClock(), BrokerConfig(replica_lag_time_max_ms=math.inf))
        self._slow = frozenset(slow)
        self.loop: ControllerLoop | None = None
        """The controller that receives the leaders' proposals."""
        self.received = 0
        """The number of requests that brokers have received."""

    def awake(self) -> list[Broker]:
        """The running models but the slow ones."""
        return [model for model in super().awake() if model.broker_id not in self._slow]

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Respond to a batch, and deliver the messages that it causes."""
        registered, registrations = cluster.brokers.registered, cluster.brokers.registrations
        self.follow(entry for index, entry in enumerate(registrations) if entry is not None and registered[index])
        super().send(cluster, requests)
        self.received += len(self.take())
        self._deliver_messages()

    def _deliver_messages(self) -> None:
        """Deliver the messages of the models until there are none. A second passes, so that followers fetch again."""
        self._clock.advance(1.0)
        while messages := [(model, out) for model in self.awake() for out in model.tick(self._clock.now_ms())]:
            for model, out in messages:
                if isinstance(out.message, AlterPartition):
                    self._propose(model, out.number, out.message)
                elif out.peer is Peer.BROKER:
                    response = self.models[out.peer_id].handle(out.message, self._clock.now_ms())  # type: ignore[arg-type]
                    model.on_response(out.number, response, self._clock.now_ms())  # type: ignore[arg-type]

    def _propose(self, leader: Broker, number: int, message: AlterPartition) -> None:
        """Submit proposals. A request that fails gets no response: the next LeaderAndIsr names the state."""
        loop = self.loop
        assert loop is not None

        def respond(future: Future[AlterPartitionResponseData]) -> None:
            if future.exception() is None:
                leader.on_response(number, future.result(), self._clock.now_ms())
                self._deliver_messages()

        future = loop.submit(
            partial(alter_partition_event, message),
            lambda response: alter_partition_reply(loop.controller.cluster, message, response),
        )
        future.add_done_callback(respond)


def build(controller_id: int, store: ZooKeeperStore, slow: tuple[int, ...] = ()) -> tuple[Controller, ControllerLoop]:
    """A controller that is not open yet, and its loop. All brokers but the ``slow`` ones join ISRs at once.

    Automatic leader rebalancing is off, because it would run at an arbitrary time of a test.
    """
    config = {"auto.leader.rebalance.enable": "false"}
    brokers = ModelledBrokers(slow)
    loop = brokers.loop = controller_loop(controller_id, store, brokers, config=config)
    return Controller(loop), loop


def settle(controller: Controller) -> bool:
    """Wait until a controller has handled its events and their follow-ups. Return whether it is active then."""
    for _ in range(_ROUNDS):
        controller.list_reassignments().result(PATIENCE_S)
    return controller.status().active


def requests_received(controller: Controller) -> int:
    """The number of requests that its brokers have received."""
    transport = controller.transport
    assert isinstance(transport, ModelledBrokers)
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
        )
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
