"""End the active instance of kframe repeatedly while standbys and real brokers contend for the role."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe_zookeeper.znodes import paths

from kframe.testing.waiting import until
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.replication import REPLICAS
from verification.zookeeper.commands import READY
from verification.zookeeper.handover import ClusterFixture
from verification.zookeeper.kafka import Cluster, KafkaClients
from verification.zookeeper.servers import ServerHandle, ServerOptions, running
from verification.zookeeper.sessions import session

#: Ids of the instances: an active instance, two standbys, and a restarting instance.
INSTANCES: Final = (1000, 1001, 1002, 1003)
STANDBYS_MIN: Final = 2
#: Session timeout of the instances, about the duration of a failover.
SESSION_MS: Final = 3_000
#: Session timeout of brokers and of the observing client, long enough for a busy machine.
_OBSERVER_SESSION_S: Final = 60.0
_TOPIC: Final = "failovers"
#: A broker logs this when it is elected (Kafka 3.9 ``KafkaController.elect``).
_BROKER_ELECTED: Final = re.compile(r"successfully elected as the controller\. Epoch incremented to (\d+)")
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Failover:
    """A failover: how the active instance ended, its successor, and the duration."""

    cause: str
    previous: int
    winner: int
    """Id of the instance that is active afterwards."""
    controller_epochs: int
    """The increase of the controller epoch. 1 if no other contender was elected in between."""
    elected_s: float
    """Seconds from the end of the instance until the winner owned ``/controller``."""
    active_s: float
    """Seconds from the end of the instance until the winner had completed the failover."""


class FailoverCluster:
    """Three brokers with one topic, and four instances of kframe."""

    def __init__(self, zookeeper: ServerHandle, fixture: ClusterFixture) -> None:
        self.cluster = fixture.cluster
        self.controller = fixture.controller
        """The id in ``/controller`` (-1 for none) and the controller epoch."""
        self._zookeeper = zookeeper
        self._fixture = fixture
        self._instances: dict[int, InstanceProcess] = {}
        self._starting: set[int] = set()
        self._elections: list[tuple[float, int]] = []
        fixture.client.DataWatch(paths.CONTROLLER_EPOCH, self._on_epoch)

    def start(self) -> None:
        """Start all instances. Return when one is active and the others are standbys."""
        for number in INSTANCES:
            self._start(number)
        self._await_standbys(len(INSTANCES) - 1)

    def close(self) -> None:
        """Kill all instances."""
        for instance in self._instances.values():
            instance.kill()

    def kill(self) -> Failover:
        """Kill the active instance (SIGKILL), and restart it when another one is active."""
        self._await_standbys(STANDBYS_MIN)
        previous = self.controller()[0]
        failover = self._fail("killed", self._instances[previous].kill)
        self._start(previous)
        return failover

    def freeze(self) -> Failover:
        """Freeze the active instance (SIGSTOP) until another one is active. It becomes a standby."""
        self._await_standbys(STANDBYS_MIN)
        previous = self.controller()[0]
        failover = self._fail("frozen", self._instances[previous].pause)
        self._instances[previous].resume()
        self._starting.add(previous)
        return failover

    def outage(self) -> None:
        """Kill ZooKeeper, and restart it on its data when the fence of every instance is closed.

        Without instances the outage is as long. Returns when the observing client is connected again.
        """
        down_s = SESSION_MS / 1000
        self._zookeeper.kill()
        start_s = time.monotonic()
        until(lambda: time.monotonic() - start_s > down_s)
        self._zookeeper.start()
        assert until(lambda: self._fixture.client.connected)

    def stop_instances(self) -> None:
        """Stop all instances with SIGTERM. Return when a broker is controller."""
        for instance in self._instances.values():
            instance.stop()
        assert until(lambda: self.controller()[0] in self.cluster.brokers)

    def lose(self, broker_id: int) -> None:
        """Kill a broker and end its session."""
        self.cluster.lose(broker_id, self._fixture.client)

    def leaders(self) -> list[int]:
        """Stored leaders of the topic's partitions. -1 for none."""
        return [state["leader"] for state in self._fixture.states_of(_TOPIC).values()]

    def epochs_of_elected_brokers(self) -> list[int]:
        """Controller epochs of elected brokers."""
        logs = (broker.log("controller") for broker in self.cluster.brokers.values())
        return sorted(int(epoch) for log in logs for epoch in _BROKER_ELECTED.findall(log))

    def log(self) -> str:
        """The logs of the running instances."""
        return "\n".join(f"{number}:\n{instance.log[-4000:]}" for number, instance in self._instances.items())

    def _fail(self, cause: str, end: Callable[[], None]) -> Failover:
        previous, before = self.controller()
        ended_s = time.monotonic()
        end()
        others = set(INSTANCES) - {previous}
        assert until(lambda: self.controller()[0] in others), self.log()
        winner, after = self.controller()
        instance = self._instances[winner]
        assert until(lambda: f"{READY} {after}" in instance.log), instance.log
        active_s = time.monotonic()
        assert until(lambda: self._elections[-1][1] >= after)
        elected_s = next(at_s for at_s, epoch in self._elections if epoch == after)
        return Failover(
            cause, previous, winner, after - before, round(elected_s - ended_s, 3), round(active_s - ended_s, 3)
        )

    def _start(self, number: int) -> None:
        folder = self._fixture.folder / f"{number}-{next(_numbers)}"
        settings = {"kframe.never.replicas": ",".join(map(str, INSTANCES))}
        address = self.cluster.zookeeper
        self._instances[number] = InstanceProcess(address, folder, number, settings=settings, session_ms=SESSION_MS)
        self._starting.add(number)

    def _await_standbys(self, count: int) -> None:
        """Return when one instance is active and at least ``count`` others are its standbys."""

        def ready() -> bool:
            active = self.controller()[0]
            for number in sorted(self._starting):
                if self._is_ready(number):
                    self._starting.discard(number)
            return active in INSTANCES and len(set(INSTANCES) - self._starting - {active}) >= count

        assert until(ready), self.log()

    def _is_ready(self, number: int) -> bool:
        """Whether a started instance is ready. It may be the active one at first."""
        status, text = self._instances[number].page("/readyz")
        return status == 200 and json.loads(text)["active_controller"] == self.controller()[0]

    def _on_epoch(self, data: bytes | None, _stat: object) -> None:
        if data is not None:
            self._elections.append((time.monotonic(), int(data)))


@contextmanager
def failover_cluster(folder: Path) -> Iterator[FailoverCluster]:
    """A ZooKeeper server, three brokers and four instances of kframe, which end with the block."""
    with ExitStack() as stack:
        zookeeper = stack.enter_context(running(ServerHandle(folder / "zookeeper", ServerOptions())))
        cluster = Cluster(folder / "kafka", zookeeper.address)
        stack.callback(cluster.kill)
        cluster.start()
        clients = KafkaClients(folder / "clients", cluster.address)
        clients.request("create", topic=_TOPIC, replicas=REPLICAS)
        clients.close()
        client = stack.enter_context(session(zookeeper.address, timeout=_OBSERVER_SESSION_S))
        fixture = ClusterFixture(cluster, clients, client, folder)
        failover = stack.enter_context(closing(FailoverCluster(zookeeper, fixture)))
        failover.start()
        yield failover
