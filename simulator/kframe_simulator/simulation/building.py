"""The initial state of a simulation: stored topics and brokers with empty logs."""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np

from kframe.model.arrays import Ragged
from kframe.model.brokers import Endpoint, Registration
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.model.protocol import InterBrokerProtocol
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.simulation.options import Options

#: The fetch interval of a follower, and its lag limit. Both are long, so that fetches do not dominate a run.
FETCH_MS: Final = 4_000.0
LAG_MS: Final = 9_000.0
#: The log directories of every broker.
LOG_DIRS: Final = ("a", "b")


def build_cluster(options: Options) -> ClusterState:
    """The topics in storage before the first controller. They are assigned, and have no states."""
    cluster = ClusterState()
    cluster.brokers.index_of(options.brokers)
    for topic in options.topics:
        index_of = cluster.brokers.index_of
        lists = Ragged.of([index_of(assignment).tolist() for assignment in topic.assignments])
        topic_id = hashlib.sha256(f"{options.seed} {topic.name}".encode()).digest()[:16]
        cluster.add_topics([topic.name], np.array([len(topic.assignments)]), lists, ids=[topic_id])
        index = cluster.topics.find(topic.name)
        cluster.topics.unclean[index] = int(topic.unclean)
        cluster.topics.min_insync[index] = topic.min_insync
    return cluster


def build_broker(options: Options, broker_id: int) -> tuple[Broker, Registration]:
    """A stopped broker, and its registration."""
    config = BrokerConfig(
        protocol=InterBrokerProtocol.parse(options.protocol),
        log_dirs=LOG_DIRS,
        replica_lag_time_max_ms=LAG_MS,
        replica_fetch_wait_max_ms=FETCH_MS,
    )
    model = Broker(broker_id, config)
    for topic in options.topics:
        model.configure_topic(topic.name, topic.min_insync)
    return model, registration(options, broker_id, 9092)


def registration(options: Options, broker_id: int, port: int) -> Registration:
    """The registration of a broker that listens on this port, without a broker epoch yet."""
    endpoint = Endpoint("PLAINTEXT", f"broker-{broker_id}", port)
    return Registration(broker_id, NO_BROKER_EPOCH, (endpoint,), rack_of(options, broker_id))


def rack_of(options: Options, broker_id: int) -> str | None:
    """The rack of a broker. None without racks."""
    return f"rack-{broker_id % options.racks}" if options.racks else None
