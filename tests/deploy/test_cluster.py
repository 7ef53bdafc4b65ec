"""The cluster of the compose file, without containers: real brokers with its settings, and its kframe command."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kframe.settings.properties import read_properties
from kframe.testing.waiting import until
from tests.deploy.test_commands import COMPOSE, DEPLOY
from verification.zookeeper.commands import RunningCommand
from verification.zookeeper.java import missing
from verification.zookeeper.kafka import Cluster
from verification.zookeeper.servers import HOST, ServerHandle, ServerOptions, free_ports

#: Keys that have other values without containers.
ADDRESSES: Final = {"zookeeper.connect", "listeners", "log.dirs"}


@pytest.mark.real
def test_kframe_takes_the_role_from_brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := missing():
        pytest.skip(reason)
    entries = read_properties(DEPLOY / "compose" / "broker.properties")
    settings = {entry.key: entry.value for entry in entries if entry.key not in ADDRESSES}
    service = COMPOSE["services"]["kframe"]
    for variable, value in service["environment"].items():
        monkeypatch.setenv(variable, value)
    server = ServerHandle(tmp_path / "zookeeper", ServerOptions())
    server.start()
    cluster = Cluster(tmp_path / "brokers", server.address, settings=settings)
    (port,) = free_ports(1)
    replaced = {
        "zookeeper:2181": server.address,
        "PLAINTEXT://kframe:9092": f"PLAINTEXT://{HOST}:{port}",
        "0.0.0.0:9108": f"{HOST}:0",
    }
    instance = RunningCommand(tmp_path / "kframe", *(replaced.get(word, word) for word in service["command"]))
    try:
        cluster.start()
        instance.start()
        instance.await_ready(active=True)
        name = "kafka_controller_kafkacontroller_activebrokercount"
        assert until(lambda: instance.metric(name) == len(cluster.brokers)), instance.log
        assert instance.page("/healthz")[0] == 200
        assert instance.stop() == 0, instance.log
    finally:
        instance.kill()
        cluster.kill()
        server.kill()
