"""A fleet of unusual clusters, for everything that Spark could handle differently from one machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from kframe.model.arrays import Ragged
from kframe.model.brokers import Endpoint
from kframe.snapshot import BrokerFacts, PartitionFacts, Snapshot, Source, TopicFacts
from kframe.snapshot.generate import generate

#: The smallest and the largest possible broker ids, and an unregistered broker.
IDS: Final = (0, 3, 7, 1_000, 2**31 - 2, 2**31 - 1)
DOWN: Final = 7
TOPICS, PARTITIONS = 15, 6
#: Partitions of the only topic of ``wide``: more than Spark's batches have.
WIDE: Final = 70_000


def fleet() -> dict[str, Snapshot]:
    """Return the clusters by name.

    ``mixed`` has replication factors of 1 to 5, large ids, topics under deletion, reassignments and partitions without
    a leader. ``dead`` has no registered broker. ``none`` has no partition, and a topic without any. ``wide`` has one
    large topic.
    """
    return {"dead": dead(), "mixed": mixed(), "none": none(), "wide": generate(WIDE, 5, topics=1, racks=2, seed=9)}


def mixed() -> Snapshot:
    """See ``fleet``."""
    count = TOPICS * PARTITIONS
    replicas, isr, leader, adding, removing = [], [], [], [], []
    for row in range(count):
        width = 1 + (row // PARTITIONS) % 5
        assigned = [IDS[(row + step) % len(IDS)] for step in range(width)]
        moving = width > 2 and row % 7 == 0
        in_sync = [broker for broker in assigned[: width - moving] if broker != DOWN]
        replicas.append(assigned)
        adding.append(assigned[-1:] if moving else [])
        removing.append(assigned[:1] if moving else [])
        isr.append(in_sync or assigned[:1])
        leader.append(in_sync[0] if in_sync and row % 11 else -1)
    epochs = np.arange(count, dtype=np.int32) % 9
    partitions = PartitionFacts(
        Ragged.of(replicas),
        np.array(leader, np.int32),
        Ragged.of(isr),
        epochs,
        epochs % 4,
        epochs + 1,
        np.zeros(count, np.int32),
        Ragged.of(adding),
        Ragged.of(removing),
    )
    ids = np.arange(16 * TOPICS, dtype=np.uint8).reshape(-1, 16) + np.uint8(1)
    deleting = (np.arange(TOPICS) % 6 == 5).astype(np.uint8)
    configs = {
        topic: {"min.insync.replicas": str(1 + topic % 3), "unclean.leader.election.enable": "true"}
        for topic in range(0, TOPICS, 2)
    }
    names = tuple(f"topic-{topic:02d}" for topic in range(TOPICS))
    topics = TopicFacts(names, np.full(TOPICS, PARTITIONS, np.int32), ids, deleting, configs)
    return Snapshot(brokers(), topics, partitions, Source("test", "mixed"), controller_id=2**31 - 1, controller_epoch=4)


def brokers() -> tuple[BrokerFacts, ...]:
    """The brokers of IDS, in two racks or without a rack."""
    endpoints = [(Endpoint("PLAINTEXT", f"host-{index}", 9092),) for index in range(len(IDS))]
    racks = ("a", "b", None) * 2
    return tuple(
        BrokerFacts(broker, broker != DOWN, 50 + index, endpoints[index], racks[index])
        for index, broker in enumerate(IDS)
    )


def dead() -> Snapshot:
    """See ``fleet``."""
    alive = generate(40, 4, racks=2, seed=6)
    brokers = tuple(replace(broker, registered=False) for broker in alive.brokers)
    partitions = replace(alive.partitions, leader=np.full(40, -1, np.int32))
    return replace(alive, brokers=brokers, partitions=partitions)


def none() -> Snapshot:
    """See ``fleet``."""
    topics = TopicFacts(("empty",), np.zeros(1, np.int32), np.ones((1, 16), np.uint8), np.zeros(1, np.uint8), {})
    empty = np.empty(0, np.int32)
    partitions = PartitionFacts(
        Ragged.empty(0), empty, Ragged.empty(0), empty, empty, empty, empty, Ragged.empty(0), Ragged.empty(0)
    )
    return Snapshot(brokers(), topics, partitions, Source("test", "none"), controller_id=0, controller_epoch=1)
