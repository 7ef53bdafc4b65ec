"""The client on real servers, through the proxy, and against servers that send malformed replies."""

from __future__ import annotations

import socket
import struct
import threading
import time
import tracemalloc
from contextlib import suppress
from dataclasses import replace

import pytest
from kazoo.exceptions import ConnectionClosedError, ConnectionDropped, ConnectionLoss
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kframe_zookeeper.session.client import ensure_chroot, make_client
from kframe_zookeeper.session.settings import REPLY_BYTES_MAX

from kframe.testing.waiting import PATIENCE_S
from verification.zookeeper.proxy import HOST, Direction, Proxy
from verification.zookeeper.servers import ServerHandle
from verification.zookeeper.sessions import States, settings_for, started


def test_chroot_is_created(zookeeper: ServerHandle) -> None:
    settings = settings_for(zookeeper.address)
    nested = replace(settings, chroot=f"{settings.chroot}/b")
    ensure_chroot(nested)
    ensure_chroot(nested)
    with started(nested) as inside:
        inside.create("/x", b"1")
    ensure_chroot(replace(settings, chroot=""))
    with started(replace(settings, chroot="")) as outside:
        assert outside.get(f"{nested.chroot}/x")[0] == b"1"


def test_requests_without_a_connection_fail_at_once(zookeeper: ServerHandle) -> None:
    with Proxy(zookeeper.address) as proxy:
        settings = settings_for(proxy.address)
        ensure_chroot(settings)
        with started(settings) as client:
            states = States(client)
            client.create("/x", b"before")
            proxy.refuse()
            proxy.cut()
            states.wait_for(KazooState.SUSPENDED)
            writes = [client.set_async("/x", b"lost") for _ in range(10)]
            for write in writes:
                with pytest.raises(ConnectionLoss):
                    write.get(timeout=PATIENCE_S)
            proxy.refuse(False)
            states.wait_for(KazooState.CONNECTED)
            data, stat = client.get("/x")
            assert (data, stat.version) == (b"before", 0)


def test_closed_client_refuses_requests(zookeeper: ServerHandle) -> None:
    settings = replace(settings_for(zookeeper.address), chroot="")
    with started(settings) as client:
        pass
    with pytest.raises(ConnectionClosedError):
        client.exists("/")


def test_oversized_reply_closes_the_connection_only(zookeeper: ServerHandle) -> None:
    settings = replace(settings_for(zookeeper.address), reply_bytes_max=20_000)
    ensure_chroot(settings)
    with started(settings) as client:
        states = States(client)
        client.create("/small", b"s" * 15_000)
        client.create("/large", b"l" * 25_000)
        session = client.client_id
        with pytest.raises(ConnectionLoss):
            client.get("/large")
        states.wait_for(KazooState.CONNECTED)
        assert client.get("/small")[0] == b"s" * 15_000
        assert client.client_id == session


#: A new session: timeout 6 s, id 1, and a complete password.
OPENED = struct.pack(">iiiqi", 37, 0, 6000, 1, 16) + bytes(17)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x7f\xff\xff\xff", id="huge"),
        pytest.param(b"\xff\xff\xff\xff", id="negative"),
        pytest.param(b"\x00\x00\x00\x02ab", id="short"),
        pytest.param(b"\x00\x00\x00\x10" + struct.pack(">iqi", 77, 1, 0), id="another number"),
        pytest.param(b"\x00\x00\x00\x10" + struct.pack(">iqi", 1, 1, -999), id="unknown error"),
        pytest.param(b"\x00\x00\x00\x10" + struct.pack(">iqi", -1, 1, 0), id="empty watch event"),
        pytest.param(b"\x15\x03\x03\x00\x02\x02\x28", id="TLS alert"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another protocol"),
    ],
)
@pytest.mark.parametrize("opened", [b"", OPENED], ids=["first", "later"])
def test_malformed_reply_closes_the_connection_only(sent: bytes, opened: bytes) -> None:
    """After each malformed reply the client reconnects, on the same thread."""
    reply = opened + sent
    connections = threading.Semaphore(0)
    listener = socket.create_server((HOST, 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connections.release()
                with suppress(OSError), connection:
                    connection.recv(4096)
                    connection.sendall(reply)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(4096)

    threading.Thread(target=serve, daemon=True).start()
    client = make_client(replace(settings_for(f"{HOST}:{listener.getsockname()[1]}"), chroot=""))
    try:
        client.start_async()
        for _ in range(3):
            assert connections.acquire(timeout=PATIENCE_S)
            client.exists_async("/")
    finally:
        listener.close()
        client.stop()
        client.close()


def test_reply_allocates_memory_as_it_arrives() -> None:
    """The claimed length has no influence."""
    client = make_client(replace(settings_for(f"{HOST}:1"), chroot=""))
    client._connection._socket, server = socket.socketpair()
    try:
        server.sendall(bytes(1000))
        tracemalloc.start()
        with pytest.raises(KazooTimeoutError):
            client._connection._read(REPLY_BYTES_MAX, 0.05)
        assert tracemalloc.get_traced_memory()[1] < 2**20
        with pytest.raises(ConnectionDropped, match=f"at most {REPLY_BYTES_MAX} are read"):
            client._connection._read(REPLY_BYTES_MAX + 1, 0.05)
    finally:
        tracemalloc.stop()
        client._connection._socket.close()
        server.close()
        client.close()


def test_unreachable_host_takes_a_share_of_the_timeout() -> None:
    full = socket.create_server((HOST, 0), backlog=0)
    address = full.getsockname()
    # Once the accept queue is full, further connection attempts hang.
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(address)
    client = make_client(settings_for(f"{HOST}:{address[1]}", session_timeout_ms=300))
    with pytest.raises(TimeoutError):
        client.handler.create_connection(address=address, timeout=3600.0)
    for connection in (*fillers, full):
        connection.close()


def test_silent_server_takes_a_share_of_the_timeout(zookeeper: ServerHandle) -> None:
    with (
        Proxy(zookeeper.address) as way,
        started(replace(settings_for(way.address, 9000), chroot="")) as client,
    ):
        states, session = States(client), client.client_id
        way.drop(*Direction)
        way.cut()
        states.wait_for(KazooState.SUSPENDED)
        while not way.links:
            time.sleep(0.001)
        for direction in Direction:
            way.links[0].mute(direction)
        way.drop()
        states.wait_for(KazooState.CONNECTED)
        assert client.client_id == session, "the session survives"
