"""``kframe reassign``, ``elect`` and ``plan`` on TLS and SASL listeners, with the properties of Kafka's clients."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kframe_kafka_wire import client
from kframe_kafka_wire.testing.secured import AUTHENTICATED_CLIENTS, certificates, login, secured, tls
from kframe_kafka_wire.testing.served import Served

from kframe.cli.app import cli
from kframe.testing.clusters import healthy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with secured(folder, {"t": [healthy(1, 2)]}, (1, 2)) as served:
        yield served


class Operator:
    """Runs commands with these settings in a file."""

    def __init__(self, served: Served, folder: Path, listener: str, settings: Mapping[str, str]) -> None:
        self._at = folder
        self._address = served.server.addresses[listener]
        lines = {"security.protocol": listener, **settings}
        (folder / "client.properties").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))

    def tries(self, *arguments: object) -> Result:
        more = ("--command-config", str(self._at / "client.properties"))
        given = () if "--bootstrap-server" in arguments else ("--bootstrap-server", self._address)
        return CliRunner().invoke(cli, [*map(str, arguments), *given, *more], prog_name="kframe")

    def does(self, *arguments: object) -> Result:
        done = self.tries(*arguments)
        assert done.exit_code == 0, done.output
        return done

    def rows(self, *arguments: object) -> list[dict[str, Any]]:
        table: list[dict[str, Any]] = json.loads(self.does(*arguments, "-o", "json").stdout)["rows"]
        return table


def secrets(folder: Path, listener: str, more: Mapping[str, str], key: str) -> dict[str, str]:
    return {**(tls(folder, key) if listener.endswith("SSL") else {}), **more}


def assigned(served: Served) -> tuple[list[int], int]:
    """Replicas and leader of t-0."""

    def look(cluster: Any) -> tuple[list[int], int]:
        view = cluster["t", 0]
        return list(view.replicas), view.leader

    return served.controller.inspect(look).result(30)


@pytest.mark.parametrize("name", AUTHENTICATED_CLIENTS)
def test_authorized_commands_reassign_and_elect(name: str, served: Served, folder: Path, tmp_path: Path) -> None:
    listener, more, key = AUTHENTICATED_CLIENTS[name]
    operator = Operator(served, tmp_path, listener, secrets(folder, listener, more, key))
    assert operator.rows("reassign", "list") == []
    operator.does("reassign", "start", "t-0=2,1")
    assert assigned(served) == ([1, 2], 1), "nothing happens without --execute"
    operator.does("reassign", "start", "t-0=2,1", "--execute", "--rollback", tmp_path / "first.json")
    assert assigned(served) == ([2, 1], 1)
    elected = operator.rows("elect", "preferred", "--partition", "t-0", "--execute")
    assert [row["error"] for row in elected] == ["NONE"]
    assert assigned(served) == ([2, 1], 2)

    plan, back = tmp_path / "plan.json", tmp_path / "back.json"
    parts = [{"topic": "t", "partition": 0, "replicas": [1, 2]}]
    plan.write_text(json.dumps({"version": 1, "partitions": parts}))
    operator.does("plan", "apply", plan, "--execute", "--rollback", back)
    assert json.loads(back.read_text())["partitions"][0]["replicas"] == [2, 1]
    operator.does("elect", "preferred", "--all", "--execute")
    assert assigned(served) == ([1, 2], 1)


#: Logins that fail, with their truststore and error.
LEFT_OUT: Mapping[str, tuple[str, dict[str, str], str, str, tuple[str, ...]]] = {
    "a wrong password": (
        "SASL_PLAINTEXT", login("PLAIN", "alice", "x"), "", "authority", ("refuses the login by PLAIN",)
    ),
    "a wrong proof": (
        "SASL_SSL", login("SCRAM-SHA-512", "dave", "x"), "", "authority", ("refuses the login by SCRAM-SHA-512",)
    ),
    "no rights": ("SASL_PLAINTEXT", login("PLAIN", "eve", "x"), "", "authority", ("CLUSTER_AUTHORIZATION_FAILED",)),
    "another authority": (
        "SASL_SSL", login("PLAIN", "alice", "secret"), "", "other",
        ("found a certificate that is refused (self-signed", "ssl.truststore.location=", "other.pem"),
    ),
    "no certificate": (
        "SSL", {}, "", "authority",
        ("CERTIFICATE_REQUIRED", "found none (ssl.keystore.location is not set), expected a certificate"),
    ),
    "an untrusted certificate": (
        "SSL", {}, "untrusted", "authority",
        ("UNKNOWN_CA", "found ssl.keystore.location=", "untrusted.pem, expected a certificate"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_unauthorized_commands_fail_at_once_with_the_reason(
    name: str, served: Served, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command must not search for a controller without end."""
    monkeypatch.setattr(client, "CONTROLLER_TIMEOUT_S", math.inf)
    listener, more, key, authority, errors = LEFT_OUT[name]
    settings = {**(tls(folder, key, authority) if listener.endswith("SSL") else {}), **more}
    done = Operator(served, tmp_path, listener, settings).tries("reassign", "start", "t-0=2,1", "--execute")
    assert done.exit_code == 1, done.output
    words = " ".join(done.output.split())
    assert all(entry in words for entry in errors), words
    assert name == "no rights" or f"{served.server.addresses[listener]}: " in words
    assert assigned(served) == ([1, 2], 1)


def test_a_refusing_bootstrap_broker_is_skipped(served: Served, folder: Path, tmp_path: Path) -> None:
    """The brokers of one list may differ. The client uses the first broker that accepts its login."""
    listener, more, key = AUTHENTICATED_CLIENTS["PLAIN over TLS"]
    operator = Operator(served, tmp_path, listener, secrets(folder, listener, more, key))
    refusing = served.server.addresses["SSL"]
    assert (
        operator.rows("reassign", "list", "--bootstrap-server", f"{refusing},{served.server.addresses[listener]}") == []
    )
