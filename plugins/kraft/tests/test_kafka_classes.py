"""Records, batches and snapshots against Kafka 4.4's own classes, byte for byte and both ways."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from kframe_kraft.batches import BatchPosition, Compression, encode_data_batch, read_batch
from kframe_kraft.disk import CheckpointWriter, SnapshotId, read_checkpoint
from kframe_kraft.records import decode_control, encode_control, encode_record, to_json

from kframe.plugin.kraft import CONTROL_TABLES, TABLES, Kind, Table, control
from verification.kraft.compare_records import compare_record
from verification.kraft.compressed_batches import compressed
from verification.kraft.kafka_records import KafkaRecords, metadata_jars
from verification.kraft.random_records import random_record
from verification.kraft.record_strategies import control_records

pytestmark = pytest.mark.real

RECORDS = int(os.environ.get("KFRAME_RECORD_CASES", "5000"))


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaRecords]:
    with KafkaRecords() as process:
        yield process


def test_random_records_have_kafkas_bytes_and_json(kafka: KafkaRecords) -> None:
    random = Random(4)
    for number in range(RECORDS):
        compare_record(kafka, number, random)


@given(record=control_records())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_control_records_have_kafkas_bytes(kafka: KafkaRecords, record: control.ControlRecord) -> None:
    key, value = encode_control(record)
    assert kafka.encode_control(record) == value
    assert decode_control(key, value) == record


@pytest.mark.parametrize("codec", Compression)
def test_batches_round_trip_with_kafka(kafka: KafkaRecords, codec: Compression) -> None:
    random = Random(codec)
    versioned = [random_record(number, random) for number in range(300)]
    values = [encode_record(*record) for record in versioned]
    position = BatchPosition(base_offset=17, leader_epoch=3, timestamp=1234)
    encoded, kafka_encoded = (
        compressed(encode_data_batch(versioned, position), codec),
        kafka.encode_batch(values, codec),
    )
    assert kafka.read_batches(encoded) == values
    batch = read_batch(kafka_encoded)
    assert batch.records() == versioned
    assert (batch.header.base_offset, batch.header.leader_epoch, batch.header.max_timestamp) == (17, 3, 1234)
    if codec == Compression.NONE:
        assert encoded == kafka_encoded


def test_snapshot_of_kframe_is_read_by_kafka(kafka: KafkaRecords, tmp_path: Path) -> None:
    random = Random(5)
    versioned = [random_record(number, random) for number in range(2_000)]
    snapshot_id = SnapshotId(5_000, 7)
    with CheckpointWriter(tmp_path / snapshot_id.file_name, snapshot_id, timestamp=1, now=2, kraft_version=1) as writer:
        writer.add_records(versioned)
        path = writer.finish()
    documents = kafka.read_checkpoint(path)
    header = ["SnapshotHeaderRecord", "KRaftVersionRecord"]
    assert documents == [*header, *(to_json(*record) for record in versioned), "SnapshotFooterRecord"]


def test_snapshot_of_kafka_is_read_by_kframe(kafka: KafkaRecords, tmp_path: Path) -> None:
    random = Random(6)
    versioned = [random_record(number, random) for number in range(2_000)]
    kafka.write_checkpoint(tmp_path / "bootstrap.checkpoint", versioned)
    assert read_checkpoint(tmp_path / "bootstrap.checkpoint").records() == versioned


def schemas(jar_prefix: str, folder: str) -> dict[str, Any]:
    with zipfile.ZipFile(next(metadata_jars().glob(f"{jar_prefix}-*.jar"))) as jar:
        texts = [
            jar.read(name).decode() for name in jar.namelist() if name.startswith(folder) and name.endswith(".json")
        ]
    documents = [
        json.loads("\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//")))
        for text in texts
    ]
    return {document["name"]: document for document in documents}


def described(fields: list[Any], common: dict[str, Any]) -> list[Any]:
    """The fields of Kafka's schema in the form of ``table_fields``."""
    rows = []
    for field in fields:
        kind = field["type"].removeprefix("[]")
        nested = field.get("fields") or common.get(kind)
        rows.append(
            (
                field["name"][0].lower() + field["name"][1:],
                described(nested, common) if nested else kind,
                field["type"].startswith("[]"),
                int(field["versions"].split("+")[0]),
                "nullableVersions" in field,
                int(field["tag"]) if "tag" in field else None,
            )
        )
    return rows


def table_fields(table: Table) -> list[Any]:
    return [
        (
            field.json_name,
            field.kind.value[0] if isinstance(field.kind, Kind) else table_fields(field.kind),
            field.array,
            field.since,
            field.nullable,
            field.tag,
        )
        for field in table.fields
    ]


@pytest.mark.parametrize(
    "jar, folder, tables",
    [("kafka-metadata", "common/metadata/", TABLES), ("kafka-clients", "common/message/", CONTROL_TABLES)],
)
def test_record_tables_equal_kafka_schemas(jar: str, folder: str, tables: dict[Any, Table]) -> None:
    known = schemas(jar, folder)
    for record, table in tables.items():
        schema = known[record.__name__]
        common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
        assert table_fields(table) == described(schema["fields"], common), record
        assert table.latest == int(schema["validVersions"].split("-")[-1]), record
    if jar == "kafka-metadata":
        assert set(known) == {record.__name__ for record in tables}
