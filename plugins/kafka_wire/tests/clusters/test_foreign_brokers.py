"""Registrations whose address belongs to a broker in KRaft mode, or to a broker of another cluster."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper.znodes import paths

from kframe.testing.waiting import until
from verification.kafka_wire.broker_metadata import metadata
from verification.kafka_wire.instances import InstanceProcess
from verification.zookeeper.java import JVM
from verification.zookeeper.kafka import VERSION, KafkaProcess, jars, mapped
from verification.zookeeper.servers import HOST, ServerHandle
from verification.zookeeper.sessions import session

_ID = 4
_CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
#: A KRaft-mode broker that is also its only quorum voter.
_KRAFT = {
    "process.roles": "broker,controller",
    "node.id": str(_ID),
    "controller.listener.names": "CONTROLLER",
    "listeners": f"PLAINTEXT://{HOST}:{{port}},CONTROLLER://{HOST}:{{other_port}}",
    "advertised.listeners": f"PLAINTEXT://{HOST}:{{port}}",
    "controller.quorum.voters": f"{_ID}@{HOST}:{{other_port}}",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


class OwnCluster:
    """A chroot without brokers, and a controller that starts after a foreign broker is registered there."""

    def __init__(self, zookeeper: ServerHandle, folder: Path, cleanup: ExitStack) -> None:
        self.address = f"{zookeeper.address}/own-{time.time_ns()}"
        self._folder = folder
        self._cleanup = cleanup
        root = self._client(zookeeper.address)
        root.ensure_path(self.address.partition("/")[2])
        self.client = self._client(self.address)

    def _client(self, address: str) -> KazooClient:
        return self._cleanup.enter_context(session(address))

    def register(self, broker: KafkaProcess) -> None:
        registration = {
            "features": {},
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "jmx_port": -1,
            "port": -1,
            "endpoints": [f"PLAINTEXT://{broker.address}"],
            "host": None,
            "version": 5,
            "timestamp": "0",
        }
        self.client.create(paths.broker_path(_ID), json.dumps(registration).encode(), ephemeral=True, makepath=True)

    def await_log(self, line: str) -> None:
        instance = InstanceProcess(self.address, self._folder / "kframe", 1000)
        self._cleanup.callback(instance.kill)
        assert until(lambda: line in instance.log or instance.pid is None), instance.log
        assert line in instance.log, instance.log


@pytest.fixture
def cluster(zookeeper: ServerHandle, tmp_path: Path) -> Iterator[OwnCluster]:
    with ExitStack() as cleanup:
        yield OwnCluster(zookeeper, tmp_path, cleanup)


def format_storage(broker: KafkaProcess) -> None:
    """Format the directory of a KRaft-mode broker, which does not start without a cluster id."""
    tool = ["java", *JVM, *mapped(), "-cp", f"{jars()}/*", "kafka.tools.StorageTool", "format"]
    done = subprocess.run(
        [*tool, "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(broker.folder / "server.properties")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_registered_kraft_broker_is_logged(cluster: OwnCluster, tmp_path: Path) -> None:
    broker = KafkaProcess(tmp_path / "broker", cluster.address, _ID, _KRAFT)
    try:
        format_storage(broker)
        broker.start()
        cluster.register(broker)
        cluster.await_log(f"WARN [Controller id=1000] broker {_ID} at {broker.address} is in KRaft mode")
    finally:
        broker.kill()


@pytest.mark.parametrize("version", [VERSION, pytest.param("2.8.2", marks=pytest.mark.extended)])
def test_broker_of_another_cluster_receives_no_requests(
    zookeeper: ServerHandle, cluster: OwnCluster, tmp_path: Path, version: str
) -> None:
    """It would apply UpdateMetadata, and list this controller among its nodes."""
    broker = KafkaProcess(tmp_path / "broker", f"{zookeeper.address}/other-{time.time_ns()}", _ID, {}, version)
    try:
        broker.start()
        broker.await_started()
        cluster.client.create("/cluster/id", json.dumps({"version": "1", "id": _CLUSTER_ID}).encode(), makepath=True)
        cluster.register(broker)
        assert until(lambda: bool(metadata(broker.address)["brokers"]))  # its own controller's metadata
        before = metadata(broker.address)
        cluster.await_log(
            f"ERROR [Controller id=1000] no requests are sent to broker {_ID} at {broker.address} until it registers "
            f"again: found cluster {before['cluster_id']}, expected cluster {_CLUSTER_ID} (/cluster/id)"
        )
        assert metadata(broker.address) == before
    finally:
        broker.kill()
