"""Kafka's own client on listeners with TLS and SASL, and what is refused there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from kframe_kafka_wire.authorizer import ACL_AUTHORIZER
from kframe_kafka_wire.testing.served import FakeRecords, Served, user_record
from kframe_kafka_wire.testing.tools import Tools
from kframe_zookeeper.testing.certificates import Authority
from kframe_zookeeper.testing.java import missing
from kframe_zookeeper.testing.servers import free_ports

from kframe.model.brokers import Endpoint, Registration
from kframe.testing.clusters import healthy

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

PLAIN_SERVER = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_SERVER = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: Who may do anything; everybody else may do nothing.
FRIENDS = "User:CN=client;User:alice;User:carol;User:dave"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder, "authority")
    authority.issue("server", "127.0.0.1")
    authority.issue("client")
    Authority(folder, "other").issue("stranger")
    return folder


@pytest.fixture(scope="module")
def world(folder: Path) -> Iterator[Served]:
    ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
    config = {
        "listeners": ",".join(f"{one}://127.0.0.1:{port}" for one, port in ports.items()),
        "inter.broker.listener.name": "SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "authority.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN_SERVER} user_alice="secret" user_eve="x";',
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN_SERVER} user_alice="secret";',
        "authorizer.class.name": ACL_AUTHORIZER,
        "super.users": FRIENDS,
    }
    users = {
        "/config/users/carol": user_record("SCRAM-SHA-256", "pencil"),
        "/config/users/dave": user_record("SCRAM-SHA-512", "pencil"),
    }
    endpoints = tuple(Endpoint(one, "127.0.0.1", port, one) for one, port in ports.items())
    with Served({"t": [healthy(1)]}, [Registration(1, 100, endpoints)], config, FakeRecords(users)) as world:
        yield world


def login(mechanism: str, user: str, password: str) -> dict[str, str]:
    module = PLAIN_SERVER if mechanism == "PLAIN" else SCRAM_SERVER
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} username="{user}" password="{password}";',
    }


def tls(folder: Path, key: str = "") -> dict[str, str]:
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "authority.pem")}
    own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / f"{key}.pem")}
    return trust | (own if key else {})


#: (listener, settings of the login, certificate) of who is let in.
LET_IN: Mapping[str, tuple[str, dict[str, str], str]] = {
    "a certificate": ("SSL", {}, "client"),
    "PLAIN": ("SASL_PLAINTEXT", login("PLAIN", "alice", "secret"), ""),
    "SCRAM-SHA-256": ("SASL_PLAINTEXT", login("SCRAM-SHA-256", "carol", "pencil"), ""),
    "SCRAM-SHA-512 over TLS": ("SASL_SSL", login("SCRAM-SHA-512", "dave", "pencil"), ""),
    "PLAIN over TLS": ("SASL_SSL", login("PLAIN", "alice", "secret"), ""),
}


def tools(world: Served, folder: Path, at: Path, listener: str, more: Mapping[str, str], key: str) -> Tools:
    secure = tls(folder, key) if listener.endswith("SSL") else {}
    settings = {
        "security.protocol": listener,
        "default.api.timeout.ms": "20000",
        "request.timeout.ms": "15000",
        **secure,
        **more,
    }
    return Tools(at, world.server.addresses[listener], settings)


@pytest.mark.parametrize("name", LET_IN)
def test_who_may_come_in(name: str, world: Served, folder: Path, tmp_path: Path) -> None:
    listener, settings, key = LET_IN[name]
    said = tools(world, folder, tmp_path, listener, settings, key).run("kafka-topics", "--describe", "--topic", "t")
    assert "Leader: 1" in said


#: The same of who is not, with what Kafka's client says.
LEFT_OUT: Mapping[str, tuple[str, dict[str, str], str, str]] = {
    "no certificate": ("SSL", {}, "", "Timed out waiting for a node assignment"),
    "a stranger's certificate": ("SSL", {}, "stranger", "Timed out waiting for a node assignment"),
    "a wrong password": ("SASL_PLAINTEXT", login("PLAIN", "alice", "x"), "", "Invalid username or password"),
    "a wrong proof": ("SASL_SSL", login("SCRAM-SHA-512", "dave", "x"), "", "invalid credentials"),
    "no rights": (
        "SASL_PLAINTEXT",
        login("PLAIN", "eve", "x"),
        "",
        "does not exist as expected",
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_who_may_not(name: str, world: Served, folder: Path, tmp_path: Path) -> None:
    listener, settings, key, said = LEFT_OUT[name]
    code, text = tools(world, folder, tmp_path, listener, settings, key).tried(
        "kafka-topics", "--describe", "--topic", "t"
    )
    assert code != 0
    assert said in text
