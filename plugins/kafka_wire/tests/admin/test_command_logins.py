"""``kframe reassign``, ``elect`` and ``plan`` on TLS and SASL listeners, with the properties of Kafka's clients."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from kframe_kafka_wire.admin import client

from kframe.testing.clusters import healthy
from verification.kafka_wire.secured import AUTHORIZED_CLIENTS, REFUSED_CLIENTS, ClientLogin, certificates, secured
from verification.kafka_wire.served import Served
from verification.zookeeper.commands import invoke


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with secured(folder, {"t": [healthy(1, 2)]}, (1, 2)) as served:
        yield served


class Operator:
    """Runs commands with the settings of a client in a file."""

    def __init__(self, served: Served, certificates: Path, folder: Path, login: ClientLogin) -> None:
        self._properties = folder / "client.properties"
        self._address = served.server.addresses[login.listener]
        lines = login.settings(certificates).items()
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in lines))

    def run(self, *arguments: object, code: int = 0) -> CompletedProcess[str]:
        """A command that ends with this exit code."""
        is_addressed = "--bootstrap-server" in arguments or arguments[0] == "plan"
        address = () if is_addressed else ("--bootstrap-server", self._address)
        done = invoke(*arguments, *address, "--command-config", self._properties)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def rows(self, *arguments: object) -> list[dict[str, Any]]:
        table: list[dict[str, Any]] = json.loads(self.run(*arguments, "-o", "json").stdout)["rows"]
        return table


def assigned(served: Served) -> tuple[list[int], int]:
    """Replicas and leader of t-0."""

    def look(cluster: Any) -> tuple[list[int], int]:
        view = cluster["t", 0]
        return list(view.replicas), view.leader

    return served.controller.inspect(look).result(30)


@pytest.mark.parametrize("name", AUTHORIZED_CLIENTS)
def test_authorized_commands_reassign_and_elect(name: str, served: Served, folder: Path, tmp_path: Path) -> None:
    operator = Operator(served, folder, tmp_path, AUTHORIZED_CLIENTS[name])
    assert operator.rows("reassign", "list") == []
    journal = tmp_path / "journal"
    start = ("reassign", "start", "t-0=2,1", "--journal", journal, "--interval", "0.1")
    operator.run(*start)
    assert assigned(served) == ([1, 2], 1), "nothing happens without --execute"
    operator.run(*start, "--execute")
    assert assigned(served) == ([2, 1], 1)
    elected = operator.rows("elect", "--type", "preferred", "--partition", "t-0", "--execute")
    assert [row["error"] for row in elected] == ["NONE"]
    assert assigned(served) == ([2, 1], 2)

    operator.run("plan", "rollback", journal, "--execute", "--interval", "0.1")
    assert assigned(served) == ([1, 2], 1)


#: The errors of REFUSED_CLIENTS.
ERRORS: Mapping[str, tuple[str, ...]] = {
    "a wrong password": ("refuses the login by PLAIN",),
    "a wrong proof": ("refuses the login by SCRAM-SHA-512",),
    "no rights": ("CLUSTER_AUTHORIZATION_FAILED",),
    "another authority": (
        "found a certificate that is refused (self-signed",
        "ssl.truststore.location=",
        "other.pem",
    ),
    "no certificate": (
        "CERTIFICATE_REQUIRED",
        "found none (ssl.keystore.location is not set), expected a certificate",
    ),
    "an untrusted certificate": (
        "UNKNOWN_CA",
        "found ssl.keystore.location=",
        "untrusted.pem, expected a certificate",
    ),
}


@pytest.mark.parametrize("name", REFUSED_CLIENTS)
def test_unauthorized_commands_fail_at_once_with_the_reason(
    name: str, served: Served, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command must not search for a controller without end."""
    monkeypatch.setattr(client, "CONTROLLER_TIMEOUT_S", math.inf)
    login = REFUSED_CLIENTS[name]
    operator = Operator(served, folder, tmp_path, login)
    journal = tmp_path / "journal"
    done = operator.run("reassign", "start", "t-0=2,1", "--execute", "--journal", journal, code=1)
    words = " ".join(done.stderr.split())
    assert all(error in words for error in ERRORS[name]), words
    assert name == "no rights" or f"{served.server.addresses[login.listener]}: " in words
    assert assigned(served) == ([1, 2], 1)


def test_a_refusing_bootstrap_broker_is_skipped(served: Served, folder: Path, tmp_path: Path) -> None:
    """The brokers of one list may differ. The client uses the first broker that accepts its login."""
    operator = Operator(served, folder, tmp_path, AUTHORIZED_CLIENTS["PLAIN over TLS"])
    refusing, accepting = served.server.addresses["SSL"], served.server.addresses["SASL_SSL"]
    assert operator.rows("reassign", "list", "--bootstrap-server", f"{refusing},{accepting}") == []
