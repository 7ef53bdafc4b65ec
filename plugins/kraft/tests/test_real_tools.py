"""Kafka's own command-line tools do all their work on brokers of each release of Kafka 4, under kframe."""

from __future__ import annotations

from pathlib import Path

import pytest

from verification.kraft.kafka_nodes import RELEASES, KraftOptions
from verification.kraft.kafka_tools import KafkaTools
from verification.kraft.led_cluster import LedCluster
from verification.kraft.tool_work import RACKS, ToolWork

pytestmark = [pytest.mark.real, pytest.mark.extended]

SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.mark.parametrize("version", RELEASES[1:])
def test_tools_do_all_their_work(tmp_path: Path, version: str) -> None:
    options = KraftOptions(version, brokers=3, controllers=1, combined=False, log_dirs=2, settings=SETTINGS)
    cluster = LedCluster(tmp_path / "nodes", options)
    for broker in cluster.brokers:
        with broker.config_path.open("a") as file:
            file.write(f"broker.rack={RACKS[broker.id]}\n")
    major, minor, _ = map(int, version.split("."))
    with cluster, KafkaTools(tmp_path / "tools") as tools:
        ToolWork(cluster, tools).all_of((major, minor))
        assert cluster.controller is not None
        assert cluster.controller.failure is None
