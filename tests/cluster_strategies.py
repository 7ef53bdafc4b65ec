"""Random clusters in columns, malformed ones included, for properties of any cluster."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from kframe.model.arrays import Int32, Ragged
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.ids import (
    NO_LEADER,
    NO_STATE,
    STATE_SHIFT,
    PartitionFlag,
    PartitionState,
    ReplicaFlag,
    ReplicaState,
)

#: Largest replication factor and ISR size.
REPLICAS = 7
BROKERS = 9
TOPICS = 4
PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """One drawn partition, in broker indexes. Without ``partition_epoch`` it has no stored state."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    recovery: int


@st.composite
def shapes(draw: st.DrawFn, brokers: int) -> Shape:
    """A partition with an arbitrary ISR and leader. They may be out of order, not assigned or not registered."""
    order = st.permutations(range(brokers))
    stored = draw(st.integers(0, 3)) > 0
    return Shape(
        replicas=tuple(draw(order)[: draw(st.integers(1, REPLICAS))]),
        isr=tuple(draw(order)[: draw(st.integers(0, REPLICAS))]) if stored else (),
        leader=draw(st.integers(NO_LEADER, brokers - 1)) if stored else NO_LEADER,
        leader_epoch=draw(st.integers(0, 9)) if stored else -1,
        partition_epoch=draw(st.integers(0, 9)) if stored else NO_STATE,
        recovery=draw(st.integers(0, 1)) if stored else 0,
    )


@st.composite
def clusters(draw: st.DrawFn) -> ClusterState:
    """A cluster that may have no topics, unregistered or shutting-down brokers, offline log directories or
    reassignments. It may also have partitions without state, topics queued for deletion, and rows without a topic."""
    cluster = ClusterState()
    brokers = draw(st.integers(1, BROKERS))
    cluster.brokers.index_of(range(1, brokers + 1))
    present = [broker for broker in range(1, brokers + 1) if draw(st.integers(0, 3)) > 0]
    cluster.brokers.register([Registration(broker, broker_epoch=10 + broker) for broker in present])
    leaving = draw(st.lists(st.booleans(), min_size=brokers, max_size=brokers))
    cluster.brokers.shutting_down[:] = cluster.brokers.registered & np.array(leaving, np.uint8)
    counts = draw(st.lists(st.integers(1, PARTITIONS), max_size=TOPICS))
    drawn = [draw(shapes(brokers)) for _ in range(sum(counts))]
    add(cluster, [f"t{number}" for number in range(len(counts))], counts, drawn)
    _colour(draw, cluster)
    return cluster


def add(cluster: ClusterState, names: list[str], counts: list[int], drawn: list[Shape]) -> Int32:
    """Append drawn partitions to the columns, topic by topic. Return their rows."""
    values = {
        name: np.array([getattr(partition, name) for partition in drawn], np.int32)
        for name in ("leader", "leader_epoch", "partition_epoch")
    }
    return cluster.add_topics(
        names,
        np.array(counts, np.int32),
        Ragged.of([partition.replicas for partition in drawn]),
        Ragged.of([partition.isr for partition in drawn]),
        values | {"recovery": np.array([partition.recovery for partition in drawn], np.uint8)},
    )


def subset(draw: st.DrawFn, count: int) -> Int32:
    """Draw a subset of ``0 .. count - 1`` in ascending order."""
    chosen = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return np.flatnonzero(np.array(chosen, np.bool_)).astype(np.int32)


def draw_states(draw: st.DrawFn, states: type[IntEnum], count: int) -> NDArray[Any]:
    """Draw states, in the bits that they have in a status."""
    drawn = draw(st.lists(st.sampled_from(list(states)), min_size=count, max_size=count))
    return np.array(drawn, np.uint8) << np.uint8(STATE_SHIFT)


def _colour(draw: st.DrawFn, cluster: ClusterState) -> None:
    """Draw the byte columns: flags, states, delete markers. Some topics may be missing."""
    p, slots = cluster.partitions, cluster.partitions.slot_count
    flags = st.sampled_from([0, 0, 0, ReplicaFlag.ADDING, ReplicaFlag.REMOVING, ReplicaFlag.OFFLINE_DIR, 7])
    p.replica_status[:] = draw(st.lists(flags, min_size=slots, max_size=slots))
    p.replica_status[:] |= draw_states(draw, ReplicaState, slots)
    p.status[:] &= np.uint8(PartitionFlag.RECOVERING)
    p.status[:] |= draw_states(draw, PartitionState, len(p))
    p.set_reassigning(subset(draw, len(p)), True)
    topics = len(cluster.topics)
    cluster.topics.deleting[:] = draw(st.lists(st.integers(0, 1), min_size=topics, max_size=topics))
    for topic in subset(draw, topics).tolist():
        if draw(st.integers(0, 3)) == 0:
            p.topic[cluster.topics.rows_of(topic)] = -1
