"""Damaged logs and snapshots: what the log commands still read, and what they leave out."""

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
from kframe_kraft.disk import SnapshotId
from kframe_kraft.records import record_version
from kframe_kraft.sources.paths import read_source

from kframe.cli.app import cli
from kframe.plugin.kraft import RecordAndVersion, records
from verification.kraft.written_log import (
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
    for command in (
        ("log", "why", log.directory, "orders-0"),
        ("log", "diff", log.directory, "8", "end"),
        ("log", "diff", log.directory, "8", "end", "--by", "topic"),
        ("log", "at", log.directory, "--list", "brokers"),
    ):
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
    assert listing.stderr.startswith(f"note: {size} bytes without a batch at the end of the log: {SEGMENT}, byte ")


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
    [
        (frame(100, 0), "record type 100, expected a record type of Kafka 4.4 or earlier"),
        (frame(2, 9), "TopicRecord (type 2) version 9, expected version 0 to 0"),
    ],
)
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
