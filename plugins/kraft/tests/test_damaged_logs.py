"""Damaged logs: what the log commands still read, what they leave out, and the sources that prove no empty cluster."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from kframe_kraft.batches import BatchPosition, encode_data_batch
from kframe_kraft.batches.reading import read_batches
from kframe_kraft.detection import LOG_DIRECTORY
from kframe_kraft.disk import MetaProperties, SnapshotId, write_properties
from kframe_kraft.records import record_version
from kframe_kraft.sources import read_source
from kframe_kraft.testing.written_log import (
    LEVEL,
    ORDERS,
    START_MS,
    WrittenLog,
    change,
    partition,
    register,
    small_cluster,
    write_snapshot,
)

from kframe.cli.app import cli
from kframe.plugin.kraft import LogError, RecordAndVersion, records

DATA = Path(__file__).parent / "data"
SEGMENT = f"{0:020}.log"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)])


def rows(result: Result) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return listed


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    """Offsets 0 to 12: a leader, 9 records of the cluster in three batches, then four changes in a batch each."""
    log = small_cluster(tmp_path / "node")
    for isr in ((1, 2), (1, 2, 3), (1, 3), (1,)):
        log.append(change(0, isr=isr))
    return log


def starts(data: bytes) -> dict[int, int]:
    """The byte where the batch with each base offset begins."""
    positions, position = {}, 0
    for batch in read_batches(data):
        positions[batch.header.base_offset] = position
        position += batch.header.size
    return positions


def flip_payload(data: bytearray, position: int) -> None:
    data[position + 70] ^= 1


def flip_base_offset(data: bytearray, position: int) -> None:
    data[position + 6] ^= 1


def flip_epoch(data: bytearray, position: int) -> None:
    """To an epoch below the former one."""
    data[position + 15] = 0


def flip_magic(data: bytearray, position: int) -> None:
    data[position + 16] = 1


def lengthen(data: bytearray, position: int) -> None:
    """A length beyond the end of the file, as of a torn tail."""
    data[position + 9] = 1


def shorten(data: bytearray, position: int) -> None:
    """A length within the batch."""
    data[position + 11] -= 3


def erase(data: bytearray, position: int) -> None:
    """A page that was never written."""
    data[position : position + 40] = bytes(40)


DAMAGE = [flip_payload, flip_base_offset, flip_epoch, flip_magic, lengthen, shorten, erase]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_log_is_read_up_to_the_damage(log: WrittenLog, damage: Callable[[bytearray, int], None]) -> None:
    data = bytearray(log.data)
    position = starts(log.data)[10]
    damage(data, position)
    (log.log / SEGMENT).write_bytes(data)
    listing = run("log", "show", log.directory, "-o", "json")
    assert (listing.exit_code, [row["offset"] for row in rows(listing)]) == (1, list(range(1, 10)))
    (warning,) = listing.stderr.splitlines()
    assert warning.startswith(f"warning: damaged log: {SEGMENT}, byte {position}: found ")
    assert warning.endswith("; offsets 10 to 12 are left out")
    selected = run("log", "show", log.directory, "--to", "8", "-o", "json")
    assert (selected.exit_code, rows(selected)[-1]["offset"], selected.stderr) == (1, 8, listing.stderr)
    at = run("log", "at", log.directory, "--offset", "9", "-o", "json")
    assert (at.exit_code, json.loads(at.stdout)["offset"], at.stderr) == (1, 9, listing.stderr)
    for command in (("log", "why", log.directory, "orders-0"), ("log", "diff", log.directory, "8", "end"),
                    ("log", "diff", log.directory, "8", "end", "--by", "topic"),
                    ("log", "at", log.directory, "--brokers")):  # fmt: skip
        result = run(*command)
        assert (result.exit_code, result.stderr) == (1, listing.stderr)
    refused = run("log", "at", log.directory, "--offset", "10")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "offsets 10 to 12 are left out" in refused.stderr
    whole = run("snapshot", "show", log.directory)
    assert (whole.exit_code, whole.stdout) == (2, "")
    assert "offsets 10 to 12 cannot be read" in whole.stderr


@pytest.mark.parametrize("damage", [flip_payload, flip_magic, lengthen, erase])
def test_damage_of_the_last_batch_is_a_torn_tail(log: WrittenLog, damage: Callable[[bytearray, int], None]) -> None:
    data = bytearray(log.data)
    damage(data, starts(log.data)[12])
    (log.log / SEGMENT).write_bytes(data)
    listing = run("log", "show", log.directory, "-o", "json")
    assert (listing.exit_code, rows(listing)[-1]["offset"]) == (0, 11)
    size = len(log.data) - starts(log.data)[12]
    assert listing.stderr.startswith(f"note: {size} bytes at the end of the log are no batch: {SEGMENT}, byte ")


@pytest.mark.parametrize("damage", [flip_base_offset, flip_epoch])
def test_last_batch_that_contradicts_the_log_is_damage(
    log: WrittenLog, damage: Callable[[bytearray, int], None]
) -> None:
    data = bytearray(log.data)
    damage(data, starts(log.data)[12])
    (log.log / SEGMENT).write_bytes(data)
    listing = run("log", "show", log.directory, "-o", "json")
    assert (listing.exit_code, rows(listing)[-1]["offset"]) == (1, 11)
    assert "offsets from 12 on are left out" in listing.stderr


def test_search_passes_a_large_hole(log: WrittenLog) -> None:
    """The next batch begins in another part of the search."""
    position = starts(log.data)[11]
    (log.log / SEGMENT).write_bytes(log.data[:position] + bytes((1 << 18) - 20) + log.data[starts(log.data)[12] :])
    listing = run("log", "show", log.directory, "-o", "json")
    assert (listing.exit_code, rows(listing)[-1]["offset"]) == (1, 10)
    assert "offsets 11 to 12 are left out" in listing.stderr


def split(log: WrittenLog, *bases: int) -> None:
    """Cut the log into segments that begin at these offsets."""
    positions = starts(log.data)
    ends = [*(positions[base] for base in bases), len(log.data)]
    for first, end in zip((0, *bases), ends, strict=True):
        (log.log / f"{first:020}.log").write_bytes(log.data[positions[first] : end])


def test_damage_in_an_earlier_segment_leaves_out_the_later_ones(log: WrittenLog) -> None:
    split(log, 6, 10)
    path = log.log / f"{6:020}.log"
    path.write_bytes(path.read_bytes()[:-1])
    listing = run("log", "show", log.directory, "-o", "json")
    assert (listing.exit_code, rows(listing)[-1]["offset"]) == (1, 8)
    assert f"{6:020}.log, byte " in listing.stderr
    assert "offsets 9 to 12 are left out" in listing.stderr


def test_missing_segment_leaves_out_the_later_ones(log: WrittenLog) -> None:
    split(log, 6, 10)
    (log.log / f"{6:020}.log").unlink()
    listing = run("log", "show", log.directory, "-o", "json")
    assert (listing.exit_code, rows(listing)[-1]["offset"]) == (1, 5)
    assert "base offset 10, expected 6, the end of the segment before; offsets 6 to 12 are left out" in listing.stderr


def test_missing_first_segment_is_refused(log: WrittenLog) -> None:
    split(log, 6, 10)
    (log.log / SEGMENT).unlink()
    listing = run("log", "show", log.directory)
    assert (listing.exit_code, listing.stdout) == (2, "")
    assert "a log from offset 6, expected a snapshot at or above it" in listing.stderr


def test_damaged_snapshot_is_left_out(log: WrittenLog) -> None:
    feature = RecordAndVersion(records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0)
    path = write_snapshot(log.log, SnapshotId(9, 1), feature)
    data = bytearray(path.read_bytes())
    data[-90] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    listing = run("log", "show", log.directory, "-o", "json")
    assert (listing.exit_code, rows(listing)[-1]["offset"]) == (1, 12)
    assert path.name in listing.stderr
    assert run("snapshot", "show", log.directory).exit_code == 2


@pytest.mark.parametrize("valid, exit_code, first", [((10,), 1, 10), ((), 2, None)])
def test_history_begins_with_the_next_valid_snapshot(
    log: WrittenLog, valid: tuple[int, ...], exit_code: int, first: int | None
) -> None:
    """Kafka has deleted the first segment, and the oldest snapshot is damaged."""
    split(log, 6, 10)
    (log.log / SEGMENT).unlink()
    state = [RecordAndVersion(record, record_version(record, LEVEL)) for record in cluster_records()]
    for offset in (6, *valid):
        write_snapshot(log.log, SnapshotId(offset, 1), *state)
    damaged = log.log / SnapshotId(6, 1).file_name
    damaged.chmod(0o644)
    damaged.write_bytes(damaged.read_bytes()[:-1])
    listing = run("log", "show", log.directory, "-o", "json")
    assert (listing.exit_code, damaged.name in listing.stderr) == (exit_code, True), listing.output
    if first is not None:
        assert rows(listing)[0]["offset"] == first


def cluster_records() -> list[records.MetadataRecord]:
    topic = records.TopicRecord(name="orders", topic_id=ORDERS)
    return [register(1), register(2), register(3), topic, partition(0, 1, 2, 3), partition(1, 2, 3)]


def test_indexes_do_not_matter(log: WrittenLog) -> None:
    (log.log / f"{0:020}.index").write_bytes(b"\xff" * 100)
    (log.log / f"{0:020}.timeindex").write_bytes(b"\xff" * 100)
    assert run("log", "show", log.directory).exit_code == 0
    refused = run("log", "show", log.log / f"{0:020}.index")
    assert (refused.exit_code, "an index of a segment, expected the segment" in refused.stderr) == (2, True)


@pytest.mark.parametrize("name", [SEGMENT, f"{SEGMENT}.gz", "copy.gz"])
def test_damaged_segment_and_compressed_segment(log: WrittenLog, tmp_path: Path, name: str) -> None:
    data = bytearray(log.data)
    flip_payload(data, starts(log.data)[10])
    for content, exit_code, last in ((log.data, 0, 12), (bytes(data), 1, 9)):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        listing = run("log", "show", path, "-o", "json")
        assert (listing.exit_code, rows(listing)[-1]["offset"]) == (exit_code, last)
    path.write_bytes(gzip.compress(log.data)[:-20])
    listing = run("log", "show", path)
    assert (listing.exit_code, "a damaged gzip file" in listing.stderr) == (2, True)


def test_compressed_snapshot_keeps_its_offset(tmp_path: Path) -> None:
    feature = RecordAndVersion(records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0)
    path = write_snapshot(tmp_path, SnapshotId(9, 2), feature)
    compressed = tmp_path / f"{path.name}.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_source(compressed).history.snapshot_id == (9, 2)


def frame(api_key: int, version: int) -> bytes:
    """A record of three bytes."""
    return bytes((1, api_key, version))


@pytest.mark.parametrize(
    "value, text",
    [(frame(100, 0), "record type 100, expected a record type of Kafka 4.4 or earlier"),
     (frame(2, 9), "TopicRecord (type 2) version 9, expected version 0 to 0")],
)  # fmt: skip
@pytest.mark.parametrize("command", ["show", "at", "show --type Partition"])
def test_unknown_record_is_refused(log: WrittenLog, value: bytes, text: str, command: str) -> None:
    topic = RecordAndVersion(records.RemoveTopicRecord(topic_id=UUID(int=9)), 0)
    data = encode_data_batch([topic], BatchPosition(log.offset, 1, START_MS))
    template = next(iter(read_batches(data)))
    (log.log / SEGMENT).write_bytes(log.data + with_value(data, template.value(0), value))
    verb, *options = command.split()
    result = run("log", verb, log.directory, *options)
    assert result.exit_code == 2, result.output
    assert text in result.stderr


def with_value(data: bytes, former: bytes, value: bytes) -> bytes:
    """The batch of one record with another, shorter value."""
    from crc32c import crc32c

    start = data.index(former)
    body = bytearray(data[start - 6 : start])  # length, attributes, deltas, key and value length
    body[0:1] = b""
    record = bytes((0, 0, 0, 1, 2 * len(value))) + value + b"\0"
    content = bytearray(data[: start - 6] + bytes((2 * len(record),)) + record)
    content[8:12] = (len(content) - 12).to_bytes(4, "big")
    content[17:21] = crc32c(bytes(content[21:])).to_bytes(4, "big")
    return bytes(content)


def no_log(path: Path) -> None:
    write_properties(path, MetaProperties("cluster", 1))


def only_bootstrap(path: Path) -> None:
    no_log(path)
    (path / "bootstrap.checkpoint").write_bytes(b"\0" * 400)


def topics_only(path: Path) -> None:
    no_log(path)
    (path / "orders-0").mkdir()
    (path / "orders-0" / SEGMENT).write_bytes(b"")


def empty_directory(path: Path) -> None:
    (path / LOG_DIRECTORY).mkdir()


def no_records(path: Path) -> None:
    (path / LOG_DIRECTORY).mkdir()
    (path / LOG_DIRECTORY / SEGMENT).write_bytes(b"")


def zeros(path: Path) -> None:
    (path / LOG_DIRECTORY).mkdir()
    (path / LOG_DIRECTORY / SEGMENT).write_bytes(bytes(796))


def formatted(path: Path) -> None:
    """As Kafka 4.4 formats a controller."""
    (path / LOG_DIRECTORY).mkdir()
    feature = RecordAndVersion(records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0)
    write_snapshot(path / LOG_DIRECTORY, SnapshotId(0, 0), feature)


def in_a_directory_below(path: Path) -> None:
    no_log(path)
    small_cluster(path / "d0")


@pytest.mark.parametrize(
    "fill, text",
    [
        (no_log, "no __cluster_metadata-0, expected metadata.log.dir of the node, or without it the first of log.dirs"),
        (only_bootstrap, "found no __cluster_metadata-0, expected metadata.log.dir"),
        (topics_only, "found no __cluster_metadata-0, expected metadata.log.dir"),
        (empty_directory, "found no segment and no snapshot in __cluster_metadata-0"),
        (no_records, "found no record, expected the log of a node"),
        (zeros, "found no record, and 796 bytes that are no batch"),
        (formatted, "found no record, expected the log of a node"),
        (in_a_directory_below, "node/d0 has one"),
    ],
)  # fmt: skip
def test_directory_without_metadata_is_no_empty_cluster(
    tmp_path: Path, fill: Callable[[Path], None], text: str
) -> None:  # fmt: skip
    node = tmp_path / "node"
    node.mkdir()
    fill(node)
    out = tmp_path / "out"
    for command in (("snapshot", "show", node), ("snapshot", "convert", node, out), ("log", "show", node),
                    ("log", "at", node), ("kraft", "recover", node)):  # fmt: skip
        result = run(*command)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert text in result.stderr
    assert not out.exists()


def test_control_records_prove_no_empty_cluster(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path / "node")
    log.lead(1, 1)
    for command in (("snapshot", "show"), ("log", "at")):
        result = run(*command, log.directory)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "found no metadata record, expected the log of a quorum that has a leader" in result.stderr
    assert run("log", "show", log.directory, "--control").exit_code == 0


def test_log_of_a_new_cluster_is_an_empty_cluster(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path / "node")
    log.lead(1, 1)
    log.append(records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL))
    result = run("snapshot", "show", log.directory, "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)["partitions"]) == (0, 0)


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", f"{0:020}-{0:010}.checkpoint"])
def test_records_of_formatting_are_no_cluster(tmp_path: Path, name: str) -> None:
    feature = RecordAndVersion(records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0)
    path = write_snapshot(tmp_path, SnapshotId(0, 0), feature).rename(tmp_path / name)
    with pytest.raises(LogError, match="the records that a node is formatted with"):
        read_source(path)


HEAD = "Dumping /d/00000000000000000000.log\nLog starting offset: 0\n"
CONTROL = (
    "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: 1 isTransactional: false isControl: true position: 0 CreateTime: 5 size: 91 magic: 2 "
    "compresscodec: none crc: 4 isvalid: true\n"
    "| offset: 0 CreateTime: 5 keySize: 4 valueSize: 19 sequence: -1 headerKeys: [] controlType: LEADER_CHANGE(2)\n"
)
BATCH = (
    "baseOffset: 1 lastOffset: 2 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: 1 isTransactional: false isControl: false position: 91 CreateTime: 6 size: 99 magic: 2 "
    "compresscodec: none crc: 4 isvalid: true\n"
)
FEATURE = '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":25}}'
TOPIC = '{"type":"TOPIC_RECORD","version":0,"data":{"name":"e","topicId":"sSyAuipHQUSlMiLc2kef4g"}}'


def line(offset: int, payload: str) -> str:
    return f"| offset: {offset} CreateTime: 6 keySize: -1 valueSize: 9 sequence: -1 headerKeys: [] {payload}\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + CONTROL + BATCH + line(1, f"payload: {FEATURE}") + line(2, f"payload: {TOPIC}"),
        HEAD + CONTROL + BATCH + f"| payload: {FEATURE}\n| payload: {TOPIC}\n",
        HEAD + CONTROL + BATCH + f" payload: {FEATURE}\n payload: {TOPIC}\n",
        "Defaulted container \"kafka\" out of: kafka\n" + HEAD + CONTROL + BATCH + f"{FEATURE}\n{TOPIC}\n",
        f"{FEATURE}\n{TOPIC}\n",
    ],
    ids=["all", "--skip-record-metadata", "--skip-record-metadata without bars", "noise before", "records only"],
)  # fmt: skip
def test_dumps_of_all_options_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(text)
    result = run("snapshot", "show", path, "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)["topics"]) == (0, 1), result.output


def test_dump_has_kraft_version(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    version = '| offset: 1 CreateTime: 5 keySize: 4 valueSize: 5 sequence: -1 headerKeys: [] KRaftVersion {"version":0,'
    control = CONTROL.replace("lastOffset: 0 count: 1", "lastOffset: 1 count: 2") + version + '"kRaftVersion":1}\n'
    batch = BATCH.replace("baseOffset: 1 lastOffset: 2", "baseOffset: 2 lastOffset: 3")
    path.write_text(HEAD + control + batch + line(2, f"payload: {FEATURE}") + line(3, f"payload: {TOPIC}"))
    summary = json.loads(run("snapshot", "show", path, "-o", "json").stdout)
    assert (summary["features"], summary["offset"]) == ({"kraft.version": 1, "metadata.version": 25}, 3)


@pytest.mark.parametrize(
    "text, where, message",
    [
        (line(1, f"payload: {FEATURE}") + line(2, "payload: Error at 2, skipping. Unknown metadata id 28"), 7,
         "the dump lacks, because kafka-dump-log did not decode it (Error at 2, skipping. Unknown metadata id 28)"),
        (f"| payload: {FEATURE}\n| payload: Error at 2, skipping. Can't read version 3 of TopicRecord\n", 7,
         "expected every record: use kafka-dump-log of the node's release"),
        (line(1, "") + line(2, ""), 5,
         "0 of 2 records of the batch, expected every record, in output of kafka-dump-log with --cluster-metadata-"),
        (line(1, "payload: \x01\x02\x03") + line(2, "key: 7 payload: x"), 5, "with --cluster-metadata-decoder"),
        ("", 5, "with --cluster-metadata-decoder"),
        (line(1, f"payload: {FEATURE}"), 5, "1 of 2 records of the batch, expected every record, in a dump that is"),
        (line(1, f"payload: {FEATURE}") + line(2, f"payload: {TOPIC[:-4]}"), 5, "1 of 2 records"),
        (line(1, f"payload: {FEATURE}") * 3, 5, "3 of 2 records"),
        (line(1, f"payload: {FEATURE}") + line(2, f"payload: {TOPIC}") + BATCH[:60], 8, "expected the line of a batch"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", [("snapshot", "show"), ("log", "show")])
def test_dump_without_some_records_is_refused(
    tmp_path: Path, command: tuple[str, str], text: str, where: int, message: str
) -> None:  # fmt: skip
    path = tmp_path / "dump.txt"
    path.write_text(HEAD + CONTROL + BATCH + text)
    result = run(*command, path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"dump.txt:{where}: " in result.stderr
    assert message in result.stderr


@pytest.mark.parametrize(
    "text, message",
    [
        (HEAD + CONTROL, "found no record"),
        ("Dumping /d/bootstrap.checkpoint\nKRaft bootstrap snapshot\n" + FEATURE, "a node is formatted with"),
        ("Dumping /d/00000000000000000003-0000000001.checkpoint\nSnapshot end offset: 3, epoch: 1\n" + CONTROL + BATCH
         + line(1, f"payload: {FEATURE}") + line(2, f"payload: {TOPIC}"), "no footer: the dump is cut off"),
    ],
)  # fmt: skip
def test_dump_that_proves_no_empty_cluster_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(text)
    result = run("snapshot", "show", path)
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), result.stderr


@pytest.mark.parametrize(
    "name, message",
    [
        ("dump-error-at.txt.gz", "dump-error-at.txt:135: found a record that the dump lacks"),
        ("dump-without-decoder.txt", "dump-without-decoder.txt:5: found 0 of 9 records"),
    ],
)
@pytest.mark.parametrize("command", [("snapshot", "show"), ("log", "show"), ("log", "at")])
def test_dumps_of_kafka_that_lack_records_are_refused(command: tuple[str, str], name: str, message: str) -> None:
    result = run(*command, DATA / name)
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), result.stderr


TOPICS = "Topic: orders\tTopicId: sSyAuipHQUSlMiLc2kef4g\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
PARTITIONS = "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
PLAN = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1]}]}'


@pytest.mark.parametrize(
    "content, message",
    [
        (TOPICS + PARTITIONS, "a snapshot in the format describe, which has no log"),
        (PLAN, "a snapshot in the format reassignment, which has no log"),
        ("orders\npayments\n", "a text, expected output of kafka-dump-log with --cluster-metadata-decoder"),
    ],
)
def test_text_of_another_tool_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "topics.txt"
    path.write_text(content)
    for verb in ("show", "at"):
        result = run("log", verb, path)
        assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), result.stderr
    assert (f"use kframe snapshot show {path}" in result.stderr) == ("no log" in message)
