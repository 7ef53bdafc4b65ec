"""How a standby learns at once that the process of the active controller has ended.

ZooKeeper ends the session of a process that was killed only after its timeout, and then tells brokers and standbys at
the same moment. The kernel closes the process's sockets at once. So each instance listens on a port of its own
(``LivenessListener``), whose address and token it publishes in a record of its session. A standby stays connected to
the instance that holds the role (``LivenessWatch``). When that connection ends and the port then refuses connections,
the process has ended. A timeout or an unreachable host proves nothing: then the end of the session decides.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Final

import msgspec

from kframe.errors import ZnodeError
from kframe_zookeeper.znodes.strict import decode_znode, encode_znode

_log = logging.getLogger("kframe.zookeeper")

TOKEN_BYTES: Final = 16
#: Standbys are few; more connections are closed at once.
CONNECTIONS_MOST: Final = 64
#: Within this time a listener that lives must accept, and must send its token: seconds.
_CONNECT_S: Final = 3.0
#: Pause between two attempts to connect, before and after the listener has proven that it is the published one.
_PAUSE_S: Final = 1.0
_PROVEN_PAUSE_S: Final = 0.02


class Liveness(msgspec.Struct, kw_only=True, frozen=True):
    """The record of one instance: where it listens, and the token by which its listener is recognised."""

    version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1
    host: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65_535)]
    token: Annotated[str, msgspec.Meta(pattern=f"^[0-9a-f]{{{2 * TOKEN_BYTES}}}$")]


_DECODER: Final = msgspec.json.Decoder(Liveness)


def decode_liveness(raw: bytes | None, path: str) -> Liveness:
    """The record at ``path``. Raises ZnodeError."""
    return decode_znode(_DECODER, raw, path)[0]


def encode_liveness(record: Liveness) -> bytes:
    """The bytes of a record."""
    return encode_znode(record)


class LivenessListener:
    """Accepts connections on a port of its own and sends each the token; reads nothing, and closes what sends."""

    def __init__(self, host: str) -> None:
        """Listen on ``host``, an address of this machine. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._server = socket.create_server((host, 0), family=family)
        self._server.setblocking(False)
        self._token = os.urandom(TOKEN_BYTES)
        self.record = Liveness(host=host, port=self._server.getsockname()[1], token=self._token.hex())
        self._wake, self._woken = socket.socketpair()
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._run, name="kframe-liveness-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the port, then the connections; to standbys it looks as if the process had ended."""
        with suppress(OSError):
            self._wake.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._woken:
                        self._end()
                        return
                    if key.fileobj is self._server:
                        self._accept(selector)
                    elif isinstance(key.fileobj, socket.socket):  # it has ended, or sends something
                        selector.unregister(key.fileobj)
                        self._connections.discard(key.fileobj)
                        key.fileobj.close()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:
            return
        if len(self._connections) >= CONNECTIONS_MOST:
            connection.close()
            return
        connection.setblocking(False)
        try:
            connection.send(self._token)
        except OSError:
            connection.close()
            return
        self._connections.add(connection)
        selector.register(connection, selectors.EVENT_READ)

    def _end(self) -> None:
        for one in (self._server, *self._connections, self._woken):
            one.close()


class LivenessWatch:
    """Stays connected to one listener, and calls ``on_end`` once if its process has ended; in a thread of its own."""

    def __init__(self, record: Liveness, on_end: Callable[[], None]) -> None:
        self._record = record
        self._on_end = on_end
        self._closed = threading.Event()
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="kframe-liveness-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it; ``on_end`` is not called any more, unless it is being called now."""
        self._closed.set()
        connection = self._connection
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        proven = False
        while not self._closed.is_set():
            try:
                proven = self._stay_connected() or proven
            except ConnectionRefusedError:
                if proven and not self._closed.is_set():
                    _log.info("the process at %s:%d has ended", self._record.host, self._record.port)
                    self._on_end()
                    return
            except OSError as problem:
                _log.debug("%s:%d cannot be reached: %s", self._record.host, self._record.port, problem)
            self._closed.wait(_PROVEN_PAUSE_S if proven else _PAUSE_S)

    def _stay_connected(self) -> bool:
        """Return when the connection ends; whether the listener has sent the token. Raises OSError."""
        with socket.create_connection((self._record.host, self._record.port), _CONNECT_S) as connection:
            token = b""
            while len(token) < TOKEN_BYTES and (chunk := connection.recv(TOKEN_BYTES - len(token))):
                token += chunk
            if token != bytes.fromhex(self._record.token):
                return False
            connection.settimeout(None)
            self._connection = connection
            try:
                while not self._closed.is_set() and connection.recv(1):
                    pass
            except OSError:  # reset: the same as an end
                pass
            self._connection = None
            return True


def read_liveness(raw: bytes | None, path: str) -> Liveness | None:
    """The record at ``path``; None, with a line of log, if it cannot be read."""
    try:
        return decode_liveness(raw, path)
    except ZnodeError as error:
        _log.warning("the end of the active controller's process will not be noticed: %s", error)
        return None
