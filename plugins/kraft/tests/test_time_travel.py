"""``kframe log``: rows of the log, the cluster at offsets and times, and differences."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner
from kframe_kraft.commands.log import group
from kframe_kraft.disk import SnapshotId, read_history
from kframe_kraft.time_travel.positions import end_of

from kframe.plugin.kraft import LogError, RecordAndVersion, records, uuid_text
from verification.kraft.log_commands import cause_of, rows, run
from verification.kraft.written_log import (
    START_MS,
    change,
    partition,
    register,
    registration,
    small_cluster,
    write_snapshot,
)

FENCE = 1


def test_show_lists_records_with_keys_and_contents(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    log.append(change(0, leader=2, isr=(2, 3)), registration(1, fenced=FENCE))
    listed = [(row["offset"], row["type"], row["key"], row["summary"]) for row in rows("show", tmp_path)]
    assert listed == [
        (1, "FeatureLevel", "metadata.version", "level 25"),
        (2, "RegisterBroker", "broker 1", "epoch 10, rack a"),
        (3, "RegisterBroker", "broker 2", "epoch 10, rack a"),
        (4, "RegisterBroker", "broker 3", "epoch 10, rack b"),
        (5, "Config", "broker default", "min.insync.replicas=2"),
        (6, "Topic", "orders", "id AAAAAAAAAAAAAAAAAAAD6A"),
        (7, "Partition", "orders-0", "leader 1, isr [1,2,3], replicas [1,2,3]"),
        (8, "Partition", "orders-1", "leader 2, isr [2,3], replicas [2,3]"),
        (9, "PartitionChange", "orders-0", "leader 2, isr [2,3]"),
        (10, "BrokerRegistrationChange", "broker 1", "fenced"),
    ]


@pytest.mark.parametrize(
    "options, offsets",
    [
        (["--type", "partition"], [7, 8]),
        (["--type", "PARTITION_CHANGE_RECORD"], [9]),
        (["--topics", "orders"], [6, 7, 8, 9]),
        (["--brokers", "1"], [2, 7, 10]),
        (["--brokers", "1", "--brokers", "2", "--type", "PartitionChange"], [9]),
        (["--from", "6", "--to", "7"], [6, 7, 8]),
        (["--from", "2023-11-14T22:13:24Z"], [9, 10]),
        (["--to", "2023-11-14T22:13:21Z"], [1]),
        (["--control", "--to", "1"], [0, 1]),
        (["--boundaries", "--from", "9"], [9, 9, 10]),
    ],
)
def test_show_applies_filters(tmp_path: Path, options: list[str], offsets: list[int]) -> None:
    small_cluster(tmp_path).append(change(0, leader=2, isr=(2, 3)), registration(1, fenced=FENCE))
    assert [row["offset"] for row in rows("show", tmp_path, *options)] == offsets


def test_show_marks_transactions(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    topic = records.TopicRecord(name="t", topic_id=UUID(int=77))
    log.append(records.BeginTransactionRecord(name="work"), topic)
    log.append(records.AbortTransactionRecord(reason="failover"))
    listed = rows("show", tmp_path, "--from", "9")
    assert [(row["type"], row["transaction"]) for row in listed] == [("Topic", "aborted")]
    types = [row["type"] for row in rows("show", tmp_path, "--from", "9", "--boundaries")]
    assert types == ["Batch", "BeginTransaction", "Topic", "Batch", "AbortTransaction"]


@pytest.mark.parametrize(
    "position, expected",
    [("0", 1), ("1", 2), ("3", 6), ("7", 9), ("end", 9), ("2023-11-14T22:13:22Z", 6), ("2023-11-14T23:13:22+01:00", 6)],
)
def test_positions_are_ends_of_batches(tmp_path: Path, position: str, expected: int) -> None:
    assert end_of(read_history(small_cluster(tmp_path).log), position) == expected


@pytest.mark.parametrize("position", ["9", "2020-01-01", "yesterday", "-1"])
def test_positions_outside_of_the_log_are_refused(tmp_path: Path, position: str) -> None:
    history = read_history(small_cluster(tmp_path).log)
    with pytest.raises(LogError):
        end_of(history, position)


def test_at_summarizes_and_writes_cluster(tmp_path: Path) -> None:
    log = small_cluster(tmp_path / "node")
    log.append(change(0, leader=2, isr=(2, 3)), registration(1, fenced=FENCE))
    before = run("at", tmp_path / "node", "--offset", 8)
    after = run("at", tmp_path / "node", "--time", "2023-11-14T22:13:24Z", "--out", tmp_path / "out")
    assert (before["fenced_brokers"], before["under_replicated"], before["at"]) == (0, 0, "2023-11-14T22:13:23.000Z")
    assert (after["fenced_brokers"], after["under_replicated"], after["partitions"]) == (1, 1, 2)
    assert (tmp_path / "out").is_dir()
    brokers = rows("at", tmp_path / "node", "--list", "brokers")
    assert [(row["broker_id"], row["fenced"]) for row in brokers] == [(1, True), (2, False), (3, False)]


@pytest.mark.parametrize(
    "options", [(), ("--offset", "end"), ("--time", "end"), ("--offset", "9"), ("--time", "2023-11-14T22:13:24Z")]
)
def test_at_and_why_take_every_position(tmp_path: Path, options: tuple[str, ...]) -> None:
    log = small_cluster(tmp_path)
    log.append(change(0, leader=2, isr=(2, 3)), registration(1, fenced=FENCE))
    assert run("at", tmp_path, *options)["fenced_brokers"] == 1
    assert run("why", tmp_path, "orders-0", *options)["leader"] == 2
    assert run("why", tmp_path, "orders-0", "--time", "2023-11-14T22:13:23Z")["leader"] == 1


@pytest.mark.parametrize("command", [("at",), ("why", "orders-0")])
@pytest.mark.parametrize(
    "options, message",
    [
        (("--offset", "last"), "found 'last', expected an offset from 0 to 9223372036854775807, or end"),
        (("--offset", "2023-11-14"), "expected an offset from 0 to 9223372036854775807, or end"),
        (("--time", "8"), "found '8', expected a time such as 2026-11-24T09:30:00Z; --offset takes offsets"),
        (("--time", "last"), "found 'last', expected an offset, end, or a time such as 2026-11-24T09:30:00Z"),
        (("--offset", "1", "--time", "2023-11-14"), "--offset and --time exclude one another"),
    ],
)
def test_other_positions_are_refused(
    tmp_path: Path, command: tuple[str, ...], options: tuple[str, ...], message: str
) -> None:
    small_cluster(tmp_path)
    name, *partition_name = command
    result = CliRunner().invoke(group, [name, str(tmp_path), *partition_name, *options])
    assert (result.exit_code, message in " ".join(result.output.replace("│", " ").split())) == (2, True), result.output


def test_history_begins_before_the_newest_snapshot(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    topic = RecordAndVersion(records.TopicRecord(name="orders", topic_id=partition(0, 1).topic_id), 0)
    write_snapshot(log.log, SnapshotId(9, 1), topic, timestamp=START_MS + 3000)
    assert run("at", tmp_path, "--offset", 5)["topics"] == 0
    assert cause_of(log).event == "partition created"


def test_diff_lists_changes(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    log.append(change(0, leader=2, isr=(2, 3)), registration(1, fenced=FENCE))
    log.append(records.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"))
    log.append(records.TopicRecord(name="more", topic_id=UUID(int=78)))
    listed = [
        (row["kind"], row["name"], row["change"], row["before"], row["after"])
        for row in rows("diff", tmp_path, "8", "end")
    ]
    assert listed == [
        ("broker", "1", "fenced", False, True),
        ("config", "topic orders", "retention.ms", None, "5"),
        ("topic", "more", "created", None, None),
        ("partition", "orders-0", "leader", 1, 2),
        ("partition", "orders-0", "isr", [1, 2, 3], [2, 3]),
    ]
    assert rows("diff", tmp_path, "8", "8") == []
    by_rack = rows("diff", tmp_path, "end", "8", "--by", "rack")
    assert by_rack == [
        {"rack": "a", "changes": 3, "by_change": {"broker fenced": 1, "partition isr": 1, "partition leader": 1}}
    ]
    by_broker = {row["broker"]: row["changes"] for row in rows("diff", tmp_path, "8", "end", "--by", "broker")}
    assert by_broker == {"1": 3, "2": 1}
    by_topic = {row["topic"]: row["changes"] for row in rows("diff", tmp_path, "8", "end", "--by", "topic")}
    assert by_topic == {"more": 1, "orders": 3}


def test_diff_of_a_later_to_an_earlier_offset_is_reversed(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    log.append(
        change(0, leader=2, isr=(2, 3)), register(4), records.UnregisterBrokerRecord(broker_id=1, broker_epoch=10)
    )
    log.append(records.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"))
    log.append(records.TopicRecord(name="more", topic_id=UUID(int=78)), partition(2, 2, 3))
    listed = [
        (row["kind"], row["name"], row["change"], row["before"], row["after"])
        for row in rows("diff", tmp_path, "end", "8")
    ]
    assert listed == [
        ("broker", "1", "registered", None, None),
        ("broker", "4", "unregistered", None, None),
        ("config", "topic orders", "retention.ms", "5", None),
        ("topic", "more", "deleted", None, None),
        ("partition", "orders-0", "leader", 2, 1),
        ("partition", "orders-0", "isr", [2, 3], [1, 2, 3]),
        ("partition", "orders-2", "deleted", None, None),
    ]
    (by_topic,) = (row for row in rows("diff", tmp_path, "end", "8", "--by", "topic") if row["topic"] == "more")
    assert by_topic["by_change"] == {"topic deleted": 1}


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ["--topics", "orders", "--topics", "nosuch"],
            "--topics: found 'nosuch', expected the name of a topic in the log",
        ),
        (["--topics", "audit-*"], "--topics: found 'audit-*', expected the name of a topic in the log, or a pattern"),
        (["--brokers", "1,77"], "--brokers: found broker 77, expected a broker that the log names"),
        (["--type", "PartitionChanged"], "found 'PartitionChanged', expected PartitionChange or Partition"),
        (["--type", "Foo"], "found 'Foo', expected one of AbortTransaction, AccessControlEntry, "),
    ],
)
def test_show_refuses_names_that_the_log_does_not_have(tmp_path: Path, options: list[str], message: str) -> None:
    small_cluster(tmp_path)
    result = CliRunner().invoke(group, ["show", str(tmp_path), *options])
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_show_accepts_names_without_records_in_the_selection(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    log.append(records.ConfigRecord(resource_type=4, resource_name="9", name="x", value="1"))
    log.append(records.RemoveTopicRecord(topic_id=partition(0, 1).topic_id))
    assert rows("show", tmp_path, "--topics", "ord*", "--brokers", "9", "--to", "7") == []


def test_diff_lists_directories_before_and_after(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    moved, lost = UUID(int=9999), UUID(int=2)
    log.append(registration(1, log_dirs=(UUID(int=9001), moved)))
    log.append(change(0, directories=(moved, UUID(int=9002), lost)))
    directories = {row["name"]: row for row in rows("diff", tmp_path, "8", "end")}
    row = directories["orders-0"]
    assert (row["kind"], row["change"], row["topic"], row["brokers"]) == ("partition", "directories", "orders", [1, 3])
    assert row["before"] == [uuid_text(UUID(int=9000 + replica)) for replica in (1, 2, 3)]
    assert row["after"] == [uuid_text(directory) for directory in (moved, UUID(int=9002), lost)]
    assert (directories["1"]["change"], directories["1"]["before"]) == ("directories", [uuid_text(UUID(int=9001))])
    assert directories["1"]["after"] == [uuid_text(UUID(int=9001)), uuid_text(moved)]
