"""Kafka's own client on TLS and SASL listeners, with accepted and refused logins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from kframe.testing.clusters import healthy
from verification.kafka_wire.secured import AUTHORIZED_CLIENTS, REFUSED_CLIENTS, ClientLogin, certificates, secured
from verification.kafka_wire.served import Served
from verification.kafka_wire.tools import Tools
from verification.zookeeper.tools import ToolProcess


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with secured(folder, {"t": [healthy(1)]}) as served:
        yield served


@pytest.fixture
def tools(served: Served, folder: Path, tool_process: ToolProcess, tmp_path: Path) -> Callable[[ClientLogin], Tools]:
    """Create tools that log in."""

    def make(login: ClientLogin) -> Tools:
        timeouts = {"default.api.timeout.ms": "60000", "request.timeout.ms": "5000"}
        return Tools(tool_process, tmp_path, served.server.addresses[login.listener], timeouts | login.settings(folder))

    return make


@pytest.mark.parametrize("name", AUTHORIZED_CLIENTS)
def test_authenticated_clients_are_served(name: str, tools: Callable[[ClientLogin], Tools]) -> None:
    output = tools(AUTHORIZED_CLIENTS[name]).run("kafka-topics", "--describe", "--topic", "t")
    assert "Leader: 1" in output


#: The errors of Kafka's client for REFUSED_CLIENTS.
ERRORS: Mapping[str, str] = {
    "no certificate": "Failed to process post-handshake messages",
    "an untrusted certificate": "Failed to process post-handshake messages",
    "a wrong password": "Invalid username or password",
    "a wrong proof": "invalid credentials",
    "no rights": "does not exist as expected",
}


@pytest.mark.parametrize("name", ERRORS)
def test_unauthenticated_clients_are_refused(name: str, tools: Callable[[ClientLogin], Tools]) -> None:
    code, text = tools(REFUSED_CLIENTS[name]).run_with_code("kafka-topics", "--describe", "--topic", "t")
    assert code != 0
    assert ERRORS[name] in text
