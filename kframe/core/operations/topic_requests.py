"""Requests about topics and reassignments, validated and answered with Kafka's error codes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.core.operations import topic_changes
from kframe.core.reassignment.protocols import protocol_of
from kframe.core.topics import stored_reassignments, topic_deletion, topic_metadata, unknown_brokers
from kframe.core.topics.replica_assignment import current, invalid_targets, is_reassigning, table_of
from kframe.core.topics.replica_placement import AssignableBrokers, assign_automatically
from kframe.core.topics.topic_validation import (
    TOO_MANY_PARTITIONS,
    NewTopicChecks,
    growth_error,
    settings_problem,
)
from kframe.errors import ErrorCode
from kframe.model.admin import NewTopic
from kframe.model.arrays import Bool, Int16, Int32, Ragged
from kframe.model.changes import WriteCode
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    ListReassignmentsRequested,
    ReassignmentRequested,
)
from kframe.model.ids import NO_LEADER, NO_STATE
from kframe.model.row_views import values_at
from kframe.model.tables import Targets, TopicTable
from kframe.ports.store_requests import CreateTopics, QueueDeletions, WriteAssignments


class TopicShape(NamedTuple):
    """The fields of a topic in the response to CreateTopics."""

    topic_id: bytes
    """Zeros if topics have no ids."""
    partitions: int
    replication_factor: int
    """Of partition 0."""


@dataclass(frozen=True, slots=True)
class TopicsResponse:
    """A code for each requested topic, by name."""

    codes: dict[str, ErrorCode]
    messages: dict[str, str] = field(default_factory=dict)
    """Error messages by topic: Kafka's for refused settings, and TOO_MANY_PARTITIONS."""
    created: dict[str, TopicShape] = field(default_factory=dict, compare=False)
    """Created topics, as they were then. When the response is sent, another topic may have the name."""


@dataclass(frozen=True, slots=True, eq=False)
class ReassignmentResponse:
    """The response to AlterPartitionReassignments: a code beside each partition of the request."""

    error: ErrorCode
    codes: Int16


@dataclass(frozen=True, slots=True, eq=False)
class ReassignmentsListed:
    """The response to ListPartitionReassignments: rows whose replicas are being added or removed, ascending."""

    error: ErrorCode
    rows: Int32


def create_topics(context: Context, request: CreateTopicsRequested) -> Operation[TopicsResponse]:
    """Validate and store new topics, and bring them online (Kafka 3.9 ``ZkAdminManager.createTopics``).

    Topics have ids if the inter-broker protocol has them (``AdminZkClient.createTopicWithAssignment``).
    """
    codes, messages, accepted = _validate(context, request)
    if accepted and not request.validate_only:
        table = _with_replicas(context, accepted, request)
        configs = tuple(topic.config for topic in accepted)
        results = yield from ask(CreateTopics(table, configs, with_ids=context.config.protocol.topic_ids))
        for topic, result in zip(accepted, results, strict=True):
            codes[topic.name] = _STORED[result]
        yield from topic_changes.topics_changed(context)
    return TopicsResponse(
        codes, messages, _shapes(context, [topic.name for topic in accepted if not codes[topic.name]])
    )


def _validate(
    context: Context, request: CreateTopicsRequested
) -> tuple[dict[str, ErrorCode], dict[str, str], list[NewTopic]]:
    """The code of each topic by name, error messages by name, and the valid topics."""
    checks = NewTopicChecks(context)
    if checks.accepts_all(request.topics):
        return {topic.name: ErrorCode.NONE for topic in request.topics}, {}, list(request.topics)
    listed = Counter(topic.name for topic in request.topics)
    codes: dict[str, ErrorCode] = {}
    accepted: list[NewTopic] = []
    messages: dict[str, str] = {}
    for topic in request.topics:
        error = ErrorCode.INVALID_REQUEST if listed[topic.name] > 1 else checks.error_of(topic)
        codes[topic.name] = error
        problem = settings_problem(context, topic.config) if error is ErrorCode.INVALID_CONFIG else None
        if problem is not None:
            messages[topic.name] = problem.text
        if error is ErrorCode.POLICY_VIOLATION:
            messages[topic.name] = TOO_MANY_PARTITIONS
        if error is ErrorCode.NONE:
            if not request.validate_only:
                checks.add(topic)
            accepted.append(topic)
    return codes, messages, accepted


def _shapes(context: Context, names: list[str]) -> dict[str, TopicShape]:
    """The shapes of topics that exist."""
    topics, p = context.cluster.topics, context.cluster.partitions
    indexes = topics.find_all(names)
    names = [names[position] for position in np.flatnonzero(indexes >= 0).tolist()]
    indexes = indexes[indexes >= 0]
    ids = topics.ids[indexes].view("V16").ravel().tolist()
    first = topics.locate(indexes, np.zeros(len(indexes), np.int32))
    factors = np.where(first < 0, 0, p.replica_count[first]).tolist()
    counts = topics.partition_count[indexes].tolist()
    return dict(zip(names, map(TopicShape, ids, counts, factors), strict=True))


