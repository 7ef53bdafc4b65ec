"""``kframe log`` and ``kframe snapshot capture`` with the URL of a quorum, which scripted controllers form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from kframe_kraft.commands.log import followed
from kframe_kraft.live import observer

from kframe.cli.app import cli
from kframe.plugin.commands import StopSignal
from verification.kraft.scripted_quorum import ScriptedController, ScriptedState
from verification.kraft.written_log import change, small_cluster
from verification.support.pipes import ImmediateTimer, written_pipe
from verification.zookeeper.commands import invoke, kframe_json


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    written = small_cluster(tmp_path / "node")
    state = ScriptedState()
    written.append(change(0, isr=(1, 2)))
    state.high_watermark = written.offset
    written.append(change(1, isr=(2,)))
    state.batches = [written.data]
    with ScriptedController(1, state) as controller:
        yield f"kraft://127.0.0.1:{controller.address[1]}"


def test_log_lists_committed_records_only(url: str) -> None:
    rows = kframe_json("log", "show", url, "--type", "PartitionChange")
    assert [(row["key"], row["committed"]) for row in rows["rows"]] == [("orders-0", True)]


def test_capture_writes_a_snapshot_that_names_the_url(url: str, tmp_path: Path) -> None:
    captured = kframe_json("snapshot", "capture", url, tmp_path / "out")
    assert (captured["partitions"], captured["brokers"], captured["controller_id"]) == (2, 3, 1)
    assert kframe_json("log", "at", url)["under_replicated"] == 1


@pytest.mark.parametrize(
    "racks, code, message",
    [
        ("broker,rack\n1,a\n2,a\n9,c\n", 0, ""),
        ("broker,rack\n2,c\n", 2, "broker 2 in c, expected a, its rack in the snapshot"),
        ("broker,rack\n1,\n", 2, "racks.csv:2: found rack '' of broker 1, expected a name"),
    ],
)
def test_capture_takes_a_rack_map(url: str, tmp_path: Path, racks: str, code: int, message: str) -> None:
    (tmp_path / "racks.csv").write_text(racks)
    captured = invoke("snapshot", "capture", url, "out", "--rack-map", "racks.csv", folder=tmp_path)
    assert (captured.returncode, message in captured.stderr) == (code, True), captured.stderr
    assert (tmp_path / "out").exists() is (code == 0)
    if code == 0:
        rows = kframe_json("snapshot", "show", tmp_path / "out", "--list", "brokers")["rows"]
        assert [row["rack"] for row in rows] == ["a", "a", "b"]


def test_captured_kraft_version_is_a_feature(tmp_path: Path) -> None:
    """As in a capture by kafka://; control records have it, so a written snapshot has it nowhere else."""
    written = small_cluster(tmp_path / "node", kraft_version=1)
    state = ScriptedState(batches=[written.data], high_watermark=written.offset)
    with ScriptedController(1, state) as controller:
        url = f"kraft://127.0.0.1:{controller.address[1]}"
        kframe_json("snapshot", "capture", url, tmp_path / "out")
    summary = kframe_json("snapshot", "show", tmp_path / "out")
    assert summary["features"] == {"kraft.version": 1, "metadata.version": 25}
    assert kframe_json("snapshot", "show", tmp_path / "node")["features"] == summary["features"]
    target = tmp_path / f"{9:020}-{1:010}.checkpoint"
    invoke("snapshot", "convert", tmp_path / "out", target)
    assert kframe_json("snapshot", "show", target)["features"] == {"metadata.version": 25}


def test_capture_says_that_a_leader_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quorum without a majority has no leader."""
    monkeypatch.setattr("threading.Timer", ImmediateTimer)
    for name in ("ATTEMPTS", "FIRST_ATTEMPTS"):
        monkeypatch.setattr(observer, name, 2)
    with ScriptedController(1, ScriptedState(leader_id=-1, leader_epoch=3)) as controller:
        url = f"kraft://127.0.0.1:{controller.address[1]}"
        for command in (("snapshot", "capture", url, str(tmp_path / "out")), ("log", "show", url)):
            result = CliRunner().invoke(cli, command)
            first, error = result.stderr.splitlines()
            assert first == f"waiting for a leader of the quorum at {url}"
            assert "no leader can be reached" in error
            assert result.exit_code == 1


def test_log_says_that_a_pipe_or_a_file_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threading.Timer", ImmediateTimer)
    written, pipe = small_cluster(tmp_path / "node"), tmp_path / "pipe"
    with written_pipe(pipe, written.data):
        piped = CliRunner().invoke(cli, ["log", "show", str(pipe)])
    segment = written.log / f"{0:020}.log"
    from_file = CliRunner().invoke(cli, ["log", "show", str(segment)])
    assert (piped.stderr, from_file.stderr) == (f"waiting for the named pipe {pipe}\n", f"waiting for {segment}\n")
    assert piped.stdout == from_file.stdout


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (("log", "show", "kraft://nowhere"), "HOST:PORT"),
        (("log", "show", ".", "--command-config", "client.properties"), "kraft:// URLs"),
        (("log", "show", "kraft://127.0.0.1:1", "--command-config", "missing.properties"), "missing.properties"),
        (("snapshot", "capture", "kraft://h:1", "out", "--config", "x"), "takes --command-config"),
    ],
)
def test_unusable_arguments_are_named(arguments: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    done = invoke(*arguments, folder=tmp_path)
    assert done.returncode != 0
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_log_without_a_record_is_followed(tmp_path: Path) -> None:
    """A node that has just started."""
    written = small_cluster(tmp_path / "node")
    segment = written.log / f"{0:020}.log"
    segment.write_bytes(b"")
    with StopSignal() as stop, followed(written.directory, None, stop) as (history, follower):
        assert history.log.end == 0
        segment.write_bytes(written.data)
        assert [batch.header.base_offset for batch in follower.poll().batches] == [0, 1, 2, 6]
