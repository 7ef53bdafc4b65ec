"""A single ZooKeeper session: it begins once, survives disconnections, and ends for good.

After an expiry, a kazoo client continues in a new session and performs the requests that were queued for the old one.
Here the thread that learns of the expiry stops the client before it can connect again. So no request of a session is
performed in another. To continue, make a new ``Session``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Protocol, TypeVar, cast

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionDropped,
    ConnectionLoss,
    KazooException,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.serialization import CloseInstance
from kazoo.protocol.states import KazooState

from kframe.plugin import StoreError
from kframe_zookeeper.session.fence import Fence
from kframe_zookeeper.session.requests import MultiRead, get_data

#: Requests in flight. More do not make a server faster, and each holds its bytes.
IN_FLIGHT: Final = 4
#: A request that is lost this often counts as the cause of the disconnections.
LOSSES_MAX: Final = 3
#: Seconds between two checks of a waiting thread whether the session has ended.
_POLL_S: Final = 0.5
#: Seconds that the thread of a stopped client may take to end.
_STOP_S: Final = 10.0


class SessionOver(StoreError):
    """The session has ended, or may have."""


class RequestLost(StoreError):
    """The connection broke before the response came. Whether the request was performed is not known."""


class Request(Protocol):
    """A request that kazoo can send."""

    @property
    def type(self) -> Any:
        """ZooKeeper's operation code."""

    def serialize(self) -> bytes | bytearray:
        """The body of the request. Called when it is sent."""


Sent = TypeVar("Sent", bound=Request)


class _Drop:
    """A request that breaks the connection instead of being sent."""

    type = 0

    def serialize(self) -> bytes:
        """Called in kazoo's own thread. The exception ends the connection there."""
        raise ConnectionDropped("the session may have expired")


