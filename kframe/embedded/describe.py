"""Partitions and control requests as plain dicts (``kframe.trace/v1``), and the responses to deletions.

The dicts cost one object per partition. Bulk code uses ``CountingTransport``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.arrays import UInt8
from kframe.model.cluster import ClusterState, PartitionView
from kframe.model.events import StopReplicaResponseReceived
from kframe.model.ids import LEADER_DURING_DELETE, NO_STATE, Api, ReplicaFlag
from kframe.model.lists import distinct_values
from kframe.model.requests import ControlRequests

#: One entry of a trace's ``requests``: broker (id), api, controller_epoch, partitions...
Request: TypeAlias = dict[str, Any]

#: The fields of a partition from its stored state; null in a trace if there is no state.
STATE_FIELDS: Final = ("leader", "isr", "leader_epoch", "controller_epoch", "leader_recovery_state", "partition_epoch")


def describe_partition(view: PartitionView) -> dict[str, Any]:
    """Assignment and stored state of a partition, as in the ``partitions`` of a trace."""
    state = dict.fromkeys(STATE_FIELDS)
    if view.partition_epoch != NO_STATE:
        values = (
            view.leader,
            list(view.isr),
            view.leader_epoch,
            view.controller_epoch,
            int(view.recovery),
            view.partition_epoch,
        )
        state = dict(zip(STATE_FIELDS, values, strict=True))
    return {
        "replicas": list(view.replicas),
        "adding_replicas": list(view.adding_replicas),
        "removing_replicas": list(view.removing_replicas),
        **state,
    }


def describe_requests(cluster: ClusterState, requests: ControlRequests) -> Iterator[Request]:
    """Every request of a batch. All LeaderAndIsr are first, then all UpdateMetadata, then all StopReplica.

    Consume the iterator before the columns change. The UpdateMetadata of a batch share one ``partitions`` dict.
    """
    yield from _leader_and_isr(cluster, requests)
    yield from _update_metadata(cluster, requests)
    yield from _stop_replica(cluster, requests)


def deletion_responses(cluster: ClusterState, requests: ControlRequests) -> Iterator[StopReplicaResponseReceived]:
    """The responses of brokers that delete every replica as requested.

    A StopReplica answer only names deleted replicas: a broker that deletes none has no entry here.
    """
    for broker, part in requests.stop_replica.slices():
        rows = requests.stop_replica.rows[part][requests.stop_delete[part] != 0]
        if len(rows):
            broker_id = int(cluster.brokers.ids[broker])
            yield StopReplicaResponseReceived(broker_id, ErrorCode.NONE, (), requests.controller_epoch, rows)


def _request(cluster: ClusterState, broker: int, api: Api, requests: ControlRequests, **content: Any) -> Request:
    broker_id = int(cluster.brokers.ids[broker])
    return {"broker": broker_id, "api": api.value, "controller_epoch": requests.controller_epoch, **content}


def _leader_and_isr(cluster: ClusterState, requests: ControlRequests) -> Iterator[Request]:
    batch, partitions, registered = requests.leader_and_isr, cluster.partitions, cluster.brokers.registered
    described = {row: _leader_and_isr_partition(cluster, row) for row in distinct_values(batch.rows).tolist()}
    for broker, part in batch.slices():
        leaders = distinct_values(partitions.leader[batch.rows[part]])
        live_leaders = [leader for leader in leaders.tolist() if leader >= 0 and registered[leader]]
        is_new = dict(zip(batch.rows[part].tolist(), requests.is_new[part].tolist(), strict=True))
        rows = _by_name(cluster, is_new)
        yield _request(
            cluster,
            broker,
            Api.LEADER_AND_ISR,
            requests,
            live_leaders=sorted(cluster.brokers.ids_of(live_leaders)),
            partitions={cluster.name(row): described[row] | {"is_new": bool(is_new[row])} for row in rows},
        )


def _leader_and_isr_partition(cluster: ClusterState, row: int) -> dict[str, Any]:
    view = cluster.view(row)
    return {
        "leader": view.leader,
        "leader_epoch": view.leader_epoch,
        "isr": list(view.isr),
        "partition_epoch": view.partition_epoch,
        "replicas": list(view.replicas),
        "adding_replicas": list(view.adding_replicas),
        "removing_replicas": list(view.removing_replicas),
        "is_new": False,
        "leader_recovery_state": int(view.recovery),
    }


def _update_metadata(cluster: ClusterState, requests: ControlRequests) -> Iterator[Request]:
    live = cluster.brokers.live
    rows = _by_name(cluster, requests.metadata_rows.tolist())
    partitions = {cluster.name(row): _metadata_partition(cluster, row, live) for row in rows}
    live_brokers = cluster.brokers.registered_ids()
    for broker in requests.metadata_brokers.tolist():
        yield _request(
            cluster, broker, Api.UPDATE_METADATA, requests, live_brokers=list(live_brokers), partitions=partitions
        )


def _metadata_partition(cluster: ClusterState, row: int, live: UInt8) -> dict[str, Any]:
    """A replica is offline if its broker is unregistered or shutting down, or its log directory has failed. A partition
    of a topic under deletion has no leader and no epochs (``wire.md`` section 3)."""
    view, replicas = cluster.view(row), cluster.partitions.replicas_of(row)
    dead = np.isin(replicas, cluster.partitions.flagged_replicas(row, ReplicaFlag.OFFLINE_DIR)) | (live[replicas] == 0)
    deleting = bool(cluster.topics.deleting[cluster.partitions.topic[row]])
    return {
        "leader": LEADER_DURING_DELETE if deleting else view.leader,
        "leader_epoch": 0 if deleting else view.leader_epoch,
        "isr": list(view.isr),
        "partition_epoch": 0 if deleting else view.partition_epoch,
        "replicas": list(view.replicas),
        "offline_replicas": cluster.brokers.ids_of(replicas[dead]),
    }


def _stop_replica(cluster: ClusterState, requests: ControlRequests) -> Iterator[Request]:
    batch = requests.stop_replica
    for broker, part in batch.slices():
        rows = batch.rows[part].tolist()
        how = zip(requests.stop_leader_epoch[part].tolist(), requests.stop_delete[part].tolist(), strict=True)
        fields = dict(zip(rows, how, strict=True))
        yield _request(
            cluster,
            broker,
            Api.STOP_REPLICA,
            requests,
            partitions={
                cluster.name(row): {"leader_epoch": fields[row][0], "delete_partition": bool(fields[row][1])}
                for row in _by_name(cluster, rows)
            },
        )


def _by_name(cluster: ClusterState, rows: Iterable[int]) -> list[int]:
    """Rows sorted by topic name and partition."""
    names, partitions = cluster.topics.names, cluster.partitions
    return sorted(rows, key=lambda row: (names[partitions.topic[row]], int(partitions.partition[row])))
