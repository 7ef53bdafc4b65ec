"""A kazoo 2.11 client that is hardened for a controller.

- Connecting, and each response of handshake and login, may take a third of the host's share of the session timeout. So
  an unreachable or silent host does not cost the session.
- An oversized or malformed reply closes the connection. It costs neither memory nor the client's thread.
- Requests without a connection fail at once. kazoo would send them later, perhaps in another session.
- TLS certificates must be valid for the host name, and only the configured authorities are trusted. Each connection
  reads the files again, so renewed certificates are used without a restart.
- A connection that breaks during a SASL login is retried. kazoo treats it as a wrong password and stops.
- Reconnects back off to a second at most, not to an hour.
- ``start`` fails at once if TLS is refused for all hosts. kazoo would retry until the timeout.
"""

from __future__ import annotations

import logging
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionDropped,
    ConnectionLoss,
    KazooException,
    SessionExpiredError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import DELETED_EVENT, ConnectionHandler
from kazoo.protocol.serialization import Watch
from kazoo.protocol.states import KeeperState

from kframe.plugin import ConfigError
from kframe.plugin.settings import tls_refusal
from kframe_zookeeper.session.settings import ConnectSettings, TlsSettings
from kframe_zookeeper.znodes.acls import acl_of

_log = logging.getLogger("kframe.zookeeper")

#: Shares of a host's part of the session timeout that one connection attempt may take.
_ATTEMPTS: Final = 3
#: Bytes that are allocated at a time, so that memory grows only with received bytes, not with the announced length.
_CHUNK: Final = 2**18
#: Seconds between two checks of ``start`` whether the login is refused, or TLS by all hosts.
_POLL_S: Final = 0.02
_BACK_OFF: Final = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0}
#: The error of a request in each state; None if it is accepted.
_REFUSALS: Final[dict[str, type[Exception] | None]] = {
    KeeperState.AUTH_FAILED: AuthFailedError,
    KeeperState.CLOSED: ConnectionClosedError,
    KeeperState.EXPIRED_SESSION: SessionExpiredError,
    KeeperState.CONNECTING: ConnectionLoss,
    KeeperState.CONNECTED: None,
    KeeperState.CONNECTED_RO: None,
}


def make_client(settings: ConnectSettings) -> KazooClient:
    """A client that is not started yet. Raises ConfigError where a TLS file cannot be used."""
    return _Client(settings)


def ensure_chroot(settings: ConnectSettings) -> None:
    """Create the chroot, and the nodes above it, where they are missing. Raises what kazoo raises."""
    if not settings.chroot:
        return
    client = make_client(replace(settings, chroot=""))
    try:
        client.start(settings.connection_timeout_ms / 1000)
        client.ensure_path(settings.chroot, list(acl_of("/", settings.secure_acl)))
    finally:
        client.stop()
        client.close()


