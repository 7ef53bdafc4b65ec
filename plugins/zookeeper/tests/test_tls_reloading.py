"""Connections to ZooKeeper use renewed certificates without a restart, and speak TLS 1.2 or later."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kframe_zookeeper.session.client import _Handler, tls_context
from kframe_zookeeper.session.settings import TlsSettings

from verification.zookeeper.certificates import Authority, Identity
from verification.zookeeper.servers import HOST


@contextmanager
def server(identity: Identity) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """A TLS server that requires certificates: its address, and the serial numbers of its clients."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=identity.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(identity.key_and_certificate)
    serial_numbers: list[str] = []

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, context.wrap_socket(connection, server_side=True) as secured:
                certificate = secured.getpeercert()
                assert certificate is not None
                serial_numbers.append(str(certificate["serialNumber"]))
                secured.send(b"!")

    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=accept, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname(), serial_numbers
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_new_connections_use_a_renewed_certificate(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    authority = Authority(tmp_path)
    path = authority.issue("client").key_and_certificate
    handler = _Handler(10, TlsSettings(authority.path, path))
    with server(authority.issue("server", HOST)) as (address, serial_numbers):

        def connect() -> None:
            with handler.create_connection(address, HOST) as connection:
                assert connection.recv(1) == b"!"

        connect()
        authority.issue("client")
        connect()
        path.write_bytes(b"half of a key")
        connect()
    first, second, third = serial_numbers
    assert first != second == third
    assert "changed TLS files cannot be used; the last ones remain in use" in caplog.text


def test_tls_checks_host_names_and_requires_version_1_2(tmp_path: Path) -> None:
    context = tls_context(TlsSettings(Authority(tmp_path).path, None))
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
