"""Metadata and DescribeCluster (``wire.md`` sections 15 and 18)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import NO_LEADER, NO_STATE, ClusterState, Registration, ReplicaFlag, topic_name_problem
from kframe.plugin.columns import Int32, Ragged
from kframe.plugin.server import CLUSTER, AclOperation, AclResourceType, NewTopic
from kframe_kafka_wire.apis.calls import OPERATIONS_NOT_REQUESTED, Call
from kframe_kafka_wire.apis.internal import INTERNAL, internal_topic
from kframe_kafka_wire.apis.mutations import create_automatically
from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.protocol.errors import Refused
from kframe_kafka_wire.protocol.shapes import ZERO_ID

#: Versions from which on topics have ids, and LISTENER_NOT_FOUND is known.
_IDS_SINCE: Final = 12
_LISTENER_SINCE: Final = 6
#: Endpoint types of DescribeCluster.
_BROKERS, _CONTROLLERS = 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class PartitionTable:
    """Partitions as in UpdateMetadata, one entry each. Lists are broker ids."""

    partition: Int32
    leader: Int32
    leader_epoch: Int32
    replicas: Ragged
    isr: Ragged
    offline: Ragged


@dataclass(frozen=True, slots=True, eq=False)
class TopicView:
    """A topic: the entries from ``first`` up to ``end`` in the table."""

    name: str
    topic_id: bytes
    table: PartitionTable
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Registered brokers, and the requested topics."""

    brokers: tuple[Registration, ...]
    topics: Mapping[str, TopicView]


async def read_view(call: Call, select_topics: Callable[[ClusterState], Iterable[int]]) -> ClusterView:
    """The present cluster. Raises Refused on a standby, which has no cluster state.

    Clients without a response use another node. An empty response would be wrong: Java's admin client would find no
    topics in it, and keep using this node until its metadata expire.
    """
    ids = call.context.topic_ids
    view = await call.context.inspect_cluster(lambda cluster: _view_of(cluster, select_topics, ids))
    if view is None:
        raise Refused("it asks for brokers and topics, which only the controller knows, and this is not the controller")
    return view


