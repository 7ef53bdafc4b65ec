"""The client on real servers, through the proxy, and against servers that talk nonsense."""

from __future__ import annotations

import itertools
import math
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionClosedError, ConnectionDropped, ConnectionLoss, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.security import ACL, Id
from kframe_zookeeper.acls import acl_of
from kframe_zookeeper.connect import ensure_chroot, make_client
from kframe_zookeeper.jaas import SaslLogin
from kframe_zookeeper.settings import REPLY_BYTES_MAX, ConnectSettings, TlsSettings, settings_of_url
from kframe_zookeeper.testing.certificates import Authority
from kframe_zookeeper.testing.proxy import HOST, Break, Direction, Moment, Proxy
from kframe_zookeeper.testing.servers import Ensemble, ServerHandle, ServerOptions

from kframe.errors import ConfigError

WAIT_S = 120.0
SASL = 102
NUMBERS = itertools.count()
USERS = {"kafka": "its secret"}


def settings_for(address: str, session_timeout_ms: int = 6000) -> ConnectSettings:
    """Settings for a server and a chroot that no other test has."""
    return settings_of_url(f"zookeeper://{address}/test-{next(NUMBERS)}?session.timeout.ms={session_timeout_ms}")


class States:
    """The states that a client has gone through, to wait for the next."""

    def __init__(self, client: KazooClient) -> None:
        self._changed = threading.Condition()
        self._seen: list[str] = []
        client.add_listener(self._hear)

    def _hear(self, state: str) -> None:
        with self._changed:
            self._seen.append(state)
            self._changed.notify_all()

    def wait_for(self, state: str) -> None:
        """Return when ``state`` has been reached since the last call that waited."""
        with self._changed:
            assert self._changed.wait_for(lambda: state in self._seen, WAIT_S), f"{state} not among {self._seen}"
            del self._seen[: self._seen.index(state) + 1]


@contextmanager
def started(settings: ConnectSettings) -> Iterator[tuple[KazooClient, States]]:
    """A client that is connected, in its chroot."""
    client = make_client(settings)
    states = States(client)
    try:
        client.start(WAIT_S)
        states.wait_for(KazooState.CONNECTED)
        yield client, states
    finally:
        client.stop()
        client.close()


def refused(settings: ConnectSettings, why: str = "") -> None:
    """A client does not get a connection, and says why as soon as it knows."""
    for seconds in (0.6, 5.0, WAIT_S):
        client = make_client(settings)
        with pytest.raises(KazooTimeoutError) as caught:
            client.start(seconds)
        if why in str(caught.value):
            return
    pytest.fail(str(caught.value))


def refused_at_once(settings: ConnectSettings, *why: str) -> None:
    """A client that would try for ever ends by itself, and says at which host, what was found and what expected."""
    with pytest.raises(KazooTimeoutError) as caught:
        make_client(settings).start(math.inf)
    host, port = settings.hosts[0]
    assert str(caught.value).startswith(f"{host}:{port}: ")
    assert all(one in str(caught.value) for one in why), caught.value


def test_the_chroot_is_made(zookeeper: ServerHandle) -> None:
    settings = settings_for(zookeeper.address)
    deeper = replace(settings, chroot=f"{settings.chroot}/b")
    ensure_chroot(deeper)
    ensure_chroot(deeper)
    with started(deeper) as (inside, _):
        inside.create("/x", b"1")
    ensure_chroot(replace(settings, chroot=""))
    with started(replace(settings, chroot="")) as (outside, _):
        assert outside.get(f"{deeper.chroot}/x")[0] == b"1"


def test_nothing_is_queued_while_there_is_no_connection(zookeeper: ServerHandle) -> None:
    with Proxy(zookeeper.address) as proxy:
        settings = settings_for(proxy.address)
        ensure_chroot(settings)
        with started(settings) as (client, states):
            client.create("/x", b"before")
            proxy.refuse()
            proxy.cut()
            states.wait_for(KazooState.SUSPENDED)
            writes = [client.set_async("/x", b"lost") for _ in range(10)]
            for write in writes:
                with pytest.raises(ConnectionLoss):
                    write.get(timeout=WAIT_S)
            proxy.refuse(False)
            states.wait_for(KazooState.CONNECTED)
            data, stat = client.get("/x")
            assert (data, stat.version) == (b"before", 0)


