"""The example transport passes the contract tests of transports without responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import kframe
from kframe.embedded import MemoryEnsemble, Request
from kframe.model.cluster import ClusterState
from kframe.testing.clusters import cluster_of, healthy
from kframe.testing.transport_contract import RecordingContract
from kframe.testing.transport_fixture import Counts, RecordingFixture, counts_of
from tests.examples.loading import load

json_lines = load("transports/json_lines.py")


class LinesFixture:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.transport = json_lines.JsonLinesTransport(path)

    def settle(self) -> None:
        pass

    def counts(self) -> Counts:
        return counts_of(self.received())

    def received(self) -> Sequence[Request]:
        text = self.path.read_text()
        self.path.write_text("")
        return [json.loads(line) for line in text.splitlines()]


class TestJsonLinesTransport(RecordingContract):
    @pytest.fixture
    def make_fixture(self, tmp_path: Path) -> Iterator[Callable[[ClusterState], RecordingFixture]]:
        fixture = LinesFixture(tmp_path / "requests.jsonl")
        yield lambda _cluster: fixture
        fixture.transport.close()


def test_controller_runs_with_example_plugin(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1, 2)]}, (1, 2)))
    registry = kframe.build_registry(extra=[json_lines], allowed=())
    controller = kframe.ControllerBuilder(
        5, store=ensemble.connect(), transport=f"jsonl:{file}", registry=registry
    ).build()
    controller.open()
    controller.run_until_idle()
    controller.stop()
    sent = [json.loads(line) for line in file.read_text().splitlines()]
    assert {request["api"] for request in sent} == {"UpdateMetadata", "LeaderAndIsr"}
    assert {request["broker"] for request in sent} == {1, 2}
