"""Validation of new topics and added partitions: Kafka's checks in Kafka's order.

Kafka 3.9 ``ZkAdminManager``, ``AdminZkClient`` and ``Topic``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.core.context import Context
from kframe.core.topics import unknown_brokers
from kframe.core.topics.replica_assignment import is_reassigning
from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.brokers import Brokers
from kframe.model.config import REMOTE_STORAGE
from kframe.model.topic_configs import ConfigProblem, config_problem
from kframe.model.topics import are_topic_names, metric_name, topic_name_problem

#: KRaft's metadata topic, which cannot be created.
CLUSTER_METADATA = "__cluster_metadata"
#: Use the configured default.
DEFAULT = -1
#: Bytes of the largest record of a topic in ZooKeeper (``jute.maxbuffer`` of Kafka 3.9's ``KafkaZkClient``).
RECORD_BYTES_MAX: Final = 4 * 2**20
#: The message of POLICY_VIOLATION.
TOO_MANY_PARTITIONS: Final = f"The record of a topic with so many partitions exceeds {RECORD_BYTES_MAX:,} bytes."


@dataclass(frozen=True, slots=True)
class PlacementBrokers:
    """What automatic assignments need to know of the registered brokers."""

    count: int
    racks_disagree: bool
    """Whether only some have a rack. This makes automatic assignment impossible."""

    @staticmethod
    def of(brokers: Brokers) -> PlacementBrokers:
        """The registered brokers among ``brokers``."""
        named = [
            registration.rack is not None
            for registration, registered in zip(brokers.registrations, brokers.registered.tolist(), strict=True)
            if registration and registered
        ]
        return PlacementBrokers(int(np.count_nonzero(brokers.registered)), any(named) and not all(named))


class NewTopicChecks:
    """The checks of the topics of one CreateTopics request. Topics of equal counts need them only once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._brokers = PlacementBrokers.of(context.cluster.brokers)
        self._counts_errors: dict[tuple[int, int], ErrorCode] = {}
        """By partitions and replication factor, as they are in the request."""
        self._metric_names: set[str] = set()

    def add(self, topic: NewTopic) -> None:
        """Record a topic that will be created: later topics may not have its name in metrics."""
        self._metric_names.add(metric_name(topic.name))

    def accepts_all(self, topics: Sequence[NewTopic]) -> bool:
        """Whether all topics of the request are valid, and need no check of their own.

        False where any has settings or assignments, or may be invalid: then ``error_of`` decides about each.
        """
        names = [topic.name for topic in topics]
        metric_names = set(map(metric_name, names))
        if len(names) == 0 or len(metric_names) < len(names) or CLUSTER_METADATA in names:
            return False
        if any(topic.config or topic.assignments is not None for topic in topics):
            return False
        by_counts = {(topic.partitions, topic.replication_factor): topic for topic in topics}
        return (
            are_topic_names(names)
            and self._context.cluster.topics.has_none_of(names, metric_names)
            and all(self._counts_error(topic) is ErrorCode.NONE for topic in by_counts.values())
        )

    def error_of(self, topic: NewTopic) -> ErrorCode:
        """The error of a new topic, NONE if it is valid."""
        topics = self._context.cluster.topics
        if topic.name == CLUSTER_METADATA:
            return ErrorCode.INVALID_REQUEST
        if topic.name in topics:
            return ErrorCode.TOPIC_ALREADY_EXISTS
        if topic.config and None in topic.config.values():
            return ErrorCode.INVALID_CONFIG
        if topic.assignments is None:
            error = self._counts_error(topic)
            if error is not ErrorCode.NONE:
                return error
        elif topic.partitions != DEFAULT or topic.replication_factor != DEFAULT:
            return ErrorCode.INVALID_REQUEST
        collides = topics.collides(topic.name) or metric_name(topic.name) in self._metric_names
        if collides or topic_name_problem(topic.name) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        error = _assignment_error(self._context, topic)
        if error is ErrorCode.NONE and settings_problem(self._context, topic.config) is not None:
            return ErrorCode.INVALID_CONFIG
        return error

    def _counts_error(self, topic: NewTopic) -> ErrorCode:
        size = topic.partitions, topic.replication_factor
        error = self._counts_errors.get(size)
        if error is None:
            error = self._counts_errors[size] = _counts_error(self._context, topic, self._brokers)
        return error


