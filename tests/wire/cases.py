"""Batches to encode as plain JSON data, with their cluster and requests.

A case names brokers by id. Ids are not ascending in the case or in the columns, so that tests detect confused ids and
indexes.
"""

from __future__ import annotations

import string
from random import Random
from typing import Any, TypeAlias

import numpy as np

from kframe.model.arrays import Int32, Ragged
from kframe.model.brokers import Endpoint, Registration
from kframe.model.cluster import ClusterState
from kframe.model.ids import ReplicaFlag
from kframe.model.requests import BrokerRows, ControlRequests

Case: TypeAlias = dict[str, Any]

#: The listener that followers use to connect to leaders.
LISTENER = "PLAINTEXT"
FLAGS = {"adding": ReplicaFlag.ADDING, "removing": ReplicaFlag.REMOVING, "offlineDir": ReplicaFlag.OFFLINE_DIR}


def broker(broker_id: int, **changes: Any) -> dict[str, Any]:
    """Return a registered broker with one endpoint."""
    endpoints = [[LISTENER, f"host-{broker_id}", 9092, "PLAINTEXT"]]
    usual = {
        "brokerEpoch": 40 + broker_id,
        "registered": True,
        "shuttingDown": False,
        "rack": None,
        "endpoints": endpoints,
    }
    return {"id": broker_id} | usual | changes


def partition(replicas: list[int], **changes: Any) -> dict[str, Any]:
    """Return a partition whose first replica, if any, leads. All replicas are in sync."""
    epochs = {"leaderEpoch": 7, "controllerEpoch": 8, "partitionEpoch": 9, "recovery": 0}
    return (
        {"replicas": replicas, "isr": replicas, "leader": replicas[0] if replicas else -1}
        | epochs
        | {flag: [] for flag in FLAGS}
        | changes
    )


