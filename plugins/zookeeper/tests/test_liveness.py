"""A standby notices the end of the active process, and nothing else, by the connection to its port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import msgspec
import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.liveness import (
    CONNECTIONS_MOST,
    TOKEN_BYTES,
    Liveness,
    LivenessListener,
    LivenessWatch,
    decode_liveness,
    encode_liveness,
)
from kframe_zookeeper.store import ZooKeeperStore
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import opened, until
from kframe_zookeeper.testing.victims import Victim
from kframe_zookeeper.znodes import decode_controller

from kframe.api.controller import Controller
from kframe.errors import ZnodeError
from kframe.model.events import Elect, Event
from kframe.testing.store_world import ONE, TWO, small_cluster

HOST = "127.0.0.1"


@pytest.fixture
def listener() -> Iterator[LivenessListener]:
    made = LivenessListener(HOST)
    yield made
    made.close()


def connected(record: Liveness) -> tuple[socket.socket, bytes]:
    """A connection, and the token that it begins with."""
    connection = socket.create_connection((record.host, record.port), 10.0)
    token = b""
    while len(token) < TOKEN_BYTES and (chunk := connection.recv(TOKEN_BYTES)):
        token += chunk
    return connection, token


def watching(record: Liveness) -> tuple[LivenessWatch, threading.Event]:
    ended = threading.Event()
    return LivenessWatch(record, ended.set), ended


def test_the_end_of_a_listener_is_noticed_once_it_has_sent_its_token(listener: LivenessListener) -> None:
    watch, ended = watching(listener.record)
    until(lambda: watch._connection is not None)
    assert not ended.is_set()
    listener.close()
    assert ended.wait(60.0)


def test_a_connection_that_ends_while_the_port_accepts_is_made_again(listener: LivenessListener) -> None:
    """The listener closes what sends; that is no end of its process."""
    watch, ended = watching(listener.record)
    until(lambda: watch._connection is not None)
    first = watch._connection
    assert first is not None
    first.send(b"x")
    until(lambda: watch._connection not in (None, first))
    assert not ended.is_set()
    watch.close()
    listener.close()
    watch._thread.join(60.0)
    assert not ended.is_set()


def test_a_port_that_has_never_sent_the_token_proves_nothing(listener: LivenessListener) -> None:
    """It refuses connections from the beginning, or belongs to another process."""
    record = msgspec.structs.replace(listener.record, token="00" * TOKEN_BYTES)
    with socket.create_server((HOST, 0)) as unused:
        free = unused.getsockname()[1]
    watches = [watching(record), watching(msgspec.structs.replace(record, port=free))]
    connection, token = connected(listener.record)
    assert token.hex() == listener.record.token
    connection.close()
    listener.close()
    for watch, ended in watches:
        assert not ended.wait(0.2)
        watch.close()
        watch._thread.join(60.0)
        assert not ended.is_set()


def test_connections_are_bounded(listener: LivenessListener) -> None:
    with ExitStack() as closing:

        def token_of_another() -> bytes:
            connection, token = connected(listener.record)
            closing.enter_context(connection)
            return token

        first, _ = connected(listener.record)
        assert all(token_of_another() for _ in range(CONNECTIONS_MOST - 1))
        assert token_of_another() == b""
        first.close()
        until(lambda: token_of_another() != b"")


@pytest.mark.parametrize(
    "raw",
    [
        None, b"", b"{}", b'{"version":1,"host":"","port":1,"token":"%s"}' % (b"0" * 32),
        b'{"version":1,"host":"h","port":0,"token":"%s"}' % (b"0" * 32),
        b'{"version":1,"host":"h","port":1,"token":"z"}',
    ],
)  # fmt: skip
def test_a_record_that_is_none_is_refused(raw: bytes | None) -> None:
    with pytest.raises(ZnodeError):
        decode_liveness(raw, "/kframe/liveness/1")


def test_a_record_is_read_as_it_was_written(listener: LivenessListener) -> None:
    assert decode_liveness(encode_liveness(listener.record), "/x") == listener.record


def contend(controller: Controller) -> None:
    """In the process of a victim."""
    store = controller.store
    assert isinstance(store, ZooKeeperStore)
    store.contend(ONE)


def in_the_place_of(world: ZooKeeperWorld, active: Victim) -> tuple[ZooKeeperStore, list[Event]]:
    """A standby that watches the process of the active controller."""
    heard: list[Event] = []
    active.stand()
    assert active.settle()
    active.ask(contend)
    standby = opened(world, heard=heard)
    assert standby.controller() == ONE
    standby.contend(TWO)
    connection = standby._connection
    assert connection is not None
    until(lambda: connection._watch is not None and connection._watch._connection is not None)
    heard.clear()
    return standby, heard


def test_a_standby_replaces_a_controller_whose_process_is_killed(worlds: Callable[..., ZooKeeperWorld]) -> None:
    """Long before its session ends, and with no moment at which brokers could see the role free."""
    world = worlds(small_cluster())
    active = Victim(ONE, world.settings(session_timeout_ms=120_000))
    try:
        standby, heard = in_the_place_of(world, active)
        active.kill()
        until(lambda: Elect() in heard)
        assert decode_controller(world.operator.get(paths.CONTROLLER)[0]).brokerid == TWO
        assert standby.claim(TWO) == 2
        assert standby.may_act()
    finally:
        active.close()


def test_a_controller_that_is_frozen_is_not_replaced(worlds: Callable[..., ZooKeeperWorld]) -> None:
    """The kernel keeps its connections; only the end of its session tells."""
    world = worlds(small_cluster())
    active = Victim(ONE, world.settings(session_timeout_ms=4_000))
    try:
        standby, heard = in_the_place_of(world, active)
        active.freeze()
        until(lambda: Elect() in heard)
        assert standby.claim(TWO) == 2
        # The record was deleted by the server: nothing else tells a watch that there is none.
        assert not standby._connection.contender.prepared  # type: ignore[union-attr]
        active.wake()
        until(lambda: not active.settle())
    finally:
        active.close()


def test_a_successor_is_not_taken_for_the_process_that_ended(worlds: Callable[..., ZooKeeperWorld]) -> None:
    """The role has passed on by the time that the end is noticed: the claim names the record that it replaces."""
    world = worlds(small_cluster())
    active = Victim(ONE, world.settings(session_timeout_ms=120_000))
    try:
        standby, _ = in_the_place_of(world, active)
        connection = standby._connection
        assert connection is not None
        owner = connection.contender.holder()
        assert owner is not None
        connection.session.client.on_deleted = lambda _path: None
        other = opened(world)
        assert other.take_over(TWO + 1) == 2
        connection.contender.replace(owner)
        assert not connection.contender.pending()
        assert other.owns_role()
        assert world.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"
    finally:
        active.close()
