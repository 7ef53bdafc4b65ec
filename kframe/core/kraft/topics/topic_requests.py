"""Creation and deletion of topics, and new partitions (Kafka 4.4 ``ReplicationControlManager``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kframe.core.kraft.configuration.configs import configure_new_topic
from kframe.core.kraft.configuration.topic_configs import EffectiveConfig
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RECORDS_MAX, ControllerResult, RequestRefused, check_record_count
from kframe.core.kraft.security.mutation_quotas import charge
from kframe.core.kraft.topics.assignments import check_assignment, new_partitions, require_active
from kframe.core.kraft.topics.hash_order import first_partition
from kframe.core.kraft.topics.placement import distribute_replicas
from kframe.core.mutation_quotas import UNLIMITED, MutationQuota
from kframe.errors import ErrorCode
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import RemoveTopicRecord, TopicRecord
from kframe.model.kraft.releases import ReleaseRule
from kframe.model.topics import topic_name_problem

#: The controller's default number of partitions or replication factor.
DEFAULT: Final = -1
#: Most partitions of one CreateTopics or CreatePartitions request.
PARTITIONS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class CreatableTopic:
    """A topic of a CreateTopics request: numbers, or replicas by partition number, in the order of the request."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatePartitionsTopic:
    """The target number of partitions of a topic, with the replicas of the new ones, or None."""

    topic: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None
    factor: int | None = None
    """The replication factor of the new partitions. None: the first of ``possible_factors``."""


@dataclass(frozen=True, slots=True)
class CreatableTopicResult:
    """The result of a request for a topic."""

    topic: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: UUID | None = None
    partitions: int = DEFAULT
    """The number of partitions of a new topic; -1 otherwise."""
    replication_factor: int = DEFAULT
    configs: tuple[EffectiveConfig, ...] = ()
    """The settings of a new topic, if the request asks for them."""


def create_topics(
    context: KraftContext,
    topics: Sequence[CreatableTopic],
    new_id: Callable[[str], UUID],
    *,
    validate_only: bool = False,
    quota: MutationQuota = UNLIMITED,
) -> ControllerResult[list[CreatableTopicResult]]:
    """Create topics; the response is a list of CreatableTopicResult. ``new_id`` draws the id of a topic by name.

    All records are atomic. Each valid topic is charged to ``quota``, also if ``validate_only``. Raises RequestRefused
    for too many partitions or records.
    """
    _check_partition_count(context, topics)
    results, records = [], list[RecordAndVersion]()
    for topic in topics:
        try:
            assignments, configs = _new_topic(context, topic)
            charge(context, quota, len(assignments))
        except RequestRefused as refusal:
            results.append(CreatableTopicResult(topic.name, refusal.error, refusal.message))
            continue
        topic_id = new_id(topic.name)
        records.append(RecordAndVersion(TopicRecord(name=topic.name, topic_id=topic_id), 0))
        records += configs
        records += new_partitions(context, topic_id, sorted(assignments.items()))
        check_record_count(records)
        factor = len(assignments[0])
        results.append(
            CreatableTopicResult(topic.name, topic_id=topic_id, partitions=len(assignments), replication_factor=factor)
        )
    return ControllerResult([] if validate_only else records, results, atomic=True)


