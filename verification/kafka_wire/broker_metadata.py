"""What real brokers know: their metadata by Metadata, and their leadership by ListOffsets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kazoo.client import KazooClient
from kframe_kafka_wire.sandbox.fake_broker import CONTROLLER_ID

from kframe.testing.waiting import until
from verification.kafka_wire.client import Client
from verification.zookeeper.kafka import Cluster, KafkaProcess

#: Leader, ISR and replicas of a partition in a broker's metadata.
PartitionMetadata = tuple[int, list[int], list[int]]


def metadata(address: str) -> Mapping[str, Any]:
    """A node's response to Metadata for all topics."""
    with Client(address) as client:
        return client.ask(3, 9, topics=None, allow_auto_topic_creation=False)


def metadata_of(address: str) -> tuple[int, list[int], dict[str, PartitionMetadata]]:
    """The controller, brokers and partitions in a node's metadata."""
    response = metadata(address)
    known = {
        f"{topic['name']}-{partition['partition_index']}": (
            partition["leader_id"],
            partition["isr_nodes"],
            partition["replica_nodes"],
        )
        for topic in response["topics"]
        for partition in topic["partitions"]
    }
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
                controller_id, brokers_known, states = metadata_of(node.address)
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
