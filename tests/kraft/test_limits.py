"""Limits of batches and requests, and the order of records in batches."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest

from kframe.core.kraft.brokers import broker_events, registration
from kframe.core.kraft.controller_result import RECORDS_MAX, RequestRefused
from kframe.core.kraft.random_source import JavaRandom, shuffle
from kframe.core.kraft.replication import elections, reassignment
from kframe.core.kraft.topics import topic_requests
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.kraft.large import large_cluster

PARTITIONS = 12_000


def test_fence_is_split_into_batches_with_fencing_record_last() -> None:
    context = large_cluster(3, PARTITIONS)
    decision = broker_events.fence_broker(context, context.metadata.brokers.registrations[0])
    batches, records = list(decision.batches()), decision.records
    assert [len(batch) for batch in batches] == [RECORDS_MAX, PARTITIONS + 1 - RECORDS_MAX]
    assert all(isinstance(item.record, PartitionChangeRecord) for item in records[:-1])
    assert isinstance(records[-1].record, BrokerRegistrationChangeRecord)


def test_unregister_broker_beyond_records_max_is_refused() -> None:
    context = large_cluster(3, PARTITIONS)
    with pytest.raises(RequestRefused, match="POLICY_VIOLATION"):
        registration.unregister_broker(context, 0)


def test_election_beyond_records_max_is_refused() -> None:
    context = large_cluster(3, PARTITIONS)
    context.metadata.partitions.leader[:] = (context.metadata.partitions.leader + 1) % 3
    with pytest.raises(RequestRefused, match="POLICY_VIOLATION"):
        elections.elect_leaders(context, KraftElection.PREFERRED, None)


def test_balance_task_elects_1000_leaders_per_pass() -> None:
    context = large_cluster(3, PARTITIONS)
    context.metadata.partitions.leader[:2_500] = (context.metadata.partitions.leader[:2_500] + 1) % 3
    counts = []
    while True:
        decision = elections.balance_leaders(context)
        counts.append(len(decision.records))
        for item in decision.records:
            context.replay(item.record, 0)
        if not decision.response:
            break
    assert counts == [1_000, 1_000, 500]
    assert (context.metadata.partitions.leader == context.metadata.partitions.preferred_of(np.arange(PARTITIONS))).all()


def test_create_topic_is_limited_to_9999_partitions() -> None:
    context = large_cluster(3, 3)
    largest = topic_requests.CreatableTopic("largest", 9_999, 1)
    assert len(topic_requests.create_topics(context, [largest], lambda name: UUID(int=1)).records) == RECORDS_MAX
    with pytest.raises(RequestRefused, match="POLICY_VIOLATION"):
        topic_requests.create_topics(
            context, [topic_requests.CreatableTopic("more", 10_000, 1)], lambda name: UUID(int=1)
        )


def test_reassignments_beyond_records_max_fail() -> None:
    context = large_cluster(4, PARTITIONS)
    requests = [
        reassignment.RequestedReassignment("t0", partition, tuple((partition + k + 1) % 4 for k in range(3)))
        for partition in range(RECORDS_MAX + 2)
    ]
    decision = reassignment.reassign_partitions(context, requests)
    assert len(decision.records) == RECORDS_MAX
    assert [result.error for result in decision.response[RECORDS_MAX - 1 :]] == [
        ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR,
    ]  # fmt: skip


def test_random_placement_uses_distinct_brokers() -> None:
    context = large_cluster(5, 5)
    context.random = SimpleNamespace(next_int=lambda bound: bound - 1)
    decision = topic_requests.create_topics(
        context, [topic_requests.CreatableTopic("t", 40, 3)], lambda name: UUID(int=1)
    )
    replicas = [record.replicas for record, _ in decision.records[1:]]  # type: ignore[attr-defined]
    assert all(len(set(brokers)) == 3 for brokers in replicas)
    assert {brokers[0] for brokers in replicas} == set(range(5))


def test_java_random_equals_java() -> None:
    random = JavaRandom(42)
    assert [random.next_int(10) for _ in range(6)] == [0, 3, 8, 4, 0, 5]
    values = list(range(5))
    shuffle(values, JavaRandom(42))
    assert values == [1, 2, 3, 4, 0]


def test_decision_does_not_change_metadata() -> None:
    context = large_cluster(3, 30, elr=True)
    before = context.metadata.copy()
    broker_events.fence_broker(context, context.metadata.brokers.registrations[1])
    for column in context.metadata.partitions.table:
        values = getattr(context.metadata.partitions, column.name)
        assert np.array_equal(values, getattr(before.partitions, column.name)), column.name