def _view_of(
    cluster: ClusterState, select_topics: Callable[[ClusterState], Iterable[int]], topic_ids: bool
) -> ClusterView:
    """Brokers, and the topics (indexes) that ``select_topics`` returns, copied from the columns in a few array passes.

    Without ``topic_ids`` topics have no ids. Partitions without a state, and topics queued for deletion, are left out:
    only the controller knows them.
    """
    topics, p = cluster.topics, cluster.partitions
    registered = zip(cluster.brokers.registrations, cluster.brokers.registered, strict=True)
    brokers = tuple(broker for broker, is_registered in registered if broker is not None and is_registered)
    indexes = np.fromiter(select_topics(cluster), np.int64)
    if not len(indexes):
        return ClusterView(brokers, {})
    rows = topics.rows_of_all(indexes)
    rows = rows[(p.partition_epoch[rows] != NO_STATE) & (topics.deleting[p.topic[rows]] == 0)]
    table, owners = _table(cluster, rows), p.topic[rows]
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    ends = np.append(starts, len(rows))[1:]
    views = {}
    for index, first, end in zip(owners[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
        name = topics.names[index]
        topic_id = topics.ids[index].tobytes() if topic_ids else ZERO_ID
        views[name] = TopicView(name, topic_id, table, first, end)
    return ClusterView(brokers, views)


def _table(cluster: ClusterState, rows: Int32) -> PartitionTable:
    p = cluster.partitions
    ids = np.append(cluster.brokers.ids, np.int32(NO_LEADER))
    replicas, isr = p.lists("replica", rows), p.lists("isr", rows)
    flags = p.replica_status[p.slots_of(rows)]
    dead = (cluster.brokers.live[replicas.values] == 0) | ((flags & np.uint8(ReplicaFlag.OFFLINE_DIR)) != 0)
    offline = replicas.keep(dead)
    return PartitionTable(
        p.partition[rows],
        ids[p.leader[rows]],
        p.leader_epoch[rows],
        Ragged(replicas.offsets, ids[replicas.values]),
        Ragged(isr.offsets, ids[isr.values]),
        Ragged(offline.offsets, ids[offline.values]),
    )


async def metadata(call: Call) -> Fields:
    """Brokers with the controller among them, and topics as brokers know them."""
    requested_topics = call.body["topics"]
    all_topics = requested_topics is None or (call.version == 0 and not requested_topics)
    requested = [] if all_topics else requested_topics
    names = [topic["name"] for topic in requested if topic["name"] is not None]
    ids = [topic["topic_id"] for topic in requested if topic["name"] is None]
    if call.version < _IDS_SINCE and (ids or any(topic.get("topic_id", ZERO_ID) != ZERO_ID for topic in requested)):
        refused = [(topic["name"] or "", topic["topic_id"]) for topic in requested]
        return {"topics": [_missing(name, topic_id, ErrorCode.INVALID_REQUEST) for name, topic_id in refused]}

    def select_topics(cluster: ClusterState) -> list[int]:
        topics = cluster.topics
        if all_topics:
            return np.flatnonzero(topics.partition_count).tolist()
        indexes = [topics.find(name) for name in dict.fromkeys(names)] + [
            topics.find_id(topic_id) for topic_id in set(ids)
        ]
        return list(dict.fromkeys(index for index in indexes if index is not None))

    view = await read_view(call, select_topics)
    entries = []
    if all_topics:
        visible = [
            view.topics[name]
            for name in sorted(view.topics)
            if call.is_authorized(AclOperation.DESCRIBE, AclResourceType.TOPIC, name)
        ]
        entries = await asyncio.to_thread(lambda: [_described(call, view, topic) for topic in visible])
    else:
        by_id = {topic.topic_id: topic for topic in view.topics.values()}
        entries = [await _by_name(call, view, name) for name in dict.fromkeys(names)]
        entries += [_by_id(call, view, by_id.get(topic_id), topic_id) for topic_id in dict.fromkeys(ids)]
    operations = _cluster_operations(call)
    brokers, controller_id = nodes(call, view)
    return {
        "brokers": brokers,
        "controller_id": controller_id,
        "cluster_id": await call.context.cluster_id(),
        "topics": entries,
        "cluster_authorized_operations": operations,
    }


def _cluster_operations(call: Call) -> int:
    """The authorized cluster operations if the client requests them. 0 unless it may describe the cluster."""
    if not call.body.get("include_cluster_authorized_operations"):
        return OPERATIONS_NOT_REQUESTED
    return call.operations(AclResourceType.CLUSTER, CLUSTER) if call.is_authorized(AclOperation.DESCRIBE) else 0


def nodes(call: Call, view: ClusterView) -> tuple[list[Fields], int]:
    """All nodes with this listener. Also the id of the controller (-1 if it is none of them)."""
    entries: list[Fields] = []
    for registration in (*view.brokers, call.context.node):
        endpoint = call.endpoint(registration)
        if endpoint is not None:
            fields = {"host": endpoint.host, "port": endpoint.port, "rack": registration.rack}
            entries.append({"node_id": registration.broker_id, "broker_id": registration.broker_id, **fields})
    own_id = call.context.node.broker_id
    return entries, own_id if any(entry["node_id"] == own_id for entry in entries) else -1


async def _by_name(call: Call, view: ClusterView, name: str) -> Fields:
    if not call.is_authorized(AclOperation.DESCRIBE, AclResourceType.TOPIC, name):
        return _missing(name, ZERO_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if name in view.topics:
        return _described(call, view, view.topics[name])
    if topic_name_problem(name) is not None:
        return _missing(name, ZERO_ID, ErrorCode.INVALID_TOPIC_EXCEPTION)
    return _missing(name, ZERO_ID, await _create(call, name))


def _by_id(call: Call, view: ClusterView, topic: TopicView | None, topic_id: bytes) -> Fields:
    if topic is None:
        return _missing(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
    if not call.is_authorized(AclOperation.DESCRIBE, AclResourceType.TOPIC, topic.name):
        return _missing(None, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return _described(call, view, topic)


async def _create(call: Call, name: str) -> int:
    """Create a requested topic if automatic creation is enabled. Return the error code of the present response."""
    allowed = call.body.get("allow_auto_topic_creation", True)
    if not (allowed and call.context.enabled("auto.create.topics.enable", default=True)):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not call.is_authorized(AclOperation.CREATE) and not call.is_authorized(
        AclOperation.CREATE, AclResourceType.TOPIC, name
    ):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = await internal_topic(call, name) if name in INTERNAL else NewTopic(name)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    code = await create_automatically(call, topic)
    if code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.TOPIC_ALREADY_EXISTS):
        return ErrorCode.LEADER_NOT_AVAILABLE
    return code


def _missing(name: str | None, topic_id: bytes, code: int) -> Fields:
    return {"error_code": code, "name": name, "topic_id": topic_id, "is_internal": name in INTERNAL}


def _described(call: Call, view: ClusterView, topic: TopicView) -> Fields:
    is_reachable = {broker.broker_id: call.endpoint(broker) is not None for broker in view.brokers}
    unreachable = ErrorCode.LISTENER_NOT_FOUND if call.version >= _LISTENER_SINCE else ErrorCode.LEADER_NOT_AVAILABLE
    partitions = []
    table = topic.table
    for number in range(topic.first, topic.end):
        leader = int(table.leader[number])
        replicas, isr = table.replicas[number].tolist(), table.isr[number].tolist()
        code = ErrorCode.NONE if is_reachable.get(leader) else unreachable
        if leader not in is_reachable:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        if call.version == 0:  # Version 0 shows live replicas only.
            alive, in_sync = (
                [replica for replica in replicas if is_reachable.get(replica)],
                [replica for replica in isr if is_reachable.get(replica)],
            )
            if code is ErrorCode.NONE and (len(alive) < len(replicas) or len(in_sync) < len(isr)):
                code = ErrorCode.REPLICA_NOT_AVAILABLE
            replicas, isr = alive, in_sync
        partitions.append(
            {
                "error_code": code,
                "partition_index": int(table.partition[number]),
                "leader_id": leader if code in (ErrorCode.NONE, ErrorCode.REPLICA_NOT_AVAILABLE) else NO_LEADER,
                "leader_epoch": int(table.leader_epoch[number]),
                "replica_nodes": replicas,
                "isr_nodes": isr,
                "offline_replicas": table.offline[number].tolist(),
            }
        )
    operations = OPERATIONS_NOT_REQUESTED
    if call.body.get("include_topic_authorized_operations"):
        operations = call.operations(AclResourceType.TOPIC, topic.name)
    return {
        "error_code": ErrorCode.NONE,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL,
        "partitions": partitions,
        "topic_authorized_operations": operations,
    }


async def describe_cluster(call: Call) -> Fields:
    """The nodes of Metadata."""
    kind = call.body.get("endpoint_type", _BROKERS)
    if kind != _BROKERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if kind == _CONTROLLERS else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        code = code if call.version else ErrorCode.INVALID_REQUEST
        message = f"this listener serves clients of brokers (endpoint type {_BROKERS}), not type {kind}"
        return {"error_code": code, "error_message": message, "endpoint_type": kind, "controller_id": -1}
    view = await read_view(call, lambda _: ())
    brokers, controller_id = nodes(call, view)
    operations = _cluster_operations(call)
    return {
        "brokers": brokers,
        "controller_id": controller_id,
        "cluster_id": await call.context.cluster_id() or "",
        "cluster_authorized_operations": operations,
    }
