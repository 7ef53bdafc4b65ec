"""Sizes of partitions from Parquet, CSV, JSON and kafka-log-dirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kframe.errors import InputError
from kframe.plans.generate.sizes import read_weights
from kframe.snapshot import Snapshot, read_snapshot

LOG_DIRS: Final = Path(__file__).parent / "texts" / "log-dirs.txt"
BOUND: Final = 2**53
HEADINGS: Final = (
    "Querying brokers for log directories information\nReceived log directory information from brokers {}\n"
)
Row = tuple[str, int, int]


def snapshot_of(tmp_path: Path, topics: dict[str, int]) -> Snapshot:
    path = tmp_path / "c.txt"
    lines = []
    for topic, count in topics.items():
        lines.append(f"Topic: {topic}\tPartitionCount: {count}\tReplicationFactor: 2\tConfigs: \n")
        lines += [
            f"\tTopic: {topic}\tPartition: {number}\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n" for number in range(count)
        ]
    path.write_text("".join(lines))
    return read_snapshot(path)


def parquet(path: Path, rows: list[Row]) -> None:
    pq.write_table(
        pa.table(dict(zip(("topic", "partition", "bytes"), map(list, zip(*rows, strict=True)), strict=True))), path
    )


def csv(path: Path, rows: list[Row]) -> None:
    path.write_text("topic,partition,bytes\n" + "".join(f"{t},{p},{b}\n" for t, p, b in rows))


def json_list(path: Path, rows: list[Row]) -> None:
    path.write_text(json.dumps([{"topic": t, "partition": p, "bytes": b} for t, p, b in rows]))


def log_dirs(path: Path, rows: list[Row]) -> None:
    path.write_text(HEADINGS.format(1) + json.dumps(document(1, {f"{t}-{p}": b for t, p, b in rows})))


def document(broker: int, sizes: dict[str, int], **changed: Any) -> dict[str, Any]:
    replicas = [{"partition": name, "size": size, "offsetLag": 0, "isFuture": False} for name, size in sizes.items()]
    directory = {"logDir": "/d", "error": None, "partitions": replicas}
    return {"version": 1, "brokers": [{"broker": broker, "logDirs": [directory]}], **changed}


FORMS: Final = {"Parquet": parquet, "CSV": csv, "JSON": json_list, "kafka-log-dirs": log_dirs}


@pytest.mark.parametrize("form", FORMS)
def test_sizes_of_each_form(form: str, tmp_path: Path) -> None:
    FORMS[form](tmp_path / "w", [("t", 1, 7), ("t", 0, 2**40), ("unknown", 0, 1)])
    assert read_weights(tmp_path / "w", snapshot_of(tmp_path, {"t": 2})).tolist() == [2**40, 7]


@pytest.mark.parametrize("size", [2**62, 2**57, BOUND + 1])
@pytest.mark.parametrize("form", FORMS)
def test_forms_share_a_bound(form: str, size: int, tmp_path: Path) -> None:
    FORMS[form](tmp_path / "w", [("t", 0, size)])
    with pytest.raises(InputError) as error:
        read_weights(tmp_path / "w", snapshot_of(tmp_path, {"t": 1}))
    assert str(size) in error.value.actual
    assert str(BOUND) in error.value.expected


@pytest.mark.parametrize("form", FORMS)
def test_sum_of_sizes_is_bounded(form: str, tmp_path: Path) -> None:
    FORMS[form](tmp_path / "w", [("t", 0, BOUND // 2), ("t", 1, 1)])
    with pytest.raises(InputError, match="bytes of all replicas together, expected at most 9,007,199,254,740,992"):
        read_weights(tmp_path / "w", snapshot_of(tmp_path, {"t": 2}))


def test_negative_numbers_in_parquet_are_refused(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, {"s": 1, "t": 1})
    for row in (("t", -1, 5), ("t", 0, -5)):
        parquet(tmp_path / "w", [row])
        with pytest.raises(InputError, match=r"found (partition -1|bytes -5), expected 0 to"):
            read_weights(tmp_path / "w", snapshot)


def test_printed_log_directories(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, {"a-b.c_d-1": 3, "big": 1, "t": 3})
    assert read_weights(LOG_DIRS, snapshot).tolist() == [0, 0, 0, 3038468, 0, 0, 0]


def document_lines(*documents: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(item)}\n" for item in documents)


@pytest.mark.parametrize(
    "text",
    [
        document_lines(document(1, {"t-0": 5}), document(2, {"t-0": 9})),
        "".join(HEADINGS.format(b) + json.dumps(document(b, {"t-0": s}), indent=2) + "\n" for b, s in ((1, 5), (2, 9))),
        json.dumps(document(3, {"t-0": 9}), indent=4),
        HEADINGS.format(1) + json.dumps({"brokers": document(1, {"t-0": 9})["brokers"]}),
        "Defaulted container kafka\n" + HEADINGS.format(1) + json.dumps(document(1, {"t-0": 9})) + "\n$ \n",
    ],
    ids=["a broker a line", "several calls", "JSON alone", "no version", "lines of kubectl"],
)
def test_largest_replica_counts(text: str, tmp_path: Path) -> None:
    (tmp_path / "w").write_text(text)
    assert read_weights(tmp_path / "w", snapshot_of(tmp_path, {"t": 1})).tolist() == [9]


def test_future_replicas_and_failed_directories_do_not_count(tmp_path: Path) -> None:
    listed = document(1, {"t-0": 5, "t-0 ": 1})
    replicas = listed["brokers"][0]["logDirs"][0]["partitions"]
    replicas[1] = {"partition": "t-0", "size": 99, "offsetLag": 3, "isFuture": True}
    failed = {"logDir": "/e", "error": "org.apache.kafka.common.errors.KafkaStorageException", "partitions": []}
    listed["brokers"][0]["logDirs"].append(failed)
    (tmp_path / "w").write_text(json.dumps(listed))
    assert read_weights(tmp_path / "w", snapshot_of(tmp_path, {"t": 1})).tolist() == [5]


@pytest.mark.parametrize(
    "text, message",
    [
        ('[{"topic": "t", "partition": 0, "bytes": 5, "bytes": 6}]', "key 'bytes' twice in one object"),
        ('{"brokers": [{"broker": 1, "logDirs": [], "logDirs": []}]}', "key 'logDirs' twice in one object"),
        (document_lines(document(1, {"t-0": 5}), document(1, {"t-0": 5})), ":2: found broker 1 again"),
        (json.dumps(document(1, {})), "no bytes of t-0"),
        (HEADINGS.format(1), "no JSON document"),
        (HEADINGS.format(1) + '{"version":1,"brokers":[{"brok', "malformed JSON"),
        ("ERROR: The given brokers do not exist from --broker-list: 9.\n", "found 'ERROR: The given brokers"),
        (HEADINGS.format(1) + "Error: timed out\n", "found 'Error: timed out'"),
    ],
    ids=[
        "key of JSON",
        "key of kafka-log-dirs",
        "broker",
        "no replica",
        "headings",
        "cut",
        "error",
        "late error",
    ],
)
def test_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "w").write_text(text)
    with pytest.raises(InputError) as error:
        read_weights(tmp_path / "w", snapshot_of(tmp_path, {"t": 1}))
    assert message in str(error.value)
