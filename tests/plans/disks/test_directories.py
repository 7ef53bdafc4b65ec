"""Log directories are read from what Kafka's tool prints and from captures, and cordoned ones from the metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kframe.errors import InputError
from kframe.plans.disks.directories import broker_disks
from kframe.plans.disks.request import DiskRequest
from kframe.plans.generate.captured_sizes import write_directories
from kframe.plans.generate.log_dirs import read_directories
from kframe.ports.administration import DirectoryLog, LogDirectory
from tests.whatif.kraft_samples import directory, metadata_with, partition, with_broker_states

DATA = Path(__file__).parent / "data"


def test_output_of_the_tool() -> None:
    listed = read_directories((DATA / "log-dirs.txt").read_bytes(), "log-dirs.txt")
    assert {broker_id: [item.path[-2:] for item in items] for broker_id, items in listed.items()} == {
        1: ["d0", "d1", "d2"],
        2: ["d0", "d1", "d2"],
    }
    assert listed[1][1].logs == [DirectoryLog("orders", 2, 160 * 10**9), DirectoryLog("clicks", 2, 140 * 10**9)]


def test_captured_directories_are_read_as_they_were(tmp_path: Path) -> None:
    listed = {
        4: (LogDirectory("/a", [DirectoryLog("t-1", 0, 5), DirectoryLog("t-1", 1, 2, True)], None, 90, 70, True),),
        7: (LogDirectory("/b", [], "KAFKA_STORAGE_ERROR"), LogDirectory("/c", [])),
    }
    write_directories(listed, tmp_path / "log-dirs.json")
    assert read_directories((tmp_path / "log-dirs.json").read_bytes(), "x") == listed


def broker(*directories: dict[str, Any]) -> str:
    return json.dumps({"brokers": [{"broker": 1, "logDirs": [{"partitions": [], **item} for item in directories]}]})


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (broker({}), "x:1 broker 1 field logDir: found none, expected the path of each log directory, once"),
        (broker({"logDir": "/a"}, {"logDir": "/a"}), "broker 1 field logDir: found '/a' again"),
        (
            broker(*({"logDir": path, "partitions": [{"partition": "t-0", "size": 1}]} for path in ("/a", "/b"))),
            "x:1 broker 1: found partition 't-0' again, expected each replica once",
        ),
        (broker({"logDir": "/a", "totalBytes": "much"}), "logDirs[0].totalBytes: found 'much'"),
        (
            '{"brokers": [{"broker": 1, "logDirs": [{"logDir": "/a", "logDir": "/b", "partitions": []}]}]}',
            "found key 'logDir' twice in one object",
        ),
    ],
)
def test_refused(text: str, error: str) -> None:
    with pytest.raises(InputError) as problem:
        read_directories(text.encode(), "x")
    assert error in str(problem.value)


@pytest.mark.parametrize(
    ("of_replica", "cordoned"),
    [
        pytest.param((directory(7), directory(7, 1)), ["is cordoned", None], id="a-replica-shows-the-path"),
        pytest.param((directory(7, 1), None), [None, "is cordoned"], id="the-other-path-is-that-of-the-other-id"),
        pytest.param((None, None), [None, None], id="unknown"),
    ],
)
def test_cordoned_directories_of_the_metadata(of_replica: tuple[Any, Any], cordoned: list[str | None]) -> None:
    partitions = [
        partition(number, (7,), (7,), directories=(uuid,)) for number, uuid in enumerate(of_replica) if uuid is not None
    ]
    snapshot = with_broker_states(metadata_with(partitions, brokers=7))
    logs = [[DirectoryLog("t", number, 5)] if uuid is not None else [] for number, uuid in enumerate(of_replica)]
    listed = {7: [LogDirectory("/a", logs[0]), LogDirectory("/b", logs[1])]}
    (disks,) = broker_disks(snapshot, listed, DiskRequest())
    assert list(disks.refusals) == cordoned
    assert disks.hidden_cordons == (of_replica == (None, None))
