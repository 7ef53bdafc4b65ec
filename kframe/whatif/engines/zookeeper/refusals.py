"""Why a controller in ZooKeeper mode refuses a request, with the objects that cause it.

The controller responds with codes alone. Each reason follows from the rule of ``core/topics/topic_validation.py``,
``core/operations/topic_requests.py`` or ``core/operations/elect_leaders.py`` that gave the code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kframe.core.topics.topic_validation import CLUSTER_METADATA
from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.arrays import Int16, Int32
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.ids import NO_STATE, ReplicaFlag
from kframe.model.texts import counted
from kframe.model.topics import metric_name, topic_name_problem
from kframe.snapshot.content import brokers_text
from kframe.whatif.results.outcome import names_text

#: How many partitions a response names.
_NAMED: Final = 20


def creation_reason(cluster: ClusterState, config: ControllerConfig, topic: NewTopic, error: ErrorCode) -> str | None:
    """Why a topic is not created; None if it is, and for codes that have Kafka's message."""
    partitions, replication_factor = topic.counts(config)
    match error:
        case ErrorCode.INVALID_REQUEST if topic.name == CLUSTER_METADATA:
            return f"{CLUSTER_METADATA} is the topic of KRaft's metadata log"
        case ErrorCode.INVALID_REQUEST:
            return "replicas are given, so counts of partitions and replicas may not be"
        case ErrorCode.TOPIC_ALREADY_EXISTS:
            return f"topic {topic.name} {_state(cluster, topic.name)}"
        case ErrorCode.INVALID_TOPIC_EXCEPTION if topic_name_problem(topic.name) is None:
            return f"its name in metrics, {metric_name(topic.name)}, is that of topic {_colliding(cluster, topic.name)}"
        case ErrorCode.INVALID_TOPIC_EXCEPTION:
            return f"expected {topic_name_problem(topic.name)}"
        case ErrorCode.INVALID_PARTITIONS:
            return f"{counted(partitions, 'partition')}, expected at least 1"
        case ErrorCode.INVALID_REPLICA_ASSIGNMENT:
            return _assignment_reason(cluster, dict(topic.assignments or ()), None)
        case _:
            return _placement_reason(cluster, replication_factor, error)


def growth_reason(cluster: ClusterState, growth: NewPartitions, error: ErrorCode) -> str | None:
    """Why a topic does not grow; None if it does, and for codes that have Kafka's message."""
    name, topic = growth.name, cluster.topics.find(growth.name)
    rows = np.empty(0, np.int32) if topic is None else cluster.topics.rows_of(topic)
    factor = int(cluster.partitions.replica_count[rows[0]]) if len(rows) else 0
    match error:
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return "no such topic" if topic is None else f"topic {name} has no partition"
        case ErrorCode.INVALID_TOPIC_EXCEPTION:
            return f"topic {name} {_state(cluster, name)}"
        case ErrorCode.REASSIGNMENT_IN_PROGRESS:
            moving = [cluster.name(row) for row in rows.tolist() if _is_moving(cluster, row)]
            return f"a reassignment of {names_text(moving)} is in progress"
        case ErrorCode.INVALID_PARTITIONS:
            return f"found {counted(growth.count, 'partition')}, expected more than the {len(rows)} of topic {name}"
        case ErrorCode.INVALID_REPLICA_ASSIGNMENT:
            lists = {len(rows) + number: replicas for number, replicas in enumerate(growth.assignments or ())}
            if len(lists) != growth.count - len(rows):
                return f"replicas of {counted(len(lists), 'partition')}, expected of {growth.count - len(rows)}"
            return _assignment_reason(cluster, lists, factor)
        case ErrorCode.UNKNOWN_SERVER_ERROR if factor == 0 and topic is not None:
            return f"partition {name}-0 has no replica, whose pattern the new partitions follow"
        case _:
            return _placement_reason(cluster, factor, error)


def deletion_reason(cluster: ClusterState, name: str, error: ErrorCode) -> str | None:
    """Why a topic is not deleted; None if it is."""
    match error:
        case ErrorCode.TOPIC_DELETION_DISABLED:
            return "delete.topic.enable is false"
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            known = cluster.topics.find(name) is not None
            return f"topic {name} {_state(cluster, name, 'has no leader yet')}" if known else "no such topic"
        case _:
            return None