def topic(name: str, *partitions: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a topic without an id."""
    return {"name": name, "id": None, "deleting": False, "partitions": list(partitions)} | changes


def case_of(brokers: list[dict[str, Any]], topics: list[dict[str, Any]], **changes: Any) -> Case:
    """Return an empty batch of controller 1 in controller epoch 5."""
    batch: Case = {"leaderAndIsr": {}, "updateMetadata": [[], []], "stopReplica": {}}
    return {"controllerId": 1, "controllerEpoch": 5, "brokers": brokers, "topics": topics} | batch | changes


def random_case(random: Random, max_partitions: int = 4) -> Case:
    """Draw a cluster and a batch. The largest topic has ``max_partitions`` partitions."""
    broker_ids = random.sample([*range(6), 127, 128, 1001, 2**31 - 1], random.randint(1, 7))
    brokers = [_random_broker(random, broker_id) for broker_id in broker_ids]
    topics = [_random_topic(random, number, broker_ids, max_partitions) for number in range(random.randint(0, 5))]
    all_partitions = [
        (index, number) for index, topic in enumerate(topics) for number in range(len(topic["partitions"]))
    ]

    def sample_partitions(*columns: Any) -> list[list[Any]]:
        chosen = sorted(random.sample(all_partitions, random.randint(0, len(all_partitions))))
        return [[*key, *(column() for column in columns)] for key in chosen]

    return {
        "controllerId": random.choice(broker_ids),
        "controllerEpoch": random.randint(1, 2**31 - 1),
        "brokers": brokers,
        "topics": topics,
        "leaderAndIsr": {
            str(broker_id): sample_partitions(lambda: random.randint(0, 1)) for broker_id in _some(random, broker_ids)
        },
        "updateMetadata": [_some(random, broker_ids), sample_partitions()],
        "stopReplica": {
            str(broker_id): sample_partitions(lambda: random.randint(-2, 9), lambda: random.randint(0, 1))
            for broker_id in _some(random, broker_ids)
        },
    }


def _some(random: Random, values: list[int]) -> list[int]:
    return random.sample(values, random.randint(0, len(values)))


def _random_broker(random: Random, broker_id: int) -> dict[str, Any]:
    protocols = ["PLAINTEXT", *_protocols(random)]
    return {
        "id": broker_id,
        "brokerEpoch": random.randint(0, 2**63 - 1),
        "registered": random.random() < 0.8,
        "shuttingDown": random.random() < 0.2,
        "rack": random.choice([None, "", "rack-a", "r" * 130]),
        "endpoints": [[name, f"{name.lower()}.host-{broker_id}", random.randint(1, 65535), name] for name in protocols],
    }


def _protocols(random: Random) -> list[str]:
    return random.sample(["SSL", "SASL_PLAINTEXT", "SASL_SSL"], random.randint(0, 3))


def _random_topic(random: Random, number: int, broker_ids: list[int], max_partitions: int) -> dict[str, Any]:
    alphabet = string.ascii_letters + string.digits + "._-"
    length = random.choice([1, 7, 126 - len(str(number)), 127 - len(str(number)), 249 - len(str(number))])
    return {
        "name": "".join(random.choice(alphabet) for _ in range(length)) + str(number),
        "id": random.choice([None, random.randbytes(16).hex()]),
        "deleting": random.random() < 0.2,
        "partitions": [_random_partition(random, broker_ids) for _ in range(random.randint(1, max_partitions))],
    }


def _random_partition(random: Random, broker_ids: list[int]) -> dict[str, Any]:
    replicas = random.sample(broker_ids, random.randint(1, len(broker_ids)))
    # Usually a subset of the assignment; storage can also contain an unassigned in-sync replica.
    isr = _some(random, replicas if random.random() < 0.9 else broker_ids)
    flags = {name: _some(random, replicas) if random.random() < 0.3 else [] for name in FLAGS}
    return {
        "replicas": replicas,
        "isr": isr,
        "leader": random.choice([-1, *broker_ids]),
        "leaderEpoch": random.randint(0, 2**31 - 1),
        "controllerEpoch": random.randint(0, 2**31 - 1),
        "partitionEpoch": random.randint(0, 2**31 - 1),
        "recovery": random.randint(0, 1),
        **flags,
    }


def build(case: Case) -> tuple[ClusterState, ControlRequests]:
    """Return the cluster and the batch of a case."""
    cluster = ClusterState()
    _add_brokers(cluster, case["brokers"])
    _add_topics(cluster, case["topics"])
    leader_and_isr, (is_new,) = _broker_rows(cluster, case["leaderAndIsr"], 1)
    stop_replica, (leader_epoch, delete) = _broker_rows(cluster, case["stopReplica"], 2)
    brokers, rows = case["updateMetadata"]
    requests = ControlRequests(
        case["controllerId"],
        case["controllerEpoch"],
        leader_and_isr,
        is_new.astype(np.uint8),
        cluster.brokers.index_of(brokers),
        _rows(cluster, rows),
        stop_replica,
        leader_epoch,
        delete.astype(np.uint8),
    )
    return cluster, requests


def _add_brokers(cluster: ClusterState, brokers: list[dict[str, Any]]) -> None:
    registrations = [
        Registration(
            broker["id"],
            broker["brokerEpoch"],
            tuple(Endpoint(*point) for point in broker["endpoints"]),
            broker["rack"],
        )
        for broker in brokers
    ]
    for entry in brokers:
        cluster.brokers.index_of([entry["id"]])
    indexes = cluster.brokers.register(registrations)
    cluster.brokers.unregister(indexes[[not broker["registered"] for broker in brokers]])
    cluster.brokers.shutting_down[indexes] = [broker["registered"] and broker["shuttingDown"] for broker in brokers]


def _add_topics(cluster: ClusterState, topics: list[dict[str, Any]]) -> None:
    partitions = [partition for topic in topics for partition in topic["partitions"]]
    known: dict[int, int] = {}

    def index_of(broker_ids: list[int]) -> list[int]:
        # A call of NumPy for each of many lists would take most of the time of a test.
        if not known.keys() >= set(broker_ids):
            known.update(zip(broker_ids, cluster.brokers.index_of(broker_ids).tolist(), strict=True))
        return [known[broker_id] for broker_id in broker_ids]

    def indexes(name: str) -> list[list[int]]:
        return [index_of(partition[name]) for partition in partitions]

    def column(name: str) -> list[int]:
        return [partition[name] for partition in partitions]

    leaders = [-1 if leader < 0 else index_of([leader])[0] for leader in column("leader")]
    rows = cluster.add_topics(
        [topic["name"] for topic in topics],
        np.array([len(topic["partitions"]) for topic in topics], np.int32),
        Ragged.of(indexes("replicas")),
        Ragged.of(indexes("isr")),
        {
            "leader": np.array(leaders, np.int32),
            "leader_epoch": np.array(column("leaderEpoch"), np.int32),
            "controller_epoch": np.array(column("controllerEpoch"), np.int32),
            "partition_epoch": np.array(column("partitionEpoch"), np.int32),
            "recovery": np.array(column("recovery"), np.uint8),
        },
        [bytes.fromhex(topic["id"]) if topic["id"] else None for topic in topics],
    )
    cluster.topics.deleting[:] = [topic["deleting"] for topic in topics]
    for name, flag in FLAGS.items():
        for row, flagged in zip(rows.tolist(), indexes(name), strict=True):
            if flagged:
                cluster.flag_replicas(row, np.array(flagged, np.int32), flag)


def _rows(cluster: ClusterState, keys: list[list[int]]) -> Int32:
    return np.array([cluster.topics.row_of(topic, partition) for topic, partition, *_ in keys], np.int32)


def _broker_rows(
    cluster: ClusterState, lists: dict[str, list[list[int]]], columns: int
) -> tuple[BrokerRows, tuple[Int32, ...]]:
    entries = [entry for rows in lists.values() for entry in rows]
    offsets = np.cumsum([0, *(len(rows) for rows in lists.values())], dtype=np.int32)
    columns_of_entries = tuple(
        np.array([entry[2 + column] for entry in entries], np.int32) for column in range(columns)
    )
    return BrokerRows(cluster.brokers.index_of(map(int, lists)), offsets, _rows(cluster, entries)), columns_of_entries
