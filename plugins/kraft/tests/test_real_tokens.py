"""SASL_SSL between a real broker and kframe, and delegation tokens: created, used at both, and expired."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from kframe.testing.waiting import wait_until
from verification.kafka_wire.secured import PLAIN_MODULE, SCRAM_MODULE, certificates, tls
from verification.kraft.kafka_nodes import KraftOptions
from verification.kraft.kafka_tools import KafkaTools, ToolError
from verification.kraft.led_cluster import LedCluster

pytestmark = [pytest.mark.real, pytest.mark.extended]

PLAIN_LOGIN: Final = f'{PLAIN_MODULE} username="broker" password="s" user_broker="s";'
#: Both listeners have TLS and logins, also that of clients, which has the name PLAINTEXT.
LOGINS: Final = {
    "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:SASL_SSL",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    **{f"listener.name.{name}.plain.sasl.jaas.config": PLAIN_LOGIN for name in ("controller", "plaintext")},
    **{
        f"listener.name.{name}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE};"
        for name in ("controller", "plaintext")
    },
    "super.users": "User:broker",
    "delegation.token.secret.key": "shared-secret",
}


def client_file(path: Path, files: Path, login: Mapping[str, str]) -> Path:
    """The properties of a client with a login over TLS."""
    keys = {"security.protocol": "SASL_SSL", **tls(files), **login}
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return path


def accepted(cluster: LedCluster, tools: KafkaTools, tool: str, *words: object) -> bool:
    """Whether a tool succeeds."""
    try:
        cluster.kafka.admin(tools, tool, *words)
    except ToolError:
        return False
    return True


def test_token_is_a_login_at_broker_and_controller(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    options = KraftOptions(brokers=1, controllers=1, combined=False, settings={**LOGINS, **tls(files, "server")})
    plain = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN_MODULE} username="broker" password="s";'}
    broker_login = client_file(tmp_path / "broker.properties", files, plain)
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        assert cluster.controller is not None
        (address,) = cluster.controller.addresses.values()
        tokens = ("kafka-delegation-tokens", "--command-config", broker_login)
        created = cluster.kafka.admin(tools, *tokens, "--create", "--max-life-time-period", -1)
        token_id, hmac = re.findall(r"^([\w-]{22}) +(\S+) ", created, re.MULTILINE)[0]
        assert cluster.metadata.tokens.keys() == {token_id}
        scram = f'{SCRAM_MODULE} username="{token_id}" password="{hmac}" tokenauth="true";'
        login = client_file(
            tmp_path / "token.properties", files, {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": scram}
        )
        create = ("--create", "--topic", "t", "--partitions", 1, "--replication-factor", 1)
        # The broker learns of the token from the metadata log.
        wait_until(lambda: accepted(cluster, tools, "kafka-topics", "--command-config", login, *create))
        assert "t" in cluster.metadata.topics.index_by_name
        status = ("kafka-metadata-quorum", "--bootstrap-controller", address, "--command-config", login)
        assert f"LeaderId: {cluster.controller.node_id}" in " ".join(tools.run(*status, "describe", "--status").split())
        cluster.kafka.admin(tools, *tokens, "--expire", "--expiry-time-period", -1, "--hmac", hmac)
        wait_until(lambda: not cluster.metadata.tokens)
        with pytest.raises(ToolError, match="SaslAuthenticationException"):
            tools.run(*status, "describe", "--status")
