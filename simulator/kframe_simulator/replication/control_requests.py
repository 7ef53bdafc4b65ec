"""Batches of control requests, split by broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.arrays import Int32
from kframe.model.brokers import Endpoint
from kframe.model.cluster import ClusterState
from kframe.model.events import (
    Event,
    LeaderAndIsrResponseReceived,
    StopReplicaResponseReceived,
    TopicPartition,
    UpdateMetadataResponseReceived,
)
from kframe.model.ids import LEADER_DURING_DELETE, PartitionFlag, ReplicaFlag
from kframe.model.requests import ControlRequests
from kframe_simulator.broker.messages import (
    ControlResponse,
    LeaderAndIsr,
    LeaderState,
    PartitionMetadata,
    Stop,
    StopReplica,
    UpdateMetadata,
)

ControlMessage: TypeAlias = LeaderAndIsr | UpdateMetadata | StopReplica


class ControlRequest(NamedTuple):
    """A control request for one registration of a broker. It has the controller's rows of its response."""

    broker_id: int
    broker_epoch: int
    message: ControlMessage
    rows: Int32
    addresses: Mapping[int, tuple[Endpoint, ...]] = {}
    """In UpdateMetadata: the listeners of brokers."""
    batch: int = 0
    """In UpdateMetadata: the number of its batch."""

    def event(self, response: ControlResponse) -> Event | None:
        """The controller event for a response. StopReplica has one only if it deletes replicas."""
        message, top = self.message, response.error
        errors = dict.fromkeys(message.partitions, top) if top is not ErrorCode.NONE else response.errors
        failed = tuple((key, error) for key, error in errors.items() if error is not ErrorCode.NONE)
        if isinstance(message, LeaderAndIsr):
            return LeaderAndIsrResponseReceived(
                self.broker_id, top, failed, message.controller_epoch, self.rows, self.broker_epoch
            )
        if isinstance(message, UpdateMetadata):
            return UpdateMetadataResponseReceived(self.broker_id, top, message.controller_epoch, self.batch)
        if len(self.rows):
            return StopReplicaResponseReceived(
                self.broker_id, top, failed, message.controller_epoch, self.rows, self.broker_epoch
            )
        return None


class Row(NamedTuple):
    """A row of a controller's columns, with broker ids."""

    key: TopicPartition
    leader: int
    leader_epoch: int
    controller_epoch: int
    partition_epoch: int
    recovery: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas without those that a reassignment removes."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas without those that a reassignment adds."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)


def read_row(cluster: ClusterState, row: int) -> Row:
    """One row as a tuple."""
    p, ids = cluster.partitions, cluster.brokers.ids
    start = int(p.slot_start[row])
    end = start + int(p.replica_count[row])
    replicas = tuple(ids[p.replica[start:end]].tolist())
    flags = p.replica_status[start:end].tolist()
    leader = int(p.leader[row])
    return Row(
        (cluster.topics.names[p.topic[row]], int(p.partition[row])),
        int(ids[leader]) if leader >= 0 else leader,
        int(p.leader_epoch[row]),
        int(p.controller_epochs_of(np.array([row]))[0]),
        int(p.partition_epoch[row]),
        int(p.status[row] & PartitionFlag.RECOVERING),
        tuple(ids[p.isr[start : start + int(p.isr_count[row])]].tolist()),
        replicas,
        *(
            tuple(item for item, flag in zip(replicas, flags, strict=True) if flag & flag_of_list) if any(flags) else ()
            for flag_of_list in (ReplicaFlag.ADDING, ReplicaFlag.REMOVING)
        ),
    )


def control_requests(cluster: ClusterState, requests: ControlRequests) -> Iterator[ControlRequest]:
    """The requests of a batch in sending order: all LeaderAndIsr, then UpdateMetadata, then StopReplica."""
    needed_rows = np.unique(np.concatenate([requests.leader_and_isr.rows, requests.metadata_rows]))
    rows = {row: read_row(cluster, row) for row in needed_rows.tolist()}
    sender = requests.controller_id, requests.controller_epoch
    yield from _leader_and_isr(cluster, requests, rows, sender)
    yield from _update_metadata(cluster, requests, rows, sender)
    yield from _stop_replica(cluster, requests, sender)


