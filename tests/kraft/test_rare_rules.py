"""Rules of KRaft mode in states that few clusters reach; ``oracle/cases/rare.jsonl`` has Kafka's results."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kframe.core.kraft.brokers import broker_events, registration
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.configuration.configs import (
    VALUE_LENGTH_MAX,
    KraftConfigChange,
    KraftConfigOperation,
    alter_configs,
)
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.features import feature_updates
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replication import directories, elections, reassignment
from kframe.core.kraft.topics import topic_requests
from kframe.errors import ErrorCode
from kframe.model.ids import RecoveryState
from kframe.model.kraft import directory_ids
from kframe.model.kraft.ids import METADATA_VERSION, KraftElection, MetadataLevel, ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import (
    NO_RECOVERY_CHANGE,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FencingChange,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from tests.kraft.large import large_cluster

TOPIC_ID = UUID(int=500)
NO_LEADER = -1


def changed(context: KraftContext, **fields: Any) -> None:
    """Change partition 0 of topic t0, whose replicas are in the directories of their brokers."""
    if "replicas" in fields:
        fields["directories"] = tuple(UUID(int=900 + broker) for broker in fields["replicas"])
    context.replay(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields), 0)


def fence(context: KraftContext, broker: int) -> None:
    change = BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=broker, fenced=FencingChange.FENCE)
    context.replay(change, 0)


def changes(records: Sequence[RecordAndVersion]) -> list[PartitionChangeRecord]:
    return [record for record, _ in records if isinstance(record, PartitionChangeRecord)]


def unfenced(context: KraftContext, broker: int) -> list[PartitionChangeRecord]:
    return changes(broker_events.unfence_broker(context, context.metadata.brokers.registrations[broker]).records)


def fenced(context: KraftContext, broker: int) -> PartitionChangeRecord:
    """The change of partition 0 when a broker is fenced."""
    decided = broker_events.fence_broker(context, context.metadata.brokers.registrations[broker])
    (change,) = changes(decided.records)
    return change


def test_static_min_isr_applies_to_elr_without_topic_config() -> None:
    context = large_cluster(3, 1, elr=True)
    context.settings = KraftSettings(min_insync_replicas=3)
    change = fenced(context, 2)
    assert (change.isr, change.eligible_leader_replicas) == ((0, 1), (2,))


@pytest.mark.parametrize("elr, last_known, leaders", [
    (True, (1,), [1]),
    (True, (1, 2), []),  # Kafka elects none of several
    (False, (1,), []),
])  # fmt: skip
def test_last_known_leader_is_elected_if_elr_enabled_and_single(
    elr: bool, last_known: tuple[int, ...], leaders: list[int]
) -> None:
    context = large_cluster(3, 1, elr=elr)
    changed(context, leader=NO_LEADER, isr=(), eligible_leader_replicas=(), last_known_elr=last_known)
    fence(context, 1)
    assert [change.leader for change in unfenced(context, 1)] == leaders


def test_unregister_broker_elects_leader_of_elr_partition() -> None:
    context = large_cluster(3, 1, elr=True)
    fence(context, 1)
    changed(context, leader=NO_LEADER, isr=(), eligible_leader_replicas=(1,))
    setting = ConfigRecord(resource_type=2, resource_name="t0", name="unclean.leader.election.enable", value="true")
    context.replay(setting, 0)
    (change,) = changes(registration.unregister_broker(context, 1).records)
    assert (change.leader, change.isr) == (0, (0,))


@pytest.mark.parametrize("directory, leader", [(UUID(int=999), 1), (directory_ids.LOST, 2)])
def test_broker_without_directories_has_all_but_lost_online(directory: UUID, leader: int) -> None:
    context = large_cluster(3, 1)
    registration = RegisterBrokerRecord(
        broker_id=1, incarnation_id=UUID(int=1), broker_epoch=1, end_points=(), features=(), rack=None, fenced=False
    )
    context.replay(registration, 1)
    changed(context, directories=(UUID(int=900), directory, UUID(int=902)))
    assert fenced(context, 0).leader == leader


def test_unclean_election_keeps_recovering_state() -> None:
    context = large_cluster(3, 1)
    changed(context, leader=NO_LEADER, isr=(2,), leader_recovery_state=RecoveryState.RECOVERING)
    fence(context, 2)
    result = elections.elect_leaders(context, KraftElection.UNCLEAN, [("t0", 0)])
    (change,) = changes(result.records)
    assert (change.leader, change.leader_recovery_state) == (0, NO_RECOVERY_CHANGE)


def test_reassignment_that_removes_all_replicas_does_not_complete() -> None:
    context = large_cluster(3, 1)
    changed(context, isr=(0, 1), removing_replicas=(0, 1, 2))
    change = fenced(context, 1)
    assert (change.isr, change.replicas, change.removing_replicas) == ((0,), None, None)


def test_cancel_of_leaderless_partition_keeps_last_known_leader() -> None:
    context = large_cluster(4, 1, elr=True)
    changed(context, replicas=(0, 1, 2, 3), leader=NO_LEADER, isr=(1,), last_known_elr=(1,), adding_replicas=(3,))
    fence(context, 1)
    request = reassignment.RequestedReassignment("t0", 0, None)
    (change,) = changes(reassignment.reassign_partitions(context, [request]).records)
    assert (change.replicas, change.leader, change.last_known_elr) == ((0, 1, 2), NO_LEADER, None)


def test_directory_assignments_are_refused_below_their_level() -> None:
    context = large_cluster(3, 1)
    context.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=MetadataLevel.DIRECTORIES - 1), 0)
    with pytest.raises(RequestRefused, match="UNSUPPORTED_VERSION"):
        directories.assign_directories(context, 0, 0, [])


def reassign(context: KraftContext, replicas: tuple[int, ...], **options: bool) -> Any:
    request = reassignment.RequestedReassignment("t0", 0, replicas)
    return reassignment.reassign_partitions(context, [request], **options)


def test_reassignment_without_removals_keeps_removing_replicas() -> None:
    context = large_cluster(4, 1)
    changed(context, replicas=(0, 1, 2, 3), isr=(0, 1, 2), adding_replicas=(3,), removing_replicas=(2,))
    (change,) = changes(reassign(context, (3, 2, 1, 0)).records)
    assert (change.replicas, change.removing_replicas) == ((3, 2, 1, 0), None)


@pytest.mark.parametrize("replicas, error", [
    ((1, 2, 3), ErrorCode.NONE),
    ((0, 1, 2, 3), ErrorCode.INVALID_REPLICATION_FACTOR),
])  # fmt: skip
def test_replication_factor_excludes_removing_replicas(replicas: tuple[int, ...], error: ErrorCode) -> None:
    context = large_cluster(4, 1)
    changed(context, replicas=(0, 1, 2, 3), adding_replicas=(3,), removing_replicas=(0,))
    (result,) = reassign(context, replicas, allow_factor_change=False).response
    assert result.error is error


def test_request_with_too_many_partitions_is_refused() -> None:
    """Even if its topics would be refused, which alone would write nothing."""
    context = large_cluster(3, 1)
    with pytest.raises(RequestRefused, match="POLICY_VIOLATION"):
        topic_requests.create_topics(
            context, [topic_requests.CreatableTopic("t0", 10_001, 1)], lambda name: UUID(int=1)
        )


def test_placement_with_a_single_unfenced_broker_is_not_shuffled() -> None:
    """Random numbers begin the lists of fenced and unfenced brokers and of racks; shuffling would draw more."""
    context, bounds = large_cluster(3, 1), list[int]()

    def draw(bound: int) -> int:
        bounds.append(bound)
        return 0

    context.random = SimpleNamespace(next_int=draw)
    fence(context, 1)
    fence(context, 2)
    created = topic_requests.create_topics(
        context, [topic_requests.CreatableTopic("t", 3, 2)], lambda name: UUID(int=1)
    )
    assert [record.replicas for record, _ in created.records[1:]] == [(0, 1), (0, 2), (0, 1)]  # type: ignore[attr-defined]
    assert bounds == [2, 1, 1]


def test_balance_task_elects_1000_leaders_if_some_are_unavailable() -> None:
    context = large_cluster(3, 3_000)
    partitions = context.metadata.partitions
    partitions.leader[:] = (partitions.leader + 1) % 3
    partitions.leader[partitions.leader == 2] = 0
    fence(context, 2)
    decision = elections.balance_leaders(context)
    assert len(decision.records) == 1_000
    assert decision.response


@pytest.mark.parametrize("length, error", [
    (VALUE_LENGTH_MAX, ErrorCode.NONE),
    (VALUE_LENGTH_MAX + 1, ErrorCode.INVALID_CONFIG),
])  # fmt: skip
def test_config_value_length_is_limited(length: int, error: ErrorCode) -> None:
    operations = {"follower.replication.throttled.replicas": (KraftConfigOperation.SET, "x" * length)}
    change = KraftConfigChange((ResourceType.TOPIC, "t0"), operations)
    (result,) = alter_configs(large_cluster(3, 1), [change]).response
    assert result.error is error


@pytest.mark.parametrize("quorum, registered, problem", [
    ((1,), (), None),
    ((1, 2), (), "controller 2 has not registered"),
    ((1, 2), (2,), "Controller 2 does not support"),
])  # fmt: skip
def test_feature_update_requires_all_controllers(
    quorum: tuple[int, ...], registered: tuple[int, ...], problem: str | None
) -> None:
    context = KraftContext(ClusterMetadata(), Heartbeats(1), KraftSettings(node_id=1, quorum_ids=quorum), JavaRandom(0))
    context.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=MetadataLevel.LATEST), 0)
    for controller in registered:
        registration = RegisterControllerRecord(
            controller_id=controller, incarnation_id=UUID(int=1), zk_migration_ready=False, end_points=(), features=()
        )
        context.replay(registration, 0)
    updates = {"group.version": (1, feature_updates.UpgradeType.UPGRADE)}
    if problem is None:
        assert len(feature_updates.update_features(context, updates).records) == 1
        return
    with pytest.raises(RequestRefused, match=problem):
        feature_updates.update_features(context, updates)
