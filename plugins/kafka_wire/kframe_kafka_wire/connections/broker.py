"""A connection to a broker: TCP, TLS and SASL, with limits of time and size for each exchange.

Another thread may call ``abort`` at any time. A blocked call on the socket then fails at once.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kframe.plugin.settings import tls_refusal
from kframe_kafka_wire.connections.login import LoginRefused, authenticate
from kframe_kafka_wire.listeners.security import Credentials, Tls
from kframe_kafka_wire.protocol.errors import PermanentFailure, WireError

#: Receive size. Memory is allocated as a reply arrives, not by its claimed length.
_CHUNK: Final = 2**18
#: Minimum receive size. Most replies are short and arrive in one call together with their size.
_SHORT: Final = 2**12
#: The socket timeout is set again only if it differs by this share, because that is a system call.
_TIMEOUT_TOLERANCE: Final = 0.01
#: Brokers close the connection on a request that they cannot read.
_POSSIBLE_CAUSES: Final = (
    ": it ends, does not know the version of a request, or expects TLS or SASL "
    "(are inter.broker.protocol.version and the security protocol right?)"
)
#: The first bytes of a TLS alert, with which a TLS server answers a plaintext client.
_TLS_ALERT: Final = b"\x15\x03"
#: The maximum number of buffers for one system call.
_BUFFERS: Final = 64
#: Valid replies during a SASL login are shorter.
_LOGIN_BYTES_MAX: Final = 2**16


@dataclass(frozen=True, slots=True)
class Target:
    """Address and credentials for one broker."""

    host: str
    port: int
    tls: Tls | None
    credentials: Credentials | None
    client_id: str

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class BrokerConnection:
    """A connection that ``open`` establishes. One thread uses it. Any other thread may call ``abort``."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._socket: socket.socket | None = None
        self._aborted = False
        self._deadline = 0.0
        self._timeout_s = 0.0
        """The present socket timeout. 0 if unknown."""
        self._buffered = b""
        """Bytes received beyond the last reply."""

    def open(self, timeout_ms: int, connect_ms: int | None = None) -> None:
        """Connect, with TLS handshake and login, within ``timeout_ms``, the TCP connection within ``connect_ms``.

        Raises OSError and WireError, PermanentFailure if a retry cannot help, ConfigError for unusable TLS files.
        """
        start_s = time.monotonic()
        self._deadline = start_s + min(timeout_ms, connect_ms or timeout_ms) / 1000
        self._set_socket(self._connected())
        self._deadline = start_s + timeout_ms / 1000
        if self._target.tls is not None:
            self._start_tls(self._target.tls)
        if self._target.credentials is not None:
            try:
                authenticate(self._target.credentials, self._target.client_id, self._exchange_token)
            except LoginRefused as problem:
                raise PermanentFailure(f"{self._target}: {problem}") from problem

    def exchange(self, chunks: Sequence[bytes | memoryview], reply_bytes_max: int, timeout_ms: int) -> bytes:
        """Send a whole request, its size first, and return the reply without its size, all within ``timeout_ms``.

        Raises OSError, TimeoutError included, and WireError for a malformed reply. Raises PermanentFailure if the
        broker rejects our certificate, which TLS 1.3 reports only now.
        """
        self._deadline = time.monotonic() + timeout_ms / 1000
        try:
            self._send([memoryview(chunk) for chunk in chunks])
            head = self._receive(4)
        except ssl.SSLError as problem:
            self._check_refused(problem)
            raise
        length = int.from_bytes(head, "big", signed=True)
        if head.startswith(_TLS_ALERT):
            raise PermanentFailure(f"{self._target}: the broker speaks TLS on this port, expected plain text")
        if not 0 < length <= reply_bytes_max:
            raise WireError(f"a reply of {length} bytes, where at most {reply_bytes_max} make sense")
        return self._receive(length)

    def abort(self) -> None:
        """End the connection from any thread. A blocked call raises OSError at once."""
        self._aborted = True
        connection = self._socket
        if connection is not None:
            with suppress(OSError):
                # Below TLS, because another thread may be using the TLS state.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket. Only the thread that uses it may call this."""
        self._aborted = True
        if self._socket is not None:
            self._socket.close()

    def _set_socket(self, connection: socket.socket) -> None:
        self._socket, self._timeout_s = connection, 0.0
        if self._aborted:
            raise ConnectionAbortedError("closed while connecting")

    def _connected(self) -> socket.socket:
        """Try each address of the host. ``abort`` ends the attempt."""
        target, failure = self._target, OSError(f"{self._target.host} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM):
            connection = socket.socket(family, kind, protocol)
            try:
                self._set_socket(connection)
                connection.settimeout(self._remaining_s())
                connection.connect(address)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except OSError as problem:
                connection.close()
                failure = problem
        raise failure

    def _start_tls(self, tls: Tls) -> None:
        connection = tls.client().wrap_socket(
            self._open_socket(), server_hostname=self._target.host, do_handshake_on_connect=False
        )
        self._set_socket(connection)  # Before the handshake, so that ``abort`` ends it.
        connection.settimeout(self._remaining_s())
        try:
            connection.do_handshake()
        except ssl.SSLError as problem:
            self._check_refused(problem)
            raise

    def _check_refused(self, problem: ssl.SSLError) -> None:
        """Raises PermanentFailure if a retry cannot help."""
        tls = self._target.tls
        refusal = (
            None
            if tls is None
            else tls_refusal(problem, str(self._target), tls.truststore_setting, tls.keystore_setting)
        )
        if refusal is not None:
            raise PermanentFailure(refusal) from problem

    def _exchange_token(self, request: bytes) -> bytes:
        """Send a request of the login. Return the response within the timeout of ``open``."""
        remaining_ms = int(self._remaining_s() * 1000) + 1
        return self.exchange([len(request).to_bytes(4, "big"), request], _LOGIN_BYTES_MAX, remaining_ms)

    def _send(self, chunks: list[memoryview]) -> None:
        """Send all chunks without joining them."""
        connection = self._open_socket()
        if isinstance(connection, ssl.SSLSocket):
            for chunk in chunks:
                self._set_timeout(connection)
                connection.sendall(chunk)
            return
        while chunks:
            self._set_timeout(connection)
            sent = connection.sendmsg(chunks[:_BUFFERS])
            while chunks and sent >= len(chunks[0]):
                sent -= len(chunks.pop(0))
            if sent:
                chunks[0] = chunks[0][sent:]

    def _receive(self, length: int) -> bytes:
        connection, received = self._open_socket(), bytearray(self._buffered)
        while (count := len(received)) < length:
            self._set_timeout(connection)
            piece = connection.recv(min(max(length - count, _SHORT), _CHUNK))
            if not piece:
                message = f"the broker closed the connection after {count} bytes of {length}"
                raise ConnectionResetError(message if count else f"{message}{_POSSIBLE_CAUSES}")
            received += piece
        self._buffered = bytes(received[length:])
        return bytes(received[:length])

    def _set_timeout(self, connection: socket.socket) -> None:
        """Limit the next socket call to the remaining time, with a tolerance of one percent."""
        remaining_s = self._remaining_s()
        if abs(remaining_s - self._timeout_s) > remaining_s * _TIMEOUT_TOLERANCE:
            connection.settimeout(remaining_s)
            self._timeout_s = remaining_s

    def _open_socket(self) -> socket.socket:
        if self._socket is None or self._aborted:
            raise ConnectionAbortedError("the connection is closed")
        return self._socket

    def _remaining_s(self) -> float:
        remaining_s = self._deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("the broker took too long")
        return remaining_s
