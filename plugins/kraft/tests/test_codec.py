"""The wire format of metadata records: bytes, refusals, and round trips of every type and version."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kframe_kraft.errors import RecordError
from kframe_kraft.records import (
    control_to_json,
    decode_control,
    decode_record,
    encode_control,
    encode_record,
    from_json,
    record_version,
    to_json,
)

from kframe.plugin.kraft import LEVEL_MAX, LEVEL_MIN, RecordAndVersion, control, directory_ids, needed_version, records
from verification.kraft.record_strategies import control_records, versioned_records

TOPIC_ID = UUID(int=0x0102030405060708090A0B0C0D0E0F10)
CHANGE = records.PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, isr=(2, 3), leader=3)
CHANGE_BYTES = bytes.fromhex(
    "01 05 00 00000001 0102030405060708090a0b0c0d0e0f10 02 00 09 03 00000002 00000003 01 04 00000003"
)


def test_partition_change_has_kafkas_bytes() -> None:
    assert encode_record(CHANGE, 0) == CHANGE_BYTES
    assert decode_record(CHANGE_BYTES) == (CHANGE, 0)


@given(versioned_records())
def test_round_trip(versioned: RecordAndVersion) -> None:
    encoded = encode_record(*versioned)
    assert decode_record(encoded) == versioned
    assert from_json(json.loads(json.dumps(to_json(*versioned)))) == versioned


@given(versioned_records(), st.data())
def test_truncated_record_is_refused(versioned: RecordAndVersion, data: st.DataObject) -> None:
    encoded = encode_record(*versioned)
    with pytest.raises(RecordError):
        decode_record(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@given(control_records())
def test_control_round_trip(record: control.ControlRecord) -> None:
    assert decode_control(*encode_control(record)) == record
    assert control_to_json(record)["version"] == record.version


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "0 bytes left"),
        (b"\x00" + CHANGE_BYTES[1:], "frame version 0"),
        (b"\x01\x06\x00", "record type 6"),
        (b"\x01\x1e\x00", "record type 30"),
        (b"\x01\x05\x03", r"PartitionChangeRecord \(type 5\) version 3"),
        (CHANGE_BYTES + b"\x00", "1 byte after the record"),
        (CHANGE_BYTES[:-1], "3 bytes left|4 bytes"),
        (b"\x01\x0c\x00\xff\xff\xff\xff\x07", "length 2147483646 with 0 bytes left"),
        (b"\x01\x0c\x00\xff\xff\xff\xff\xff\x01", "varint above 31 bits"),
        (b"\x01\x0c\x00\x00\x00\x19\x00", "null in field name"),
        (b"\x01\x0c\x00\x02\xff\x00\x19\x00", "expected UTF-8"),
        (b"\x01\x14\x00\x02\x01\x00\x01\x00", "tag 1 after 1"),
        (b"\x01\x17\x00\x01\x00\x03\x02a", "size|2 bytes left"),
        (b"\x01\x17\x00\x01\x00\x03\x02ab", "2 bytes of field name"),
    ],
)
def test_malformed_record_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(RecordError, match=reason) as caught:
        decode_record(data, "record at offset 17")
    assert "record at offset 17" in str(caught.value)


def test_unknown_tagged_field_is_skipped() -> None:
    assert decode_record(b"\x01\x14\x00\x01\x07\x02ab") == (records.NoOpRecord(), 0)


@pytest.mark.parametrize(
    "record, version, reason",
    [
        (CHANGE, 3, "version 3"),
        (records.PartitionChangeRecord(topic_id=TOPIC_ID, eligible_leader_replicas=()), 1, "eligible_leader_replicas"),
        (records.FeatureLevelRecord(name="n" * 32_768, feature_level=1), 0, "field name"),
        (records.FeatureLevelRecord(name="n", feature_level=40_000), 0, "field feature_level"),
        (records.TopicRecord(name=None, topic_id=TOPIC_ID), 0, "field name"),  # type: ignore[arg-type]
    ],
)
def test_content_that_does_not_fit_is_refused(record: records.MetadataRecord, version: int, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        encode_record(record, version)


@pytest.mark.parametrize(
    "key, value, reason",
    [
        (b"", b"", "version 0 and a type"),
        (b"\0\0\0\1", b"", "control record type 1"),
        (b"\0\0\0\4", b"", "0 bytes left"),
        (b"\0\0\0\4", b"\0\1\0", "SnapshotFooterRecord version 1"),
        (b"\0\0\0\4", b"\0\0\0\0", "1 byte after the record"),
    ],
)
def test_malformed_control_record_is_refused(key: bytes, value: bytes, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        decode_control(key, value)


def test_json_equals_output_of_dump_log() -> None:
    change = records.PartitionChangeRecord(
        partition_id=1, topic_id=TOPIC_ID, isr=(2, 3), directories=(directory_ids.UNASSIGNED,)
    )
    assert to_json(change, 1) == {
        "type": "PARTITION_CHANGE_RECORD",
        "version": 1,
        "data": {
            "partitionId": 1,
            "topicId": "AQIDBAUGBwgJCgsMDQ4PEA",
            "isr": [2, 3],
            "directories": ["AAAAAAAAAAAAAAAAAAAAAQ"],
        },
    }
    assert control_to_json(control.KRaftVersionRecord(k_raft_version=1)) == {"version": 0, "kRaftVersion": 1}


@pytest.mark.parametrize(
    "document",
    [
        None,
        {"type": "NO_SUCH_RECORD", "version": 0, "data": {}},
        {"type": "NO_OP_RECORD", "version": 1, "data": {}},
        {"type": "TOPIC_RECORD", "version": 0, "data": {"name": "a"}},
        {"type": "TOPIC_RECORD", "version": 0, "data": {"name": "a", "topicId": "AAA"}},
        {"type": "TOPIC_RECORD", "version": 0, "data": {"name": None, "topicId": "AQIDBAUGBwgJCgsMDQ4PEA"}},
        {"type": "FEATURE_LEVEL_RECORD", "version": 0, "data": {"name": "a", "featureLevel": 2**15}},
        {"type": "FEATURE_LEVEL_RECORD", "version": 0, "data": {"name": "a", "featureLevel": True}},
    ],
)
def test_malformed_document_is_refused(document: Any) -> None:
    with pytest.raises(RecordError):
        from_json(document)


@pytest.mark.parametrize(
    "change, level, version",
    [
        ({"fenced": 1}, LEVEL_MAX, 0),
        ({"in_controlled_shutdown": 1}, 7, 1),
        ({"log_dirs": (TOPIC_ID,)}, 17, 2),
        ({"cordoned_log_dirs": ()}, 30, 3),
    ],
)
def test_registration_change_has_the_lowest_version_of_its_content(
    change: dict[str, Any], level: int, version: int
) -> None:
    record = records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, **change)
    assert record_version(record, level) == version
    if version > 1:
        with pytest.raises(RecordError, match="content of version"):
            record_version(record, level - 1)


@pytest.mark.parametrize("level, version", [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (33, 2)])
def test_partition_change_has_the_newest_version_of_the_level(level: int, version: int) -> None:
    assert record_version(CHANGE, level) == version


def test_record_of_a_later_level_is_refused() -> None:
    with pytest.raises(RecordError, match=r"metadata\.version 32"):
        record_version(records.UnregisterControllerRecord(controller_id=1), 32)


@given(versioned_records(), st.integers(LEVEL_MIN, LEVEL_MAX))
def test_version_of_a_level_carries_the_content(versioned: RecordAndVersion, level: int) -> None:
    record, written = versioned
    assert needed_version(record) <= written
    try:
        version = record_version(record, level)
    except RecordError:
        return
    assert decode_record(encode_record(record, version)) == (record, version)