def election_reasons(cluster: ClusterState, rows: Int32, codes: Int16) -> tuple[str, ...]:
    """Some of the partitions without a new leader, each with the reason. An election that is not needed has none."""
    failed = np.flatnonzero(codes != ErrorCode.NONE)[:_NAMED]
    return tuple(
        cluster.name(row)
        if code == ErrorCode.ELECTION_NOT_NEEDED
        else f"{cluster.name(row)} ({_election_reason(cluster, row, ErrorCode(code))})"
        for row, code in zip(rows[failed].tolist(), codes[failed].tolist(), strict=True)
    )


def _election_reason(cluster: ClusterState, row: int, error: ErrorCode) -> str:
    view = cluster[cluster.topics.names[cluster.partitions.topic[row]], int(cluster.partitions.partition[row])]
    registered = set(cluster.brokers.registered_ids())
    match error:
        case ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if view.replicas:
            preferred = view.replicas[0]
            state = "not in the ISR" if preferred in registered else "not registered"
            return f"its preferred replica, broker {preferred}, is {state}"
        case ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE:
            if cluster.partitions.partition_epoch[row] == NO_STATE:
                return "it never had a leader"
            return f"none of its replicas is registered: {brokers_text(view.replicas)}"
        case ErrorCode.INVALID_TOPIC_EXCEPTION:
            return "its topic is being deleted"
        case _:
            return error.name


def _placement_reason(cluster: ClusterState, replication_factor: int, error: ErrorCode) -> str | None:
    """Why replicas cannot be placed automatically."""
    brokers = cluster.brokers
    registered = brokers.registered_ids()
    if error is ErrorCode.INVALID_REPLICATION_FACTOR:
        return (
            f"replication factor {replication_factor}, and {len(registered)} registered: {brokers_text(registered)}"
            if registered
            else f"replication factor {replication_factor}, and no broker is registered"
        )
    if error is ErrorCode.UNKNOWN_SERVER_ERROR:
        racks = {
            registration.broker_id: registration.rack
            for registration, up in zip(brokers.registrations, brokers.registered.tolist(), strict=True)
            if registration and up
        }
        without = [broker_id for broker_id, rack in racks.items() if rack is None]
        with_rack = [broker_id for broker_id, rack in racks.items() if rack is not None]
        if without and with_rack:
            return f"{brokers_text(sorted(without))} without a rack beside {brokers_text(sorted(with_rack))} with one"
    return None


def _assignment_reason(cluster: ClusterState, lists: Mapping[int, Sequence[int]], factor: int | None) -> str:
    """What is wrong with replicas that a request gives."""
    if not lists:
        return "no partition, expected at least one"
    registered = set(cluster.brokers.registered_ids())
    expected = len(next(iter(lists.values()), ())) if factor is None else factor
    for number, replicas in sorted(lists.items()):
        if not replicas:
            return f"partition {number} has no replica"
        if len(set(replicas)) != len(replicas):
            return f"partition {number} has a broker twice: {list(replicas)}"
        if len(replicas) != expected:
            return f"partition {number} has {counted(len(replicas), 'replica')}, expected {expected}"
    for number, replicas in sorted(lists.items()):
        if unregistered := sorted(set(replicas) - registered):
            return f"partition {number} has replicas on {brokers_text(unregistered)}, not registered"
    return "partitions that are not numbered from 0 without a gap"


def _state(cluster: ClusterState, name: str, otherwise: str = "exists") -> str:
    topic = cluster.topics.find(name)
    return "is being deleted" if topic is not None and cluster.topics.deleting[topic] else otherwise


def _colliding(cluster: ClusterState, name: str) -> str:
    topics = cluster.topics
    return next(other for other in topics.names if other in topics and metric_name(other) == metric_name(name))


def _is_moving(cluster: ClusterState, row: int) -> bool:
    p = cluster.partitions
    flags = p.replica_status[p.slots_of(np.array([row], np.int32))]
    return bool((flags & np.uint8(ReplicaFlag.ADDING | ReplicaFlag.REMOVING)).any())
