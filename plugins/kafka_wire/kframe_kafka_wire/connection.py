"""A connection to a broker: TCP, TLS and SASL, with limits of time and size for each exchange.

Another thread may call ``shut`` at any time. A blocked call on the socket then fails at once.
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
from kframe_kafka_wire.answers import PermanentFailure, WireError
from kframe_kafka_wire.sasl import LoginRefused, authenticate
from kframe_kafka_wire.security import Credentials, Tls

#: Receive size. Memory is allocated as a reply arrives, not by its claimed length.
_CHUNK: Final = 2**18
#: Minimum receive size. Most replies are short and arrive in one call together with their size.
_SHORT: Final = 2**12
#: The socket timeout is set again only if it differs by this share, because that is a system call.
_LIMIT_SHARE: Final = 0.01
#: Brokers close the connection on a request that they cannot read.
_WHY_WORDLESS: Final = (
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
    """A connection that ``open`` establishes. One thread uses it. Any other thread may call ``shut``."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._socket: socket.socket | None = None
        self._shut = False
        self._deadline = 0.0
        self._limit_s = 0.0
        """The present socket timeout. 0 if unknown."""
        self._buffered = b""
        """Bytes received beyond the last reply."""

    def open(self, timeout_ms: int, connect_ms: int | None = None) -> None:
        """Connect, with TLS handshake and login, within ``timeout_ms``, the TCP connection within ``connect_ms``.

        Raises OSError and WireError, Refused for permanent failures, ConfigError for unusable TLS files.
        """
        begun_s = time.monotonic()
        self._deadline = begun_s + min(timeout_ms, connect_ms or timeout_ms) / 1000
        self._take(self._connected())
        self._deadline = begun_s + timeout_ms / 1000
        if self._target.tls is not None:
            self._speak_tls(self._target.tls)
        if self._target.credentials is not None:
            try:
                authenticate(self._target.credentials, self._target.client_id, self._say)
            except LoginRefused as problem:
                raise PermanentFailure(f"{self._target}: {problem}") from problem

    def exchange(self, chunks: Sequence[bytes | memoryview], reply_bytes_max: int, timeout_ms: int) -> bytes:
        """Send a whole request, its size first, and return the reply without its size, all within ``timeout_ms``.

        Raises OSError, TimeoutError included, and WireError for a malformed reply. Raises Refused if the broker rejects
        our certificate, which TLS 1.3 reports only now.
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

    def shut(self) -> None:
        """End the connection from any thread. A blocked call raises OSError at once."""
        self._shut = True
        connection = self._socket
        if connection is not None:
            with suppress(OSError):
                # Below TLS, because another thread may be using the TLS state.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket. Only the thread that uses it may call this."""
        self._shut = True
        if self._socket is not None:
            self._socket.close()

    def _take(self, connection: socket.socket) -> None:
        self._socket, self._limit_s = connection, 0.0
        if self._shut:
            raise ConnectionAbortedError("shut while connecting")

    def _connected(self) -> socket.socket:
        """Try each address of the host. ``shut`` ends the attempt."""
        target, failure = self._target, OSError(f"{self._target.host} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM):
            connection = socket.socket(family, kind, protocol)
            try:
                self._take(connection)
                connection.settimeout(self._left())
                connection.connect(address)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except OSError as problem:
                connection.close()
                failure = problem
        raise failure

    def _speak_tls(self, tls: Tls) -> None:
        connection = tls.client().wrap_socket(
            self._usable(), server_hostname=self._target.host, do_handshake_on_connect=False
        )
        self._take(connection)  # Before the handshake, so that ``shut`` ends it.
        connection.settimeout(self._left())
        try:
            connection.do_handshake()
        except ssl.SSLError as problem:
            self._check_refused(problem)
            raise

    def _check_refused(self, problem: ssl.SSLError) -> None:
        """Raises Refused if the TLS failure is permanent."""
        tls = self._target.tls
        why = None if tls is None else tls_refusal(problem, str(self._target), tls.trusted, tls.shown)
        if why is not None:
            raise PermanentFailure(why) from problem

    def _say(self, request: bytes) -> bytes:
        """Send a request of the login. Return the response within the timeout of ``open``."""
        left_ms = int(self._left() * 1000) + 1
        return self.exchange([len(request).to_bytes(4, "big"), request], _LOGIN_BYTES_MAX, left_ms)

    def _send(self, chunks: list[memoryview]) -> None:
        """Send all chunks without joining them."""
        connection = self._usable()
        if isinstance(connection, ssl.SSLSocket):
            for chunk in chunks:
                self._limit(connection)
                connection.sendall(chunk)
            return
        while chunks:
            self._limit(connection)
            sent = connection.sendmsg(chunks[:_BUFFERS])
            while chunks and sent >= len(chunks[0]):
                sent -= len(chunks.pop(0))
            if sent:
                chunks[0] = chunks[0][sent:]

    def _receive(self, length: int) -> bytes:
        connection, received = self._usable(), bytearray(self._buffered)
        while (got := len(received)) < length:
            self._limit(connection)
            piece = connection.recv(min(max(length - got, _SHORT), _CHUNK))
            if not piece:
                message = f"the broker closed the connection after {got} bytes of {length}"
                raise ConnectionResetError(message if got else f"{message}{_WHY_WORDLESS}")
            received += piece
        self._buffered = bytes(received[length:])
        return bytes(received[:length])

    def _limit(self, connection: socket.socket) -> None:
        """Limit the next socket call to the remaining time, with a tolerance of one percent."""
        remaining_s = self._left()
        if abs(remaining_s - self._limit_s) > remaining_s * _LIMIT_SHARE:
            connection.settimeout(remaining_s)
            self._limit_s = remaining_s

    def _usable(self) -> socket.socket:
        if self._socket is None or self._shut:
            raise ConnectionAbortedError("the connection is closed")
        return self._socket

    def _left(self) -> float:
        remaining_s = self._deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("the broker took too long")
        return remaining_s
