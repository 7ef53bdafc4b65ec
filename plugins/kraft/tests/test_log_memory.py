"""``kframe log`` reads a log of any size with the memory of a part of it."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from kframe_kraft.batches import BatchPosition, encode_values, read_batches
from kframe_kraft.commands.log import group
from kframe_kraft.disk import read_history
from kframe_kraft.disk.segments import OPEN_FILES_MAX
from kframe_kraft.disk.temporary import TemporaryContent
from kframe_kraft.records import encode_record
from kframe_kraft.replay.image import image_of

from kframe.plugin.kraft import LogError, to_json
from verification.kraft.scripted_quorum import ScriptedController, ScriptedState
from verification.kraft.written_log import START_MS, WrittenLog, change, small_cluster

#: Sizes of logs in batches, and records of a batch.
SMALL, LARGE = 10, 60
RECORDS = 150
#: Bytes by which the peaks may differ. The larger log has 300,000 more, and needs twice as many in memory.
TOLERANCE = 150_000


def grow(log: WrittenLog, batches: int, segments: int = 4) -> list[bytes]:
    """Append so many segments, with changes of a partition. Returns the batches."""
    values = [encode_record(change(0, isr=isr), 2) for isr in ((1, 2), (1, 2, 3))]
    written = []
    for number in range(batches):
        if number % -(-batches // segments) == 0:
            segment = log.log / f"{log.offset:020}.log"
        value = values[number % 2]
        value_start = np.arange(0, (RECORDS + 1) * len(value), len(value))
        position = BatchPosition(log.offset, 1, START_MS + 10_000 + number)
        written.append(encode_values(np.frombuffer(value * RECORDS, np.uint8), value_start, position))
        with segment.open("ab") as file:
            file.write(written[-1])
        log.offset += RECORDS
    return written


Source = Callable[[Path, int], Any]


@contextmanager
def directory(folder: Path, batches: int) -> Iterator[object]:
    grow(small_cluster(folder), batches)
    yield folder


@contextmanager
def segment(folder: Path, batches: int) -> Iterator[object]:
    log = small_cluster(folder)
    path = folder / f"{0:020}.log"
    path.write_bytes(log.data + b"".join(grow(log, batches)))
    yield path


@contextmanager
def dump(folder: Path, batches: int) -> Iterator[object]:
    log = small_cluster(folder)
    path = folder / "dump.jsonl"
    with path.open("w") as file:
        for batch in read_batches(log.data + b"".join(grow(log, batches // 2))):
            if not batch.header.is_control:
                file.writelines(
                    json.dumps(to_json(*record), separators=(",", ":")) + "\n" for record in batch.records()
                )
    yield path


@contextmanager
def quorum(folder: Path, batches: int) -> Iterator[object]:
    log = small_cluster(folder)
    state = ScriptedState(batches=[log.data, *grow(log, batches)])
    state.high_watermark = log.offset
    with ScriptedController(1, state) as controller:
        yield f"kraft://127.0.0.1:{controller.address[1]}"


def peak(source: Any, *arguments: object) -> int:
    """The largest number of bytes that a command allocates."""
    command, *options = map(str, arguments)
    tracemalloc.start()
    try:
        result = CliRunner().invoke(group, [command, str(source), *options, "-o", "json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kframe_kraft.disk.batch_files.PART_BYTES", 1 << 14)
    monkeypatch.setattr("kframe_kraft.live.calls.FETCH_BYTES", 1 << 14)
    monkeypatch.setattr("kframe_kraft.sources.dumps._BATCH_RECORDS", 50)


@pytest.mark.extended
@pytest.mark.parametrize(
    "source, arguments",
    [
        (directory, ["show", "--type", "Topic"]),
        (directory, ["show", "--type", "TopicRecord", "--from", "2023-11-14T22:13:21Z"]),
        (directory, ["at"]),
        (directory, ["at", "--offset", "100"]),
        (directory, ["diff", "8", "end"]),
        (directory, ["why", "orders-0"]),
        (segment, ["show", "--type", "Topic"]),
        (dump, ["show", "--type", "Topic"]),
        (quorum, ["show", "--type", "Topic"]),
        (quorum, ["at"]),
    ],
    ids=lambda value: value.__name__ if callable(value) else " ".join(value),
)
def test_memory_does_not_grow_with_the_log(tmp_path: Path, source: Source, arguments: list[str]) -> None:
    peaks = []
    for batches in (2, SMALL, LARGE):  # The first run imports modules.
        with source(tmp_path / str(batches), batches) as opened:
            peaks.append(peak(opened, *arguments))
    assert peaks[2] < peaks[1] + TOLERANCE, peaks


def test_batches_in_several_parts_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_cluster(tmp_path)
    grow(log, 7)
    expected = [(batch.header, batch.where, batch.payload.tobytes()) for batch in read_history(log.log).log.batches]
    for size in (1, 61, 100, 4_000):
        monkeypatch.setattr("kframe_kraft.disk.batch_files.PART_BYTES", size)
        batches = read_history(log.log).log.batches
        assert [(batch.header, batch.where, batch.payload.tobytes()) for batch in batches] == expected
        assert list(batches.headers()) == [header for header, _, _ in expected]


def test_segments_that_a_node_deletes_meanwhile_remain_readable(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    grow(log, 10)
    history = read_history(log.log)
    for path in log.log.glob("*.log"):
        path.unlink()
    assert image_of(history).offset == log.offset


def test_more_segments_than_files_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kframe_kraft.disk.segments.OPEN_FILES_MAX", 2)
    assert OPEN_FILES_MAX > 2
    log = small_cluster(tmp_path)
    grow(log, 10, segments=5)
    history = read_history(log.log)
    assert image_of(history).offset == log.offset
    last = max(log.log.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.raises(LogError, match="the end of the file, expected"):
        image_of(history)


def test_batch_above_size_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    with path.open("wb") as file:
        file.write(bytes(8) + (70 << 20).to_bytes(4, "big") + bytes(4) + b"\x02")
        file.truncate(80 << 20)
    tracemalloc.start()
    try:
        history = read_history(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert "expected at most 67108864" in history.log.torn_reason


def test_readers_of_temporary_content_have_their_own_positions() -> None:
    content = TemporaryContent("pipe")
    content.append(b"abcdef")
    with content.open("rb") as first, content.open("rb") as second:
        assert (first.read(2), second.read(3), first.read(2)) == (b"ab", b"abc", b"cd")
        assert (second.seek(-1, os.SEEK_END), second.read()) == (5, b"f")
        assert (second.seek(1), second.seek(0, os.SEEK_CUR)) == (1, 1)
