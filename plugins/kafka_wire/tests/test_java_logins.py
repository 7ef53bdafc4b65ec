"""Kafka's own client on TLS and SASL listeners, with accepted and refused logins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from kframe_kafka_wire.testing.secured import AUTHENTICATED_CLIENTS, certificates, login, secured, tls
from kframe_kafka_wire.testing.served import Served
from kframe_kafka_wire.testing.tools import ToolBox, Tools
from kframe_zookeeper.testing.java import missing

from kframe.testing.clusters import healthy

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with secured(folder, {"t": [healthy(1)]}) as served:
        yield served


#: (listener, settings of the login, certificate)
Login = tuple[str, Mapping[str, str], str]


@pytest.fixture
def tools(served: Served, folder: Path, toolbox: ToolBox, tmp_path: Path) -> Callable[[Login], Tools]:
    """Create tools that log in. Return them."""

    def make(how: Login) -> Tools:
        listener, more, key = how
        secure = tls(folder, key) if listener.endswith("SSL") else {}
        settings = {
            "security.protocol": listener,
            "default.api.timeout.ms": "60000",
            "request.timeout.ms": "5000",
            **secure,
            **more,
        }
        return Tools(toolbox, tmp_path, served.server.addresses[listener], settings)

    return make


@pytest.mark.parametrize("name", AUTHENTICATED_CLIENTS)
def test_authenticated_clients_are_served(name: str, tools: Callable[[Login], Tools]) -> None:
    output = tools(AUTHENTICATED_CLIENTS[name]).run("kafka-topics", "--describe", "--topic", "t")
    assert "Leader: 1" in output


#: Logins that fail, with the error of Kafka's client.
LEFT_OUT: Mapping[str, tuple[Login, str]] = {
    "no certificate": (("SSL", {}, ""), "Failed to process post-handshake messages"),
    "an untrusted certificate": (("SSL", {}, "untrusted"), "Failed to process post-handshake messages"),
    "a wrong password": (("SASL_PLAINTEXT", login("PLAIN", "alice", "x"), ""), "Invalid username or password"),
    "a wrong proof": (("SASL_SSL", login("SCRAM-SHA-512", "dave", "x"), ""), "invalid credentials"),
    "no rights": (("SASL_PLAINTEXT", login("PLAIN", "eve", "x"), ""), "does not exist as expected"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_unauthenticated_clients_are_refused(name: str, tools: Callable[[Login], Tools]) -> None:
    how, error = LEFT_OUT[name]
    code, text = tools(how).run_with_code("kafka-topics", "--describe", "--topic", "t")
    assert code != 0
    assert error in text