def tls_context(tls: TlsSettings) -> ssl.SSLContext:
    """The context of TLS connections. Raises ConfigError if a file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # Checks certificates and host names.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    key = "truststore"
    try:
        if tls.authorities is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            context.load_verify_locations(tls.authorities)
        if tls.key_and_certificate is not None:
            key = "keystore"
            # A callable, because OpenSSL would otherwise prompt on the terminal.
            context.load_cert_chain(tls.key_and_certificate, password=lambda: tls.key_password or "")
    except OSError as problem:
        raise ConfigError(
            f"config key zookeeper.ssl.{key}.location", f"a file that cannot be used ({problem})", "a PEM file"
        ) from problem
    return context


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Makes connections, each attempt within ``attempt_s``. Remembers why the last attempt failed."""

    def __init__(self, attempt_s: float, tls: TlsSettings | None) -> None:
        """Raises ConfigError where a file cannot be used."""
        super().__init__()
        self.failure: Exception | None = None
        self.refusals: dict[str, str] = {}
        """Reasons why TLS is refused, by host."""
        self._attempt_s = attempt_s
        self._settings = tls
        self._tls = None if tls is None else tls_context(tls)
        self._host_port = ""

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: object
    ) -> socket.socket:
        """A connection to ``address``, over TLS to ``hostname`` if configured. Raises OSError."""
        attempt_s = self._attempt_s if timeout is None else min(timeout, self._attempt_s)
        end = time.monotonic() + attempt_s
        self._host_port = f"{hostname or address[0]}:{address[1]}"
        try:
            connection = socket.create_connection(address, attempt_s)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is None:
                return connection
            try:
                connection.settimeout(max(end - time.monotonic(), 0.001))
                return self._renewed(self._tls).wrap_socket(connection, server_hostname=hostname)
            except BaseException:
                connection.close()
                raise
        except OSError as problem:
            self.record_failure(problem)
            raise

    def _renewed(self, last: ssl.SSLContext) -> ssl.SSLContext:
        """A context with the present files, or the last one while they cannot be used."""
        assert self._settings is not None
        try:
            self._tls = tls_context(self._settings)
        except ConfigError as problem:
            _log.warning("changed TLS files cannot be used; the last ones remain in use: %s", problem)
            return last
        return self._tls

    def record_failure(self, problem: OSError) -> None:
        """Record why the last attempt failed."""
        self.failure, tls = problem, self._settings
        reason: str | None = None
        if tls is not None:
            reason = tls_refusal(problem, self._host_port, tls.truststore, tls.keystore)
        if reason is None:
            self.refusals.pop(self._host_port, None)
        else:
            self.refusals[self._host_port] = reason


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """Reads what the server sends. Validates it."""

    reply_bytes_max: int
    attempt_s: float
    """How long the response to each request of a handshake or login may take."""

    def _read(self, length: int, timeout: float) -> bytes:
        """Exactly ``length`` bytes, each wait at most ``timeout`` seconds. Raises ConnectionDropped."""
        if not 0 <= length <= self.reply_bytes_max:
            raise ConnectionDropped(f"a reply of {length} bytes, at most {self.reply_bytes_max} are read")
        parts, remaining = [], length
        with self._socket_error_handling():
            while remaining:
                pending = getattr(self._socket, "pending", None)
                # ``select`` does not see bytes that TLS has decrypted already.
                if not (pending and pending()) and not self.handler.select([self._socket], [], [], timeout)[0]:
                    raise self.handler.timeout_exception("socket time-out during read")
                try:
                    chunk = self._socket.recv(min(remaining, _CHUNK))
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    continue
                except ssl.SSLError as problem:  # TLS 1.3 servers refuse a client certificate only after the handshake.
                    self.handler.record_failure(problem)
                    raise
                if not chunk:
                    raise ConnectionDropped("socket connection broken")
                parts.append(chunk)
                remaining -= len(chunk)
        return b"".join(parts)

    def _read_socket(self, read_timeout: float) -> Any:
        try:
            return super()._read_socket(read_timeout)
        except (struct.error, LookupError, RuntimeError, ValueError) as problem:
            raise ConnectionDropped(f"a malformed reply ({problem!r})") from problem

    def _read_response(self, header: Any, buffer: bytes, offset: int) -> Any:
        self.client.on_response(self.client._pending[0][0], header.err)
        return super()._read_response(header, buffer, offset)

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        event, _ = Watch.deserialize(buffer, offset)
        self.client.on_fired(event.type, event.path)
        if event.type == DELETED_EVENT:
            self.client.on_deleted(event.path)
        super()._read_watch_event(buffer, offset)

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        try:
            return super()._invoke(min(timeout, self.attempt_s), request, xid)
        except (struct.error, LookupError, RuntimeError, ValueError) as problem:
            raise ConnectionDropped(f"a malformed reply ({problem!r})") from problem

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        try:
            super()._authenticate_with_sasl(host, min(timeout, self.attempt_s))
        except ConnectionDropped:
            raise
        except AuthFailedError as error:
            # A server reports a wrong password before it closes the connection.
            if isinstance(error.__cause__, ConnectionDropped):
                raise error.__cause__ from None
            raise
        except KazooException as error:  # Other errors of ZooKeeper.
            raise AuthFailedError(f"the login was refused: {error!r}") from error
        except (struct.error, LookupError, RuntimeError, ValueError) as problem:
            raise ConnectionDropped(f"a malformed reply ({problem!r})") from problem