def test_a_closed_client_refuses(zookeeper: ServerHandle) -> None:
    settings = replace(settings_for(zookeeper.address), chroot="")
    with started(settings) as (client, _):
        pass
    with pytest.raises(ConnectionClosedError):
        client.exists("/")


def test_a_reply_over_the_cap_costs_the_connection_only(zookeeper: ServerHandle) -> None:
    settings = replace(settings_for(zookeeper.address), reply_bytes_max=20_000)
    ensure_chroot(settings)
    with started(settings) as (client, states):
        client.create("/small", b"s" * 15_000)
        client.create("/large", b"l" * 25_000)
        session = client.client_id
        with pytest.raises(ConnectionLoss):
            client.get("/large")
        states.wait_for(KazooState.CONNECTED)
        assert client.get("/small")[0] == b"s" * 15_000
        assert client.client_id == session


#: A session of 6 s, number 1, without a password's worth of bytes missing.
OPENED = struct.pack(">iiiqi", 37, 0, 6000, 1, 16) + bytes(17)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x7f\xff\xff\xff", id="huge"),
        pytest.param(b"\xff\xff\xff\xff", id="negative"),
        pytest.param(b"\x00\x00\x00\x02ab", id="short"),
        pytest.param(b"\x00\x00\x00\x10" + struct.pack(">iqi", 77, 1, 0), id="another number"),
        pytest.param(b"\x00\x00\x00\x10" + struct.pack(">iqi", 1, 1, -999), id="unknown error"),
        pytest.param(b"\x00\x00\x00\x10" + struct.pack(">iqi", -1, 1, 0), id="watch of nothing"),
        pytest.param(b"\x15\x03\x03\x00\x02\x02\x28", id="TLS alert"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another protocol"),
    ],
)
@pytest.mark.parametrize("opened", [b"", OPENED], ids=["first", "later"])
def test_nonsense_costs_the_connection_only(sent: bytes, opened: bytes) -> None:
    """After each piece of nonsense the client connects anew, on the same thread."""
    answers = opened + sent
    connections = threading.Semaphore(0)
    listener = socket.create_server((HOST, 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connections.release()
                with suppress(OSError), connection:
                    connection.recv(4096)
                    connection.sendall(answers)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(4096)

    threading.Thread(target=serve, daemon=True).start()
    client = make_client(replace(settings_for(f"{HOST}:{listener.getsockname()[1]}"), chroot=""))
    try:
        client.start_async()
        for _ in range(3):
            assert connections.acquire(timeout=WAIT_S)
            client.exists_async("/")
    finally:
        listener.close()
        client.stop()
        client.close()


def test_a_reply_takes_memory_as_it_comes() -> None:
    """However long it claims to be."""
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


def test_a_host_that_swallows_packets_costs_a_share_of_the_timeout() -> None:
    full = socket.create_server((HOST, 0), backlog=0)
    address = full.getsockname()
    # Once the queue is full, the system lets further attempts hang.
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(address)
    client = make_client(settings_for(f"{HOST}:{address[1]}", session_timeout_ms=300))
    with pytest.raises(TimeoutError):
        client.handler.create_connection(address=address, timeout=3600.0)
    for one in (*fillers, full):
        one.close()


def test_a_server_that_accepts_and_says_nothing_costs_a_share_of_the_timeout(zookeeper: ServerHandle) -> None:
    with Proxy(zookeeper.address) as way, started(replace(settings_for(way.address, 9000), chroot="")) as (one, states):
        session = one.client_id
        way.drop(*Direction)
        way.cut()
        states.wait_for(KazooState.SUSPENDED)
        while not way.links:
            time.sleep(0.001)
        for direction in Direction:
            way.links[0].mute(direction)
        way.drop()
        states.wait_for(KazooState.CONNECTED)
        assert one.client_id == session, "the next attempt comes in time"


class TestTls:
    @pytest.fixture
    def settings(self, tls_zookeeper: ServerHandle, authority: Authority) -> ConnectSettings:
        mine = authority.issue("kafka")
        return replace(
            settings_for(tls_zookeeper.secure_address),
            chroot="",
            tls=TlsSettings(mine.authority, mine.key_and_certificate),
        )

    def test_it_connects(self, settings: ConnectSettings) -> None:
        with started(settings) as (client, _):
            client.create("/large", b"x" * 500_000)
            assert client.get("/large")[0] == b"x" * 500_000
            client.delete("/large")

    def test_many_requests_at_a_time(self, settings: ConnectSettings) -> None:
        with started(settings) as (client, _):
            results = [client.exists_async("/zookeeper") for _ in range(500)]
            assert all(result.get(timeout=WAIT_S) for result in results)

    def test_another_authority_is_not_trusted(self, settings: ConnectSettings, tmp_path: Path) -> None:
        stranger = Authority(tmp_path, "stranger")
        assert settings.tls is not None
        tls = replace(settings.tls, authorities=stranger.path)
        refused_at_once(
            replace(settings, tls=tls), "a certificate that is refused", f"truststore.location={stranger.path}"
        )

    def test_a_certificate_for_another_host_is_refused(
        self, folder: Path, settings: ConnectSettings, authority: Authority
    ) -> None:
        server = ServerHandle(folder / "elsewhere", ServerOptions(identity=authority.issue("elsewhere.example")))
        try:
            server.start()
            elsewhere = replace(settings, hosts=((HOST, server.secure_port),))
            refused_at_once(elsewhere, "certificate is not valid for '127.0.0.1'")
            with started(replace(settings, hosts=elsewhere.hosts + settings.hosts)):
                pass  # one of two will do
            down = make_client(replace(settings, hosts=(*elsewhere.hosts, (HOST, 1))))
            with pytest.raises(KazooTimeoutError, match=r"^Connection time-out"):
                down.start(0.6)  # one that is down may come back
        finally:
            server.kill()

    def test_who_shows_no_certificate_is_refused(self, settings: ConnectSettings) -> None:
        assert settings.tls is not None
        tls = replace(settings.tls, key_and_certificate=None)
        refused_at_once(replace(settings, tls=tls), "found none (zookeeper.ssl.keystore.location is not set)")

    def test_a_stranger_s_certificate_is_refused(self, settings: ConnectSettings, tmp_path: Path) -> None:
        stranger = Authority(tmp_path, "stranger").issue("kafka").key_and_certificate
        assert settings.tls is not None
        tls = replace(settings.tls, key_and_certificate=stranger)
        refused_at_once(replace(settings, tls=tls), f"zookeeper.ssl.keystore.location={stranger}")

    def test_clear_text_to_the_tls_port_is_refused(self, settings: ConnectSettings) -> None:
        refused(replace(settings, tls=None))

    def test_tls_to_the_clear_text_port_is_refused(
        self, settings: ConnectSettings, tls_zookeeper: ServerHandle
    ) -> None:
        refused(replace(settings, hosts=((HOST, tls_zookeeper.port),)))

    @pytest.mark.parametrize(
        "spoil, key",
        [
            (lambda tls, path: replace(tls, authorities=path), "truststore"),
            (lambda tls, path: replace(tls, key_and_certificate=path), "keystore"),
        ],
    )
    @pytest.mark.parametrize("content", [None, b"", b"no PEM"])
    def test_a_file_that_is_none_is_refused_at_once(
        self,
        authority: Authority,
        tmp_path: Path,
        spoil: Callable[[TlsSettings, Path], TlsSettings],
        key: str,
        content: bytes | None,
    ) -> None:
        path = tmp_path / "file.pem"
        if content is not None:
            path.write_bytes(content)
        mine = authority.issue("kafka")
        tls = spoil(TlsSettings(mine.authority, mine.key_and_certificate), path)
        with pytest.raises(ConfigError, match=rf"zookeeper\.ssl\.{key}\.location"):
            make_client(ConnectSettings((("h", 1),), tls=tls))


def log_in_wrongly(settings: ConnectSettings) -> None:
    """Log in with a wrong password, wait until the client has given up, and use it."""
    client = make_client(replace(settings, chroot="", sasl=SaslLogin("kafka", "wrong")))
    states = States(client)
    try:
        client.start_async()
        states.wait_for(KazooState.LOST)
        client.exists("/")
    finally:
        client.stop()
        client.close()


class TestSasl:
    @pytest.fixture
    def own_sasl(self, folder: Path, tmp_path: Path) -> Iterator[ServerHandle]:
        lenient = ServerOptions(users=USERS, settings={"enforce.auth.enabled": "false"})
        server = ServerHandle(tmp_path / "sasl", lenient)
        try:
            server.start()
            yield server
        finally:
            server.kill()

    @pytest.fixture
    def settings(self, sasl_zookeeper: ServerHandle) -> ConnectSettings:
        return replace(settings_for(sasl_zookeeper.address), secure_acl=True, sasl=SaslLogin("kafka", "its secret"))

    def test_what_is_created_is_ours(self, settings: ConnectSettings) -> None:
        ensure_chroot(settings)
        with started(settings) as (client, _):
            acl = [ACL(one.permissions, Id(one.scheme, one.identity)) for one in acl_of("/config/users", True)]
            client.create("/x", b"", acl)
            assert client.get_acls("/x")[0] == [ACL(31, Id("sasl", "kafka"))]
        with started(replace(settings, sasl=SaslLogin("other", "another"))) as (other, _):
            with pytest.raises(NoAuthError):
                other.get("/x")
            with pytest.raises(NoAuthError):
                other.create("/y", b"")

    def test_a_wrong_password_is_told_as_one(self, settings: ConnectSettings) -> None:
        with pytest.raises(AuthFailedError):
            log_in_wrongly(settings)

    def test_a_wrong_password_on_a_server_that_lets_anybody_in(self, own_sasl: ServerHandle) -> None:
        with pytest.raises(AuthFailedError):
            log_in_wrongly(settings_for(own_sasl.address))

    @pytest.mark.parametrize("moment", [Moment.BEFORE_REQUEST, Moment.BEFORE_ANSWER])
    def test_a_connection_that_breaks_during_the_login_is_tried_again(
        self, settings: ConnectSettings, sasl_zookeeper: ServerHandle, moment: Moment
    ) -> None:
        with Proxy(sasl_zookeeper.address) as proxy:
            cut = Break(moment, opcode=SASL)
            proxy.script(cut)
            client = make_client(replace(settings, chroot="", hosts=((HOST, proxy.port),)))
            states = States(client)
            try:
                client.start_async()
                assert cut.happened.wait(WAIT_S)
                states.wait_for(KazooState.SUSPENDED)
                states.wait_for(KazooState.CONNECTED)
                assert client.get("/zookeeper")
            finally:
                client.stop()
                client.close()


def test_a_secured_ensemble_takes_tls_and_a_login(secured_ensemble: Ensemble, authority: Authority) -> None:
    mine = authority.issue("kafka")
    settings = replace(
        settings_for(secured_ensemble.secure_address),
        secure_acl=True,
        tls=TlsSettings(mine.authority, mine.key_and_certificate),
        sasl=SaslLogin("kafka", "its secret"),
    )
    ensure_chroot(settings)
    with started(settings) as (client, _):
        client.create("/x", b"")
        secured_ensemble.leader().kill()
        secured_ensemble.leader()
        assert client.retry(client.exists, "/x") is not None
    secured_ensemble.start()
