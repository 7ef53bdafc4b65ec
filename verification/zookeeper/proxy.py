"""A TCP proxy between clients and one ZooKeeper server that breaks connections on request.

Manual faults are ``freeze``, ``drop``, ``cut`` and ``refuse``. A script of Breaks acts at the n-th request of a kind:
before or after the request is forwarded, or when its response arrives. By default a Break cuts the connection.

The proxy parses ZooKeeper's frames and so needs clear text.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Self

HOST: Final = "127.0.0.1"
#: Opcodes for scripts.
CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_CHILDREN, PING, MULTI, MULTI_READ = 1, 2, 3, 4, 5, 8, 11, 14, 22
_CHUNK: Final = 65_536
_LENGTH: Final = struct.Struct(">i")
_REQUEST: Final = struct.Struct(">iii")
_ANSWER: Final = struct.Struct(">ii")
#: Length, protocol, timeout, session id, and length of the password.
_CONNECT_RESPONSE: Final = struct.Struct(">iiiqi")
#: A socket closed with this option resets the connection. Bytes in flight are lost in both directions.
_RESET: Final = struct.pack("ii", 1, 0)


class Direction(Enum):
    """The direction of bytes."""

    TO_SERVER = "to server"
    TO_CLIENT = "to client"


BOTH: Final = tuple(Direction)


class BreakPoint(Enum):
    """The stage of a request at which a Break happens."""

    BEFORE_REQUEST = "the server has not seen it"
    AFTER_REQUEST = "the server will have it; the client gets no response"
    BEFORE_RESPONSE = "the server has answered; the client does not know"
    AFTER_RESPONSE = "the client will have the response"


@dataclass(slots=True, eq=False)
class Break:
    """An action at ``break_point`` of the ``nth`` matching request from now, once.

    A request matches if it contains ``holding`` and has ``opcode``. Without an opcode, all requests but pings match.
    ``action`` receives the connection. ``happened`` is set after the action.
    """

    break_point: BreakPoint
    nth: int = 1
    opcode: int | None = None
    action: Callable[[Link], None] | None = None
    """None cuts the connection."""
    content: bytes = b""
    """Bytes that the request must contain, for example an operation in a multi."""
    happened: threading.Event = field(default_factory=threading.Event, init=False)
    _waits_for: tuple[Link, int] | None = field(default=None, init=False)
    """The connection and the number of the request whose answer triggers the action."""

    def match(self, link: Link, direction: Direction, number: int, opcode: int, frame: bytes) -> BreakPoint | None:
        """The break point if this frame is the matching request, or its response; else None."""
        if direction is Direction.TO_CLIENT:
            return self.break_point if self._waits_for == (link, number) else None
        if self._waits_for is not None or (opcode == PING if self.opcode is None else opcode != self.opcode):
            return None
        if self.content not in frame:
            return None
        self.nth -= 1
        if self.nth != 0:
            return None
        if self.break_point in (BreakPoint.BEFORE_REQUEST, BreakPoint.AFTER_REQUEST):
            return self.break_point
        self._waits_for = (link, number)
        return None

    def do(self, link: Link) -> None:
        """Run the action on ``link``."""
        if self.action is not None:
            self.action(link)
        else:
            link.cut(gently=self.break_point in (BreakPoint.AFTER_REQUEST, BreakPoint.AFTER_RESPONSE))
        self.happened.set()


class Link:
    """A client's connection through the proxy."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self.sockets: Final = (client, server)
        self._session_opened = dict.fromkeys(BOTH, False)
        self._muted: set[Direction] = set()
        self._ended: set[Direction] = set()
        self.closed = False
        self.client_id: tuple[int, bytes] | None = None
        """Session id and password, as the server has sent them to the client."""

    def start(self) -> None:
        """Forward in both directions from now on."""
        for direction in BOTH:
            threading.Thread(target=self._pump, args=(direction,), daemon=True).start()

    def cut(self, *, gently: bool = False) -> None:
        """Close the connection on both sides. With ``gently``, forwarded bytes still arrive; otherwise they may be
        lost."""
        self.closed = True
        for end in self.sockets:
            with suppress(OSError):
                if not gently:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RD)  # Wakes the thread that reads from this socket.
            with suppress(OSError):
                end.close()

    def leave(self) -> None:
        """Close the client's side only. The server is not notified, and bytes in flight to it may still arrive."""
        with suppress(OSError):
            self.sockets[0].shutdown(socket.SHUT_RDWR)

    def mute(self, direction: Direction) -> None:
        """Discard bytes in one direction from now on."""
        self._muted.add(direction)

    def _ends(self, direction: Direction) -> tuple[socket.socket, socket.socket]:
        """The source and the destination of a direction."""
        client, server = self.sockets
        return (client, server) if direction is Direction.TO_SERVER else (server, client)

    def _pump(self, direction: Direction) -> None:
        source, sink = self._ends(direction)
        try:
            for piece in self._pieces(source):
                self._pass_on(direction, sink, piece)
            self._muted.add(direction)
            with suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
        except OSError:  # One side has closed, so close the other.
            self.cut(gently=True)
        self._ended.add(direction)
        if len(self._ended) == len(BOTH):
            self.cut(gently=True)

    def _pieces(self, source: socket.socket) -> Iterator[bytes]:
        """Whole frames."""
        waiting = bytearray()
        while chunk := source.recv(_CHUNK):
            waiting += chunk
            while len(waiting) >= _LENGTH.size:
                end = _LENGTH.size + max(_LENGTH.unpack_from(waiting)[0], 0)
                if len(waiting) < end:
                    break
                yield bytes(waiting[:end])
                del waiting[:end]

    def _pass_on(self, direction: Direction, sink: socket.socket, piece: bytes) -> None:
        proxy = self._proxy
        scheduled = self._find_break(direction, piece)
        break_point = None if scheduled is None else scheduled.break_point
        if scheduled is not None and break_point in (BreakPoint.BEFORE_REQUEST, BreakPoint.BEFORE_RESPONSE):
            scheduled.do(self)
        if scheduled is not None and break_point is BreakPoint.AFTER_REQUEST and scheduled.action is None:
            self.mute(Direction.TO_CLIENT)  # The response may be faster than the cut.
        proxy.flowing.wait()
        if direction not in self._muted and direction not in proxy.dropping and not self.closed:
            sink.sendall(piece)
        if scheduled is not None and break_point in (BreakPoint.AFTER_REQUEST, BreakPoint.AFTER_RESPONSE):
            scheduled.do(self)

    def _find_break(self, direction: Direction, piece: bytes) -> Break | None:
        """The Break that this frame triggers. The first frame in each direction opens the session and has no number."""
        if not self._session_opened[direction] or len(piece) < _REQUEST.size:
            if (
                direction is Direction.TO_CLIENT
                and not self._session_opened[direction]
                and len(piece) >= _CONNECT_RESPONSE.size
            ):
                *_, number, length = _CONNECT_RESPONSE.unpack_from(piece)
                self.client_id = (number, piece[_CONNECT_RESPONSE.size :][:length])
            self._session_opened[direction] = True
            return None
        if direction is Direction.TO_SERVER:
            _, number, opcode = _REQUEST.unpack_from(piece)
        else:
            (_, number), opcode = _ANSWER.unpack_from(piece), 0
        return self._proxy.take_break(self, direction, number, opcode, piece)


