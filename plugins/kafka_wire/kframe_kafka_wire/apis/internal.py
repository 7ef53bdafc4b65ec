"""Kafka's internal topics, and the coordinators of groups and transactions (FindCoordinator; section 18).

The controller creates these topics itself. A broker would also assign replicas to the controller, which cannot host
any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import NO_STATE, ClusterState, Endpoint
from kframe.plugin.server import AclOperation, AclResourceType, NewTopic
from kframe_kafka_wire.apis.calls import Call
from kframe_kafka_wire.apis.mutations import create_automatically
from kframe_kafka_wire.protocol.codec import Fields

OFFSETS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
INTERNAL: Final = frozenset({OFFSETS, TRANSACTIONS})
#: Broker settings for internal topics: partitions, replicas, segment bytes, and minimum in-sync replicas (Kafka 3.9
#: ``AutoTopicCreationManager``).
_SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    OFFSETS: (
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
    ),
    TRANSACTIONS: (
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        "transaction.state.log.segment.bytes",
        "transaction.state.log.min.isr",
    ),
}
#: By key type: the internal topic, the resource type, and the error of a denied request.
_KEYS: Final = {
    0: (OFFSETS, AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: (TRANSACTIONS, AclResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def java_hash(text: str) -> int:
    """``String.hashCode`` of a text: UTF-16 units, signed 32 bits."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def partition_of(key: str, count: int) -> int:
    """The partition of an internal topic for a key (Kafka ``Utils.abs``)."""
    value = java_hash(key)
    return (0 if value == -(2**31) else abs(value)) % count


async def internal_topic(call: Call, name: str) -> NewTopic | None:
    """An internal topic with Kafka's settings for it. None if its partition count is unknown.

    Brokers read the partition count from their own settings when they start. With another count they would find no
    coordinator until a restart. If the controller's settings do not have it, the controller requests it from a broker.
    """
    context = call.context
    settings = {key: value for key in _SIZES[name] if (value := context.setting(key, ""))}
    if _SIZES[name][0] not in settings:
        settings = await context.broker_settings(_SIZES[name])
    return _internal_topic(name, settings)


def _internal_topic(name: str, settings: Mapping[str, str]) -> NewTopic | None:
    partitions, factor, segment, *other_sizes = _SIZES[name]
    if not settings.get(partitions, "").isdecimal():
        return None
    config = {"cleanup.policy": "compact", "segment.bytes": settings.get(segment, "104857600")}
    if name == OFFSETS:
        config["compression.type"] = "producer"
    else:
        config |= {
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "min.insync.replicas": settings.get(other_sizes[0], "2"),
        }
    replicas = settings.get(factor, "3")
    return NewTopic(name, int(settings[partitions]), int(replicas) if replicas.isdecimal() else 3, config=config)


async def find_coordinator(call: Call) -> Fields:
    """Find the coordinator of one key. From version 4 on there may be many keys."""
    kind = call.body.get("key_type", 0)
    keys = call.body.get("coordinator_keys")
    results = [await _coordinator(call, kind, key) for key in (keys if keys is not None else [call.body["key"]])]
    return {"coordinators": results} if keys is not None else results[0]


async def _coordinator(call: Call, kind: int, key: str) -> Fields:
    if kind not in _KEYS:
        return _no_coordinator(
            key, ErrorCode.INVALID_REQUEST, f"coordinators of type {kind} are not served in ZooKeeper mode"
        )
    topic, resource, denied = _KEYS[kind]
    if not call.is_authorized(AclOperation.DESCRIBE, resource, key):
        return _no_coordinator(key, denied, f"{call.session.principal} may not see it")

    def find_leader(cluster: ClusterState) -> tuple[bool, int, Endpoint | None]:
        """Whether the topic exists, the leader of the key's partition, and its endpoint."""
        index = cluster.topics.find(topic)
        if index is None or not cluster.topics.partition_count[index]:
            return False, -1, None
        p = cluster.partitions
        row = cluster.topics.row_of(index, partition_of(key, int(cluster.topics.partition_count[index])))
        leader = -1 if row is None or p.partition_epoch[row] == NO_STATE else int(p.leader[row])
        if leader < 0 or not cluster.brokers.registered[leader] or cluster.topics.deleting[index]:
            return True, -1, None
        registration = cluster.brokers.registrations[leader]
        return True, int(cluster.brokers.ids[leader]), None if registration is None else call.endpoint(registration)

    coordinator = await call.context.inspect_cluster(find_leader)
    if coordinator is None:
        return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "this is not the controller, ask a broker")
    exists, broker_id, endpoint = coordinator
    if endpoint is not None:
        return {"key": key, "node_id": broker_id, "host": endpoint.host, "port": endpoint.port, "error_code": 0}
    if exists:
        return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"its partition of {topic} has no leader")
    new_topic = await internal_topic(call, topic)
    if new_topic is None:
        return _no_coordinator(
            key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"there is no {topic} yet: a broker will create it"
        )
    code = await create_automatically(call, new_topic)
    return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} is being created ({code.name})")


def _no_coordinator(key: str, code: int, message: str) -> Fields:
    return {"key": key, "node_id": -1, "host": "", "port": -1, "error_code": code, "error_message": message}
