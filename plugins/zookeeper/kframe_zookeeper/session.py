"""One ZooKeeper session: it begins once, may be disconnected for a while, and ends for good.

A kazoo client goes on in a new session when the old one has expired, and performs there what was queued for the old
one. Here a client is stopped, in the very thread that learns of the expiry, before it can connect again: what was made
for one session can never be done in another. Who wants to go on makes a new ``Session``.
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
from kframe_zookeeper.fence import Fence
from kframe_zookeeper.requests import MultiRead, get_data

#: Requests that travel at a time. More do not make one server faster, and each holds its bytes.
IN_FLIGHT: Final = 4
#: How often one request is lost and sent again before it is taken for the cause.
LOSSES_MOST: Final = 3
#: A thread that waits looks this often whether the session has ended.
_LOOK_S: Final = 0.5
#: How long the thread of a client that was told to stop may take.
_STOP_S: Final = 10.0


class SessionOver(StoreError):
    """The session has ended, or may have."""


class RequestLost(StoreError):
    """The connection broke before the answer came; whether the request was performed is not known."""


class Request(Protocol):
    """What kazoo sends."""

    @property
    def type(self) -> Any:
        """The operation, as ZooKeeper numbers it."""

    def serialize(self) -> bytes | bytearray:
        """The rest of the request; called at the moment of sending."""


Sent = TypeVar("Sent", bound=Request)


class _Drop:
    """A request that breaks the connection in place of being sent."""

    type = 0

    def serialize(self) -> bytes:
        """Called by kazoo in its own thread, where this ends the connection."""
        raise ConnectionDropped("the session may have expired")


class Session:
    """One session of a kazoo client that was not started yet."""

    def __init__(self, client: KazooClient, fence: Fence | None = None) -> None:
        self.client = client
        self.fence = Fence() if fence is None else fence
        self.waits_for_server = False
        """Whether who waits for a connection waits until the server says that the session has ended. Else the wait ends
        when it may have ended by our own clock."""
        self.has_multi_read = True
        """Whether the server knows multiRead (3.6 and later)."""
        self.on_end: Callable[[], None] = _nothing
        """Called once, in kazoo's own thread, when the session has ended but was not closed by us. Must not block."""
        self.on_reconnect: Callable[[], None] = _nothing
        """Called, in kazoo's own thread, when the connection is back and all watches are lost. Must not block."""
        self._connected = threading.Event()
        self._over = threading.Event()
        self._closed = False
        self._begun = False
        connect = client._connection._connect

        def noting_timeout(*where: Any) -> tuple[float, float]:
            """Connect, and note what was negotiated: kazoo reads for two thirds of the timeout (milliseconds)."""
            begun_s = self.fence.now_s()
            read_ms, connect_ms = connect(*where)
            self.fence.timeout_s = read_ms * 1.5 / 1000
            self.fence.contact(begun_s)
            return read_ms, connect_ms

        client._connection._connect = noting_timeout
        client.add_listener(self._on_event)

    @property
    def session_id(self) -> int:
        """The number that the server gave the session; the owner of what is ephemeral in it."""
        return int(self.client._session_id or 0)

    def local_host(self) -> str:
        """The address of this machine that the server is reached from. Raises OSError without a connection."""
        connected = self.client._connection._socket
        if connected is None:
            raise ConnectionError("no connection to ZooKeeper")
        return str(connected.getsockname()[0])

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self._over.is_set()

    def begin(self, timeout_s: float) -> None:
        """Connect, and find out what the server can. Raises StoreError if that fails."""
        try:
            self.client.start(timeout_s)
            self._begun = True
            self._probe()
        except (KazooException, KazooTimeoutError, SessionOver, RequestLost) as error:
            self.close()
            raise StoreError(f"no session with ZooKeeper at {self.client.hosts}: {error}") from error

    def close(self) -> None:
        """End the session; what is ephemeral goes. May be called again, and from any thread but kazoo's own."""
        self._closed = True
        self._end()
        with suppress(KazooException):
            self.client.stop()
        self.dispose()

    def expire(self) -> None:
        """Take the session for ended because it may be: the client falls silent at once and for ever.

        The server is told if there is a connection; without, what is ephemeral goes when it ends the session.
        """
        last = CloseInstance if self.client.connected else _Drop()
        self._end()
        self.client._stopped.set()
        self.client._queue.append((last, None))
        with suppress(OSError, AttributeError):  # the client has ended by itself
            self.client._connection._write_sock.send(b"\0")

    def dispose(self) -> None:
        """Free what the client of a session that is over still holds: threads, sockets."""
        self.client._stopped.set()
        self.client.handler.stop()
        if self.client._connection.stop(_STOP_S):
            self.client.close()

    def submit(self, request: Request) -> Any:
        """Queue a request; what comes of it is told by the result that is returned. Raises SessionOver."""
        if self.over:
            raise SessionOver("the session with ZooKeeper is over")
        result = self.client.handler.async_result()
        self.client._call(request, result)
        return result

    def wait(self, result: Any) -> Any:
        """What came of a request.

        Raises RequestLost where the connection broke, SessionOver, or the error that ZooKeeper answered with.
        """
        while True:
            try:
                return result.get(timeout=_LOOK_S)
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

        A server that was down gives every session its full timeout when it is back, so our own clock cannot tell that
        a session has ended (ZooKeeper 3.8 ``ZooKeeperServer.startup``).
        """
        while not self._connected.wait(_LOOK_S if self.waits_for_server else self._look_s()):
            if self.over or not (self.waits_for_server or self.fence.is_open()):
                raise SessionOver("the session with ZooKeeper is over, or may be")
        if self.over:
            raise SessionOver("the session with ZooKeeper is over")

    def _look_s(self) -> float:
        return min(_LOOK_S, max(self.fence.left_s(), 0.0))

    def ask(
        self, requests: Iterable[Sent], in_flight: int = IN_FLIGHT, absent: type[KazooException] | None = None
    ) -> Iterator[tuple[Sent, Any]]:
        """Send requests that only read, ``in_flight`` at a time, and yield each with its answer, in order. The first
        leave before this returns; another one leaves as soon as an answer has come, before that is handed out.

        The answer is None where ZooKeeper's error is ``absent``; any other error of it is raised as StoreError.

        What is lost is sent again; what is lost time and again is sent in halves, because an answer that is too long
        for the connection looks like that. Raises RequestLost where that does not help either.
        """
        left = iter(requests)
        waiting = deque((request, self.submit(request)) for request in islice(left, in_flight))
        return self._asked(waiting, left, absent)

    def _asked(
        self, waiting: deque[tuple[Sent, Any]], left: Iterator[Sent], absent: type[KazooException] | None
    ) -> Iterator[tuple[Sent, Any]]:
        while waiting:
            request, result = waiting.popleft()
            for index, answer in enumerate(self._answers(request, result, absent)):
                if index == 0:
                    waiting.extend((following, self.submit(following)) for following in islice(left, 1))
                yield answer

    def call(self, request: Request) -> Any:
        """Send one request that only reads. Raises RequestLost if it is lost time and again."""
        for _ in range(LOSSES_MOST - 1):
            with suppress(RequestLost):
                return self.wait(self.submit(request))
            self.await_connection()
        return self.wait(self.submit(request))

    def _answers(self, request: Sent, result: Any, absent: type[KazooException] | None) -> Iterator[tuple[Sent, Any]]:
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
            # The halves of what was sent are of its kind.
            yield from cast("Iterator[tuple[Sent, Any]]", self.ask(halves, 1, absent))
        except KazooException as error:
            if absent is None or not isinstance(error, absent):
                raise StoreError(f"ZooKeeper refused {request}: {error!r}") from error
            yield request, None

    def _probe(self) -> None:
        """Ask for the root by multiRead. A server before 3.6 answers that it does not know it, and disconnects."""
        try:
            self.call(MultiRead(get_data("/"), 1, self.fence))
        except UnimplementedError:
            self.has_multi_read = False
            self.await_connection()

    def _on_event(self, state: str) -> None:
        """Hear from kazoo how the connection is."""
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
        """Shut everything; true for the first who does."""
        first = not self.over
        self.fence.end()
        self._over.set()
        self._connected.set()
        return first


def _nothing() -> None:
    """Called while nobody cares."""
