"""A standby detects the end of the active process by the connection to its port. It detects nothing else."""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from kframe_zookeeper.role.liveness import CONNECTIONS_MAX, TOKEN_BYTES, LivenessListener, LivenessWatch
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.cluster import decode_controller
from kframe_zookeeper.znodes.instances import ListenerAddress, RegisteredInstance, decode_instance

from kframe.model.events import Event, Reelect
from kframe.plugin.store import Claim, OwnsRole, ReadController
from kframe.runtime.controller import Controller
from kframe.snapshot.instances import Instance
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID, small_cluster
from kframe.testing.waiting import PATIENCE_S, wait_until
from verification.support.descriptors import exhausted_descriptors
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.stores import opened
from verification.zookeeper.victims import Victim

HOST = "127.0.0.1"
TOKEN = "0123456789abcdef" * 2
#: Far longer than any test, so that only the liveness watch can detect the end of a process.
LONG_SESSION_MS = 120_000


@pytest.fixture
def listener() -> Iterator[LivenessListener]:
    listener = LivenessListener(HOST, TOKEN)
    yield listener
    listener.close()


def connect(address: ListenerAddress) -> tuple[socket.socket, bytes]:
    """A connection, and the token received on it."""
    connection = socket.create_connection((address.host, address.port), 10.0)
    token = b""
    while len(token) < TOKEN_BYTES and (chunk := connection.recv(TOKEN_BYTES)):
        token += chunk
    return connection, token


def remote(token: str = TOKEN) -> Instance:
    """An instance on another machine, whose process this machine cannot look up."""
    return replace(Instance.of_this_process(FIRST_ID), token=token, machine="another")


def watch(address: ListenerAddress, instance: Instance | None = None) -> tuple[LivenessWatch, threading.Event]:
    ended = threading.Event()
    return LivenessWatch(address, remote() if instance is None else instance, ended.set), ended


def unused_address() -> ListenerAddress:
    """An address that refuses connections."""
    with socket.create_server((HOST, 0)) as unused:
        return ListenerAddress(HOST, unused.getsockname()[1])