class _Client(KazooClient):  # type: ignore[misc]
    """Accepts requests only while it is connected."""

    def __init__(self, settings: ConnectSettings) -> None:
        self.on_deleted: Callable[[str], None] = _ignore
        """Called with the path (chroot included) of a watched node that was deleted, in the thread that reads
        responses. No watcher is called before it. Must not block."""
        self.on_fired: Callable[[int, str], None] = _ignore
        """Called in that thread with the type and the path (chroot included) of each fired watch, before its watchers.
        Must not block."""
        self.on_response: Callable[[Any, int], None] = _ignore
        """Called in that thread with each answered request and ZooKeeper's error code. Its caller still waits for the
        answer. Must not block."""
        self._gate = threading.Lock()
        self._refusal: type[Exception] | None = ConnectionClosedError
        self._host_count = len(set(settings.hosts))
        sasl = settings.sasl
        attempt_s = settings.session_timeout_ms / 1000 / (_ATTEMPTS * len(settings.hosts))
        super().__init__(
            settings.connect_string,
            timeout=settings.session_timeout_ms / 1000,
            handler=_Handler(attempt_s, settings.tls),
            connection_retry=_BACK_OFF,
            use_ssl=settings.tls is not None,
        )
        self._connection = _Connection(
            self,
            self._conn_retry.copy(),
            logger=self.logger,
            sasl_options=sasl and {"mechanism": "DIGEST-MD5", "username": sasl.username, "password": sasl.password},
        )
        self._connection.reply_bytes_max = settings.reply_bytes_max
        self._connection.attempt_s = attempt_s

    @property
    def _tls_refused(self) -> bool:
        """Whether TLS is refused for all hosts."""
        return len(self.handler.refusals) == self._host_count

    @property
    def _login_refused(self) -> bool:
        """Whether the login is refused. kazoo connects before it logs in, so a client may be connected until then."""
        return self._refusal is AuthFailedError

    def start(self, timeout: float = 15) -> None:
        """Connect. Raises KazooTimeoutError with the reason of the last failure after ``timeout`` seconds, or at once
        if the login is refused, or TLS for all hosts."""
        live, end = self.start_async(), time.monotonic() + timeout
        while not live.wait(min(_POLL_S, max(end - time.monotonic(), 0.0))):
            if self._login_refused or self._tls_refused or time.monotonic() >= end:
                break
        if self.connected:  # kazoo would check the chroot and warn on stderr; see ``loading.chroot``.
            return
        failure, message = self.handler.failure, "Connection time-out"
        if self._login_refused:
            message = "ZooKeeper has refused the login"
        elif self._tls_refused:
            message = "; ".join(self.handler.refusals.values())
        elif failure:
            message = f"{message}; the last attempt failed with {failure!r}"
        self.stop()
        self.close()
        raise self.handler.timeout_exception(message) from failure

    def _session_callback(self, state: str) -> None:
        # The gate closes before kazoo drops queued requests, so that no request is queued after that.
        with self._gate:
            if not (state == KeeperState.CLOSED and self._refusal is AuthFailedError):  # Keep the reason.
                self._refusal = _REFUSALS[state]
        super()._session_callback(state)

    def _call(self, request: Any, async_object: Any) -> bool:
        """Queue a request, or refuse it at once: ConnectionLoss means that it was not sent."""
        with self._gate:
            refusal = self._refusal
            if refusal is None:
                self._queue.append((request, async_object))
        if refusal is not None:
            async_object.set_exception(refusal())
            return False
        with suppress(OSError, AttributeError):  # Closed meanwhile; ``close`` answers queued requests.
            self._connection._write_sock.send(b"\0")
        return True


def _ignore(*_: object) -> None:
    """The default callback."""
