"""A store whose login is refused, at its start and later."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.exceptions import AuthFailedError
from kazoo.handlers.threading import KazooTimeoutError
from kframe_zookeeper.session.client import make_client
from kframe_zookeeper.session.settings import ConnectSettings, SaslLogin, settings_of_url
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths

from kframe.errors import StoreError
from kframe.model.events import Event, Reelect, SessionExpired
from kframe.plugin.store import Claim, Load, ReadController
from kframe.testing.store_fixture import FIRST_ID
from kframe.testing.waiting import wait_until
from verification.zookeeper.servers import ServerHandle, ServerOptions, running


def settings_for(server: ServerHandle, password: str) -> ConnectSettings:
    login = SaslLogin("kafka", password)
    url = f"zookeeper://{server.address}/login?session.timeout.ms=6000"
    return replace(settings_of_url(url), secure_acl=True, sasl=login)


@pytest.fixture
def own_sasl(folder: Path, tmp_path: Path) -> Iterator[ServerHandle]:
    """A server for one test, which may change passwords."""
    with running(ServerHandle(tmp_path / "sasl", ServerOptions(users={"kafka": "its secret"}))) as server:
        yield server


def change_password(server: ServerHandle, password: str) -> None:
    """Restart the server with another password for the user kafka."""
    server.stop()
    server.options = replace(server.options, users={"kafka": password})
    server._write_files()
    server.start()


def test_wrong_password_is_logged_and_not_retried(sasl_zookeeper: ServerHandle) -> None:
    store = ZooKeeperStore(settings_for(sasl_zookeeper, "wrong"))
    with pytest.raises(StoreError) as caught:
        store.open(list[Event]().append)
    assert "login" in str(caught.value)
    assert "wrong" not in str(caught.value)


def test_login_refused_before_first_poll_is_reported(sasl_zookeeper: ServerHandle) -> None:
    """kazoo connects before it logs in: a slow thread may miss that the client was connected."""
    client = make_client(settings_for(sasl_zookeeper, "wrong"))
    start = client.start_async

    def started_long_ago() -> threading.Event:
        live: threading.Event = start()
        wait_until(lambda: client._refusal is AuthFailedError and not client.connected)
        return live

    client.start_async = started_long_ago
    with pytest.raises(KazooTimeoutError, match="refused the login"):
        client.start(60)


def test_login_refused_on_reconnect_ends_the_session_and_is_retried(own_sasl: ServerHandle) -> None:
    """This happens when an operator changes the passwords of server and client one after the other."""
    events = list[Event]()
    store = ZooKeeperStore(replace(settings_for(own_sasl, "its secret"), create_chroot=True))
    store.open(events.append)
    try:
        assert store.perform(Claim(FIRST_ID)) == 1
        store.perform(Load())
        change_password(own_sasl, "another")
        wait_until(lambda: SessionExpired() in events)
        assert Reelect() not in events
        change_password(own_sasl, "its secret")
        wait_until(
            lambda: events.count(Reelect()) == 2
        )  # The second event follows when the server has ended the old session.
        assert store.perform(Claim(FIRST_ID)) == 2
        assert store.perform(ReadController()).controller_id == FIRST_ID
        assert store._connection is not None
        assert store._connection.node(paths.CONTROLLER_EPOCH) is not None
    finally:
        store.close()