def _check_partition_count(context: KraftContext, topics: Sequence[CreatableTopic]) -> None:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        else:
            total += context.settings.num_partitions if topic.partitions == DEFAULT else max(topic.partitions, 0)
    if total > PARTITIONS_MAX:
        raise RequestRefused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _new_topic(
    context: KraftContext, topic: CreatableTopic
) -> tuple[dict[int, tuple[int, ...]], list[RecordAndVersion]]:
    """Replicas by partition, and records of configurations. Raises RequestRefused."""
    metadata = context.metadata
    if topic.name in metadata.topics.index_by_name:
        raise RequestRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    problem = topic_name_problem(topic.name)
    if problem is not None:
        raise RequestRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: expected {problem}.")
    collision = metadata.topics.colliding_name(topic.name)
    if collision is not None:
        message = f"Topic '{topic.name}' collides with existing topic: {collision}"
        raise RequestRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    nulls = [name for name, value in topic.configs.items() if value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise RequestRefused(ErrorCode.INVALID_CONFIG, message)
    configs = configure_new_topic(context, topic.name, topic.configs) if topic.configs else []
    return _assignments(context, topic), configs


def _assignments(context: KraftContext, topic: CreatableTopic) -> dict[int, tuple[int, ...]]:
    if topic.assignments:
        return _manual_assignments(context, topic)
    if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise RequestRefused(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if topic.partitions < DEFAULT or topic.partitions == 0:
        message = "Number of partitions was set to an invalid non-positive value."
        raise RequestRefused(ErrorCode.INVALID_PARTITIONS, message)
    settings = context.settings
    count = settings.num_partitions if topic.partitions == DEFAULT else topic.partitions
    factor = settings.default_replication_factor if topic.replication_factor == DEFAULT else topic.replication_factor
    replica_lists = distribute_replicas(context, count, factor)
    require_active(context, replica_lists, ErrorCode.INVALID_REPLICATION_FACTOR)
    return dict(enumerate(replica_lists))


def _manual_assignments(context: KraftContext, topic: CreatableTopic) -> dict[int, tuple[int, ...]]:
    if topic.replication_factor != DEFAULT or topic.partitions != DEFAULT:
        message = "A manual partition assignment was specified, so the two numbers must be -1."
        raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
    assignments: dict[int, tuple[int, ...]] = {}
    factor = None
    for partition, replicas in topic.assignments:
        if partition in assignments:
            message = f"Found multiple manual partition assignments for partition {partition}"
            raise RequestRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        check_assignment(context, replicas, factor)
        factor = len(replicas)
        require_active(context, [replicas], ErrorCode.INVALID_REPLICA_ASSIGNMENT)
        assignments[partition] = replicas
    if assignments.keys() != set(range(len(assignments))):
        message = "partitions should be a consecutive 0-based integer sequence"
        raise RequestRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return assignments


def create_partitions(
    context: KraftContext, requests: Sequence[CreatePartitionsTopic], *, quota: MutationQuota = UNLIMITED
) -> ControllerResult[list[CreatableTopicResult]]:
    """Add partitions to topics; the response is a list of CreatableTopicResult. All records are atomic.

    Each topic is charged to ``quota`` before its assignments are checked. Raises
    RequestRefused for too many partitions. Releases without NEW_PARTITIONS_LIMITED add as many as fit.
    """
    total = sum(_additional(context, request) for request in requests)
    if total > PARTITIONS_MAX and context.follows(ReleaseRule.NEW_PARTITIONS_LIMITED):
        message = "Excessively large number of additional partitions per request."
        raise RequestRefused(ErrorCode.POLICY_VIOLATION, message)
    results, records = [], list[RecordAndVersion]()
    for request in requests:
        try:
            records += _new_partitions(context, request, quota)
            result = CreatableTopicResult(request.topic)
            if len(records) > RECORDS_MAX:  # Kafka before 4.4 fails while it adds records, and keeps the others.
                del records[RECORDS_MAX:]
                result = CreatableTopicResult(request.topic, ErrorCode.UNKNOWN_SERVER_ERROR)
            results.append(result)
        except RequestRefused as refusal:
            results.append(CreatableTopicResult(request.topic, refusal.error, refusal.message))
    return ControllerResult(records, results, atomic=True)


def possible_factors(context: KraftContext, topic: int, *, knows_epochs: bool = True) -> tuple[int, ...]:
    """The replication factors that Kafka may use for new partitions of a topic, by index; the likely one first.

    Kafka counts the replicas, adding and removing ones included, of the partition that its hash table lists first. The
    order depends on the changes that the controller process has replayed. Partition epochs of 0 exclude any change,
    unless they are unknown.
    """
    metadata = context.metadata
    p, rows = metadata.partitions, metadata.topics.rows_of(topic)
    was_changed = bool(p.partition_epoch[rows].any())
    possible = (was_changed, not was_changed) if was_changed or not knows_epochs else (False,)
    first = [first_partition(p.partition[rows], changed=changed) for changed in possible]
    return tuple(dict.fromkeys(p.replica_count[rows[first]].tolist()))


def _additional(context: KraftContext, request: CreatePartitionsTopic) -> int:
    topics = context.metadata.topics
    topic = topics.index_by_name.get(request.topic)
    return 0 if topic is None else max(request.count - len(topics.rows_of(topic)), 0)


def _new_partitions(
    context: KraftContext, request: CreatePartitionsTopic, quota: MutationQuota
) -> list[RecordAndVersion]:
    metadata = context.metadata
    topic = metadata.topics.index_by_name.get(request.topic)
    if topic is None:
        message = "This server does not host this topic-partition."
        raise RequestRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    rows = metadata.topics.rows_of(topic)
    first, additional = len(rows), request.count - len(rows)
    if additional <= 0:
        message = f"The topic {request.topic} currently has {first} partition(s)."
        raise RequestRefused(ErrorCode.INVALID_PARTITIONS, message)
    if request.assignments is not None and len(request.assignments) != additional:
        message = f"{additional} new partition(s) have {len(request.assignments)} assignment(s)."
        raise RequestRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    charge(context, quota, additional)
    factor = possible_factors(context, topic)[0] if request.factor is None else request.factor
    if request.assignments is None:
        replica_lists = distribute_replicas(context, additional, factor)
        require_active(context, replica_lists, ErrorCode.INVALID_REPLICATION_FACTOR)
    else:
        replica_lists = list(request.assignments)
        for replicas in replica_lists:
            check_assignment(context, replicas, factor)
            require_active(context, [replicas], ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    topic_id = metadata.topics.ids[topic]
    return new_partitions(context, topic_id, [*enumerate(replica_lists, first)])


def delete_topics(
    context: KraftContext, topic_ids: Sequence[UUID], *, quota: MutationQuota = UNLIMITED
) -> ControllerResult[list[CreatableTopicResult]]:
    """Delete topics by id; the response is a list of CreatableTopicResult. All records are atomic.

    Each topic that exists is charged to ``quota``.
    """
    topics = context.metadata.topics
    results, records = [], list[RecordAndVersion]()
    for topic_id in topic_ids:
        index = topics.index_by_id.get(topic_id)
        if index is None:
            results.append(CreatableTopicResult("", ErrorCode.UNKNOWN_TOPIC_ID, topic_id=topic_id))
        elif len(records) == RECORDS_MAX:
            results.append(CreatableTopicResult(topics.names[index], ErrorCode.UNKNOWN_SERVER_ERROR, topic_id=topic_id))
        else:
            try:
                charge(context, quota, len(topics.rows_of(index)))
            except RequestRefused as refusal:
                name = topics.names[index]
                results.append(CreatableTopicResult(name, refusal.error, refusal.message, topic_id))
                continue
            records.append(RecordAndVersion(RemoveTopicRecord(topic_id=topic_id), 0))
            results.append(CreatableTopicResult(topics.names[index], topic_id=topic_id))
    return ControllerResult(records, results, atomic=True)
