"""Controller mutation quotas of requests (KIP-599), from the settings of users and clients in ZooKeeper.

``kframe.plugin.server.MutationQuotas`` has the rules. Quotas are read with each request that creates or deletes
partitions, so a changed quota applies at once.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeAlias, TypeVar

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import NO_STATE, ClusterState
from kframe.plugin.server import MUTATION_RATE, MutationQuota, NewPartitions, NewTopic, QuotaEntity, entities_of
from kframe_kafka_wire.apis.calls import Call, ServerContext
from kframe_kafka_wire.records.store import Records, sanitized, settings_at

_log = logging.getLogger("kframe.kafka_wire")

_CREATED: Final = frozenset({ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT})
#: Id, partition count and replication factor of topics.
TopicSummaries: TypeAlias = Mapping[str, tuple[bytes, int, int]]
Requested = TypeVar("Requested", NewTopic, NewPartitions)


def now_ms() -> float:
    """The time of quotas in milliseconds."""
    return time.monotonic() * 1000


async def quota_of(call: Call, *, strict: bool) -> MutationQuota:
    """The quota of the client. Raises StoreError."""
    user, client_id = sanitized(call.session.principal.name), sanitized(call.header.client_id or "")
    entities = entities_of(user, client_id)
    rates = await call.context.read(lambda records: _first_rate(records, entities))
    return call.context.mutations.quota_of(user, client_id, rates, now_ms(), strict=strict)


def _first_rate(records: Records, entities: Iterable[QuotaEntity]) -> dict[QuotaEntity, float]:
    """The first of these entities with a quota, and its rate."""
    for entity in entities:
        text = settings_at(records, f"/config/{_path(entity)}").get(MUTATION_RATE)
        rate = math.nan if text is None else _rate(entity, text)
        if not math.isnan(rate):
            return {entity: rate}
    return {}


def _path(entity: QuotaEntity) -> str:
    parts = {"users": entity.user, "clients": entity.client_id}
    return "/".join(f"{kind}/{name}" for kind, name in parts.items() if name is not None)


def _rate(entity: QuotaEntity, text: str) -> float:
    """A rate that is not negative, or NaN."""
    try:
        return max(float(text), 0.0)
    except ValueError:
        _log.warning("/config/%s: controller_mutation_rate is %r, expected a number", _path(entity), text)
        return math.nan


async def execute(
    call: Call,
    quota: MutationQuota,
    requests: Sequence[Requested],
    submit: Callable[..., Future[Any]],
    partitions: Callable[[ClusterState], Mapping[str, int]],
) -> tuple[dict[str, ErrorCode], Mapping[str, str], TopicSummaries]:
    """Create topics or partitions within a quota. Returns codes, messages, and the shapes of created topics, by name.

    ``partitions`` returns the number of new partitions by topic. Only a valid request is charged, as in Kafka 3.9
    ``ZkAdminManager.createTopics``.
    """
    validate_only = call.body.get("validate_only", False)
    if validate_only or not quota.is_limited:
        result = await call.context.wait(submit(requests, timeout_ms=call.timeout_ms, validate_only=validate_only))
        return result, result.messages, result.created
    validated = await call.context.wait(submit(requests, timeout_ms=call.timeout_ms, validate_only=True))
    codes, messages = dict(validated), dict(validated.messages)
    valid = [request for request in requests if codes[request.name] is ErrorCode.NONE]
    counts = await call.context.inspect_cluster(partitions) or {}
    accepted = [request for request in valid if quota.record(counts.get(request.name, 0), now_ms())]
    codes |= {request.name: ErrorCode.THROTTLING_QUOTA_EXCEEDED for request in valid}
    if not accepted:
        return codes, messages, {}
    result = await call.context.wait(submit(accepted, timeout_ms=call.timeout_ms, validate_only=False))
    return codes | result, messages | result.messages, result.created


async def delete(call: Call, quota: MutationQuota, names: Sequence[str]) -> dict[str, ErrorCode]:
    """Delete topics within a quota. Returns codes by topic. Unknown topics are not charged."""
    counts: Mapping[str, int] = {}
    if quota.is_limited and call.context.enabled("delete.topic.enable", default=True):
        counts = await call.context.inspect_cluster(lambda cluster: _partitions_of(cluster, names)) or {}
    accepted = [name for name in names if name not in counts or quota.record(counts[name], now_ms())]
    codes = dict.fromkeys(names, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    if accepted:
        result = await call.context.wait(call.context.controller.delete_topics(accepted, timeout_ms=call.timeout_ms))
        codes |= result
    return codes


def _partitions_of(cluster: ClusterState, names: Iterable[str]) -> dict[str, int]:
    """The number of partitions of the topics that brokers know."""
    counts = {}
    for name in names:
        index = cluster.topics.find(name)
        if index is None or cluster.topics.deleting[index]:
            continue
        rows = cluster.topics.rows_of(index)
        if (cluster.partitions.partition_epoch[rows] != NO_STATE).any():
            counts[name] = len(rows)
    return counts


async def create_automatically(call: Call, topic: NewTopic) -> ErrorCode:
    """Create a topic that a client needs. It is charged to the client's quota, which refuses nothing here.

    Source: Kafka 3.9 ``AutoTopicCreationManager.createTopics``.
    """
    quota = await quota_of(call, strict=False)
    code = (await call.context.wait(call.context.controller.create_topics([topic], timeout_ms=0)))[topic.name]
    if code in _CREATED:
        quota.record(partition_count(call.context, topic), now_ms())
    return code


def partition_count(context: ServerContext, topic: NewTopic) -> int:
    """The number of partitions of a requested topic."""
    if topic.assignments is not None:
        return len(topic.assignments)
    return topic.partitions if topic.partitions > 0 else context.number("num.partitions", 1)
