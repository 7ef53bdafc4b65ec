"""ACLs, SCRAM users and logins of a kframe controller with Kafka's own tools and an unmodified broker."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from kframe_kafka_wire.connections.node import CONNECTION_ERRORS

from kframe.plugin.server import AclOperation, PatternType
from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import KraftOptions
from verification.kraft.kafka_tools import KafkaTools, ToolError
from verification.kraft.led_cluster import LedCluster
from verification.kraft.served_controller import connected

pytestmark = [pytest.mark.real, pytest.mark.extended]

PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
#: The broker logs in to the controller as ``broker``, which is the only super user.
LOGINS: Final = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN} username="broker" password="s" user_broker="s";',
    "super.users": "User:broker",
}


def test_kafkas_tools_manage_acls_and_users(tmp_path: Path) -> None:
    """``kafka-acls`` at the controller and at a broker, ``kafka-configs`` at a broker, which forwards."""
    options = KraftOptions(brokers=1, controllers=1, combined=False)
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        assert cluster.controller is not None
        assert cluster.controller.node is not None
        metadata = cluster.controller.node.metadata
        (address,) = cluster.controller.addresses.values()
        direct = ("kafka-acls", "--bootstrap-controller", address)
        entry = ("--allow-principal", "User:ann", "--topic", "orders", "--resource-pattern-type", "prefixed")
        tools.run(*direct, "--add", *entry, "--operation", "Read")
        (acl,) = metadata.acls.values()
        assert (acl.principal, acl.resource_name, acl.pattern_type, acl.operation) == (
            "User:ann",
            "orders",
            PatternType.PREFIXED,
            AclOperation.READ,
        )
        listed = tools.run(*direct, "--list")
        assert "name=orders, patternType=PREFIXED" in listed
        assert "principal=User:ann, host=*, operation=READ, permissionType=ALLOW" in listed
        wait_until(lambda: "name=orders" in cluster.kafka.admin(tools, "kafka-acls", "--list"))
        cluster.kafka.admin(tools, "kafka-acls", "--add", *entry, "--operation", "Write", "--allow-host", "10.0.0.1")
        assert {(each.operation, each.host) for each in metadata.acls.values()} == {
            (AclOperation.READ, "*"),
            (AclOperation.WRITE, "10.0.0.1"),
        }
        tools.run(*direct, "--remove", "--force", *entry, "--operation", "Read")
        assert [each.operation for each in metadata.acls.values()] == [AclOperation.WRITE]
        users = ("--alter", "--entity-type", "users", "--entity-name", "eve")
        credential = "SCRAM-SHA-256=[iterations=4096,password=secret]"
        cluster.kafka.admin(tools, "kafka-configs", *users, "--add-config", credential)
        assert metadata.scram.keys() == {("eve", 1)}
        describe = ("kafka-configs", "--describe", "--entity-type", "users", "--entity-name", "eve")
        wait_until(lambda: "SCRAM-SHA-256=iterations=4096" in cluster.kafka.admin(tools, *describe))
        cluster.kafka.admin(tools, "kafka-configs", *users, "--delete-config", "SCRAM-SHA-256")
        assert metadata.scram == {}


def test_broker_logs_in_and_clients_need_acls(tmp_path: Path) -> None:
    options = KraftOptions(brokers=1, controllers=1, combined=False, settings=LOGINS)
    login = tmp_path / "client.properties"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} username="broker" password="s";\n'
    )
    create = ("kafka-topics", "--create", "--partitions", 1, "--replication-factor", 1, "--topic")
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        assert cluster.controller is not None
        assert cluster.controller.node is not None
        (address,) = cluster.controller.addresses.values()
        with closing(connected(cluster.controller)) as client, pytest.raises(CONNECTION_ERRORS):
            client.ask(46, {"timeout": 1, "topics": None})
        with pytest.raises(ToolError, match="Authorization failed"):
            cluster.kafka.admin(tools, *create, "orders")
        direct = ("kafka-acls", "--bootstrap-controller", address, "--command-config", login)
        tools.run(*direct, "--add", "--allow-principal", "User:ANONYMOUS", "--operation", "Create", "--topic", "orders")
        cluster.kafka.admin(tools, *create, "orders")
        with pytest.raises(ToolError, match="Authorization failed"):
            cluster.kafka.admin(tools, *create, "others")
        assert cluster.controller.node.metadata.topics.index_by_name.keys() == {"orders"}
        status = ("kafka-metadata-quorum", "--bootstrap-controller", address, "--command-config", login, "describe")
        assert "CurrentObservers" in tools.run(*status, "--status")
