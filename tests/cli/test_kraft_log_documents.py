"""The JSON of ``kframe log`` and ``kframe kraft`` is valid by its schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from kframe_kraft.commands.documents import DifferenceRow, LogRow
from kframe_kraft.time_travel.differences import COLUMNS as DIFFERENCE_COLUMNS
from kframe_kraft.time_travel.entries import COLUMNS as LOG_COLUMNS

from kframe.plugin.kraft import control, records
from tests.cli.running import kframe
from tests.schemas import assert_valid
from verification.kraft.written_log import WrittenLog, change, registration, small_cluster

FENCED: Final = registration(1, fenced=1)


def eventful_log(directory: Path, *, voters: tuple[int, ...] = (1,)) -> WrittenLog:
    """A log with a fence, an election that follows no event, transactions, and records of most kinds."""
    log = small_cluster(directory, voters=voters)
    log.append(change(0, leader=2, isr=(2, 3)), FENCED)
    log.append(records.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"))
    log.append(records.ConfigRecord(resource_type=4, resource_name="2", name="log.cleaner.threads", value="2"))
    log.append(records.BeginTransactionRecord(name="work"), records.TopicRecord(name="t", topic_id=UUID(int=77)))
    log.append(records.AbortTransactionRecord(reason="failover"))
    log.append(change(1, leader=3, isr=(3,), directories=(UUID(int=91), UUID(int=92))))
    log.append(records.FeatureLevelRecord(name="group.version", feature_level=1))
    log.append(records.BeginTransactionRecord(name="open"))
    log.quorum(leader_epoch=1, leader_id=1)
    return log


def require_valid(name: str, *arguments: object, exit_code: int = 0) -> dict[str, Any]:
    result = kframe(*arguments, "-o", "json")
    assert result.exit_code == exit_code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    assert_valid(document, name)
    return document


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("log-records", ("show", "--control", "--boundaries")),
        ("log-cluster", ("at", "--offset", 3)),
        ("log-diff", ("diff", 1, "end")),
        ("log-diff", ("diff", 8, "end")),
        ("log-why", ("why", "orders-1", "--offset", 8)),
    ],
    ids=str,
)
def test_documents_of_log_are_valid(tmp_path: Path, name: str, arguments: tuple[object, ...]) -> None:
    eventful_log(tmp_path)
    command, *others = arguments
    document = require_valid(f"kframe.{name}/v1", "log", command, tmp_path, *others)
    assert document.get("rows") != []


def test_documents_of_an_empty_cluster_are_valid(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path)
    log.lead(1, 1)
    log.append(records.FeatureLevelRecord(name="metadata.version", feature_level=25))
    for name, arguments in {
        "log-records": ("show",),
        "log-cluster": ("at",),
        "log-brokers": ("at", "--list", "brokers"),
    }.items():
        require_valid(f"kframe.{name}/v1", "log", arguments[0], tmp_path, *arguments[1:])


def test_documents_of_quorums_are_valid(tmp_path: Path) -> None:
    for node in ("a", "b", "c"):
        eventful_log(tmp_path / node, voters=(1, 2, 3))
    (tmp_path / "c" / "__cluster_metadata-0" / "quorum-state").unlink()
    rows = require_valid("kframe.kraft-compare/v1", "kraft", "compare", *(tmp_path / node for node in "abc"))["rows"]
    assert [row["quorum_epoch"] for row in rows] == [1, 1, None]
    require_valid("kframe.kraft-recovery/v1", "kraft", "recover", tmp_path / "a")
    require_valid("kframe.kraft-recovery/v1", "kraft", "recover", tmp_path / "a", "--out", tmp_path / "copy")


def test_logs_that_diverge_have_a_valid_document(tmp_path: Path) -> None:
    for node, isr in (("a", (2, 3)), ("b", (1, 3))):
        small_cluster(tmp_path / node, voters=(1, 2)).append(change(0, isr=isr))
    require_valid("kframe.kraft-compare/v1", "kraft", "compare", tmp_path / "a", tmp_path / "b", exit_code=3)


def test_damaged_log_has_a_valid_document(tmp_path: Path) -> None:
    for node in ("a", "b"):
        log = small_cluster(tmp_path / node, voters=(1, 2))
    data = bytearray(log.data)
    data[160] ^= 1
    (log.log / f"{0:020}.log").write_bytes(data)
    require_valid("kframe.kraft-compare/v1", "kraft", "compare", tmp_path / "a", tmp_path / "b", exit_code=3)


def test_row_types_match_table_columns() -> None:
    assert LogRow.__struct_fields__ == LOG_COLUMNS
    assert DifferenceRow.__struct_fields__ == (*DIFFERENCE_COLUMNS, "topic", "brokers")


def test_documents_with_control_records_are_valid(tmp_path: Path) -> None:
    WrittenLog(tmp_path, kraft_version=1).lead(1, 1)
    rows = require_valid("kframe.log-records/v1", "log", "show", tmp_path, "--control")["rows"]
    names = {
        record.__name__ for record in (control.LeaderChangeMessage, control.KRaftVersionRecord, control.VotersRecord)
    }
    assert {row["type"] for row in rows} == names
