"""The console on a socket: TLS, certificates of clients, and malformed requests."""

from __future__ import annotations

import datetime
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kframe_console import serving
from kframe_console.application import application
from kframe_console.security.login import LoginPolicy
from kframe_console.serving import TlsFiles, listening_socket, server
from kframe_console.settings import ConsoleSettings
from kframe_console.sources.saved import SavedSource
from kframe_console.web.assets import ASSETS

from kframe.plugin import ConfigError
from kframe.plugin.snapshot import Snapshot
from verification.console.served import served

ASSET = f"GET {ASSETS}".encode()


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Write a self-signed certificate for 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / f"{name}.crt", folder / f"{name}.key"
    paths[0].write_bytes(built.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return paths


def tls_client(authority: Path, files: tuple[Path, Path] | None = None) -> httpx2.Client:
    context = ssl.create_default_context(cafile=str(authority))
    if files is not None:
        context.load_cert_chain(*files)
    return httpx2.Client(verify=context, trust_env=False)


def test_certificate_of_a_client_names_the_user(kraft_snapshot: Snapshot, tmp_path: Path) -> None:
    console, ada, eve = (certificate(tmp_path, name) for name in ("console", "ada", "eve"))
    policy = LoginPolicy(certificates=True, secure=True)
    app = application(SavedSource.of(kraft_snapshot), ConsoleSettings(allowed_hosts=()), policy)
    with served(app, TlsFiles(*console, ada[0])) as port:
        url = f"https://localhost:{port}/"
        with tls_client(console[0], ada) as client:
            assert '<p class="user">ada</p>' in client.get(url).text
        for untrusted in (eve, None):
            with tls_client(console[0], untrusted) as client, pytest.raises(httpx2.TransportError):
                client.get(url)


@pytest.fixture(scope="module")
def port(kraft_snapshot: Snapshot) -> Iterator[int]:
    with served(application(SavedSource.of(kraft_snapshot))) as port:
        yield port


@pytest.mark.parametrize(
    "request_bytes, status",
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000, b"400"),
        # A complete head beyond the bound may pass: it depends on the parts in which it arrives.
        (b"GET /" + b"a" * 30_000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\nConnection: close\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"400"),
        (ASSET + b"/../application.py HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (ASSET + b"/%2e%2e/application.py HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"GET /topics/%00/0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"GET /topics/%ff/0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"405"),
    ],
    ids=lambda value: str(value[:40]),
)
def test_hostile_requests_are_answered_with_a_status(port: int, request_bytes: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(request_bytes)
        response = b""
        while part := client.recv(1 << 16):
            response += part
            if b"\r\n\r\n" in response and status != b"200":
                break
    assert response.startswith(b"HTTP/1.1 " + status), response[:200]
    assert b"Traceback" not in response


@pytest.mark.extended  # Half a minute: the bound on heads.
def test_client_that_completes_no_head_is_disconnected(
    kraft_snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_S", 0.5)
    whole = ASSET + b"/theme.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(application(SavedSource.of(kraft_snapshot))) as port:
        for request_bytes, has_response in ((b"", False), (b"GET / HTTP/1.1\r\nHost: ", False), (whole + b"GET", True)):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
                client.sendall(request_bytes)
                response = b""
                while part := client.recv(1 << 16):
                    response += part
            assert response.startswith(b"HTTP/1.1 200") is has_response


def test_port_that_is_taken_is_refused() -> None:
    with listening_socket("127.0.0.1", 0) as listener, pytest.raises(ConfigError, match="expected one of this machine"):
        listening_socket("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(ConfigError, match=r"found 192\.0\.2\.1:80"):
        listening_socket("192.0.2.1", 80)


def test_unusable_certificate_is_refused(kraft_snapshot: Snapshot, tmp_path: Path) -> None:
    console, other = certificate(tmp_path, "console"), certificate(tmp_path, "other")
    text = tmp_path / "text"
    text.write_text("no certificate")
    app = application(SavedSource.of(kraft_snapshot))
    for files in (
        TlsFiles(console[0], other[1]),
        TlsFiles(tmp_path / "text", console[1]),
        TlsFiles(*console, tmp_path / "text"),
    ):
        with pytest.raises(ConfigError, match="TLS: found"):
            server(app, files)
