"""Consumer groups of real Kafka brokers on the page of a topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeAlias

import pytest
from kframe_console.sources.live import LiveSource, reader_of

from kframe import build_registry
from kframe.plugin.live import GroupedCluster
from kframe.testing.waiting import until
from verification.console.client import console_of
from verification.console.kraft_cluster import RECORDS
from verification.kraft.kafka_nodes import KraftCluster
from verification.kraft.kafka_tools import KafkaTools

pytestmark = [pytest.mark.real, pytest.mark.extended]

#: Records that group ``batch`` has read.
CONSUMED = 20
Rows: TypeAlias = Callable[[], list[Mapping[str, Any]]]


@pytest.fixture
def rows(kraft_cluster: KraftCluster, tools: KafkaTools) -> Rows:
    """Reads the rows of topic ``orders``, of whose records group ``batch`` has read CONSUMED."""
    limits = ("--from-beginning", "--max-messages", CONSUMED, "--timeout-ms", 60_000)
    kraft_cluster.admin(tools, "kafka-console-consumer", "--topic", "orders", "--group", "batch", *limits)
    url = f"kafka://{kraft_cluster.address}"
    cluster = build_registry().open_cluster(url, {})
    assert isinstance(cluster, GroupedCluster)
    source = LiveSource(url, reader_of(cluster), lambda snapshot: snapshot, 3600, cluster)

    def read() -> list[Mapping[str, Any]]:
        with console_of(source) as console:
            return list(console.json("/groups", topic="orders")["rows"])

    return read


def test_ended_group_has_its_lag(rows: Rows) -> None:
    (row,) = rows()
    assert (row["group"], row["state"], row["members"], row["problem"]) == ("batch", "Empty", 0, None)
    assert (row["committed"], row["end"], row["lag"]) == (CONSUMED, RECORDS, RECORDS - CONSUMED)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_running_group_has_its_member(kraft_cluster: KraftCluster, rows: Rows, protocol: str) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    if protocol == "consumer" and kraft_cluster.brokers[1].options.version == "3.9.1":
        pytest.skip("3.9.1 has the new protocol only as a preview")
    settings = {
        "bootstrap.servers": kraft_cluster.address,
        "group.id": "app",
        "client.id": "reader",
        "group.protocol": protocol,
    }
    with closing(confluent.Consumer(settings)) as consumer:
        consumer.subscribe(["orders"])
        assert until(lambda: consumer.poll(0.2) is None and bool(consumer.assignment()))
        row = next(row for row in rows() if row["group"] == "app")
    assert (row["state"], row["members"], row["partition"]) == ("Stable", 1, 0)
    assert row["client"].startswith("reader /127.0.0.1")
    assert (row["end"], row["lag"]) == (RECORDS, None)
