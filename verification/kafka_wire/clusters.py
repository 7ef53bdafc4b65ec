"""Real brokers on the caller's ZooKeeper with kframe as their controller, a WireTransport and no server.

Tests read each broker's metadata by Metadata, and check its leadership by ListOffsets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kframe_kafka_wire import plugin
from kframe_kafka_wire.sandbox.fake_broker import CONTROLLER_ID
from kframe_zookeeper import plugin as zookeeper_plugin

import kframe
from kframe.testing.waiting import until
from verification.kafka_wire.client import Client
from verification.zookeeper.kafka import VERSION, Cluster, KafkaProcess
from verification.zookeeper.servers import HOST, free_ports
from verification.zookeeper.sessions import SESSION_S

#: Leader, ISR and replicas of a partition in a broker's metadata.
PartitionMetadata = tuple[int, list[int], list[int]]


class ManagedCluster:
    """Brokers in a chroot, with kframe as their controller. kframe takes the role before the first broker starts."""

    def __init__(
        self, folder: Path, zookeeper: str, *, broker_ids: Sequence[int] = (1, 2, 3), version: str = VERSION,
        settings: Mapping[str, str] = {}, kframe_settings: Mapping[str, str] = {},
    ) -> None:  # fmt: skip
        """``settings`` are those of the brokers. ``kframe_settings`` are kframe's, where they differ."""
        ports = free_ports(2)
        self.cluster = Cluster(folder, zookeeper, broker_ids, settings, version)
        listeners = {"listeners": settings.get("listeners", f"PLAINTEXT://{HOST}:{{port}}")}
        all_settings = {**settings, **listeners, **kframe_settings}
        self.config = {
            key: value.replace("{port}", str(ports[0])).replace("{other_port}", str(ports[1]))
            for key, value in all_settings.items()
        }
        url = f"zookeeper://{zookeeper}?session.timeout.ms=30000&kframe.create.chroot=true"
        self.controller = kframe.ControllerBuilder(
            CONTROLLER_ID, url, "kafka:",
            {key: value for key, value in self.config.items() if key.startswith("inter.broker.pro")},
            settings=self.config, registry=kframe.build_registry(extra=[plugin, zookeeper_plugin], allowed=()),
        ).build()  # fmt: skip
        self.client = KazooClient(zookeeper, timeout=SESSION_S)

    def __enter__(self) -> ManagedCluster:
        self.controller.start()
        self.client.start()
        try:
            assert until(lambda: self.controller.status().active)
            self.cluster.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.controller.stop()
        self.cluster.kill()
        self.client.stop()
        self.client.close()


def metadata(address: str) -> Mapping[str, Any]:
    """A node's response to Metadata for all topics."""
    with Client(address) as client:
        return client.ask(3, 9, topics=None, allow_auto_topic_creation=False)


def metadata_of(broker: KafkaProcess) -> tuple[int, list[int], dict[str, PartitionMetadata]]:
    """The controller, brokers and partitions in a broker's metadata."""
    response = metadata(broker.address)
    known = {
        f"{topic['name']}-{partition['partition_index']}": (
            partition["leader_id"], partition["isr_nodes"], partition["replica_nodes"],
        )
        for topic in response["topics"]
        for partition in topic["partitions"]
    }  # fmt: skip
    return response["controller_id"], sorted(node["node_id"] for node in response["brokers"]), known


def leader_error(broker: KafkaProcess, topic: str, partition: int) -> int:
    """The error code of a broker's response to ListOffsets: 0 if it is the leader."""
    requested = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": -1}
    with Client(broker.address) as client:
        response = client.ask(2, 5, replica_id=-1, topics=[{"name": topic, "partitions": [requested]}])
    return int(response["topics"][0]["partitions"][0]["error_code"])


def await_metadata(
    cluster: Cluster, known: Mapping[str, PartitionMetadata], brokers: Sequence[int] = (1, 2, 3)
) -> bool:
    """Wait until these brokers know exactly each other, kframe and this metadata, and serve as leaders. Return
    success."""
    alive = [cluster.brokers[broker_id] for broker_id in brokers]
    topics = {name.rpartition("-")[0] for name in known}

    def is_current() -> bool:
        try:
            for node in alive:
                controller_id, brokers_known, states = metadata_of(node)
                ours = {name: state for name, state in states.items() if name.rpartition("-")[0] in topics}
                if (controller_id, brokers_known, ours) != (CONTROLLER_ID, sorted([*brokers, CONTROLLER_ID]), known):
                    return False
            led = ((name.rpartition("-"), cluster.brokers[leader]) for name, (leader, _, _) in known.items())
            return all(leader_error(broker, topic, int(number)) == 0 for (topic, _, number), broker in led)
        except OSError:  # A busy broker may answer too late.
            return False

    return until(is_current)


def create(client: KazooClient, topic: str, replicas: Sequence[Sequence[int]]) -> None:
    """Write a topic to ZooKeeper, as Kafka's tools up to 2.7 do."""
    partitions = {str(number): list(brokers) for number, brokers in enumerate(replicas)}
    client.create(f"/brokers/topics/{topic}", json.dumps({"version": 1, "partitions": partitions}).encode())