class Session:
    """One session of a kazoo client that was not started yet."""

    def __init__(self, client: KazooClient, fence: Fence | None = None) -> None:
        self.client = client
        self.fence = Fence() if fence is None else fence
        self.waits_for_server = False
        """Whether ``await_connection`` waits until the server ends the session. If false, it stops waiting when the
        fence closes."""
        self.has_multi_read = True
        """Whether the server knows multiRead (3.6 and later)."""
        self.on_end: Callable[[], None] = _nothing
        """Called once, in kazoo's own thread, when the session ended without ``close``. Must not block."""
        self.on_reconnect: Callable[[], None] = _nothing
        """Called in kazoo's own thread after a reconnect, when all watches are lost. Must not block."""
        self._connected = threading.Event()
        self._over = threading.Event()
        self._closed = False
        self._begun = False
        connect = client._connection._connect

        def connect_and_record_timeout(*arguments: Any) -> tuple[float, float]:
            """Connect, and record the negotiated timeout (milliseconds). Kazoo reads for two thirds of it."""
            begun_s = self.fence.now_s()
            read_ms, connect_ms = connect(*arguments)
            self.fence.timeout_s = read_ms * 1.5 / 1000
            self.fence.contact(begun_s)
            return read_ms, connect_ms

        client._connection._connect = connect_and_record_timeout
        client.add_listener(self._on_event)

    @property
    def session_id(self) -> int:
        """The id that the server gave the session: the owner of its ephemeral znodes."""
        return int(self.client._session_id or 0)

    def local_host(self) -> str:
        """The local address of the connection to the server. Raises OSError without a connection."""
        connected = self.client._connection._socket
        if connected is None:
            raise ConnectionError("no connection to ZooKeeper")
        return str(connected.getsockname()[0])

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self._over.is_set()

    def begin(self, timeout_s: float) -> None:
        """Connect, and probe the server for multiRead. Raises StoreError."""
        try:
            self.client.start(timeout_s)
            self._begun = True
            self._probe()
        except (KazooException, KazooTimeoutError, SessionOver, RequestLost) as error:
            self.close()
            raise StoreError(f"no session with ZooKeeper at {self.client.hosts}: {error}") from error

    def close(self) -> None:
        """End the session and its ephemeral znodes. May be called again, from any thread but kazoo's own."""
        self._closed = True
        self._end()
        with suppress(KazooException):
            self.client.stop()
        self.dispose()

    def expire(self) -> None:
        """End the session because it may have expired. The client sends nothing more.

        With a connection, the server closes the session. Otherwise its ephemeral znodes last until it expires.
        """
        last = CloseInstance if self.client.connected else _Drop()
        self._end()
        self.client._stopped.set()
        self.client._queue.append((last, None))
        with suppress(OSError, AttributeError):  # The client has ended already.
            self.client._connection._write_sock.send(b"\0")

    def dispose(self) -> None:
        """Free the threads and sockets of an ended session."""
        self.client._stopped.set()
        self.client.handler.stop()
        if self.client._connection.stop(_STOP_S):
            self.client.close()

    def submit(self, request: Request) -> Any:
        """Queue a request, and return its pending result for ``wait``. Raises SessionOver."""
        if self.over:
            raise SessionOver("the session with ZooKeeper is over")
        result = self.client.handler.async_result()
        self.client._call(request, result)
        return result

    def wait(self, result: Any) -> Any:
        """Wait for the response to a request.

        Raises RequestLost if the connection broke, SessionOver, or the kazoo exception of ZooKeeper's error.
        """
        while True:
            try:
                return result.get(timeout=_POLL_S)
            except KazooTimeoutError:
                if self.over:
                    raise SessionOver("the session with ZooKeeper is over") from None
            except AuthFailedError as error:
                raise SessionOver("ZooKeeper has refused the login, so the session is over") from error
            except SessionExpiredError as error:
                raise SessionOver(f"the session with ZooKeeper is over: {error!r}") from error
            except (ConnectionLoss, ConnectionClosedError) as error:
                if self.over:
                    raise SessionOver("the session with ZooKeeper is over") from error
                raise RequestLost("the connection to ZooKeeper broke") from error

    def await_connection(self) -> None:
        """Return when there is a connection. Raises SessionOver; see ``waits_for_server``.

        A server that restarts gives every session its full timeout (ZooKeeper 3.8 ``ZooKeeperServer.startup``). So the
        local clock cannot tell that a session has ended.
        """
        while not self._connected.wait(_POLL_S if self.waits_for_server else self._poll_s()):
            if self.over or not (self.waits_for_server or self.fence.is_open()):
                raise SessionOver("the session with ZooKeeper is over, or may be")
        if self.over:
            raise SessionOver("the session with ZooKeeper is over")

    def _poll_s(self) -> float:
        return min(_POLL_S, max(self.fence.remaining_s(), 0.0))

    def ask(
        self, requests: Iterable[Sent], in_flight: int = IN_FLIGHT, absent: type[KazooException] | None = None
    ) -> Iterator[tuple[Sent, Any]]:
        """Send read requests, ``in_flight`` at a time, and yield each with its response, in order.

        The first requests are sent before this returns. Each answer makes room for the next request, which is sent
        before the response is yielded. The response is None if ZooKeeper's error is ``absent``.

        A lost request is sent again. If it is lost repeatedly, it is sent in halves, because oversized responses break
        the connection. Raises RequestLost if that fails, too, and StoreError for other errors of ZooKeeper.
        """
        remaining = iter(requests)
        waiting = deque((request, self.submit(request)) for request in islice(remaining, in_flight))
        return self._responses(waiting, remaining, absent)

    def _responses(
        self, waiting: deque[tuple[Sent, Any]], remaining: Iterator[Sent], absent: type[KazooException] | None
    ) -> Iterator[tuple[Sent, Any]]:
        while waiting:
            request, result = waiting.popleft()
            for index, response in enumerate(self._responses_to(request, result, absent)):
                if index == 0:
                    waiting.extend((following, self.submit(following)) for following in islice(remaining, 1))
                yield response

    def call(self, request: Request) -> Any:
        """Send a read request. Raises RequestLost if it is lost LOSSES_MAX times."""
        for _ in range(LOSSES_MAX - 1):
            with suppress(RequestLost):
                return self.wait(self.submit(request))
            self.await_connection()
        return self.wait(self.submit(request))

    def _responses_to(
        self, request: Sent, result: Any, absent: type[KazooException] | None
    ) -> Iterator[tuple[Sent, Any]]:
        try:
            try:
                yield request, self.wait(result)
            except RequestLost:
                self.await_connection()
                yield request, self.call(request)
        except RequestLost:
            halves = request.halves() if isinstance(request, MultiRead) else ()
            if not halves:
                raise
            self.await_connection()
            yield from cast("Iterator[tuple[Sent, Any]]", self.ask(halves, 1, absent))
        except KazooException as error:
            if absent is None or not isinstance(error, absent):
                raise StoreError(f"ZooKeeper refused {request}: {error!r}") from error
            yield request, None

    def _probe(self) -> None:
        """Read the root by multiRead. A server before 3.6 answers UNIMPLEMENTED and disconnects."""
        try:
            self.call(MultiRead(get_data("/"), 1, self.fence))
        except UnimplementedError:
            self.has_multi_read = False
            self.await_connection()

    def _on_event(self, state: str) -> None:
        """Follow the connection state of kazoo."""
        if state == KazooState.CONNECTED:
            self._connected.set()
            if self._begun:
                self.on_reconnect()
            return
        self._connected.clear()
        if state == KazooState.LOST and self._begun:
            self.client._stopped.set()
            if self._end() and not self._closed:
                self.on_end()

    def _end(self) -> bool:
        """Mark the session as ended. Return true at the first call."""
        first = not self.over
        self.fence.end()
        self._over.set()
        self._connected.set()
        return first


def _nothing() -> None:
    """The default callback."""
