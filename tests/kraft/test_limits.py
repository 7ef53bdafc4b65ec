"""Limits of batches and requests, and rules for which the oracle has no state."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest

from kframe.core.kraft.brokers import broker_events, registration
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import RECORDS_MAX, RequestRefused
from kframe.core.kraft.features import feature_updates
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replication import elections, reassignment
from kframe.core.kraft.topics import topic_requests
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import METADATA_VERSION, KraftElection, MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    FencingChange,
    PartitionChangeRecord,
    RegisterControllerRecord,
)
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


def test_balance_task_elects_1000_leaders_if_some_are_unavailable() -> None:
    context = large_cluster(3, 3_000)
    partitions = context.metadata.partitions
    partitions.leader[:] = (partitions.leader + 1) % 3
    partitions.leader[partitions.leader == 2] = 0
    change = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=FencingChange.FENCE)
    context.replay(change, 0)
    decision = elections.balance_leaders(context)
    assert len(decision.records) == 1_000
    assert decision.response


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
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ]


def test_decision_does_not_change_metadata() -> None:
    context = large_cluster(3, 30, elr=True)
    before = context.metadata.copy()
    broker_events.fence_broker(context, context.metadata.brokers.registrations[1])
    for column in context.metadata.partitions.table:
        values = getattr(context.metadata.partitions, column.name)
        assert np.array_equal(values, getattr(before.partitions, column.name)), column.name


@pytest.mark.parametrize(
    "quorum, registered, problem",
    [
        ((1,), (), None),
        ((1, 2), (), "controller 2 has not registered"),
        ((1, 2), (2,), "Controller 2 does not support"),
    ],
)
def test_feature_update_requires_all_controllers(
    quorum: tuple[int, ...], registered: tuple[int, ...], problem: str | None
) -> None:
    context = KraftContext(ClusterMetadata(), Heartbeats(1), KraftSettings(node_id=1, quorum_ids=quorum), JavaRandom(0))
    context.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=MetadataLevel.LATEST), 0)
    for controller in registered:
        record = RegisterControllerRecord(
            controller_id=controller, incarnation_id=UUID(int=1), zk_migration_ready=False, end_points=(), features=()
        )
        context.replay(record, 0)
    updates = {"group.version": (1, feature_updates.UpgradeType.UPGRADE)}
    if problem is None:
        assert len(feature_updates.update_features(context, updates).records) == 1
        return
    with pytest.raises(RequestRefused, match=problem):
        feature_updates.update_features(context, updates)
