"""CreateTopics, DeleteTopics and CreatePartitions (``docs/reference/controller/wire.md`` sections 9 to 11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import ClusterState
from kframe.plugin.server import UNLIMITED, AclOperation, AclResourceType, NewPartitions, NewTopic
from kframe_kafka_wire.apis.calls import Call, reason
from kframe_kafka_wire.apis.configs import configs_of
from kframe_kafka_wire.apis.mutations import TopicSummaries, delete, execute, now_ms, partition_count, quota_of
from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.protocol.shapes import ZERO_ID

#: Replicas that one request may create, far more than the record of a topic in ZooKeeper can hold.
REPLICAS_MAX: Final = 1_000_000
#: The first version of DeleteTopics with TOPIC_DELETION_DISABLED.
_DISABLED_SINCE: Final = 3
#: The first version of CreateTopics whose response describes the new topics.
_DESCRIBED_SINCE: Final = 5
#: The first versions that a quota may refuse with THROTTLING_QUOTA_EXCEEDED.
_CREATE_TOPICS_STRICT_SINCE, _DELETE_TOPICS_STRICT_SINCE, _CREATE_PARTITIONS_STRICT_SINCE = 6, 5, 3


async def create_topics(call: Call) -> Fields:
    """Create topics. Each succeeds or fails separately."""
    topics: list[Fields] = call.body["topics"]
    listed = Counter(topic["name"] for topic in topics)
    may_create_any = call.context.controller.status().active and call.is_authorized(AclOperation.CREATE)
    codes: dict[str, ErrorCode] = {}
    messages: Mapping[str, str] = {}
    summaries: TopicSummaries = {}
    new_topics: list[NewTopic] = []
    remaining_replicas = REPLICAS_MAX
    for name, topic in {topic["name"]: topic for topic in topics}.items():
        code = ErrorCode.NONE
        remaining_replicas -= _size(topic)
        if not call.context.controller.status().active:
            code = ErrorCode.NOT_CONTROLLER
        elif listed[name] > 1:
            code = ErrorCode.INVALID_REQUEST
        elif not may_create_any and not call.is_authorized(AclOperation.CREATE, AclResourceType.TOPIC, name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif remaining_replicas < 0:
            code = ErrorCode.INVALID_PARTITIONS
        if code is ErrorCode.NONE:
            new_topics.append(_new_topic(topic))
        codes[name] = code
    quota = UNLIMITED
    if new_topics:
        quota = await quota_of(call, strict=call.version >= _CREATE_TOPICS_STRICT_SINCE)
        counts = {topic.name: partition_count(call.context, topic) for topic in new_topics}
        result, messages, summaries = await execute(
            call, quota, new_topics, call.context.controller.create_topics, lambda _cluster: counts
        )
        codes |= result
    described: dict[str, Fields] = {}
    if call.version >= _DESCRIBED_SINCE:
        described = await _describe_created(call, [topic for topic in new_topics if not codes[topic.name]], summaries)
    return {
        "topics": [_created(call, name, code, messages.get(name), described.get(name)) for name, code in codes.items()],
        "throttle_time": quota.throttle_ms(now_ms()),
    }


async def _describe_created(call: Call, created: list[NewTopic], summaries: TopicSummaries) -> dict[str, Fields]:
    """Id, partitions, replicas and settings of new or validated topics, if the client may describe settings."""
    visible = [
        topic
        for topic in created
        if call.is_authorized(AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, topic.name)
    ]
    if not visible:
        return {}
    code, configs = await configs_of(call, {topic.name: topic.config for topic in visible})
    described: dict[str, Fields] = {}
    for topic in visible:
        # A topic that was only validated does not exist.
        topic_id, partitions, factor = summaries.get(topic.name, (ZERO_ID, *_counts(call, topic)))
        described[topic.name] = {
            "topic_id": topic_id,
            "num_partitions": partitions,
            "replication_factor": factor,
            "topic_config_error_code": code,
            "configs": configs.get(topic.name),
        }
    return described


def _counts(call: Call, topic: NewTopic) -> tuple[int, int]:
    """The requested number of partitions and replicas."""
    if topic.assignments is not None:
        return len(topic.assignments), len(topic.assignments[0][1])
    factor = topic.replication_factor
    factor = factor if factor > 0 else call.context.number("default.replication.factor", 1)
    return partition_count(call.context, topic), factor


def _size(topic: Fields) -> int:
    """The requested number of replicas, at least one for each partition."""
    if topic["assignments"]:
        return sum(max(1, len(assignment["broker_ids"])) for assignment in topic["assignments"])
    return max(1, int(topic["num_partitions"])) * max(1, int(topic["replication_factor"]))


def _new_topic(topic: Fields) -> NewTopic:
    assignments = tuple(
        (assignment["partition_index"], tuple(assignment["broker_ids"])) for assignment in topic["assignments"]
    )
    config = {config["name"]: config["value"] for config in topic["configs"]}
    return NewTopic(topic["name"], topic["num_partitions"], topic["replication_factor"], assignments or None, config)


def _created(call: Call, name: str, code: int, message: str | None, described: Fields | None) -> Fields:
    if code:
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            message = "Authorization failed."  # Kafka's message.
        message = message or reason(call, code, name)
        return {"name": name, "error_code": code, "error_message": message, "configs": ()}
    hidden = {
        "topic_id": ZERO_ID,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": (),
        "topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    return {"name": name, "error_code": code, **(hidden if described is None else described)}


async def delete_topics(call: Call) -> Fields:
    """Delete topics by name, from version 6 on also by id. The name is not shown to unauthorized clients."""
    requested = _requested_topics(call)
    refusal = ErrorCode.NONE
    if any(name is not None and topic_id != ZERO_ID for name, topic_id in requested):
        refusal = ErrorCode.INVALID_REQUEST
    elif not call.context.controller.status().active:
        refusal = ErrorCode.NOT_CONTROLLER
    if refusal is not ErrorCode.NONE:
        return {"responses": [_deleted(call, name, topic_id, refusal) for name, topic_id in requested]}
    ids = [topic_id for name, topic_id in requested if name is None]
    names_of = (await call.context.inspect_cluster(lambda cluster: _names_by_id(cluster, ids)) or {}) if ids else {}
    listed = Counter(name if name is not None else names_of.get(topic_id) for name, topic_id in requested)
    responses, deletions = [], {}
    for requested_name, topic_id in requested:
        name = requested_name if requested_name is not None else names_of.get(topic_id)
        if name is None:
            responses.append(_deleted(call, None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
        elif listed[name] > 1:
            responses.append(_deleted(call, requested_name, topic_id, ErrorCode.INVALID_REQUEST))
        elif not call.is_authorized(AclOperation.DELETE, AclResourceType.TOPIC, name):
            may_describe = requested_name is None and call.is_authorized(
                AclOperation.DESCRIBE, AclResourceType.TOPIC, name
            )
            visible_name = name if may_describe else requested_name
            responses.append(_deleted(call, visible_name, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            deletions[name] = topic_id
    quota = UNLIMITED
    if deletions:
        quota = await quota_of(call, strict=call.version >= _DELETE_TOPICS_STRICT_SINCE)
        for name, code in (await delete(call, quota, list(deletions))).items():
            responses.append(_deleted(call, name, deletions[name], code))
    return {"responses": responses, "throttle_time": quota.throttle_ms(now_ms())}


def _requested_topics(call: Call) -> list[tuple[str | None, bytes]]:
    """Name or id of each topic; the other is None or zeros. A topic with neither counts as an unknown id."""
    if "topic_names" in call.body:
        return [(name, ZERO_ID) for name in call.body["topic_names"]]
    return [(topic["name"], topic["topic_id"]) for topic in call.body["topics"]]


def _names_by_id(cluster: ClusterState, ids: Iterable[bytes]) -> dict[bytes, str]:
    """Names of the topics with these ids."""
    indexes = ((topic_id, cluster.topics.find_id(topic_id)) for topic_id in ids)
    return {topic_id: cluster.topics.names[index] for topic_id, index in indexes if index is not None}


def _deleted(call: Call, name: str | None, topic_id: bytes, code: int) -> Fields:
    if code == ErrorCode.TOPIC_DELETION_DISABLED and call.version < _DISABLED_SINCE:
        code = ErrorCode.INVALID_REQUEST
    label = name if name is not None else topic_id.hex()
    return {"name": name, "topic_id": topic_id, "error_code": code, "error_message": reason(call, code, label)}


async def create_partitions(call: Call) -> Fields:
    """Add partitions to topics; each topic has its own result."""
    listed = Counter(topic["name"] for topic in call.body["topics"])
    active = call.context.controller.status().active
    codes: dict[str, ErrorCode] = {}
    messages: Mapping[str, str] = {}
    new_partitions = []
    remaining_replicas = REPLICAS_MAX
    for topic in {topic["name"]: topic for topic in call.body["topics"]}.values():
        name, code = topic["name"], ErrorCode.NONE
        remaining_replicas -= max(1, topic["count"])
        if not active:
            code = ErrorCode.NOT_CONTROLLER
        elif listed[name] > 1:
            code = ErrorCode.INVALID_REQUEST
        elif not call.is_authorized(AclOperation.ALTER, AclResourceType.TOPIC, name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif remaining_replicas < 0:
            code = ErrorCode.INVALID_PARTITIONS
        codes[name] = code
        if code is ErrorCode.NONE:
            assignments = topic["assignments"]
            lists = (
                None if assignments is None else tuple(tuple(assignment["broker_ids"]) for assignment in assignments)
            )
            new_partitions.append(NewPartitions(name, topic["count"], lists))
    quota = UNLIMITED
    if new_partitions:
        quota = await quota_of(call, strict=call.version >= _CREATE_PARTITIONS_STRICT_SINCE)
        result, messages, _ = await execute(
            call,
            quota,
            new_partitions,
            call.context.controller.create_partitions,
            lambda cluster: _added(cluster, new_partitions),
        )
        codes |= result
    return {
        "results": [
            {"name": name, "error_code": code, "error_message": messages.get(name) or reason(call, code, name)}
            for name, code in codes.items()
        ],
        "throttle_time": quota.throttle_ms(now_ms()),
    }


def _added(cluster: ClusterState, new_partitions: Iterable[NewPartitions]) -> dict[str, int]:
    """The number of partitions that these requests add, by topic."""
    topics = cluster.topics
    indexes = ((growth, topics.find(growth.name)) for growth in new_partitions)
    return {growth.name: growth.count - len(topics.rows_of(index)) for growth, index in indexes if index is not None}
