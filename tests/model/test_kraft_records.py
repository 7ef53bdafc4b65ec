"""The metadata records of KRaft as plain data."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest

from kframe.model.kraft.control import CONTROL_TYPES
from kframe.model.kraft.directory_ids import LOST, MIGRATING, UNASSIGNED, is_reserved
from kframe.model.kraft.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECORD_TYPES,
    BrokerRegistrationChangeRecord,
    FencingChange,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)

TOPIC_ID = UUID(int=12345)


def test_every_type_of_kafka_4_4_has_a_record() -> None:
    assert list(RECORD_TYPES) == sorted(set(range(30)) - {6, 13, 16})
    assert sorted(CONTROL_TYPES) == [2, 3, 4, 5, 6]


def test_partition_change_changes_nothing_by_default() -> None:
    change = PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID)
    assert (change.leader, change.leader_recovery_state) == (NO_LEADER_CHANGE, NO_RECOVERY_CHANGE)
    lists = ("isr", "replicas", "removing_replicas", "adding_replicas", "directories")
    assert [getattr(change, name) for name in (*lists, "eligible_leader_replicas", "last_known_elr")] == [None] * 7


def test_registration_change_changes_nothing_by_default() -> None:
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7)
    assert (change.fenced, change.in_controlled_shutdown) == (FencingChange.NONE, 0)
    assert (change.log_dirs, change.cordoned_log_dirs) == ((), None)


def test_records_are_immutable_and_hashable() -> None:
    record = PartitionRecord(topic_id=TOPIC_ID, replicas=(1, 2), isr=(1,), removing_replicas=(), adding_replicas=())
    with pytest.raises(AttributeError):
        record.leader = 1  # type: ignore[misc]
    assert hash(record) == hash(msgspec.structs.replace(record, leader=-1))
    assert record != msgspec.structs.replace(record, leader=1)


def test_fields_without_default_are_required() -> None:
    with pytest.raises(TypeError, match="topic_id"):
        TopicRecord(name="orders")  # type: ignore[call-arg]


def test_directory_ids_below_100_are_reserved() -> None:
    assert all(map(is_reserved, (MIGRATING, UNASSIGNED, LOST, UUID(int=99))))
    assert not is_reserved(UUID(int=100))
