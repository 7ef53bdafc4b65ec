"""``kframe whatif sweep`` on KRaft clusters: rules, log directories, and ELR on and off side by side."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from pyarrow import parquet

from kframe.core.kraft.replay import replay
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.ids import ELR_VERSION
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    BrokerFeature,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from kframe.snapshot import Snapshot, Source, write_snapshot
from tests.cli.running import document, whatif
from tests.kraft.strategies import directory_id, topic_id
from tests.schemas import assert_valid


@pytest.fixture
def kraft(tmp_path: Path) -> Path:
    """Three brokers, ELR off. Broker 1 has two log directories; the ISR of t-1 lacks broker 3."""
    metadata = ClusterMetadata()
    replay(metadata, FeatureLevelRecord(name="metadata.version", feature_level=25), 0)
    for broker in (1, 2, 3):
        directories = tuple(directory_id(broker, index) for index in range(2 if broker == 1 else 1))
        registration = RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=topic_id(broker),
            broker_epoch=broker,
            end_points=(),
            features=(BrokerFeature(name=ELR_VERSION, min_supported_version=0, max_supported_version=1),),
            rack=None,
            fenced=False,
            log_dirs=directories,
        )
        replay(metadata, registration, broker)
    replay(metadata, TopicRecord(name="t", topic_id=topic_id(0)), 4)
    for partition, isr in ((0, (1, 2, 3)), (1, (1, 2))):
        record = PartitionRecord(
            partition_id=partition,
            topic_id=topic_id(0),
            replicas=(1, 2, 3),
            isr=isr,
            removing_replicas=(),
            adding_replicas=(),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(directory_id(broker, 0) for broker in (1, 2, 3)),
        )
        replay(metadata, record, 5)
    path = tmp_path / "kraft"
    write_snapshot(Snapshot.from_metadata(metadata, source=Source("kraft", "node")), path)
    return path


def test_first_line_names_kraft_rules(kraft: Path) -> None:
    table = whatif("sweep", kraft).stdout
    assert table.splitlines()[0] == "mode: KRaft (Kafka 4.0 assumed, metadata.version 4.0-IV3, ELR off)"
    result = whatif("sweep", kraft, "--elr", "on", "-o", "csv")
    mode, release = result.stderr.splitlines()
    assert mode == "mode: KRaft (Kafka 4.0 assumed, metadata.version 4.0-IV3, ELR on)"
    assert release.startswith("release unknown: decided as Kafka 4.0")
    assert document("sweep", kraft)["release"]["possible"] == ["4.0", "4.1", "4.2", "4.3", "4.4"]


def test_json_lists_log_directories_and_partitions_that_may_lose_data(kraft: Path) -> None:
    parsed = document("sweep", kraft, "--config", "min.insync.replicas=2")
    assert_valid(parsed, "kframe.sweep/v1")
    assert parsed["rules"] == "KRaft (Kafka 4.0 assumed, metadata.version 4.0-IV3, ELR off)"
    assert parsed["failures"] == {"broker": 3, "pair": 3, "rack": 0, "directory": 4}
    rows = {(row["kind"], *row["brokers"], row["directory"]): row for row in parsed["rows"]}
    pair = rows["pair", 1, 2, None]
    assert (pair["offline"], pair["may_lose_data"], pair["needs_unclean_election"]) == (1, 1, 1)
    used, unused = (rows["directory", 1, uuid_text(directory_id(1, index))] for index in range(2))
    assert (used["leaders_moved"], unused["leaders_moved"]) == (2, 0)


@pytest.mark.parametrize("spelling", [uuid_text, str], ids=["of Kafka", "hex"])
def test_directories_are_printed_as_kafka_does_and_accepted_in_hex_too(
    kraft: Path, spelling: Callable[[UUID], str]
) -> None:
    failing, other = directory_id(1, 0), directory_id(2, 0)
    arguments = ("fail-directories", kraft, "--broker", "1", "--directory")
    assert document(*arguments, spelling(failing))["operation"]["directories"] == [uuid_text(failing)]
    refused = whatif(*arguments, spelling(other))
    assert (refused.exit_code, f"--directory: found {uuid_text(other)}, expected" in refused.stderr) == (2, True)


@pytest.mark.parametrize("elr", ["off", "on"])
def test_failures_that_may_lose_data_fail_a_pipeline(kraft: Path, elr: str) -> None:
    """When brokers 1 and 2 fail, only broker 3 could lead t-1, which lacks records."""
    arguments = ("sweep", kraft, "--config", "min.insync.replicas=2", "--elr", elr)
    result = whatif(*arguments, "--fail-on", "possible-data-loss")
    assert (result.exit_code, result.stderr) == (3, "--fail-on possible-data-loss: 1 failure\n")
    parsed = document(*arguments)
    assert [row["brokers"] for row in parsed["rows"] if row["newly_may_lose_data"]] == [[1, 2]]
    assert parsed["findings"]["possible-data-loss"] == 1


def test_elr_on_and_off_side_by_side(kraft: Path) -> None:
    arguments = ("sweep", kraft, "--config", "min.insync.replicas=2", "--elr", "both")
    parsed = document(*arguments)
    assert_valid(parsed, "kframe.sweep-elr/v1")
    assert parsed["rules"]["elr_on"] == "KRaft (Kafka 4.0 assumed, metadata.version 4.0-IV3, ELR on)"
    off, on = (document(*arguments[:-1], elr) for elr in ("off", "on"))
    for name in ("offline", "may_lose_data", "under_min_isr"):
        for side, single in (("elr_off", off), ("elr_on", on)):
            expected = {(row["kind"], str(row["brokers"]), row["directory"]): row[name] for row in single["rows"]}
            compared = {
                (row["kind"], str(row["brokers"]), row["directory"]): row[f"{name}_{side}"] for row in parsed["rows"]
            }
            assert compared == expected
    cells = list(csv.DictReader(io.StringIO(whatif(*arguments, "-o", "csv").stdout)))
    assert [cell["offline_elr_on"] for cell in cells] == [str(row["offline_elr_on"]) for row in parsed["rows"]]
    table = whatif(*arguments, "--limit", "2").stdout.splitlines()
    rules = "KRaft (Kafka 4.0 assumed, metadata.version 4.0-IV3, ELR"
    assert " ".join(table).startswith(f"mode: {rules} off) and {rules} on) ")
    assert "and 8 more (--limit N; data has them all)" in table


def test_parquet_has_columns_of_kraft(kraft: Path, tmp_path: Path) -> None:
    parsed = document("sweep", kraft, "--out", tmp_path / "all.parquet")
    table = parquet.read_table(tmp_path / "all.parquet")
    for name in ("directory", "may_lose_data", "brokers"):
        assert table[name].to_pylist() == [row[name] for row in parsed["rows"]]


def test_elr_below_its_metadata_version_is_refused(kraft: Path) -> None:
    metadata = ClusterMetadata()
    replay(metadata, FeatureLevelRecord(name="metadata.version", feature_level=20), 0)
    path = kraft.with_name("old")
    write_snapshot(Snapshot.from_metadata(metadata, source=Source("kraft", "node")), path)
    result = whatif("sweep", path, "--elr", "on")
    assert (result.exit_code, result.stdout) == (2, "")
    assert ELR_VERSION in result.stderr
