"""Notice within milliseconds that the process of the active controller has ended.

ZooKeeper ends the session of a killed process only after the session timeout, and then notifies brokers and standbys
together. The kernel closes the sockets of the process at once. Each instance therefore listens on a port
(``LivenessListener``) and publishes its address in its record below ``/kframe/instances``. A standby stays connected to
the instance that has the role (``LivenessWatch``). When that connection ends and the port then refuses connections, the
process has ended. A process that ends before the first connection is looked up on the same machine. A timeout or an
unreachable host proves nothing: then the end of the session decides.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kframe.plugin.live import Instance
from kframe_zookeeper.znodes.instances import ListenerAddress

_log = logging.getLogger("kframe.zookeeper")

#: Length of ``Instance.token``, in bytes.
TOKEN_BYTES: Final = 16
#: Connections above this number are closed at once.
CONNECTIONS_MAX: Final = 64
#: Seconds within which a live listener must accept, and must send its token.
_CONNECT_S: Final = 3.0
#: Seconds between two attempts to connect, before and after the listener has sent the published token.
_PAUSE_S: Final = 1.0
_PROVEN_PAUSE_S: Final = 0.02
#: Seconds until connections are accepted again after a failure: the process may have no free descriptor.
_ACCEPT_PAUSE_S: Final = 1.0


class LivenessListener:
    """Accepts connections on a port and sends each the token. It reads nothing, and closes connections that send."""

    def __init__(self, host: str, token: str) -> None:
        """Listen on ``host``, an address of this machine. ``token`` is ``Instance.token``. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._server = socket.create_server((host, 0), family=family)
        self._server.setblocking(False)
        self._token = bytes.fromhex(token)
        self.address = ListenerAddress(host, self._server.getsockname()[1])
        self._wake, self._woken = socket.socketpair()
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._run, name="kframe-liveness-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the port, then the connections: what standbys see when a process ends."""
        with suppress(OSError):
            self._wake.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            accepts = True
            while True:
                events = selector.select(None if accepts else _ACCEPT_PAUSE_S)
                if not accepts and not events:
                    selector.register(self._server, selectors.EVENT_READ)
                    accepts = True
                for key, _ in events:
                    if key.fileobj is self._woken:
                        self._end()
                        return
                    if key.fileobj is self._server:
                        accepts = self._accept(selector)
                    elif isinstance(key.fileobj, socket.socket):  # The connection was closed, or sends something.
                        selector.unregister(key.fileobj)
                        self._connections.discard(key.fileobj)
                        key.fileobj.close()

    def _accept(self, selector: selectors.BaseSelector) -> bool:
        """Accept a connection. Return false, and watch the port no longer, if that is impossible for now."""
        try:
            connection, _ = self._server.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return True
        except OSError as problem:
            _log.warning("standbys cannot connect to this process: %s", problem)
            selector.unregister(self._server)
            return False
        self._admit(connection, selector)
        return True

    def _admit(self, connection: socket.socket, selector: selectors.BaseSelector) -> None:
        """Send the token to a connection and keep it, unless there are too many."""
        if len(self._connections) >= CONNECTIONS_MAX:
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
        for connection in (self._server, *self._connections, self._woken):
            connection.close()


class LivenessWatch:
    """Stays connected to a listener, and calls ``on_end`` once when its process has ended. Runs its own thread."""

    def __init__(self, address: ListenerAddress, instance: Instance, on_end: Callable[[], None]) -> None:
        """``instance`` published ``address`` in its record."""
        self._address = (address.host, address.port)
        self._instance = instance
        self._token = bytes.fromhex(instance.token)
        self._on_end = on_end
        self._closed = threading.Event()
        self._attempted = threading.Event()
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="kframe-liveness-watch", daemon=True)
        self._thread.start()

    def await_attempt(self, timeout_s: float) -> None:
        """Return when the listener has sent its token, the first attempt has failed, or after ``timeout_s``."""
        self._attempted.wait(timeout_s)

    def close(self) -> None:
        """Stop watching. ``on_end`` is not called afterwards, unless its call has begun."""
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
                if not self._closed.is_set() and (proven or self._instance.is_alive() is False):
                    _log.info("the process at %s:%d has ended", *self._address)
                    self._on_end()
                    self._attempted.set()
                    return
            except OSError as problem:
                _log.debug("%s:%d cannot be reached: %s", *self._address, problem)
            self._attempted.set()
            self._closed.wait(_PROVEN_PAUSE_S if proven or self._instance.is_alive() is False else _PAUSE_S)

    def _stay_connected(self) -> bool:
        """Wait until the connection ends. Return whether the listener has sent the token. Raises OSError."""
        with socket.create_connection(self._address, _CONNECT_S) as connection:
            token = b""
            while len(token) < TOKEN_BYTES and (chunk := connection.recv(TOKEN_BYTES - len(token))):
                token += chunk
            if token != self._token:
                return False
            connection.settimeout(None)
            self._connection = connection
            self._attempted.set()
            try:
                while not self._closed.is_set() and connection.recv(1):
                    pass
            except OSError:  # A reset is an end, too.
                pass
            self._connection = None
            return True