class Proxy:
    """Listens on loopback and forwards to ``upstream`` ("host:port"). A context manager that closes everything."""

    def __init__(self, upstream: str) -> None:
        self.forward_to(upstream)
        self.flowing = threading.Event()
        self.dropping: set[Direction] = set()
        self._refusing = False
        self._closed = threading.Event()
        self._breaks: list[Break] = []
        self._links: list[Link] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.thaw()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.thaw()
        self.cut()

    def forward_to(self, upstream: str) -> None:
        """Forward new connections to another server."""
        host, _, port = upstream.rpartition(":")
        self._upstream = (host, int(port))

    def script(self, *breaks: Break) -> None:
        """Replace the script, and count from now on."""
        with self._lock:
            self._breaks = list(breaks)

    def freeze(self) -> None:
        """Forward nothing until ``thaw``. Bytes are kept."""
        self.flowing.clear()

    def thaw(self) -> None:
        """End ``freeze``."""
        self.flowing.set()

    def drop(self, *directions: Direction) -> None:
        """Discard bytes from now on. Without a direction, forward again."""
        self.dropping = set(directions)

    def cut(self) -> None:
        """Reset every connection."""
        for link in self.links:
            link.cut()

    def refuse(self, refusing: bool = True) -> None:
        """Close new connections at once. Open connections continue."""
        self._refusing = refusing

    @property
    def links(self) -> list[Link]:
        """The open connections."""
        with self._lock:
            self._links = [link for link in self._links if not link.closed]
            return list(self._links)

    def take_break(self, link: Link, direction: Direction, number: int, opcode: int, frame: bytes) -> Break | None:
        """Remove and return the Break that a frame triggers. Every Break of the script counts each frame."""
        with self._lock:
            scheduled = [
                scheduled_break
                for scheduled_break in self._breaks
                if scheduled_break.match(link, direction, number, opcode, frame)
            ]
            if scheduled:
                self._breaks.remove(scheduled[0])
            return scheduled[0] if scheduled else None

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        """Connect a client to the server, or close it."""
        if self._refusing or self._closed.is_set():
            client.close()
            return
        try:
            server = socket.create_connection(self._upstream)
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(self, client, server)
        with self._lock:
            self._links.append(link)
        link.start()  # A client that has a response finds its connection in ``links``.
        if self._closed.is_set():  # The proxy was closed meanwhile.
            link.cut()
