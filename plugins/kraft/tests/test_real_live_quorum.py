"""Real quorums: the observer has what the controllers have on disk, through each listener and after a lost leader."""

from __future__ import annotations

from pathlib import Path

import pytest
from kframe_kraft.live import QuorumObserver, open_observer
from kframe_kraft.replay.image import image_of
from kframe_kraft.sources.paths import read_image

from kframe.testing.waiting import wait_until
from verification.kafka_wire.secured import certificates, tls
from verification.kraft.kafka_nodes import CLUSTER_ID, KraftCluster, KraftNode, KraftOptions
from verification.kraft.kafka_tools import KafkaTools
from verification.kraft.metadata_facts import metadata_facts
from verification.zookeeper.certificates import Authority
from verification.zookeeper.commands import RunningCommand, invoke, kframe_json

pytestmark = pytest.mark.real

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def topics_of(follower: QuorumObserver) -> set[str]:
    follower.poll()
    return set(image_of(follower.history()).metadata.topics.names)


def assert_equal_to_disk(follower: QuorumObserver, node: KraftNode) -> None:
    """The directory of a node and the observer have the same metadata at the observer's end."""
    follower.catch_up()
    history = follower.history()
    wait_until(lambda: read_image(node.log_dirs[0]).offset >= history.log.end)
    on_disk = read_image(node.log_dirs[0], history.log.end).metadata
    assert metadata_facts(image_of(history).metadata) == metadata_facts(on_disk)


def test_observer_follows_quorum_after_leader_is_killed(tmp_path: Path) -> None:
    options = KraftOptions(brokers=1, controllers=3, combined=False, dynamic_quorum=True, release="4.3")
    with KafkaTools(tmp_path / "tools") as tools, KraftCluster(tmp_path / "nodes", options) as cluster:
        cluster.admin(tools, "kafka-topics", "--create", "--topic", "before", "--partitions", 3)
        first = next(iter(cluster.controllers.values()))
        follower = open_observer(f"kraft://{first.controller_address}", {})
        try:
            follower.catch_up()
            assert follower.cluster_id == CLUSTER_ID
            assert_equal_to_disk(follower, first)
            through_broker = kframe_json("log", "at", f"kraft://{cluster.address}")
            assert (through_broker["topics"], through_broker["controller_id"]) == (1, follower.leader.leader_id)
            epoch, killed = follower.leader.leader_epoch, follower.leader.leader_id
            cluster.nodes[killed].kill()
            cluster.admin(tools, "kafka-topics", "--create", "--topic", "after")
            wait_until(lambda: "after" in topics_of(follower))
            assert follower.leader.leader_epoch > epoch
            assert follower.leader.leader_id != killed
            assert_equal_to_disk(follower, cluster.nodes[follower.leader.leader_id])
        finally:
            follower.close()


def test_capture_by_controller_listener_with_tls_and_sasl(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    authority.issue("server", "127.0.0.1")
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(tmp_path / "authority.pem")}
    settings = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f'{_PLAIN} username="alice" password="secret" '
        'user_alice="secret" user_eve="x";',
        "super.users": "User:ANONYMOUS;User:alice",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "server.pem"),
        **trust,
    }
    with KraftCluster(tmp_path / "nodes", KraftOptions("3.9.1", combined=False, settings=settings)) as cluster:
        (controller,) = cluster.controllers.values()
        properties = tmp_path / "client.properties"
        client = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", **trust}

        def log_in(user: str, password: str) -> None:
            login = {"sasl.jaas.config": f'{_PLAIN} username="{user}" password="{password}";'}
            properties.write_text("".join(f"{key}={value}\n" for key, value in {**client, **login}.items()))

        log_in("alice", "secret")
        out = tmp_path / "captured"
        captured = kframe_json(
            "snapshot", "capture", f"kraft://{controller.controller_address}", out, "--command-config", properties
        )
        assert (captured["cluster_id"], captured["brokers"]) == (CLUSTER_ID, 1)
        for user, password, reason in (
            ("alice", "wrong", "refuses the login by PLAIN"),
            ("eve", "x", "CLUSTER_AUTHORIZATION_FAILED"),
        ):
            log_in(user, password)
            refused = invoke("log", "show", f"kraft://{controller.controller_address}", "--command-config", properties)
            assert refused.returncode != 0
            assert reason in refused.stderr


@pytest.mark.extended
def test_capture_by_controller_listener_with_mutual_tls(tmp_path: Path) -> None:
    folder = certificates(tmp_path / "certificates")
    settings = {
        "listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT",
        "listener.name.controller.ssl.client.auth": "required",
        "super.users": "User:ANONYMOUS;User:CN=server;User:CN=client",
        **tls(folder, "server"),
    }
    with (
        KafkaTools(tmp_path / "tools") as tools,
        KraftCluster(tmp_path / "nodes", KraftOptions(combined=False, settings=settings)) as cluster,
    ):
        (controller,) = cluster.controllers.values()
        url = f"kraft://{controller.controller_address}"
        cluster.admin(tools, "kafka-topics", "--create", "--topic", "secured")

        def properties(name: str, settings: dict[str, str]) -> Path:
            path = tmp_path / f"{name}.properties"
            lines = {"security.protocol": "SSL", **settings}
            path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
            return path

        client = properties("client", tls(folder, "client"))
        captured = kframe_json("snapshot", "capture", url, tmp_path / "captured", "--command-config", client)
        assert (captured["cluster_id"], captured["brokers"], captured["topics"]) == (CLUSTER_ID, 1, 1)
        command = RunningCommand(tmp_path / "follow", "log", "show", url, "--follow", "--command-config", client)
        command.start()
        assert command.logs("secured-0")
        cluster.admin(tools, "kafka-topics", "--create", "--topic", "followed")
        assert command.logs("followed-0")
        assert command.stop() == 0
        for name, refused, reason in (
            ("without-certificate", tls(folder), "refuses the client certificate"),
            ("untrusted-certificate", tls(folder, "untrusted"), "refuses the client certificate"),
            ("untrusted-server", tls(folder, "client", authority="other"), "found a certificate that is refused"),
        ):
            done = invoke("log", "show", url, "--command-config", properties(name, refused))
            assert (done.returncode, done.stderr.count("\n")) == (1, 1), name
            assert reason in done.stderr
