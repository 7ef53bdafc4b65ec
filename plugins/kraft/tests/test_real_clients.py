"""Client libraries on three unmodified brokers of each release of Kafka 4, under kframe."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from verification.kafka_wire.client_operations import MAKES, check_client_operations
from verification.kafka_wire.clients import JavaClient
from verification.kraft.kafka_nodes import RELEASES, KraftOptions
from verification.kraft.led_cluster import LedCluster

pytestmark = [
    pytest.mark.real,
    pytest.mark.extended,
    # kafka-python 3 leaves the socket of a connection that it is making when it ends, and Python warns of it.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]
#: Partitions and replicas of a topic that a broker creates.
CREATED = (4, 3)
SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": str(CREATED[0]),
    "default.replication.factor": str(CREATED[1]),
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.mark.parametrize("version", RELEASES[1:])
def test_clients_do_their_work(tmp_path: Path, version: str) -> None:
    options = KraftOptions(version, brokers=3, controllers=1, combined=False, settings=SETTINGS)
    with (
        LedCluster(tmp_path / "nodes", options) as cluster,
        closing(JavaClient(tmp_path / "java", cluster.kafka.address)) as java,
    ):
        for name, (kind, needs) in MAKES.items():
            pytest.importorskip(needs)
            if kind is JavaClient:
                check_client_operations(cluster, java, java, name, CREATED)
                continue
            with closing(kind(tmp_path / name, cluster.kafka.address)) as client:
                check_client_operations(cluster, client, java, name, CREATED)
        assert cluster.controller is not None
        assert cluster.controller.failure is None
