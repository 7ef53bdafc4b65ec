"""Replay of records gives the state that Kafka's classes have, whatever the records."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kframe.core.kraft.replay import REPLAY, replay
from kframe.core.kraft.topics.replay import replay_new_partitions
from kframe.errors import InputError
from kframe.model.kraft import records
from kframe.model.kraft.columns import KRAFT_COLUMNS
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECORD_TYPES,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from kframe.model.kraft.views import partition_record
from tests.kraft.strategies import changes, directory_id, partitions, topic_id


def merged(partition: PartitionRecord, change: PartitionChangeRecord) -> PartitionRecord:
    """Apply a change to a partition as data."""
    fields = (
        "replicas",
        "isr",
        "removing_replicas",
        "adding_replicas",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    )
    values = {name: value for name in fields if (value := getattr(change, name)) is not None}
    if change.leader != NO_LEADER_CHANGE:
        values |= {"leader": change.leader, "leader_epoch": partition.leader_epoch + 1}
    if change.leader_recovery_state != NO_RECOVERY_CHANGE:
        values["leader_recovery_state"] = change.leader_recovery_state
    return replace(partition, **values, partition_epoch=partition.partition_epoch + 1)


def with_lists(partition: PartitionRecord) -> PartitionRecord:
    """Name absent ELRs as empty lists."""
    return replace(
        partition,
        eligible_leader_replicas=partition.eligible_leader_replicas or (),
        last_known_elr=partition.last_known_elr or (),
    )


def cluster_of(*partition_records: PartitionRecord) -> ClusterMetadata:
    metadata = ClusterMetadata()
    for topic in range(2):
        replay(metadata, TopicRecord(name=f"t{topic}", topic_id=topic_id(topic)), topic)
    for record in partition_records:
        replay(metadata, record, 9)
    return metadata


@given(st.lists(st.integers(0, 1), max_size=6).flatmap(lambda topics: st.tuples(*map(partitions, topics, range(6)))))
def test_new_partitions_are_added_at_once_as_one_by_one(new: tuple[PartitionRecord, ...]) -> None:
    one_by_one, at_once = cluster_of(*new), cluster_of()
    replay_new_partitions(at_once, new)
    for record in new:
        rows = [each.topics.row_by_id(record.topic_id, record.partition_id) for each in (one_by_one, at_once)]
        assert rows[0] is not None
        assert rows[1] is not None
        assert partition_record(at_once, rows[1]) == partition_record(one_by_one, rows[0])
    assert len(at_once.partitions) == len(one_by_one.partitions)


@given(st.lists(changes(0, 0), max_size=5), partitions(0, 0), partitions(1, 3))
def test_partition_changes_merge_as_in_kafka(
    chain: list[PartitionChangeRecord], first: PartitionRecord, other: PartitionRecord
) -> None:
    metadata = cluster_of(first, other)
    for change in chain:
        first = merged(first, change)
        replay(metadata, change, 10)
    assert partition_record(metadata, 0) == with_lists(first)
    assert partition_record(metadata, 1) == with_lists(other)


@pytest.mark.parametrize(
    "replicas, sources", [((1, 3), (0, 2)), ((3, 2, 1), (0, 1, 2)), ((4, 1, 2, 3), (None, 0, 1, 2))]
)
def test_replicas_change_without_directories_keeps_directories(
    replicas: tuple[int, ...], sources: tuple[int | None, ...]
) -> None:
    """As many replicas as before keep the directories in their order, as in Kafka."""
    directories = tuple(directory_id(broker, 0) for broker in (1, 2, 3))
    first = PartitionRecord(
        partition_id=0,
        topic_id=topic_id(0),
        replicas=(1, 2, 3),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=directories,
    )
    metadata = cluster_of(first)
    replay(metadata, PartitionChangeRecord(partition_id=0, topic_id=topic_id(0), replicas=replicas), 10)
    expected = tuple(UUID(int=0) if index is None else directories[index] for index in sources)
    record = partition_record(metadata, 0)
    assert (record.replicas, record.directories) == (replicas, expected)


@given(partitions(0, 0), partitions(0, 0), partitions(1, 0))
def test_partition_record_replaces_whole_state(
    first: PartitionRecord, second: PartitionRecord, other: PartitionRecord
) -> None:
    metadata = cluster_of(first, other, second)
    assert partition_record(metadata, 0) == with_lists(second)
    assert partition_record(metadata, 1) == with_lists(other)


@given(partitions(0, 0), partitions(1, 0), st.sampled_from(["", "t0"]))
def test_clear_elr_empties_elrs_and_raises_epochs(first: PartitionRecord, other: PartitionRecord, name: str) -> None:
    metadata = cluster_of(first, other)
    replay(metadata, ClearElrRecord(topic_name=name), 10)
    for row, before in enumerate((first, other)):
        expected = with_lists(before)
        if (not name or row == 0) and (before.eligible_leader_replicas or before.last_known_elr):
            epoch = before.partition_epoch + 1
            expected = replace(expected, eligible_leader_replicas=(), last_known_elr=(), partition_epoch=epoch)
        assert partition_record(metadata, row) == expected


def test_every_type_of_record_has_a_replay_function() -> None:
    assert set(REPLAY) == set(RECORD_TYPES.values())


def test_partition_needs_67_bytes_at_replication_factor_3() -> None:
    sizes = {"row": 1, "slot": 3, "member": 0}
    assert sum(column.dtype().itemsize * sizes[column.per] for column in KRAFT_COLUMNS) == 67


def test_remove_topic_removes_partitions_and_configs() -> None:
    partition = PartitionRecord(
        partition_id=0,
        topic_id=topic_id(0),
        replicas=(1,),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        leader=1,
    )
    metadata = cluster_of(partition)
    replay(metadata, ConfigRecord(resource_type=2, resource_name="t0", name="min.insync.replicas", value="2"), 10)
    assert metadata.topics.min_isr.tolist() == [2, -1]
    replay(metadata, RemoveTopicRecord(topic_id=topic_id(0)), 11)
    assert metadata.row("t0", 0) is None
    assert metadata.configs == {}
    assert metadata.partitions.rows_led_by(metadata.brokers.index_of(1)).tolist() == []


def register(**fields: object) -> RegisterBrokerRecord:
    values: dict[str, object] = {
        "broker_id": 1,
        "incarnation_id": UUID(int=7),
        "broker_epoch": 5,
        "end_points": (),
        "features": (),
        "rack": None,
        **fields,
    }
    return RegisterBrokerRecord(**values)  # type: ignore[arg-type]


def test_registration_change_keeps_absent_fields() -> None:
    metadata = ClusterMetadata()
    high, low = UUID(int=2**127 + 200), UUID(int=300)
    replay(metadata, register(log_dirs=(low, high), rack="a"), 40)
    replay(metadata, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1), 41)
    replay(metadata, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, cordoned_log_dirs=(low,)), 42)
    registration = metadata.brokers.registrations[1]
    assert (registration.fenced, registration.rack, registration.offset) == (False, "a", 40)
    assert registration.directories == (high, low), "Java compares signed halves"
    assert registration.cordoned == (low,)
    assert metadata.brokers.active.tolist() == [1]
    replay(metadata, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=1), 43)
    assert metadata.brokers.active.tolist() == [0]
    replay(metadata, UnregisterBrokerRecord(broker_id=1, broker_epoch=5), 44)
    assert metadata.brokers.registrations == {}
    assert metadata.directories.broker_of(low) == -1


@pytest.mark.parametrize(
    "record",
    [
        UnregisterBrokerRecord(broker_id=1, broker_epoch=6),
        UnregisterBrokerRecord(broker_id=2, broker_epoch=5),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4),
        RemoveTopicRecord(topic_id=topic_id(5)),
        PartitionChangeRecord(topic_id=topic_id(0), partition_id=9),
        TopicRecord(name="t0", topic_id=topic_id(8)),
        ClearElrRecord(topic_name="missing"),
        records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=0),
        records.UnregisterControllerRecord(controller_id=1),
        records.RemoveAccessControlEntryRecord(id=UUID(int=1)),
        records.RemoveUserScramCredentialRecord(name="u", mechanism=1),
    ],
    ids=lambda record: type(record).__name__,
)
def test_record_that_contradicts_metadata_is_refused(record: records.MetadataRecord) -> None:
    metadata = cluster_of()
    replay(metadata, register(), 1)
    with pytest.raises(InputError):
        replay(metadata, record, 2)


def test_settings_are_set_and_removed() -> None:
    metadata = ClusterMetadata()
    user = records.EntityData(entity_type="user", entity_name=None)
    quota = records.ClientQuotaRecord(entity=(user,), key="producer_byte_rate", value=1.5, remove=False)
    acl = records.AccessControlEntryRecord(
        id=UUID(int=9),
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=2,
        permission_type=3,
    )
    scram = records.UserScramCredentialRecord(
        name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    token = records.DelegationTokenRecord(
        owner="User:a",
        requester="User:a",
        renewers=(),
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=2,
        token_id="t",
    )
    added = [
        quota,
        acl,
        scram,
        token,
        records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000),
        records.FeatureLevelRecord(name="group.version", feature_level=1),
        records.ZkMigrationStateRecord(zk_migration_state=1),
        records.NoOpRecord(),
    ]
    for record in added:
        replay(metadata, record, 1)
    assert metadata.quotas == {(("user", None),): {"producer_byte_rate": 1.5}}
    assert (metadata.acls, metadata.scram, metadata.tokens) == ({acl.id: acl}, {("u", 1): scram}, {"t": token})
    assert (metadata.features, metadata.next_producer_id) == ({"group.version": 1}, 1000)
    removed = [
        replace(quota, remove=True),
        records.RemoveAccessControlEntryRecord(id=acl.id),
        records.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        records.RemoveDelegationTokenRecord(token_id="t"),
        records.FeatureLevelRecord(name="group.version", feature_level=0),
    ]
    for record in removed:
        replay(metadata, record, 2)
    for values in (metadata.quotas, metadata.acls, metadata.scram, metadata.tokens, metadata.features):
        assert values == {}


def test_acls_are_found_by_pattern() -> None:
    metadata = ClusterMetadata()

    def acl(number: int, name: str) -> records.AccessControlEntryRecord:
        return records.AccessControlEntryRecord(
            id=UUID(int=number),
            resource_type=2,
            resource_name=name,
            pattern_type=3,
            principal="User:u",
            host="*",
            operation=3,
            permission_type=3,
        )

    for record in (acl(1, "a"), acl(2, "a"), acl(3, "b"), acl(3, "c")):  # The last one replaces the one with its id.
        replay(metadata, record, 1)
    copied = metadata.copy()
    replay(metadata, records.RemoveAccessControlEntryRecord(id=UUID(int=1)), 2)
    replay(metadata, records.RemoveAccessControlEntryRecord(id=UUID(int=3)), 3)
    acls = {pattern: set(entries) for pattern, entries in metadata.acls_by_pattern.items()}
    assert acls == {(2, 3, "a"): {UUID(int=2)}}
    assert {pattern: len(entries) for pattern, entries in copied.acls_by_pattern.items()} == {
        (2, 3, "a"): 2,
        (2, 3, "c"): 1,
    }
