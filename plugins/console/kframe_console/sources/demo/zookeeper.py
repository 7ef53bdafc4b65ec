"""An embedded ZooKeeper-mode cluster: an active and a stand-by controller, a store in memory, and brokers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import NO_BROKER_EPOCH, ClusterState, ElectionType, Endpoint, Registration
from kframe.plugin.controller import Controller, ControllerBuilder, IsrProposal
from kframe.plugin.memory import Api, CountingTransport, EmbeddedBrokers, MemoryEnsemble, VirtualClock
from kframe.plugin.server import NewTopic
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.demo.cluster import DIRECTORIES, DemoCluster, refusal_of

_CONTROLLER_IDS: Final = (1000, 1001)
_TOPIC_CONFIG: Final = {"min.insync.replicas": "2"}
_CONFIG: Final = {**_TOPIC_CONFIG, "auto.leader.rebalance.enable": "false"}
_STORAGE_APIS: Final = (Api.LEADER_AND_ISR, Api.STOP_REPLICA)


class ZookeeperDemo(DemoCluster):
    """See DemoCluster. All events are handled in the thread that calls it."""

    mode = "zookeeper"

    def __init__(self, brokers: int, directories: int = DIRECTORIES) -> None:
        super().__init__(brokers)
        self._directory_count: Final = directories
        #: The replicas in failed directories, by broker, a list for each directory.
        self._failed: dict[int, list[list[str]]] = {broker_id: [] for broker_id in self.broker_ids}
        self._running: set[int] = set()
        self._ensemble = MemoryEnsemble.from_cluster(ClusterState())
        #: Brokers of a large cluster, which have a single directory, only count requests: responding takes long.
        has_responses = directories > 1
        self._transports = [EmbeddedBrokers(VirtualClock()) for _ in _CONTROLLER_IDS if has_responses]
        transports: Sequence[EmbeddedBrokers | CountingTransport] = self._transports or [
            CountingTransport() for _ in _CONTROLLER_IDS
        ]
        self.controllers: Sequence[Controller] = [
            ControllerBuilder(controller_id, self._ensemble.connect(), transport, _CONFIG).build()
            for controller_id, transport in zip(_CONTROLLER_IDS, transports, strict=True)
        ]

    @property
    def version(self) -> int:
        """See DemoCluster."""
        return self._ensemble.records.zxid

    def start(self) -> None:
        """See DemoCluster."""
        self._register(self.broker_ids)
        for controller in self.controllers:
            controller.open()
            self._run()

    def snapshot(self) -> Snapshot:
        """See DemoCluster."""
        active, status = self._active, self._active.status()

        def read(cluster: ClusterState | None) -> Snapshot:
            return Snapshot.from_cluster(
                ClusterState() if cluster is None else cluster,
                cluster_id="kframe-demo",
                controller_id=status.controller_id,
                controller_epoch=status.controller_epoch,
            )

        inspected = active.inspect(read)
        self._run()
        return inspected.result(0)

    def create_topic(self, name: str, partitions: int) -> str:
        """See DemoCluster."""
        topic = NewTopic(name, partitions, self.replication_factor, config=_TOPIC_CONFIG)
        created = self._active.create_topics([topic])
        self._run()
        return refusal_of(created.result(0), name)

    def start_broker(self, broker_id: int) -> None:
        """See DemoCluster."""
        if broker_id not in self._running:
            for replicas in self._failed[broker_id]:
                for transport in self._transports:
                    for api in _STORAGE_APIS:
                        transport.respond_with(broker_id, ErrorCode.NONE.name, api, replicas)
            self._failed[broker_id].clear()
            self._register([broker_id])
            self._run()

    def kill_broker(self, broker_id: int) -> None:
        """See DemoCluster."""
        if broker_id in self._running:
            self._running.discard(broker_id)
            self._ensemble.unregister_brokers([broker_id])
            self._run()

    def shut_down_broker(self, broker_id: int) -> None:
        """See DemoCluster."""
        if broker_id in self._running:
            self._active.controlled_shutdown(broker_id)
            self._run()
            self.kill_broker(broker_id)

    def fail_directory(self, broker_id: int) -> None:
        """See DemoCluster."""
        failed = self._failed[broker_id]
        if broker_id not in self._running:
            return
        if len(failed) + 1 >= self._directory_count:
            self.kill_broker(broker_id)
            return
        cluster = self._ensemble.stored()
        p, broker = cluster.partitions, cluster.brokers.find(broker_id)
        rows = np.flatnonzero(p.topic >= 0)
        rows = rows[p.partition[rows] % self._directory_count == len(failed)]
        replicas = p.lists("replica", rows)
        lost = [cluster.name(row) for row in rows[replicas.any(replicas.values == broker)].tolist()]
        failed.append(lost)
        for transport in self._transports:
            transport.fail_log_dir(broker_id, lost)
        self._ensemble.notify_log_dir_event(broker_id)
        self._run()

    def catch_up(self) -> None:
        """See DemoCluster."""
        offline = {
            broker_id: {name for lost in self._failed[broker_id] for name in lost} for broker_id in self._running
        }
        cluster, proposals = self._ensemble.stored(), defaultdict(list)
        p = cluster.partitions
        short = np.flatnonzero((p.topic >= 0) & (p.leader >= 0) & (p.isr_count < p.replica_count))
        for row in short.tolist():
            view = cluster.view(row)
            name = cluster.name(row)
            isr = tuple(
                broker_id
                for broker_id in view.replicas
                if broker_id in self._running and name not in offline[broker_id]
            )
            if view.leader in isr and set(isr) > set(view.isr):
                proposal = IsrProposal(view.topic, view.partition, view.leader_epoch, view.partition_epoch, isr)
                proposals[view.leader].append(proposal)
        epochs = {broker.broker_id: broker.broker_epoch for broker in self._ensemble.registrations()}
        for leader, leader_proposals in sorted(proposals.items()):
            self._active.alter_partition(leader, epochs[leader], leader_proposals)
            self._run()

    def elect_leaders(self, election_type: ElectionType) -> None:
        """See DemoCluster."""
        self._active.elect_leaders(election_type)
        self._run()

    def resign(self) -> None:
        """See DemoCluster."""
        standby = next(controller for controller in self.controllers if controller is not self._active)
        standby.take_over()
        self._run()

    @property
    def _active(self) -> Controller:
        return next((controller for controller in self.controllers if controller.status().active), self.controllers[0])

    def _register(self, broker_ids: Iterable[int]) -> None:
        registered = [
            Registration(broker_id, NO_BROKER_EPOCH, (_endpoint(broker_id),), self.rack_of(broker_id))
            for broker_id in broker_ids
        ]
        self._ensemble.register_brokers(registered)
        self._running.update(broker_ids)

    def _run(self) -> None:
        """Handle all events of all controllers, and discard the requests that brokers have received."""
        while sum([controller.run_until_idle() for controller in self.controllers]):
            pass
        for transport in self._transports:
            transport.take()


def _endpoint(broker_id: int) -> Endpoint:
    return Endpoint("PLAINTEXT", f"broker{broker_id}", 9092)
