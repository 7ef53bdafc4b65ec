"""``kframe log`` and ``kframe snapshot capture`` with the URL of a quorum, which scripted controllers form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kframe_kraft.testing.scripted_quorum import ScriptedController, ScriptedState
from kframe_kraft.testing.written_log import change, small_cluster
from kframe_zookeeper.testing.commands import invoke, kframe_json


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