def leaderless_topics(context: Context, names: tuple[str, ...]) -> set[str]:
    """The topics that have a partition without a leader."""
    topics, p = context.cluster.topics, context.cluster.partitions
    indexes = topics.find_all(names)
    rows = topics.rows_of_all(indexes[indexes >= 0])
    leaderless = np.append(topics.partition_count == 0, True)  # the last one is that of unknown topics
    is_leaderless = (values_at(p.leader, rows) == NO_LEADER) | (values_at(p.partition_epoch, rows) == NO_STATE)
    leaderless[p.topic[rows[is_leaderless]]] = True
    return {names[position] for position in np.flatnonzero(leaderless[indexes]).tolist()}


def create_partitions(context: Context, request: CreatePartitionsRequested) -> Operation[TopicsResponse]:
    """Validate and store added partitions of topics, and bring them online."""
    cluster = context.cluster
    codes: dict[str, ErrorCode] = {}
    messages: dict[str, str] = {}
    listed = Counter(growth.name for growth in request.topics)
    for growth in request.topics:
        error = ErrorCode.INVALID_REQUEST if listed[growth.name] > 1 else growth_error(context, growth)
        codes[growth.name] = error
        if error is ErrorCode.POLICY_VIOLATION:
            messages[growth.name] = TOO_MANY_PARTITIONS
        topic = cluster.topics.find(growth.name)
        if error is not ErrorCode.NONE or topic is None or request.validate_only:
            continue
        count = growth.count - int(cluster.topics.partition_count[topic])
        added = _grown(context, topic, count) if growth.assignments is None else Ragged.of([*growth.assignments])
        table = table_of(cluster, np.array([topic]))
        (result,) = yield from ask(WriteAssignments(_extended(table, added)))
        codes[growth.name] = _STORED[result]
        yield from topic_metadata.topic_modified(context, growth.name)
    return TopicsResponse(codes, messages)


def delete_topics(context: Context, request: DeleteTopicsRequested) -> Operation[TopicsResponse]:
    """Mark topics for deletion in storage. The watch of the marks starts the deletion.

    A topic that brokers do not know, or know as deleted, is unknown (Kafka checks its metadata cache).
    """
    disabled_error = ErrorCode.NONE if topic_deletion.enabled(context) else ErrorCode.TOPIC_DELETION_DISABLED
    announced = _announced(context, request.names)
    codes = {
        name: disabled_error if disabled_error or name in announced else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for name in request.names
    }
    marked = tuple(name for name, code in codes.items() if code is ErrorCode.NONE)
    if marked:
        yield from ask(QueueDeletions(marked))
    return TopicsResponse(codes)


def _announced(context: Context, names: tuple[str, ...]) -> set[str]:
    """The topics that brokers know: a partition has a state, and the topic is not under deletion."""
    topics, p = context.cluster.topics, context.cluster.partitions
    indexes = topics.find_all(names)
    rows = topics.rows_of_all(indexes[indexes >= 0])
    announced = np.zeros(len(topics) + 1, np.bool_)  # the last one is that of unknown topics
    has_state = values_at(p.partition_epoch, rows) != NO_STATE
    announced[values_at(p.topic, rows if has_state.all() else rows[has_state])] = True
    announced[:-1] &= topics.deleting == 0
    return {names[position] for position in np.flatnonzero(announced[indexes]).tolist()}


def alter_reassignments(context: Context, request: ReassignmentRequested) -> Operation[ReassignmentResponse]:
    """Start, change or cancel reassignments (Kafka 3.9 ``processApiPartitionReassignment``)."""
    last = request.targets.last_named()
    if bool((last[1:] > last[:-1]).all()):  # no partition is named twice
        return (yield from _alter_distinct(context, request.targets))
    distinct, owner = np.unique(last, return_inverse=True)
    response = yield from _alter_distinct(context, request.targets.take(distinct))
    return ReassignmentResponse(response.error, response.codes[owner])


