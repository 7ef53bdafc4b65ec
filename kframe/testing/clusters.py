"""Small clusters, changes and request batches, written by broker id and partition name (``t-0``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kframe.embedded.describe import describe_partition
from kframe.model.arrays import Int32, Ragged, offsets_of
from kframe.model.brokers import Endpoint, Registration
from kframe.model.changes import StateChange
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_BROKER_EPOCH, NO_LEADER, NO_STATE, ReplicaFlag
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.model.tables import TopicTable


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """One partition. Without ``isr`` it has no stored state. ``leader`` None is a stored state without leader."""

    replicas: tuple[int, ...]
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    leader_epoch: int = 0
    controller_epoch: int = 0
    partition_epoch: int = 0
    recovery: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A partition state to write. ``expected`` NO_STATE creates it."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int
    expected: int
    recovery: int = 0


def registration(broker_id: int, rack: str | None = None, broker_epoch: int = NO_BROKER_EPOCH) -> Registration:
    """The registration of a broker with a PLAINTEXT endpoint."""
    return Registration(broker_id, broker_epoch, (Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id),), rack)


def healthy(*replicas: int, leader_epoch: int = 0) -> PartitionSpec:
    """A partition led by its first replica. All replicas are in sync."""
    return PartitionSpec(replicas, leader=replicas[0], isr=replicas, leader_epoch=leader_epoch)


def cluster_of(topics: Mapping[str, Sequence[PartitionSpec]], registered: Iterable[Registration | int]) -> ClusterState:
    """A cluster in columns with these topics and registered brokers. Other brokers that ``topics`` names are
    unregistered."""
    cluster = ClusterState()
    cluster.brokers.register([registration(broker) if isinstance(broker, int) else broker for broker in registered])
    specs = [spec for partitions in topics.values() for spec in partitions]
    stored = np.array([spec.isr is not None for spec in specs], np.bool_)
    values: dict[str, Any] = {
        "leader": _indexes(cluster, [NO_LEADER if spec.leader is None else spec.leader for spec in specs]),
        "recovery": np.array([spec.recovery for spec in specs], np.uint8),
    }
    for name in ("leader_epoch", "controller_epoch", "partition_epoch"):
        values[name] = np.where(stored, np.array([getattr(spec, name) for spec in specs], np.int32), NO_STATE)
    replicas = _ragged(cluster, [spec.replicas for spec in specs])
    isr = _ragged(cluster, [spec.isr or () for spec in specs])
    counts = np.array([len(partitions) for partitions in topics.values()], np.int32)
    rows = cluster.add_topics(list(topics), counts, replicas, isr, values)
    for row, spec in zip(rows.tolist(), specs, strict=True):
        cluster.flag_replicas(row, cluster.brokers.index_of(spec.adding_replicas), ReplicaFlag.ADDING)
        cluster.flag_replicas(row, cluster.brokers.index_of(spec.removing_replicas), ReplicaFlag.REMOVING)
    return cluster


def small_table(topics: Mapping[str, Sequence[tuple[int, ...]]]) -> TopicTable:
    """Topics to store, each with the replica lists of its partitions."""
    return TopicTable.of(tuple(topics), tuple(topics.values()))


def rows_of(cluster: ClusterState, names: Iterable[str]) -> Int32:
    """The rows of partitions by name (``t-0``). Raises KeyError for an unknown partition."""
    rows = []
    for name in names:
        topic, _, partition = name.rpartition("-")
        row = cluster.row(topic, int(partition))
        if row is None:
            raise KeyError(name)
        rows.append(row)
    return np.array(rows, np.int32)


def change_of(cluster: ClusterState, states: Mapping[str, StateSpec], controller_epoch: int) -> StateChange:
    """The change that stores these states."""
    specs = tuple(states.values())
    return StateChange(
        rows=rows_of(cluster, states),
        leader=_indexes(cluster, [spec.leader for spec in specs]),
        leader_epoch=np.array([spec.leader_epoch for spec in specs], np.int32),
        recovery=np.array([spec.recovery for spec in specs], np.uint8),
        isr=_ragged(cluster, [spec.isr for spec in specs]),
        expected=np.array([spec.expected for spec in specs], np.int32),
        controller_epoch=controller_epoch,
    )


def requests_of(
    cluster: ClusterState,
    *,
    leader_and_isr: Mapping[int, Sequence[str]] | None = None,
    is_new: Iterable[str] = (),
    metadata: tuple[Sequence[int], Sequence[str]] = ((), ()),
    stop_replica: Mapping[int, Mapping[str, tuple[int, bool]]] | None = None,
    controller_epoch: int = 1,
    controller_id: int = 1000,
) -> ControlRequests:
    """A batch by broker id: LeaderAndIsr partitions, brokers and partitions of UpdateMetadata, and StopReplica
    partitions with (leader_epoch, delete)."""
    to_lead, to_stop = leader_and_isr or {}, stop_replica or {}
    partition_names = [name for names in to_lead.values() for name in names]
    stop_entries = [entry for entries in to_stop.values() for entry in entries.values()]
    return ControlRequests(
        controller_id=controller_id,
        controller_epoch=controller_epoch,
        leader_and_isr=_broker_rows(cluster, to_lead),
        is_new=np.isin(partition_names, list(is_new)).astype(np.uint8),
        metadata_brokers=cluster.brokers.index_of(metadata[0]),
        metadata_rows=rows_of(cluster, metadata[1]),
        stop_replica=_broker_rows(cluster, {broker_id: tuple(names) for broker_id, names in to_stop.items()}),
        stop_leader_epoch=np.array([leader_epoch for leader_epoch, _ in stop_entries], np.int32),
        stop_delete=np.array([delete for _, delete in stop_entries], np.uint8),
    )


def described(cluster: ClusterState) -> dict[str, dict[str, Any]]:
    """All partitions by name, as in a trace. Two clusters are equal in this form even if their indexes differ."""
    rows = np.flatnonzero(cluster.partitions.topic >= 0).tolist()
    return dict(sorted((cluster.name(row), describe_partition(cluster.view(row))) for row in rows))


def _broker_rows(cluster: ClusterState, names: Mapping[int, Sequence[str]]) -> BrokerRows:
    offsets = offsets_of([len(partitions) for partitions in names.values()])
    rows = rows_of(cluster, (name for partitions in names.values() for name in partitions))
    return BrokerRows(cluster.brokers.index_of(list(names)), offsets, rows)


def _indexes(cluster: ClusterState, broker_ids: Sequence[int]) -> Int32:
    """Indexes of broker ids; NO_LEADER stays."""
    ids = np.array(broker_ids, np.int32)
    indexes = np.full(len(ids), NO_LEADER, np.int32)
    indexes[ids >= 0] = cluster.brokers.index_of(ids[ids >= 0])
    return indexes


def _ragged(cluster: ClusterState, lists: Sequence[Sequence[int]]) -> Ragged:
    packed = Ragged.of([tuple(members) for members in lists])
    return Ragged(packed.offsets, cluster.brokers.index_of(packed.values))
