"""Bytes that real Kafka brokers list, on the pages of ``kafka://``."""

from __future__ import annotations

from typing import Any

import pytest
from kframe_console.application import application
from kframe_console.launch import LaunchOptions, directories_of
from kframe_console.sources.live import LiveSource, reader_of
from starlette.testclient import TestClient

from kframe import build_registry
from kframe.plugin.commands import PluginSettings
from kframe.testing.waiting import until
from verification.console.kraft_cluster import RECORD_BYTES, RECORDS
from verification.kraft.kafka_nodes import KraftCluster

pytestmark = [pytest.mark.real, pytest.mark.extended]


def test_brokers_list_their_bytes_until_they_end(kraft_cluster: KraftCluster) -> None:
    url = f"kafka://{kraft_cluster.brokers[1].address}"
    list_directories = directories_of(LaunchOptions("0"), url, PluginSettings())
    reader = reader_of(build_registry().open_cluster(url, {}))
    source = LiveSource(url, reader, lambda snapshot: snapshot, 0.2, None, list_directories)
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
        kraft_cluster.brokers[2].kill()
        assert source._lister is not None
        source._lister.refresh()
        assert until(lambda: content()["problem"] is not None)
        after = content()
        assert after["problem"].startswith("unknown for broker 2: no response to DescribeLogDirs")
        assert after["total"] == first["total"] // 2
        assert source.sizes(source.reading("").snapshot).tolist() == sizes.tolist()  # type: ignore[union-attr]
