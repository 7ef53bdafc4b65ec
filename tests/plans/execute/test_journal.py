"""A torn last line is dropped; damaged journals, and those of other clusters and plans, are refused."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from kframe.plans.execute.entries import (
    Entry,
    ExecutedPartition,
    ExecutionLimits,
    ExecutionStarted,
    Goal,
    GoalChanged,
    LogMove,
    PartitionsSettled,
    RunEnded,
    RunResult,
    UnhealthyPartitions,
)
from kframe.plans.execute.executor import check_cluster
from kframe.plans.execute.journal import Journal, JournalError, JournalLocked, is_locked, read_journal
from kframe.plans.execute.state import ExecutionState
from tests.cli.running import PLAN, kframe

START: Final = ExecutionStarted(
    2,
    "plan ü",
    "digest",
    "id",
    "kafka://a:1",
    ExecutionLimits(None, 1, 0),
    ((ExecutedPartition("t", 0, (1,), (2,), 1, None, (LogMove(2, None, "/d"),)),),),
    UnhealthyPartitions((), ()),
)
ENTRIES: Final[list[Entry]] = [
    START,
    GoalChanged(Goal.PAUSE, "requested"),
    PartitionsSettled((("t", 0),)),
    RunEnded(RunResult.PAUSED, "requested"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with ENTRIES."""
    path = tmp_path / "journal"
    with Journal.create(path, START) as journal:
        for entry in ENTRIES[1:]:
            journal.append(entry)
    return path


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_entries_round_trip(path: Path) -> None:
    assert read_journal(path) == ENTRIES


def test_journal_of_version_1_has_no_log_directories(path: Path) -> None:
    first = lines_of(path)[0][9:-1].replace(b'"version":2', b'"version":1').replace(b',[[2,null,"/d"]]]', b"]")
    path.write_bytes(resealed(first))
    state = ExecutionState(read_journal(path))
    assert list(state.partitions) == [ExecutedPartition("t", 0, (1,), (2,), 1, None)]


def test_torn_last_line_is_dropped_and_overwritten(path: Path) -> None:
    data, last = path.read_bytes(), len(lines_of(path)[-1])
    for length in range(len(data) - last, len(data)):
        path.write_bytes(data[:length])
        assert read_journal(path) == ENTRIES[:-1]
        journal, entries = Journal.resume(path)
        with journal:
            assert entries == ENTRIES[:-1]
            journal.append(ENTRIES[-1])
        assert path.read_bytes() == data


def test_corrupt_last_line_is_dropped(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-5] + b"\0\0\0\0\n")
    assert read_journal(path) == ENTRIES[:-1]


def with_byte(lines: Sequence[bytes]) -> bytes:
    return lines[0] + lines[1].replace(b"requested", b"reqVested") + b"".join(lines[2:])


def resealed(*texts: bytes) -> bytes:
    """Lines with these texts, and checksums that match them."""
    result, checksum = b"", 0
    for text in texts:
        checksum = zlib.crc32(text, checksum)
        result += b"%08x %s\n" % (checksum, text)
    return result


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(with_byte, r"journal:2: found checksum '[0-9a-f]{8}', expected '[0-9a-f]{8}'", id="another byte"),
        pytest.param(lambda lines: b"".join([lines[0], *lines[2:]]), "journal:2: found checksum", id="a missing line"),
        pytest.param(
            lambda lines: b"".join([lines[0], lines[2], lines[1], lines[3]]), "journal:2: found checksum", id="order"
        ),
        pytest.param(lambda lines: b"".join(lines[1:]), "journal:1: found checksum", id="no first line"),
        pytest.param(lambda lines: lines[0][:-1], "no first entry", id="a torn first line"),
        pytest.param(lambda lines: b"", "no first entry", id="an empty file"),
        pytest.param(lambda lines: b'{"version":1}\n', "journal:1: found checksum", id="another file"),
        pytest.param(
            lambda lines: resealed(lines[0][9:-1].replace(b'"version":2', b'"version":3')),
            "journal:1: found version 3, expected version 1 to 2",
            id="another version",
        ),
        pytest.param(
            lambda lines: resealed(lines[0][9:-1], b'{"type":"magic"}'),
            "journal:2: found Invalid value 'magic'",
            id="another entry",
        ),
        pytest.param(lambda lines: resealed(lines[1][9:-1]), "no first entry", id="another first entry"),
    ],
)
def test_damaged_journal_is_refused(path: Path, damage: Callable[[Sequence[bytes]], bytes], message: str) -> None:
    path.write_bytes(damage(lines_of(path)))
    data = path.read_bytes()
    with pytest.raises(JournalError, match=message):
        read_journal(path)
    with pytest.raises(JournalError, match=message):
        Journal.resume(path)
    assert path.read_bytes() == data
    assert not is_locked(path)


def test_journal_locks_out_second_process(path: Path) -> None:
    journal, _ = Journal.resume(path)
    with journal:
        assert is_locked(path)
        with pytest.raises(JournalLocked):
            Journal.resume(path)
    assert not is_locked(path)


def test_existing_journal_is_not_replaced(path: Path) -> None:
    data = path.read_bytes()
    with pytest.raises(JournalError, match="found an existing file"):
        Journal.create(path, START)
    assert path.read_bytes() == data
    assert [each.name for each in path.parent.iterdir()] == ["journal"]


def test_journal_of_another_cluster_is_refused() -> None:
    state = ExecutionState([START])
    check_cluster(state, "id")
    check_cluster(state, None)
    with pytest.raises(JournalError, match="found other, expected id, that of the journal"):
        check_cluster(state, "other")


def test_journal_of_another_plan_is_refused(path: Path) -> None:
    result = kframe("plan", "execute", "kafka://a:1", PLAN, "--journal", path, "--execute")
    assert result.exit_code == 2
    assert "the journal of another plan (plan ü)" in result.stderr
    assert read_journal(path) == ENTRIES