def _leader_and_isr(
    cluster: ClusterState, requests: ControlRequests, rows: Mapping[int, Row], sender: tuple[int, int]
) -> Iterator[ControlRequest]:
    batch, brokers = requests.leader_and_isr, cluster.brokers
    states = {
        (row, new): LeaderState(
            item.controller_epoch,
            item.leader,
            item.leader_epoch,
            item.isr,
            item.partition_epoch,
            item.replicas,
            item.adding,
            item.removing,
            new,
            item.recovery,
        )
        for row, item in rows.items()
        for new in (False, True)
    }
    for broker, part in batch.slices():
        rows_of_part = batch.rows[part]
        new = requests.is_new[part].tolist()
        partitions = {rows[row].key: states[row, bool(n)] for row, n in zip(rows_of_part.tolist(), new, strict=True)}
        epoch = int(brokers.broker_epoch[broker])
        ids = _ids(cluster, rows_of_part)
        yield ControlRequest(
            int(brokers.ids[broker]), epoch, LeaderAndIsr(*sender, epoch, partitions, ids), rows_of_part
        )


def _update_metadata(
    cluster: ClusterState, requests: ControlRequests, rows: Mapping[int, Row], sender: tuple[int, int]
) -> Iterator[ControlRequest]:
    if not len(requests.metadata_brokers):
        return
    brokers, p = cluster.brokers, cluster.partitions
    partitions = {}
    for row in requests.metadata_rows.tolist():
        state = rows[row]
        deleting = bool(cluster.topics.deleting[p.topic[row]])
        partitions[state.key] = PartitionMetadata(
            LEADER_DURING_DELETE if deleting else state.leader,
            0 if deleting else state.leader_epoch,
            state.isr,
            0 if deleting else state.partition_epoch,
            state.replicas,
        )
    registered, ids = tuple(brokers.registered_ids()), _ids(cluster, requests.metadata_rows)
    addresses = {registration: _addresses(cluster, registration) for registration in registered}
    for broker in requests.metadata_brokers.tolist():
        epoch = int(brokers.broker_epoch[broker])
        message = UpdateMetadata(*sender, epoch, registered, partitions, ids)
        yield ControlRequest(
            int(brokers.ids[broker]), epoch, message, requests.metadata_rows, addresses, requests.batch
        )


def _addresses(cluster: ClusterState, broker_id: int) -> tuple[Endpoint, ...]:
    index = cluster.brokers.find(broker_id)
    known = None if index is None else cluster.brokers.registrations[index]
    return () if known is None else known.endpoints


def _stop_replica(
    cluster: ClusterState, requests: ControlRequests, sender: tuple[int, int]
) -> Iterator[ControlRequest]:
    batch, brokers, p = requests.stop_replica, cluster.brokers, cluster.partitions
    for broker, part in batch.slices():
        rows, delete = batch.rows[part], requests.stop_delete[part]
        stops = zip(rows.tolist(), requests.stop_leader_epoch[part].tolist(), delete.tolist(), strict=True)
        partitions = {
            (cluster.topics.names[p.topic[row]], int(p.partition[row])): Stop(leader_epoch, bool(delete_replica))
            for row, leader_epoch, delete_replica in stops
        }
        epoch = int(brokers.broker_epoch[broker])
        yield ControlRequest(
            int(brokers.ids[broker]), epoch, StopReplica(*sender, epoch, partitions), rows[delete != 0]
        )


def _ids(cluster: ClusterState, rows: Int32) -> dict[str, bytes]:
    """Ids of the topics of these rows that have one."""
    topics = cluster.topics
    result = {}
    for index in set(cluster.partitions.topic[rows].tolist()):
        topic_id = topics.ids[index].tobytes()
        if any(topic_id):
            result[topics.names[index]] = topic_id
    return result
