"""The client over TLS and with a login, on real servers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.exceptions import AuthFailedError, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.security import ACL, Id
from kframe_zookeeper.session.client import ensure_chroot, make_client
from kframe_zookeeper.session.settings import ConnectSettings, SaslLogin, TlsSettings
from kframe_zookeeper.znodes.acls import CREATOR_ONLY

from kframe.errors import ConfigError
from kframe.testing.waiting import PATIENCE_S
from verification.zookeeper.certificates import Authority
from verification.zookeeper.proxy import HOST, Break, BreakPoint, Proxy
from verification.zookeeper.servers import Ensemble, ServerHandle, ServerOptions, running
from verification.zookeeper.sessions import States, settings_for, started

SASL = 102
USERS = {"kafka": "its secret"}


def refused(settings: ConnectSettings, why: str = "") -> None:
    """Check that a client gets no connection, and reports the reason as soon as it is known."""
    for seconds in (0.6, 5.0, PATIENCE_S):
        client = make_client(settings)
        with pytest.raises(KazooTimeoutError) as caught:
            client.start(seconds)
        if why in str(caught.value):
            return
    pytest.fail(str(caught.value))


def refused_at_once(settings: ConnectSettings, *why: str) -> None:
    """Check that the client fails without retries, with an error that names host, found and expected."""
    with pytest.raises(KazooTimeoutError) as caught:
        make_client(settings).start(math.inf)
    host, port = settings.hosts[0]
    assert str(caught.value).startswith(f"{host}:{port}: ")
    assert all(reason in str(caught.value) for reason in why), caught.value


class TestTls:
    @pytest.fixture
    def settings(self, tls_zookeeper: ServerHandle, authority: Authority) -> ConnectSettings:
        mine = authority.issue("kafka")
        return replace(
            settings_for(tls_zookeeper.secure_address),
            chroot="",
            tls=TlsSettings(mine.authority, mine.key_and_certificate),
        )

    def test_secured_connection_is_established(self, settings: ConnectSettings) -> None:
        with started(settings) as client:
            client.create("/large", b"x" * 500_000)
            assert client.get("/large")[0] == b"x" * 500_000
            client.delete("/large")

    def test_many_requests_at_a_time(self, settings: ConnectSettings) -> None:
        with started(settings) as client:
            results = [client.exists_async("/zookeeper") for _ in range(500)]
            assert all(result.get(timeout=PATIENCE_S) for result in results)

    def test_certificate_of_an_unknown_authority_is_refused(self, settings: ConnectSettings, tmp_path: Path) -> None:
        other_authority = Authority(tmp_path, "stranger")
        assert settings.tls is not None
        tls = replace(settings.tls, authorities=other_authority.path)
        refused_at_once(
            replace(settings, tls=tls), "a certificate that is refused", f"truststore.location={other_authority.path}"
        )

    def test_certificate_for_another_host_is_refused(
        self, folder: Path, settings: ConnectSettings, authority: Authority
    ) -> None:
        identity = authority.issue("elsewhere.example")
        with running(ServerHandle(folder / "elsewhere", ServerOptions(identity=identity))) as server:
            elsewhere = replace(settings, hosts=((HOST, server.secure_port),))
            refused_at_once(elsewhere, "certificate is not valid for '127.0.0.1'")
            with started(replace(settings, hosts=elsewhere.hosts + settings.hosts)):
                pass  # One of the two servers is enough.
            down = make_client(replace(settings, hosts=(*elsewhere.hosts, (HOST, 1))))
            with pytest.raises(KazooTimeoutError, match=r"^Connection time-out"):
                down.start(0.6)  # A server that is down may return, so the client retries.

    def test_client_without_a_certificate_is_refused(self, settings: ConnectSettings) -> None:
        assert settings.tls is not None
        tls = replace(settings.tls, key_and_certificate=None)
        refused_at_once(replace(settings, tls=tls), "found none (zookeeper.ssl.keystore.location is not set)")

    def test_client_certificate_of_an_unknown_authority_is_refused(
        self, settings: ConnectSettings, tmp_path: Path
    ) -> None:
        other_authority = Authority(tmp_path, "stranger").issue("kafka").key_and_certificate
        assert settings.tls is not None
        tls = replace(settings.tls, key_and_certificate=other_authority)
        refused_at_once(replace(settings, tls=tls), f"zookeeper.ssl.keystore.location={other_authority}")

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
    def test_missing_tls_file_is_refused_at_once(
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
    """Log in with a wrong password, wait until the client has given up, then use it."""
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
        with running(ServerHandle(tmp_path / "sasl", lenient)) as server:
            yield server

    @pytest.fixture
    def settings(self, sasl_zookeeper: ServerHandle) -> ConnectSettings:
        return replace(settings_for(sasl_zookeeper.address), secure_acl=True, sasl=SaslLogin("kafka", "its secret"))

    def test_created_znodes_belong_to_the_login(self, settings: ConnectSettings) -> None:
        ensure_chroot(settings)
        with started(settings) as client:
            client.create("/x", b"", list(CREATOR_ONLY))
            assert client.get_acls("/x")[0] == [ACL(31, Id("sasl", "kafka"))]
        with started(replace(settings, sasl=SaslLogin("other", "another"))) as other:
            with pytest.raises(NoAuthError):
                other.get("/x")
            with pytest.raises(NoAuthError):
                other.create("/y", b"")

    def test_wrong_password_is_reported(self, settings: ConnectSettings) -> None:
        with pytest.raises(AuthFailedError):
            log_in_wrongly(settings)

    def test_wrong_password_on_a_server_without_required_login(self, own_sasl: ServerHandle) -> None:
        with pytest.raises(AuthFailedError):
            log_in_wrongly(settings_for(own_sasl.address))

    @pytest.mark.parametrize("break_point", [BreakPoint.BEFORE_REQUEST, BreakPoint.BEFORE_RESPONSE])
    def test_connection_that_breaks_during_login_is_retried(
        self, settings: ConnectSettings, sasl_zookeeper: ServerHandle, break_point: BreakPoint
    ) -> None:
        with Proxy(sasl_zookeeper.address) as proxy:
            cut = Break(break_point, opcode=SASL)
            proxy.script(cut)
            client = make_client(replace(settings, chroot="", hosts=((HOST, proxy.port),)))
            states = States(client)
            try:
                client.start_async()
                assert cut.happened.wait(PATIENCE_S)
                states.wait_for(KazooState.SUSPENDED)
                states.wait_for(KazooState.CONNECTED)
                assert client.get("/zookeeper")
            finally:
                client.stop()
                client.close()


def test_secured_ensemble_accepts_tls_and_login(secured_ensemble: Ensemble, authority: Authority) -> None:
    mine = authority.issue("kafka")
    settings = replace(
        settings_for(secured_ensemble.secure_address),
        secure_acl=True,
        tls=TlsSettings(mine.authority, mine.key_and_certificate),
        sasl=SaslLogin("kafka", "its secret"),
    )
    ensure_chroot(settings)
    with started(settings) as client:
        client.create("/x", b"")
        secured_ensemble.leader().kill()
        secured_ensemble.leader()
        assert client.retry(client.exists, "/x") is not None
    secured_ensemble.start()
