"""Build the stored cluster and the registrations that a scenario starts with."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Ragged
from kframe.model.brokers import Endpoint, Registration
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_BROKER_EPOCH, NO_STATE, ReplicaFlag
from kframe.model.topics import UNSET
from kframe.scenario.format import Scenario, ScenarioTopic, config_text
from kframe.scenario.step_types import ScenarioBroker

_BOOLEANS: Final = {"true": 1, "false": 0}


def registration(broker: ScenarioBroker) -> Registration:
    """A registration without a broker epoch, which storage assigns."""
    endpoint = Endpoint("PLAINTEXT", f"broker-{broker.broker_id}", 9092)
    return Registration(broker.broker_id, NO_BROKER_EPOCH, (endpoint,), broker.rack)


def build_cluster(scenario: Scenario) -> ClusterState:
    """The topics of a scenario as stored. Stated partition states have controller epoch 0 and partition epoch 0.

    Raises ScenarioError for a malformed topic setting.
    """
    cluster = ClusterState()
    for topic in scenario.topics:
        _add_topic(cluster, topic)
        index = cluster.topics.find(topic.name)
        cluster.topics.unclean[index] = _unclean(topic)
    return cluster


def _add_topic(cluster: ClusterState, topic: ScenarioTopic) -> None:
    index_of = cluster.brokers.index_of
    stated = np.array([partition.leader is not None for partition in topic.partitions])
    replicas = Ragged.of([index_of(partition.replicas).tolist() for partition in topic.partitions])
    isr = Ragged.of([index_of(partition.isr).tolist() for partition in topic.partitions])
    leaders = [
        -1 if partition.leader in (None, -1) else int(index_of([partition.leader])[0]) for partition in topic.partitions
    ]
    values: dict[str, NDArray[Any]] = {
        "leader": np.array(leaders, np.int32),
        "leader_epoch": np.array([partition.leader_epoch for partition in topic.partitions], np.int32),
        "controller_epoch": np.zeros(len(stated), np.int32),
        "partition_epoch": np.where(stated, 0, NO_STATE).astype(np.int32),
        "recovery": np.array([partition.leader_recovery_state for partition in topic.partitions]),
    }
    topic_id = hashlib.sha256(topic.name.encode()).digest()[:16]
    rows = cluster.add_topics([topic.name], np.array([len(stated)]), replicas, isr, values, [topic_id])
    for row, partition in zip(rows, topic.partitions, strict=True):
        cluster.flag_replicas(int(row), index_of(partition.adding_replicas), ReplicaFlag.ADDING)
        cluster.flag_replicas(int(row), index_of(partition.removing_replicas), ReplicaFlag.REMOVING)


def _unclean(topic: ScenarioTopic) -> int:
    value = (topic.config or {}).get("unclean.leader.election.enable")
    return UNSET if value is None else _BOOLEANS[config_text(value).strip().lower()]