def settings_problem(context: Context, config: Mapping[str, str | None]) -> ConfigProblem | None:
    """Why Kafka refuses the settings of a topic. None if they are valid."""
    if not config:
        return None
    values = {name: value for name, value in config.items() if value is not None}
    if len(values) < len(config):
        nulls = ",".join(name for name in config if name not in values)
        return ConfigProblem(f"Null value not supported for topic configs: {nulls}", is_config_exception=False)
    return config_problem(values, context.config[REMOTE_STORAGE])


def exceeds_record(partitions: int, replication_factor: int) -> bool:
    """Whether the record of a topic exceeds RECORD_BYTES_MAX: a partition takes at least ``"n":[b],`` and 2 bytes for
    each further replica."""
    return partitions * (6 + 2 * replication_factor) > RECORD_BYTES_MAX


def growth_error(context: Context, growth: NewPartitions) -> ErrorCode:
    """The error of a request for more partitions, NONE if it is valid.

    Added partitions follow the pattern of partition 0. If that has no replicas, Kafka fails.
    """
    cluster = context.cluster
    topic = cluster.topics.find(growth.name)
    brokers = PlacementBrokers.of(cluster.brokers)
    if brokers.racks_disagree:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if cluster.topics.deleting[topic]:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    rows = cluster.topics.rows_of(topic)
    if len(rows) == 0:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if is_reassigning(context, rows).any():
        return ErrorCode.REASSIGNMENT_IN_PROGRESS
    known = int(cluster.topics.partition_count[topic])
    if growth.count <= known:
        return ErrorCode.INVALID_PARTITIONS
    replication_factor = int(cluster.partitions.replica_count[rows[0]])
    if growth.assignments is None:
        if replication_factor == 0:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return _automatic_error(growth.count, replication_factor, brokers.count)
    registered = set(cluster.brokers.registered_ids())
    fits = (
        replication_factor > 0
        and len(growth.assignments) == growth.count - known
        and all(
            len(replicas) == replication_factor
            and len(set(replicas)) == replication_factor
            and set(replicas) <= registered
            for replicas in growth.assignments
        )
    )
    return ErrorCode.NONE if fits else ErrorCode.INVALID_REPLICA_ASSIGNMENT


def _counts_error(context: Context, topic: NewTopic, registered: PlacementBrokers) -> ErrorCode:
    if registered.racks_disagree:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    partitions, replication_factor = topic.counts(context.config)
    if partitions <= 0:
        return ErrorCode.INVALID_PARTITIONS
    return _automatic_error(partitions, replication_factor, registered.count)


def _automatic_error(partitions: int, replication_factor: int, registered: int) -> ErrorCode:
    """The error of an automatic assignment to the registered brokers, before it is made."""
    if not 0 < replication_factor <= registered:
        return ErrorCode.INVALID_REPLICATION_FACTOR
    return ErrorCode.POLICY_VIOLATION if exceeds_record(partitions, replication_factor) else ErrorCode.NONE


def _assignment_error(context: Context, topic: NewTopic) -> ErrorCode:
    """Manual assignments need partitions 0 to n - 1 with equally many distinct brokers, registered or not."""
    if topic.assignments is None:
        return ErrorCode.NONE
    numbers = sorted(number for number, _ in topic.assignments)
    sizes = {len(replicas) for _, replicas in topic.assignments}
    repeated = any(len(set(replicas)) != len(replicas) for _, replicas in topic.assignments)
    unknown = unknown_brokers.is_unknown(
        context, np.array([broker_id for _, replicas in topic.assignments for broker_id in replicas], np.int64)
    )
    complete = numbers == list(range(len(numbers))) and len(numbers) > 0
    if not complete or len(sizes) != 1 or 0 in sizes or repeated or unknown.any():
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    return ErrorCode.NONE
