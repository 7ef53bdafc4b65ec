"""A cluster whose processes have machines of their own, and what is seen of a fault in it under a producer.

Three ZooKeeper servers, three Kafka brokers, two instances of kframe, and clients.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.replication import EXECUTED, SESSION_MS, ReplicationFixture
from verification.zookeeper.handover import ALL, ClusterFixture
from verification.zookeeper.kafka import Cluster, KafkaClients, KafkaProcess
from verification.zookeeper.machine import Machine
from verification.zookeeper.network import VirtualNetwork
from verification.zookeeper.servers import Ensemble, ServerHandle, ServerOptions
from verification.zookeeper.sessions import SESSION_S

#: Names of machines.
SERVERS: Final = ("zookeeper-1", "zookeeper-2", "zookeeper-3")
BROKERS: Final = ("broker-1", "broker-2", "broker-3")
INSTANCES: Final = {1000: "kframe-1000", 1001: "kframe-1001"}
CLIENT: Final = "client"
#: Names of groups of processes.
GROUPS: Final = ("ZooKeeper", "brokers", "kframe")
FaultedProcess: TypeAlias = ServerHandle | KafkaProcess | InstanceProcess
#: A fault lasts longer than sessions and than a follower may lag.
FAULT_S: Final = 1.5 * SESSION_MS / 1000
_RECORDS: Final = 2_000
_RECORDS_PER_SECOND: Final = 500
_SETTINGS: Final = {
    "min.insync.replicas": "2",
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "replica.lag.time.max.ms": "6000",
    # Servers may start after brokers.
    "zookeeper.connection.timeout.ms": "120000",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a running cluster."""

    name: str
    inject: Callable[[FaultRun], AbstractContextManager[None]]
    """The fault begins when the context is entered, and has ended when it is left."""
    instance_arguments: tuple[str, ...] = ()
    """Further arguments of the instances; ``{folder}`` and ``{number}`` are those of the run and the instance."""
    prepare: Callable[[Path], AbstractContextManager[None]] = lambda _: nullcontext()
    """Entered with the folder of the run before instances start, and left after they have ended."""

    def __str__(self) -> str:
        return re.sub(r"\W+", "-", self.name).lower()


@dataclass(frozen=True, slots=True)
class FaultReport:
    """What was seen of a fault. ``violations`` is empty if all guarantees were kept."""

    name: str
    effect: str
    """What the fault has done, as proof that it has happened."""
    controller_epochs: int
    """Elections during and after the fault."""
    acknowledged: int
    acknowledged_during: int
    """Records that were acknowledged during the fault."""
    recovered_s: float
    """Seconds from the end of the fault until one instance is active, the other stands by, all replicas are in sync,
    and clients see the stored state."""
    violations: list[str]


@dataclass(frozen=True, slots=True)
class FaultCluster:
    """The running cluster of ``fault_cluster``."""

    folder: Path
    network: VirtualNetwork
    ensemble: Ensemble
    fixture: ClusterFixture
    machines: Mapping[str, Machine]

    def observe(self, fault: Fault) -> FaultReport:
        """Inject a fault under a producer. When it has ended, wait until all have recovered, and compare records."""
        machines = {number: self.machines[name] for number, name in INSTANCES.items()}
        folder = self.folder / str(fault)
        with fault.prepare(folder):
            replication = ReplicationFixture(
                self.fixture, str(fault), folder, machines=machines, records_per_second=_RECORDS_PER_SECOND
            )
            with closing(replication):
                return FaultRun(self, replication, folder, fault).report()