@pytest.mark.extended
def test_listener_without_descriptors_retries_once_a_second(
    listener: LivenessListener, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection that cannot be accepted leaves the port readable, so a loop would use a core."""
    address = (listener.address.host, listener.address.port)
    with socket.create_connection(address) as first, socket.socket() as connection:
        assert first.recv(TOKEN_BYTES) == bytes.fromhex(TOKEN)  # The thread of the listener has its descriptors.
        with exhausted_descriptors():
            connection.connect(address)
            wait_until(lambda: len(caplog.records) > 1)
        assert connection.recv(TOKEN_BYTES) == bytes.fromhex(TOKEN)
    messages = {record.getMessage() for record in caplog.records}
    assert messages == {"standbys cannot connect to this process: [Errno 24] Too many open files"}
    assert len(caplog.records) <= 2 + caplog.records[-1].created - caplog.records[0].created


def test_closed_listener_is_noticed_after_its_token(listener: LivenessListener) -> None:
    liveness_watch, ended = watch(listener.address)
    wait_until(lambda: liveness_watch._connection is not None)
    assert not ended.is_set()
    listener.close()
    assert ended.wait(60.0)


def test_connection_is_reopened_while_port_accepts(listener: LivenessListener) -> None:
    """The listener closes connections that send. Its process lives."""
    liveness_watch, ended = watch(listener.address)
    wait_until(lambda: liveness_watch._connection is not None)
    first = liveness_watch._connection
    assert first is not None
    first.send(b"x")
    wait_until(lambda: liveness_watch._connection not in (None, first))
    assert not ended.is_set()
    liveness_watch.close()
    listener.close()
    liveness_watch._thread.join(60.0)
    assert not ended.is_set()


def test_refused_port_without_token_is_no_proof_of_crash(listener: LivenessListener) -> None:
    """It refuses connections from the start. Or it belongs to another process."""
    watches = [
        watch(listener.address, remote("00" * TOKEN_BYTES)),
        watch(unused_address()),
        watch(unused_address(), Instance.of_this_process(FIRST_ID)),
    ]
    connection, token = connect(listener.address)
    assert token.hex() == TOKEN
    connection.close()
    listener.close()
    for liveness_watch, ended in watches:
        assert not ended.wait(0.2)
        liveness_watch.close()
        liveness_watch._thread.join(60.0)
        assert not ended.is_set()


def test_refused_port_of_a_process_that_has_ended_on_this_machine_is_proof() -> None:
    """The process ended before the first connection."""
    ended_process = replace(Instance.of_this_process(FIRST_ID), birth="0")
    _, ended = watch(unused_address(), ended_process)
    assert ended.wait(PATIENCE_S)


def test_first_attempt_ends_with_the_token() -> None:
    with socket.create_server((HOST, 0)) as server:
        liveness_watch, _ = watch(ListenerAddress(HOST, server.getsockname()[1]))
        connection, _ = server.accept()
        with connection:
            liveness_watch.await_attempt(0.0)
            assert not liveness_watch._attempted.is_set()
            connection.send(bytes.fromhex(TOKEN))
            liveness_watch.await_attempt(PATIENCE_S)
            assert liveness_watch._connection is not None
            liveness_watch.close()


def test_connections_are_bounded(listener: LivenessListener) -> None:
    with ExitStack() as connections:

        def token_of_new_connection() -> bytes:
            connection, token = connect(listener.address)
            connections.enter_context(connection)
            return token

        first, _ = connect(listener.address)
        assert all(token_of_new_connection() for _ in range(CONNECTIONS_MAX - 1))
        assert token_of_new_connection() == b""
        first.close()
        wait_until(lambda: token_of_new_connection() != b"")


def record(fixture: ZooKeeperFixture) -> tuple[RegisteredInstance, int]:
    """The record of instance FIRST_ID, and the session that owns it."""
    data, stat = fixture.operator.get(paths.instance_path(FIRST_ID))
    return decode_instance(str(FIRST_ID), data), stat.owner_session_id


def test_contending_adds_the_listener_to_the_record_of_the_instance(make_fixture: FixtureFactory) -> None:
    fixture, instance = make_fixture(small_cluster()), Instance.of_this_process(FIRST_ID)
    store = fixture.connect()
    store.register_instance(instance)
    store.open(lambda event: None)
    assert record(fixture)[0].listener is None
    store.contend(FIRST_ID)
    connection = store._connection
    assert connection is not None
    assert record(fixture)[0][::2] == (instance, connection.listener)
    store.register_instance(replace(instance, metrics="h:1"))
    wait_until(lambda: record(fixture)[0].instance.metrics == "h:1")
    assert record(fixture)[0].listener == connection.listener
    fixture.expire(store)
    assert record(fixture)[0].listener is None  # The new session has no listener yet.
    store.contend(FIRST_ID)
    assert store._connection is not None
    registered, owner = record(fixture)
    assert (registered.listener, owner) == (store._connection.listener, store._connection.session.session_id)
    assert registered.instance.metrics == "h:1"


def test_listener_that_is_published_after_the_election_is_watched(
    make_fixture: FixtureFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standby reads the record between the election of the active instance and its listener."""
    monkeypatch.setattr(ZooKeeperStore, "_beat", lambda _store: None)
    fixture = make_fixture(small_cluster())
    active = fixture.connect()
    active.register_instance(Instance.of_this_process(FIRST_ID))
    active.open(lambda event: None)
    assert active.perform(Claim(FIRST_ID)) == 1
    standby = opened(fixture)
    standby.contend(SECOND_ID)
    connection = standby._connection
    assert connection is not None
    assert connection._watch is None
    active.contend(FIRST_ID)
    wait_until(lambda: connection._watch is not None and connection._watch._connection is not None)


def contend(controller: Controller) -> None:
    """Runs in the process of a victim."""
    store = controller.store
    assert isinstance(store, ZooKeeperStore)
    store.contend(FIRST_ID)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long to connect."""
    monkeypatch.setattr("kframe_zookeeper.role.connection.ATTEMPT_S", PATIENCE_S)


def activate(active: Victim) -> None:
    """Let the controller win the election and publish its listener."""
    active.start()
    assert active.settle()
    active.ask(contend)


def standby_of(fixture: ZooKeeperFixture, active: Victim) -> tuple[ZooKeeperStore, list[Event]]:
    """A standby that watches the process of the active controller."""
    events: list[Event] = []
    activate(active)
    standby = opened(fixture, events=events)
    assert standby.perform(ReadController()).controller_id == FIRST_ID
    standby.contend(SECOND_ID)
    connection = standby._connection
    assert connection is not None
    assert connection._watch is not None
    assert connection._watch._connection is not None
    events.clear()
    return standby, events


def test_standby_replaces_a_killed_controller(make_fixture: FixtureFactory) -> None:
    """The takeover precedes the session expiry. Brokers never see the role vacant."""
    fixture = make_fixture(small_cluster())
    active = Victim(FIRST_ID, fixture.settings(session_timeout_ms=LONG_SESSION_MS))
    try:
        standby, events = standby_of(fixture, active)
        active.kill()
        wait_until(lambda: Reelect() in events)
        assert decode_controller(fixture.operator.get(paths.CONTROLLER)[0]).brokerid == SECOND_ID
        assert standby.perform(Claim(SECOND_ID)) == 2
        assert standby.may_act()
    finally:
        active.kill()


def test_standby_replaces_a_controller_that_was_killed_before_the_standby_connected(
    make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """The standby knows the active controller, but has not connected to its process yet."""
    caplog.set_level(logging.INFO, "kframe.zookeeper")
    fixture, events = make_fixture(small_cluster()), list[Event]()
    active = Victim(FIRST_ID, fixture.settings(session_timeout_ms=LONG_SESSION_MS))
    try:
        activate(active)
        standby = opened(fixture, events=events)
        assert standby.perform(ReadController()).controller_id == FIRST_ID
        active.kill()
        standby.contend(SECOND_ID)
        wait_until(lambda: Reelect() in events)
        assert standby.perform(Claim(SECOND_ID)) == 2
        assert re.search(r"the process at .* has ended", caplog.text)
    finally:
        active.kill()


def test_frozen_controller_keeps_the_role_until_its_session_ends(make_fixture: FixtureFactory) -> None:
    """The kernel keeps the connections of a stopped process open."""
    fixture = make_fixture(small_cluster())
    active = Victim(FIRST_ID, fixture.settings(session_timeout_ms=4_000))
    try:
        standby, events = standby_of(fixture, active)
        active.pause()
        wait_until(lambda: Reelect() in events)
        assert standby.perform(Claim(SECOND_ID)) == 2
        assert not standby._connection.contender.prepared  # type: ignore[union-attr]
        active.resume()
        wait_until(lambda: not active.settle())
    finally:
        active.kill()


def test_claim_is_refused_after_another_controller_was_elected(make_fixture: FixtureFactory) -> None:
    """The claim names the record that it replaces."""
    fixture = make_fixture(small_cluster())
    active = Victim(FIRST_ID, fixture.settings(session_timeout_ms=LONG_SESSION_MS))
    try:
        standby, _ = standby_of(fixture, active)
        connection = standby._connection
        assert connection is not None
        holder = connection.contender.holder()
        assert holder is not None
        connection.session.client.on_deleted = lambda _path: None
        other = opened(fixture)
        assert other.perform(Claim(SECOND_ID + 1, takeover=True)) == 2
        connection.contender.replace(holder.owner)
        assert not connection.contender.pending()
        assert other.perform(OwnsRole())
        assert fixture.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"
    finally:
        active.kill()
