"""A renewed key store or trust store is used by new connections, without a restart."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from verification.kafka_wire.client import Client
from verification.kafka_wire.secured import certificates, secured
from verification.kafka_wire.served import Served
from verification.zookeeper.certificates import Authority


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return certificates(tmp_path)


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with secured(folder, {}) as served:
        yield served


def connect(served: Served, folder: Path, authority: str = "authority", key: str = "") -> Client:
    """A connection to the listener SSL, which requires a certificate, or without ``key`` to SASL_SSL."""
    context = ssl.create_default_context(cafile=folder / f"{authority}.pem")
    if key:
        context.load_cert_chain(folder / f"{key}.pem")
    return Client(served.server.addresses["SSL" if key else "SASL_SSL"], context)


def serial_number(client: Client) -> str:
    assert isinstance(client.socket, ssl.SSLSocket)
    certificate = client.socket.getpeercert()
    assert certificate is not None
    return str(certificate["serialNumber"])


def responds(client: Client) -> bool:
    return bool(client.ask(18, 0)["error_code"] == 0)


def test_new_connections_use_a_renewed_certificate(served: Served, folder: Path) -> None:
    with connect(served, folder) as before:
        first = serial_number(before)
        Authority(folder, "authority").issue("server", "127.0.0.1")  # Another authority, and a key that it signs.
        with connect(served, folder) as after:
            assert serial_number(after) != first
            assert responds(after)
        assert responds(before)


@pytest.mark.parametrize("content", [b"", b"no certificate"], ids=["empty", "malformed"])
def test_unusable_store_keeps_last_certificate(
    content: bytes, served: Served, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "server.pem"
    good = path.read_bytes()
    with connect(served, folder) as client:
        first = serial_number(client)
    for missing in (False, True):
        if missing:
            path.unlink()
        else:
            path.write_bytes(content)
        with connect(served, folder) as client:
            assert serial_number(client) == first
        assert "the last ones remain in use: config key ssl.keystore.location" in caplog.text
    path.write_bytes(good)
    with connect(served, folder) as client:
        assert responds(client)


def test_a_renewed_truststore_decides_on_new_clients(served: Served, folder: Path) -> None:
    with connect(served, folder, key="client") as client:
        assert responds(client)
    trusted = (folder / "authority.pem").read_bytes()
    (folder / "former.pem").write_bytes(trusted)
    (folder / "authority.pem").write_bytes((folder / "other.pem").read_bytes())
    with connect(served, folder, "former", "untrusted") as client:
        assert responds(client)
    with pytest.raises((ssl.SSLError, ConnectionError)), connect(served, folder, "former", "client") as client:
        responds(client)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_servers_accept_no_version_before_tls_1_2(served: Served, folder: Path) -> None:
    context = ssl.create_default_context(cafile=folder / "authority.pem")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"):  # The alert is the server's.
        Client(served.server.addresses["SASL_SSL"], context)
