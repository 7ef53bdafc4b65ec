"""Real brokers with ACLs and ``kframe controller run`` over SASL_SSL. Another cluster uses TLS with a control plane
listener."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from kframe_kafka_wire.access.authorizer import ACL_AUTHORIZER

from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.real_cluster import KframeCluster
from verification.kafka_wire.secured import PLAIN_MODULE, login, tls_settings
from verification.zookeeper.certificates import Authority
from verification.zookeeper.commands import invoke
from verification.zookeeper.kafka import Cluster, KafkaClients, KafkaError
from verification.zookeeper.servers import HOST, ServerHandle

INTERNAL: Final = 4


@dataclass(frozen=True, slots=True)
class Security:
    """The listeners of nodes, and the logins of clients."""

    name: str
    protocol: str
    """The protocol of the listener for brokers, kframe and clients."""
    listeners: str
    """Listener settings of a broker and of kframe. ``{address}`` and ``{other}`` are replaced by two own addresses."""
    settings: Mapping[str, str]
    """Settings of brokers and kframe."""
    logins: Mapping[str, Mapping[str, str]]
    """Logins: kafka with all permissions, eve without any, and users whose login fails."""
    refused: Mapping[str, str]
    """The errors of kframe's commands for the failing logins."""


def sasl_ssl(authority: Authority) -> Security:
    """One listener with passwords over TLS."""
    users = 'username="kafka" password="secret" user_kafka="secret" user_eve="x"'
    passwords = {"kafka": "secret", "eve": "x", "unknown": ""}
    return Security(
        "sasl_ssl",
        "SASL_SSL",
        "SASL_SSL://{address}",
        {
            **keys(authority, "node"),
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{PLAIN_MODULE} {users};",
            "super.users": "User:kafka",
        },
        {user: tls_settings(authority.path) | login("PLAIN", user, password) for user, password in passwords.items()},
        {"unknown": "refuses the login by PLAIN"},
    )


def ssl_with_control_plane(authority: Authority) -> Security:
    """Certificates only, and a control plane listener apart from the inter-broker one."""
    untrusted = Authority(authority.path.parent / "untrusted", "another")
    return Security(
        "ssl-control-plane",
        "SSL",
        "INTERNAL://{address},CONTROLLER://{other}",
        {
            **keys(authority, "node"),
            "listener.security.protocol.map": "INTERNAL:SSL,CONTROLLER:SSL",
            "inter.broker.listener.name": "INTERNAL",
            "control.plane.listener.name": "CONTROLLER",
            "ssl.client.auth": "required",
            "super.users": "User:CN=node;User:CN=kafka",
        },
        {
            **{name: keys(authority, name) for name in ("kafka", "eve")},
            "unknown": tls_settings(authority.path),
            "untrusted": {**keys(untrusted, "untrusted"), **tls_settings(authority.path)},
        },
        {"unknown": "refuses the client certificate", "untrusted": "refuses the client certificate"},
    )


def keys(authority: Authority, name: str) -> dict[str, str]:
    """The certificate and truststore of a node or client."""
    return tls_settings(authority.path, authority.issue(name, HOST).key_and_certificate)


