"""Bytes that real Kafka brokers list, on the pages of ``kafka://``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kframe_console.application import application
from kframe_console.launch import LaunchOptions, directories_of
from kframe_console.sources.live import LiveSource, reader_of
from starlette.testclient import TestClient

from kframe import build_registry
from kframe.plugin.commands import PluginSettings
from kframe.testing.waiting import until
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions, missing
from verification.kraft.kafka_tools import KafkaTools
from verification.support.properties import load_profile

load_profile()
pytestmark = [pytest.mark.real, pytest.mark.extended]

RECORDS, RECORD_BYTES = 200, 1_000


@pytest.fixture(params=["3.9.1", "4.4.0"])
def kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KraftCluster]:
    """A controller with broker 1, and broker 2. Topic ``big`` is on both, ``small`` has no records."""
    if lacking := missing():
        pytest.skip(lacking)
    with (
        KraftCluster(tmp_path / "nodes", KraftOptions(request.param, brokers=2)) as cluster,
        KafkaTools(tmp_path / "tools") as tools,
    ):
        for topic in ("big", "small"):
            cluster.admin(tools, "kafka-topics", "--create", "--topic", topic, "--replica-assignment", "1:2")
        limits = ("--num-records", RECORDS, "--record-size", RECORD_BYTES, "--throughput", -1)
        properties = ("--producer-props", f"bootstrap.servers={cluster.address}", "acks=all")
        tools.run("kafka-producer-perf-test", "--topic", "big", *limits, *properties)
        yield cluster


def test_brokers_list_their_bytes_until_they_end(kafka: KraftCluster) -> None:
    url = f"kafka://{kafka.brokers[1].address}"
    ask = directories_of(LaunchOptions("0"), url, PluginSettings())
    reader = reader_of(build_registry().open_cluster(url, {}))
    source = LiveSource(url, reader, lambda snapshot: snapshot, 0.2, None, ask)
    with TestClient(application(source, sizes=source.sizes), base_url="http://localhost") as client:

        def content() -> Any:
            return client.get("/?format=json").json()["bytes"]

        assert until(lambda: content() is not None)
        first = content()
        assert (first["problem"], first["skew"]) == (None, 1.0)
        assert first["total"] >= 2 * RECORDS * RECORD_BYTES
        sizes = source.sizes(source.reading("").snapshot)
        assert sizes is not None
        assert sizes.tolist() == [first["total"] // 2, 0]
        kafka.brokers[2].kill()
        assert source._lister is not None
        source._lister.refresh()
        assert until(lambda: content()["problem"] is not None)
        after = content()
        assert after["problem"].startswith("unknown for broker 2: no response to DescribeLogDirs")
        assert after["total"] == first["total"] // 2
        assert source.sizes(source.reading("").snapshot).tolist() == sizes.tolist()  # type: ignore[union-attr]
