"""Consumer groups of real Kafka brokers on the page of a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kframe_console.sources.live import LiveSource, reader_of

from kframe import build_registry
from kframe.plugin.live import GroupedCluster
from kframe.testing.waiting import until
from verification.console.client import console_of
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions, missing
from verification.kraft.kafka_tools import KafkaTools
from verification.support.properties import load_profile

load_profile()
pytestmark = [pytest.mark.real, pytest.mark.extended]

RECORDS, CONSUMED = 50, 20


@pytest.fixture(params=["3.9.1", "4.4.0"])
def kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KraftCluster]:
    if lacking := missing():
        pytest.skip(lacking)
    with KraftCluster(tmp_path / "nodes", KraftOptions(request.param)) as cluster:
        yield cluster


@pytest.fixture
def rows(kafka: KraftCluster, tmp_path: Path) -> Callable[[], list[Mapping[str, Any]]]:
    """Reads the rows of topic ``orders``, which has 50 records, and of which group ``batch`` has read 20."""
    with KafkaTools(tmp_path / "tools") as tools:
        kafka.admin(tools, "kafka-topics", "--create", "--topic", "orders", "--partitions", 1)
        limits = ("--num-records", RECORDS, "--record-size", 10, "--throughput", -1)
        properties = ("--producer-props", f"bootstrap.servers={kafka.address}", "acks=all")
        tools.run("kafka-producer-perf-test", "--topic", "orders", *limits, *properties)
        until_read = ("--from-beginning", "--max-messages", CONSUMED, "--timeout-ms", 60_000)
        kafka.admin(tools, "kafka-console-consumer", "--topic", "orders", "--group", "batch", *until_read)
    url = f"kafka://{kafka.address}"
    cluster = build_registry().open_cluster(url, {})
    assert isinstance(cluster, GroupedCluster)
    source = LiveSource(url, reader_of(cluster), lambda snapshot: snapshot, 3600, cluster)

    def read() -> list[Mapping[str, Any]]:
        with console_of(source) as console:
            return list(console.json("/groups", topic="orders")["rows"])

    return read


def test_ended_group_has_its_lag(rows: Callable[[], list[Mapping[str, Any]]]) -> None:
    (row,) = rows()
    assert (row["group"], row["state"], row["members"], row["problem"]) == ("batch", "Empty", 0, None)
    assert (row["committed"], row["end"], row["lag"]) == (CONSUMED, RECORDS, RECORDS - CONSUMED)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_running_group_has_its_member(
    kafka: KraftCluster, rows: Callable[[], list[Mapping[str, Any]]], protocol: str
) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    if protocol == "consumer" and kafka.brokers[1].options.version == "3.9.1":
        pytest.skip("3.9.1 has the new protocol only as a preview")
    settings = {
        "bootstrap.servers": kafka.address,
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
