"""The proxy performs its scripted breaks at their requests, and forwards everything else."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from kframe.testing.waiting import wait_until
from verification.zookeeper.proxy import (
    GET_DATA,
    HOST,
    MULTI,
    PING,
    Break,
    BreakPoint,
    Direction,
    Link,
    Proxy,
)

WAIT_S = 60.0


class EchoServer:
    """Responds to each frame with the same number. Records what it receives."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.responded = threading.Semaphore(0)
        self._listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while (frame := read_frame(connection)) is not None:
                self.received.append(struct.unpack_from(">i", frame)[0])
                connection.sendall(struct.pack(">i", len(frame)) + frame)
                self.responded.release()


def read_frame(connection: socket.socket) -> bytes | None:
    """A frame, or None at the end of the stream."""
    head = connection.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    return connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)


class Client:
    """Sends frames of a number and an opcode. The first frame opens the session."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=WAIT_S)
        self.ask(0, 0)

    def send(self, number: int, opcode: int) -> None:
        self.socket.sendall(struct.pack(">iii", 8, number, opcode))

    def read(self) -> int | None:
        """The number of the next response, or None after the connection has ended."""
        try:
            frame = read_frame(self.socket)
        except ConnectionError:
            return None
        return None if frame is None else int(struct.unpack_from(">i", frame)[0])

    def ask(self, number: int, opcode: int) -> int | None:
        self.send(number, opcode)
        return self.read()

    def is_silent(self) -> bool:
        """Whether nothing arrives for a while."""
        self.socket.settimeout(0.1)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(WAIT_S)
        return False


@pytest.fixture
def server() -> Iterator[EchoServer]:
    server = EchoServer()
    yield server
    server.close()


@pytest.fixture
def proxy(server: EchoServer) -> Iterator[Proxy]:
    with Proxy(server.address) as proxy:
        yield proxy


@contextmanager
def connected(proxy: Proxy) -> Iterator[Client]:
    client = Client(proxy.address)
    try:
        yield client
    finally:
        client.socket.close()


def test_proxy_forwards(proxy: Proxy) -> None:
    with connected(proxy) as client:
        assert [client.ask(number, GET_DATA) for number in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.parametrize("lingering", [None, (1, 0)], ids=["ends", "is reset"])
def test_connection_closed_by_its_client_is_closed(proxy: Proxy, lingering: tuple[int, int] | None) -> None:
    """Otherwise a later test would fail. The garbage collector would warn of an unclosed socket there."""
    with connected(proxy) as client:
        (link,) = proxy.links
        if lingering is not None:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", *lingering))
    wait_until(lambda: all(end.fileno() == -1 for end in link.sockets))
    assert proxy.links == []


def test_large_frames_pass_whole(proxy: Proxy) -> None:
    with connected(proxy) as client:
        client.socket.sendall(struct.pack(">iii", 1_000_008, 7, GET_DATA) + bytes(1_000_000))
        assert client.read() == 7


@pytest.mark.parametrize(
    "break_point, received, responded",
    [
        (BreakPoint.BEFORE_REQUEST, [0, 1, 2], None),
        (BreakPoint.AFTER_REQUEST, [0, 1, 2, 3], None),
        (BreakPoint.BEFORE_RESPONSE, [0, 1, 2, 3], None),
        (BreakPoint.AFTER_RESPONSE, [0, 1, 2, 3], 3),
    ],
)
def test_cut_at_the_second_multi(
    server: EchoServer, proxy: Proxy, break_point: BreakPoint, received: list[int], responded: int | None
) -> None:
    cut = Break(break_point, nth=2, opcode=MULTI)
    proxy.script(cut)
    with connected(proxy) as client:
        assert client.ask(1, MULTI) == 1
        assert client.ask(2, GET_DATA) == 2
        assert not cut.happened.is_set()
        assert client.ask(3, MULTI) == responded
        assert cut.happened.wait(WAIT_S)
        if break_point is BreakPoint.AFTER_REQUEST:
            for _ in received:
                assert server.responded.acquire(timeout=WAIT_S)
        assert server.received == received
    with connected(proxy) as client:
        assert client.ask(4, MULTI) == 4


def test_pings_count_only_for_their_opcode(proxy: Proxy) -> None:
    any_request, a_ping = Break(BreakPoint.BEFORE_REQUEST, nth=2), Break(BreakPoint.BEFORE_REQUEST, opcode=PING)
    with connected(proxy) as client:
        proxy.script(any_request)
        assert client.ask(1, MULTI) == 1
        assert client.ask(-2, PING) == -2
        proxy.script(a_ping)
        assert client.ask(2, MULTI) == 2
        assert client.ask(-2, PING) is None
    assert a_ping.happened.wait(WAIT_S)
    assert not any_request.happened.is_set()


def test_custom_action_keeps_the_connection(proxy: Proxy) -> None:
    acted: list[Link] = []
    proxy.script(Break(BreakPoint.BEFORE_RESPONSE, opcode=MULTI, action=acted.append))
    with connected(proxy) as client:
        assert client.ask(1, MULTI) == 1
        assert acted == proxy.links


def test_freeze_delivers_later(server: EchoServer, proxy: Proxy) -> None:
    with connected(proxy) as client:
        proxy.freeze()
        client.send(1, MULTI)
        assert client.is_silent()
        proxy.thaw()
        assert client.read() == 1
        assert server.received == [0, 1]


def test_drop_loses_data(server: EchoServer, proxy: Proxy) -> None:
    with connected(proxy) as client:
        proxy.drop(Direction.TO_CLIENT)
        client.send(1, MULTI)
        assert client.is_silent()
        proxy.drop()
        assert client.ask(2, MULTI) == 2
        assert server.received == [0, 1, 2]


def test_delay_postpones_data(proxy: Proxy) -> None:
    with connected(proxy) as client:
        proxy.delay(0.3, Direction.TO_CLIENT)
        started = time.monotonic()
        assert client.ask(1, MULTI) == 1
        assert time.monotonic() - started >= 0.3


def test_cut_resets_all(proxy: Proxy) -> None:
    with connected(proxy) as first, connected(proxy) as second:
        proxy.cut()
        assert first.read() is None
        assert second.read() is None
        assert proxy.links == []


def test_half_close_ends_a_single_direction(server: EchoServer, proxy: Proxy) -> None:
    with connected(proxy) as client:
        proxy.half_close(Direction.TO_CLIENT)
        assert client.read() is None
        client.send(1, MULTI)
        assert server.responded.acquire(timeout=WAIT_S)  # The opening of the session.
        assert server.responded.acquire(timeout=WAIT_S)
        assert server.received == [0, 1]


def test_refuse_closes_new_connections_only(proxy: Proxy) -> None:
    with connected(proxy) as client:
        proxy.refuse()
        with pytest.raises((AssertionError, ConnectionError)), connected(proxy) as other:
            assert other.ask(1, MULTI) is not None
        assert client.ask(1, MULTI) == 1


def test_stopped_server_closes_connections(server: EchoServer, proxy: Proxy) -> None:
    server.close()
    with socket.create_connection((HOST, proxy.port), timeout=WAIT_S) as client:
        assert client.recv(1) == b""


@pytest.mark.parametrize("lingering", [None, (1, 0)], ids=["ends", "is reset"])
def test_connection_closed_by_its_server_is_closed(lingering: tuple[int, int] | None) -> None:
    """Otherwise a client would notice the end only after two thirds of its session timeout."""
    listener = socket.create_server((HOST, 0))
    with (
        listener,
        Proxy(f"{HOST}:{listener.getsockname()[1]}") as proxy,
        socket.create_connection((HOST, proxy.port), timeout=WAIT_S) as client,
    ):
        server, _ = listener.accept()
        if lingering is not None:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", *lingering))
        server.close()
        assert client.recv(1) == b""


def test_proxy_without_frames_forwards_any_bytes(server: EchoServer) -> None:
    with Proxy(server.address, framed=False) as proxy, connected(proxy) as client:
        client.socket.sendall(b"\x00\x00")
        assert client.is_silent()
        client.socket.sendall(b"\x00\x08\x00\x00\x00\x01\x00\x00\x00\x05")
        assert client.read() == 1
