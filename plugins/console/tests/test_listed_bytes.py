"""Bytes that the brokers of a live cluster list, and sizes of a file that is read again only when it has changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kframe_console.application import application
from kframe_console.plans import file_sizes
from kframe_console.plans.file_sizes import FileSizes
from kframe_console.sources.listed_bytes import LISTING_S, live_brokers
from kframe_console.sources.live import LiveSource
from starlette.testclient import TestClient

from kframe.plugin import InputError, StoreError
from kframe.plugin.admin import DirectoryLog, LogDirectory
from kframe.plugin.plans import read_sizes
from kframe.plugin.snapshot import Snapshot
from kframe.testing.waiting import until
from verification.console.doubles import FakeReader


class FakeDirectories:
    """Brokers whose replicas have 100 bytes for each partition number; those in ``silent`` do not respond."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.silent: set[int] = set()
        self.asked: list[list[int]] = []
        self.may_respond = threading.Event()
        self.may_respond.set()
        self.failure: StoreError | None = None

    def __call__(self, broker_ids: Collection[int]) -> Mapping[int, Sequence[LogDirectory]]:
        self.asked.append([*broker_ids])
        assert self.may_respond.wait(30)
        if self.failure is not None:
            raise self.failure
        responding = (broker_id for broker_id in broker_ids if broker_id not in self.silent)
        return {broker_id: [LogDirectory("/data", self.logs(broker_id))] for broker_id in responding}

    def logs(self, broker_id: int) -> list[DirectoryLog]:
        """The logs of a broker, of which one moves to another directory."""
        topics, replicas = self.snapshot.topics, self.snapshot.partitions.replicas
        names = (topics.name_of_row(row).rpartition("-") for row in range(len(self.snapshot)))
        logs = [
            DirectoryLog(topic, int(number), 100 * int(number))
            for row, (topic, _, number) in enumerate(names)
            if broker_id in replicas[row].tolist()
        ]
        return [*logs, DirectoryLog(logs[0].topic, logs[0].partition, 7, is_future=True)]

    def bytes(self, broker_id: int) -> int:
        return sum(log.bytes for log in self.logs(broker_id) if not log.is_future)


@pytest.fixture
def brokers(zookeeper_snapshot: Snapshot) -> FakeDirectories:
    return FakeDirectories(zookeeper_snapshot)


@pytest.fixture
def source(brokers: FakeDirectories) -> LiveSource:
    return LiveSource("kafka://b:9092", FakeReader(brokers.snapshot), lambda snapshot: snapshot, 0.01, None, brokers)


@pytest.fixture
def client(source: LiveSource) -> Iterator[TestClient]:
    with TestClient(application(source, sizes=source.sizes), base_url="http://localhost") as client:
        yield client


def shown(client: TestClient) -> Any:
    return client.get("/?format=json").json()["bytes"]


def test_live_brokers_are_asked_once_and_pages_do_not_wait(client: TestClient, brokers: FakeDirectories) -> None:
    live = live_brokers(brokers.snapshot)
    assert len(live) == len(brokers.snapshot.brokers) - 1
    assert until(lambda: shown(client) is not None)
    assert brokers.asked == [live]
    expected = {broker_id: brokers.bytes(broker_id) for broker_id in live}
    content = shown(client)
    assert content["total"] == sum(expected.values())
    assert content["skew"] == round(max(expected.values()) / (sum(expected.values()) / len(expected)), 3)
    assert "unknown for broker 4: no response to DescribeLogDirs" in content["problem"]
    rows = client.get("/brokers?format=json&sort=-bytes").json()["rows"]
    assert {row["broker_id"]: row["bytes"] for row in rows} == {**expected, 4: None}
    assert [row["bytes"] for row in rows[:-1]] == sorted(expected.values(), reverse=True)
    assert "Bytes of brokers: unknown for broker 4" in client.get("/").text