class SecuredCluster(KframeCluster):
    """Two brokers, kframe, and a client with all permissions."""

    def __init__(self, folder: Path, zookeeper: str, security: Security) -> None:
        shared = {**security.settings, "authorizer.class.name": ACL_AUTHORIZER}
        internal = {
            "offsets.topic.num.partitions": str(INTERNAL),
            "offsets.topic.replication.factor": "2",
            "transaction.state.log.num.partitions": str(INTERNAL),
            "transaction.state.log.replication.factor": "2",
            "group.initial.rebalance.delay.ms": "0",
            "zookeeper.session.timeout.ms": "8000",
        }
        theirs = security.listeners.format(address=f"{HOST}:{{port}}", other=f"{HOST}:{{other_port}}")
        ours = security.listeners.format(address="{address}", other="{other_address}")
        self.security = security
        kafka = Cluster(folder, zookeeper, (1, 2), {**shared, **internal, "listeners": theirs})
        settings = {**shared, "listeners": ours}
        kframe = InstanceProcess(zookeeper, folder / "kframe", 1000, "--create-chroot", settings=settings)
        super().__init__(folder, kafka, kframe)

    def settings(self, user: str = "kafka") -> dict[str, str]:
        return {"security.protocol": self.security.protocol, **self.security.logins[user]}

    def isr(self, partition: int) -> list[int]:
        """The stored ISR of a partition of topic ``t``, sorted by id."""
        return sorted(self.state("t", partition)["isr"])

    def command(self, user: str, *arguments: object, address: str = "") -> tuple[int, str]:
        """Exit code and output of a kframe command, which connects to kframe by default."""
        config = self.folder / f"{user}.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self.settings(user).items()))
        connection_options = ("--bootstrap-server", address or self.kframe.address, "--command-config", str(config))
        done = invoke(*arguments, *connection_options, folder=self.folder)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(
    params=[sasl_ssl, pytest.param(ssl_with_control_plane, marks=pytest.mark.extended)],
    ids=lambda security: security.__name__,
)
def cluster(request: pytest.FixtureRequest, zookeeper: ServerHandle, tmp_path: Path) -> Iterator[SecuredCluster]:
    security = request.param(Authority(tmp_path / "tls"))
    with SecuredCluster(tmp_path, f"{zookeeper.address}/secured-{security.name}", security) as cluster:
        yield cluster


@pytest.fixture
def clients(cluster: SecuredCluster, tmp_path: Path) -> Iterator[KafkaClients]:
    """Kafka's clients, with kframe as the only bootstrap server."""
    with closing(KafkaClients(tmp_path / "clients", cluster.kframe.address, cluster.settings())) as clients:
        yield clients


def test_secured_cluster_serves_brokers_and_clients(
    cluster: SecuredCluster, clients: KafkaClients, tmp_path: Path
) -> None:
    clients.request("create", topic="t", replicas=[[1, 2], [2, 1]])
    assert clients.request("produce", topic="t", partition=0, values=["a", "b"]) == 2
    # The offsets topic is missing. kframe reads its size from the settings of a broker.
    assert sorted(clients.request("group", group="g", topic="t", count=2)) == ["a", "b"]
    clients.request("transact", id="x", topic="t", values=["c"], aborted=["never"])
    assert clients.request("group", group="g", topic="t", count=1) == ["c"]
    for topic in ("__consumer_offsets", "__transaction_state"):
        stored = cluster.assignment(topic)
        assert len(stored) == INTERNAL
        assert all(set(replicas) == {1, 2} for replicas in stored.values()), stored

    eve = KafkaClients(tmp_path / "untrusted", cluster.kframe.address, cluster.settings("eve"))
    with closing(eve), pytest.raises(KafkaError, match="Authorization"):
        eve.request("create", topic="hers", partitions=1, factor=1)
    assert cluster.client.exists("/brokers/topics/hers") is None

    first, second = cluster.kafka.brokers[1], cluster.kafka.brokers[2]
    cluster.kafka.lose(2, cluster.client)
    assert until(lambda: cluster.isr(0) == [1] and cluster.state("t", 1)["leader"] == 1)
    assert clients.request("produce", topic="t", partition=1, values=["d"]) == 1
    second.start()
    second.await_started()
    assert until(lambda: cluster.isr(0) == [1, 2] and cluster.isr(1) == [1, 2])
    first.stop(PATIENCE_S)
    assert first.log("server").count("Controlled shutdown request returned successfully") == 1
    assert cluster.state("t", 0)["leader"] == 2
    first.start()
    first.await_started()
    assert until(lambda: cluster.isr(0) == [1, 2])

    assert cluster.command("kafka", "elect", "--type", "preferred", "--partition", "t-0", "--execute")[0] == 0
    assert cluster.state("t", 0)["leader"] == 1
    code, output = cluster.command("kafka", "reassign", "start", "t-0=2,1", "--execute")
    assert code == 0, output
    assert cluster.assignment("t")[0] == [2, 1]
    code, output = cluster.command("eve", "reassign", "start", "t-0=1,2", "--execute")
    assert (code, "CLUSTER_AUTHORIZATION_FAILED" in output) == (1, True), output
    for user, words in cluster.security.refused.items():
        for address in (cluster.kframe.address, first.address):
            code, output = cluster.command(user, "reassign", "list", address=address)
            assert (code, words in output) == (1, True), output
    assert cluster.kframe.stop(PATIENCE_S) == 0, cluster.kframe.log
