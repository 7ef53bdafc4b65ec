"""The metadata records of KRaft as plain data."""

from __future__ import annotations

from uuid import UUID

from kframe.model.kraft.control import CONTROL_TYPES
from kframe.model.kraft.directory_ids import LOST, MIGRATING, UNASSIGNED, is_reserved
from kframe.model.kraft.records import (
    RECORD_TYPES,
)


def test_every_type_of_kafka_4_4_has_a_record() -> None:
    assert list(RECORD_TYPES) == sorted(set(range(30)) - {6, 13, 16})
    assert sorted(CONTROL_TYPES) == [2, 3, 4, 5, 6]


def test_directory_ids_below_100_are_reserved() -> None:
    assert all(map(is_reserved, (MIGRATING, UNASSIGNED, LOST, UUID(int=99))))
    assert not is_reserved(UUID(int=100))