def test_page_is_served_while_brokers_do_not_respond(source: LiveSource, brokers: FakeDirectories) -> None:
    brokers.may_respond.clear()
    try:
        with TestClient(application(source, sizes=source.sizes), base_url="http://localhost") as client:
            assert until(lambda: bool(brokers.asked))
            assert shown(client) is None
            assert "bytes" not in client.get("/brokers?format=json").json()["rows"][0]
            number = source.reading("").number
            brokers.may_respond.set()
            assert until(lambda: shown(client) is not None)
            assert source.reading("").number == number + 1, "open pages follow the number"
    finally:
        brokers.may_respond.set()


@pytest.mark.parametrize("failure", [None, StoreError("no controller can be reached")])
def test_silent_brokers_are_named(source: LiveSource, brokers: FakeDirectories, failure: StoreError | None) -> None:
    live = live_brokers(brokers.snapshot)
    brokers.silent, brokers.failure = set(live[:2]), failure
    with TestClient(application(source, sizes=source.sizes), base_url="http://localhost") as client:
        assert until(lambda: shown(client) is not None)
        content = shown(client)
        silent = sorted({*(live if failure else live[:2]), 4})
        assert f"unknown for brokers {', '.join(map(str, silent))}: no response" in content["problem"]
        assert (content["total"] is None) == (failure is not None)
        assert (source.sizes(brokers.snapshot) is None) == (failure is not None)


def test_plans_have_the_sizes_of_the_largest_replicas(client: TestClient, source: LiveSource) -> None:
    assert until(lambda: shown(client) is not None)
    snapshot = source.reading("").snapshot
    sizes = source.sizes(snapshot)
    assert sizes is not None
    partitions = snapshot.topics.partition_of_rows()
    replicas = snapshot.partitions.replicas
    copied = [set(replicas[row].tolist()) != {4} for row in range(len(snapshot))]
    assert sizes.tolist() == np.where(copied, 100 * partitions, 0).tolist()
    plan = client.get("/plans/generate?remove_brokers=3&format=json").json()["plan"]
    assert plan["moves"]["unit"] == "bytes"


def test_unchanged_bytes_are_no_new_reading(source: LiveSource, brokers: FakeDirectories) -> None:
    assert source._lister is not None
    numbers = []
    for _ in range(2):
        source._lister.refresh()
        source.refresh()
        numbers.append(source.reading("").number)
    brokers.silent = {1}
    source._lister.refresh()
    source.refresh()
    assert [*numbers, source.reading("").number] == [2, 2, 3]


def test_listing_takes_a_small_part_of_the_cpu(source: LiveSource) -> None:
    assert source._lister is not None
    pauses = [source._lister.refresher.pause_s(cpu_s) for cpu_s in (0.0, 2.0, 10.0)]
    assert pauses == [LISTING_S, LISTING_S, 200.0]


def test_file_is_read_again_only_when_it_has_changed(
    tmp_path: Path, zookeeper_snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []

    def counted(path: Path) -> Any:
        reads.append(path)
        return read_sizes(path)

    monkeypatch.setattr(file_sizes, "read_sizes", counted)
    path = tmp_path / "sizes.csv"

    def write(size: int) -> None:
        names = (zookeeper_snapshot.topics.name_of_row(row).rpartition("-") for row in range(len(zookeeper_snapshot)))
        rows = "".join(f"{topic},{number},{size}\n" for topic, _, number in names)
        path.write_text(f"topic,partition,bytes\n{rows}")

    write(5)
    sizes = FileSizes(path)
    later = replace(zookeeper_snapshot)
    for snapshot in (zookeeper_snapshot, later, zookeeper_snapshot):
        assert set(sizes(snapshot).tolist()) == {5}
    assert len(reads) == 1
    write(6)
    os.utime(path, ns=(1, 1))
    assert set(sizes(later).tolist()) == {6}
    assert set(sizes(later).tolist()) == {6}
    assert len(reads) == 2
    path.unlink()
    with pytest.raises(InputError, match=r"sizes\.csv"):
        sizes(later)