def _alter_distinct(context: Context, targets: Targets) -> Operation[ReassignmentResponse]:
    """``alter_reassignments`` for targets with distinct partitions."""
    codes = np.zeros(len(targets), np.int16)
    rows, known = stored_reassignments.locate(context, targets, include_deleting=True)
    requested = Ragged(targets.replicas.offsets, context.cluster.brokers.look_up(targets.replicas.values))
    codes[_invalid(context, targets, rows, requested)] = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if targets.cancel.any():
        in_progress = np.zeros(len(targets), np.bool_)
        in_progress[known] = is_reassigning(context, rows[known])
        codes[targets.cancel & ~in_progress & (codes == 0)] = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    superseded = rows[(codes == 0) & (rows >= 0)]
    rows = stored_reassignments.without_deleting(context, rows)
    codes[(rows < 0) & (codes == 0)] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    accepted = np.flatnonzero(codes == 0).astype(np.int32)
    ordered_rows = rows[accepted]
    if not bool((ordered_rows[1:] > ordered_rows[:-1]).all()):
        accepted = accepted[np.argsort(ordered_rows)]
        ordered_rows = rows[accepted]
    requested = _target_lists(context, requested.take(accepted), targets.cancel[accepted], ordered_rows)
    protocol = protocol_of(context)
    if protocol.supersedes_stored:
        yield from stored_reassignments.forget_stored(context, superseded, only_if_reached=False)
    failed = yield from protocol.submit(context, ordered_rows, requested)
    if len(failed):
        codes[accepted[np.isin(ordered_rows, failed)]] = protocol.failure
    return ReassignmentResponse(ErrorCode.NONE, codes)


def list_reassignments(context: Context, request: ListReassignmentsRequested) -> Operation[ReassignmentsListed]:
    """All reassignments in progress, or those of the requested partitions. Unknown partitions are skipped."""
    cluster = context.cluster
    p = cluster.partitions
    if request.partitions is None:
        rows = p.reassigning_rows()
        rows = rows[p.topic[rows] >= 0]
    else:
        requested = {cluster.row(*partition) for partition in request.partitions} - {None}
        rows = np.array(sorted(row for row in requested if row is not None), np.int32)
    yield from ()
    return ReassignmentsListed(ErrorCode.NONE, rows[is_reassigning(context, rows)] if len(rows) else rows)


_STORED = {
    WriteCode.OK: ErrorCode.NONE,
    WriteCode.EXISTS: ErrorCode.TOPIC_ALREADY_EXISTS,
    WriteCode.MISSING: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    WriteCode.STALE: ErrorCode.UNKNOWN_SERVER_ERROR,
    WriteCode.FAILED: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def _with_replicas(context: Context, topics: list[NewTopic], request: CreateTopicsRequested) -> TopicTable:
    """New topics with their assignments. Automatic assignments of equally many partitions and replicas are equal."""
    assignable, lists = AssignableBrokers.of(context.cluster.brokers), []
    automatic: dict[tuple[int, int], Ragged] = {}
    for topic in topics:
        if topic.assignments is not None:
            lists.append(Ragged.of([replicas for _, replicas in sorted(topic.assignments)]))
            continue
        size = topic.counts(context.config)
        if size not in automatic:
            automatic[size] = assign_automatically(assignable, *size, request.start_index, request.shift)
        lists.append(automatic[size])
    counts = np.fromiter(map(len, lists), np.int32, len(lists))
    if len(automatic) == 1 and all(topic.assignments is None for topic in topics):
        replicas = lists[0].tile(len(lists))
    else:
        replicas = Ragged.chain(lists)
    return TopicTable.starting(tuple(topic.name for topic in topics), counts, replicas)


def _grown(context: Context, topic: int, count: int) -> Ragged:
    """Automatic assignment of added partitions, starting at the first replica of partition 0."""
    cluster = context.cluster
    brokers, p = cluster.brokers, cluster.partitions
    first_row = int(cluster.topics.first_row[topic])
    first = int(brokers.ids[p.replicas_of(first_row)[0]])
    registered = brokers.registered_ids()
    start = next((position for position, broker_id in enumerate(registered) if broker_id >= first), 0)
    known = int(cluster.topics.partition_count[topic])
    replication_factor = int(p.replica_count[first_row])
    return assign_automatically(
        AssignableBrokers.of(brokers), count, replication_factor, start, start, first_partition=known
    )


def _extended(table: TopicTable, added: Ragged) -> TopicTable:
    """A table of one topic with added partitions."""
    return TopicTable(
        table.names,
        table.topic_ids,
        (table.partition_counts + len(added)).astype(np.int32),
        Ragged.chain([table.replicas, added]),
        np.append(table.flags, np.zeros(len(added.values), np.uint8)),
    )


def _invalid(context: Context, targets: Targets, rows: Int32, requested: Ragged) -> Bool:
    """Whether each target is empty, repeats a broker, has a negative or unknown broker, or adds a broker that is not
    live. ``requested`` has its broker indexes, -1 for unknown brokers."""
    invalid = invalid_targets(context.cluster, rows, requested)
    unknown = unknown_brokers.is_unknown(context, targets.replicas.values)
    if unknown.any():
        invalid |= requested.any(unknown)
    return invalid & ~targets.cancel


def _target_lists(context: Context, requested: Ragged, cancel: Bool, rows: Int32) -> Ragged:
    """The target lists (broker indexes): the requested ones, or the origin for a cancellation."""
    if not cancel.any():
        return requested
    both = Ragged.chain([requested, current(context.cluster.partitions, rows).origin().replicas])
    return both.take(np.arange(len(rows)) + np.where(cancel, len(rows), 0))
