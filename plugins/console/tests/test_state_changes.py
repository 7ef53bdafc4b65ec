"""The page of a partition shows the lines of a state-change.log that name it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from kframe_console.sources import state_changes
from kframe_console.sources.state_changes import StateChangeLine, StateChangeLog

from kframe.cli.app import cli
from kframe.plugin import InputError
from kframe.plugin.snapshot import Snapshot
from verification.console.client import console_of
from verification.console.doubles import put_fleet

CHANGED = (
    "INFO [Controller id=1 epoch=7] Changed partition {} from OfflinePartition to OnlinePartition (state.change.logger)"
)


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("partition t-1 from", True),
        ("partition t-1.", True),
        ("t-1", True),
        ("Set(t-1, u-0)", True),
        ("partition t-12 from", False),
        ("partition at-1 from", False),
        ("partition a.t-1 from", False),
        ("partition t-1.b-0 from", False),
        ("partition t-1-0 from", False),
    ],
)
def test_lines_name_the_whole_partition(tmp_path: Path, text: str, is_named: bool) -> None:
    file = tmp_path / "state-change.log"
    file.write_text(f"{text}\n")
    assert [line.text for line in StateChangeLog(file).lines("t", 1)] == [text] * is_named


@pytest.mark.parametrize("block", [1, 7, 200, 1 << 20])
def test_newest_lines_come_first_from_blocks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Lines longer than a block may be missing; no other lines appear."""
    monkeypatch.setattr(state_changes, "_BLOCK_BYTES", block)
    file = tmp_path / "state-change.log"
    names = [f"t-{number % 3}" for number in range(50)]
    texts = [CHANGED.format(name) for name in names]
    file.write_text("".join(f"[2026-11-30 12:00:{number:02},000] {text}\n" for number, text in enumerate(texts)))
    expected = [
        StateChangeLine(f"2026-11-30 12:00:{number:02},000", texts[number])
        for number in reversed(range(50))
        if names[number] == "t-1"
    ]
    lines = StateChangeLog(file).lines("t", 1)
    assert lines == (expected if block >= 200 else [line for line in expected if line in lines])


def test_only_the_end_of_a_file_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_changes, "_BYTES_MAX", 100)
    file = tmp_path / "state-change.log"
    file.write_text("t-1 is early\n" + "x" * 200 + "\nt-1 is late\n")
    assert StateChangeLog(file).lines("t", 1) == [StateChangeLine(None, "t-1 is late")]


def test_lines_and_characters_have_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "state-change.log"
    file.write_bytes(b"t-1 \xff" * 2_000 + b"\n" + b"t-1\n" * 300)
    assert len(StateChangeLog(file).lines("t", 1)) == 100
    file.write_bytes(b"t-1 \xff" * 2_000)
    assert [len(line.text) for line in StateChangeLog(file).lines("t", 1)] == [1_000]


def test_file_that_is_replaced_has_no_lines_and_an_unusable_one_is_an_error(tmp_path: Path) -> None:
    assert StateChangeLog(tmp_path / "missing").lines("t", 1) == []
    with pytest.raises(InputError, match=r"readable state-change\.log"):
        StateChangeLog(tmp_path).lines("t", 1)


def test_page_shows_the_lines_of_its_partition(tmp_path: Path, zookeeper_snapshot: Snapshot) -> None:
    topic = zookeeper_snapshot.topics.names[0]
    file = tmp_path / "state-change.log"
    file.write_text(f"[2026-11-30 12:00:00,000] {CHANGED.format(f'{topic}-0')} <b>\n")
    with console_of(zookeeper_snapshot) as console:
        assert console.json(f"/topics/{topic}/0")["state_changes"] is None
    with console_of(zookeeper_snapshot, state_changes=StateChangeLog(file)) as console:
        (line,) = console.json(f"/topics/{topic}/0")["state_changes"]
        assert (line["time"], topic in line["text"]) == ("2026-11-30 12:00:00,000", True)
        assert "&lt;b&gt;" in console.client.get(f"/topics/{topic}/0").text
        assert "No line at the end" in console.client.get(f"/topics/{topic}/1").text


def test_log_is_of_one_cluster(tmp_path: Path, zookeeper_snapshot: Snapshot) -> None:
    file = tmp_path / "state-change.log"
    file.touch()
    fleet = put_fleet(tmp_path / "fleet", {"a": zookeeper_snapshot})
    for source in ([str(fleet)], ["--demo"]):
        result = CliRunner().invoke(cli, ["console", *source, "--state-change-log", str(file), "--no-browser"])
        assert (result.exit_code, "expected SOURCE of one cluster" in result.output) == (2, True), result.output
