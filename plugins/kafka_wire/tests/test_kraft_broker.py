"""A registration that leads to a real KRaft-mode broker of Kafka 3.9.1 is named in the log."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from kazoo.client import KazooClient
from kframe_kafka_wire.testing.instances import PATIENCE_S, Instance
from kframe_zookeeper import paths
from kframe_zookeeper.testing.java import JVM
from kframe_zookeeper.testing.kafka import VERSION, Broker, jars
from kframe_zookeeper.testing.process import until
from kframe_zookeeper.testing.servers import HOST, ServerHandle

_ID = 4
#: What makes a broker a KRaft-mode one that is its own quorum.
_KRAFT = {
    "process.roles": "broker,controller", "node.id": str(_ID), "controller.listener.names": "CONTROLLER",
    "listeners": f"PLAINTEXT://{HOST}:{{port}},CONTROLLER://{HOST}:{{other_port}}",
    "advertised.listeners": f"PLAINTEXT://{HOST}:{{port}}",
    "controller.quorum.voters": f"{_ID}@{HOST}:{{other_port}}",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}  # fmt: skip


def format_storage(broker: Broker) -> None:
    """Give the directory of a KRaft-mode broker a cluster id, without which it does not start."""
    tool = ["java", *JVM, "-cp", f"{jars(VERSION)}/*", "kafka.tools.StorageTool", "format"]
    done = subprocess.run(
        [*tool, "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(broker.folder / "server.properties")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_registered_kraft_broker_is_named(zookeeper: ServerHandle, tmp_path: Path) -> None:
    place = f"{zookeeper.address}/kraft-{time.time_ns()}"
    broker, client, instance = Broker(tmp_path / "broker", place, _ID, _KRAFT), KazooClient(place), None
    outside = KazooClient(zookeeper.address)
    try:
        format_storage(broker)
        broker.start()
        outside.start()
        outside.ensure_path(place.partition("/")[2])
        client.start()
        registration = {
            "features": {}, "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "jmx_port": -1, "port": -1,
            "endpoints": [f"PLAINTEXT://{broker.address}"], "host": None, "version": 5, "timestamp": "0",
        }  # fmt: skip
        client.create(paths.broker_path(_ID), json.dumps(registration).encode(), ephemeral=True, makepath=True)
        instance = Instance(place, tmp_path / "kframe", 1000)
        told = f"WARN [Controller id=1000] broker {_ID} at {broker.address} is in KRaft mode"
        assert until(lambda: told in instance.log or instance.pid is None, PATIENCE_S), instance.log
        assert told in instance.log, instance.log
    finally:
        if instance is not None:
            instance.kill()
        for one in (client, outside):
            one.stop()
            one.close()
        broker.kill()