class FaultRun:
    """A fault in a cluster: an active instance, a standby, and a producer to a topic."""

    def __init__(self, cluster: FaultCluster, replication: ReplicationFixture, folder: Path, fault: Fault) -> None:
        self.cluster = cluster
        self.replication = replication
        self.folder = folder
        self.effect = ""
        self.violations: list[str] = []
        self.restarts = False
        """Whether processes that end are started again."""
        self._fault = fault
        self.active, self.standby = (self._instance(number) for number in INSTANCES)

    @property
    def instances(self) -> tuple[InstanceProcess, InstanceProcess]:
        """The instance that was active at first, and the other."""
        return self.active, self.standby

    @property
    def groups(self) -> dict[str, Sequence[FaultedProcess]]:
        """The processes of the cluster by GROUPS."""
        brokers = tuple(self.cluster.fixture.cluster.brokers.values())
        return dict(zip(GROUPS, (self.cluster.ensemble.servers, brokers, self.instances), strict=True))

    def start(self, process: FaultedProcess) -> None:
        """Start a process that has ended, without waiting until it serves."""
        if isinstance(process, ServerHandle):
            process.start(wait=False)
        else:
            process.start()

    def bounce_leader(self) -> None:
        """Kill the leader of partition 0, and start it again when it does not lead any more."""
        broker = self.replication.leader()
        with self.cluster.machines[CLIENT].entered():
            self.replication.stop_broker(broker, hard=True, waits=False)
        assert until(lambda: self.replication.leader_id() != broker.id), self.active.log
        self.replication.start_broker(broker)

    @property
    def controller_epoch(self) -> int:
        """The stored controller epoch."""
        return self.cluster.fixture.controller()[1]

    def report(self) -> FaultReport:
        """Inject the fault. Return what was seen."""
        load = self.replication.load
        load.await_more(_RECORDS)
        epoch, before = self.controller_epoch, load.count().acknowledged
        with self._fault.inject(self):
            during = load.count().acknowledged - before
        recovered_s = self._await_recovered()
        load.await_more(_RECORDS)
        violations = [
            *self.violations,
            *load.violations(),
            *map(str, self.replication.decreased_epochs()),
            *map(str, self._shared_epochs()),
        ]
        violations += [f"instance {instance.number} has ended" for instance in self.instances if instance.pid is None]
        epochs = self.controller_epoch - epoch
        return FaultReport(
            self._fault.name, self.effect, epochs, load.count().acknowledged, during, recovered_s, violations
        )

    def unrecovered(self) -> list[str]:
        """What is not as in a healthy cluster."""
        fixture, topic = self.cluster.fixture, self.replication.topic
        try:
            active = {instance.number: is_active(instance) for instance in self.instances}
            holder = fixture.controller()[0]
            if active != {number: number == holder for number in active} or holder not in active:
                return [f"controller {holder}, active {active}"]
            problems = [
                f"{topic}-{partition}: {state}"
                for partition, state in fixture.states_of(topic).items()
                if state["leader"] not in ALL or sorted(state["isr"]) != ALL
            ]
            return problems or list(map(str, fixture.disagreement(topic)))
        except (KazooException, KazooTimeoutError, OSError) as error:
            return [repr(error)]

    def _await_recovered(self) -> float:
        """Seconds until the cluster has recovered. Raises AssertionError after PATIENCE_S."""
        start_s = time.monotonic()
        recovered = until(lambda: not self._restart() and self.unrecovered() == [])
        seconds = time.monotonic() - start_s
        logs = "\n".join(instance.log[-3000:] for instance in self.instances)
        assert recovered, f"not after {PATIENCE_S} s: {self.unrecovered()}\n{logs}"
        return round(seconds, 1)

    def _instance(self, number: int) -> InstanceProcess:
        """Start an instance. The first becomes active, and the other stands by."""
        values = {"{folder}": str(self.folder), "{number}": str(number)}
        arguments = list(self._fault.instance_arguments)
        for name, value in values.items():
            arguments = [argument.replace(name, value) for argument in arguments]
        instance = self.replication.instance(number, "--insist", *arguments)
        instance.await_ready(active=number == min(INSTANCES))
        return instance

    def _restart(self) -> bool:
        """Start ended processes if the fault asks for it. Return whether there were any."""
        ended = [process for group in self.groups.values() for process in group if process.pid is None]
        for process in ended if self.restarts else ():
            self.start(process)
        return bool(ended)

    def _shared_epochs(self) -> list[tuple[str, set[str]]]:
        """Controller epochs under which brokers have executed requests of two controllers."""
        senders: defaultdict[str, set[str]] = defaultdict(set)
        for broker in self.cluster.fixture.cluster.brokers.values():
            for sender, epoch in EXECUTED.findall(broker.log("state-change")):
                senders[epoch].add(sender)
        return [(epoch, ids) for epoch, ids in senders.items() if len(ids) > 1]


def is_active(instance: InstanceProcess) -> bool | None:
    """Whether an instance says that it is active; None while it is not ready."""
    status, text = instance.page("/readyz")
    return bool(json.loads(text)["active"]) if status == 200 else None


@contextmanager
def fault_cluster(
    folder: Path, seed: int = 0, environment: Callable[[str], Mapping[str, str]] = lambda _: {}
) -> Iterator[FaultCluster]:
    """A running cluster of three servers and three brokers. Losses of packets depend on ``seed``.

    ``environment`` returns the variables of a machine's processes.
    """
    network = VirtualNetwork((*SERVERS, *BROKERS, *INSTANCES.values(), CLIENT), seed)
    machines = {name: replace(machine, environment=environment(name)) for name, machine in network.machines.items()}
    ensemble = Ensemble(folder / "zookeeper", ServerOptions(), [machines[name] for name in SERVERS])
    cluster = Cluster(
        folder / "kafka",
        f"{ensemble.address}/kafka",
        ALL,
        _SETTINGS,
        machines={number: machines[name] for number, name in zip(ALL, BROKERS, strict=True)},
    )
    client, clients = KazooClient(cluster.zookeeper, timeout=SESSION_S), None
    try:
        ensemble.start()
        cluster.start()
        clients = KafkaClients(folder / "clients", cluster.address, machine=machines[CLIENT])
        with machines[CLIENT].entered():
            client.start(PATIENCE_S)
        yield FaultCluster(folder, network, ensemble, ClusterFixture(cluster, clients, client, folder), machines)
    finally:
        with suppress(KazooException):
            client.stop()
        client.close()
        if clients is not None:
            clients.close()
        cluster.kill()
        for server in ensemble.servers:
            server.kill()
        network.close()
