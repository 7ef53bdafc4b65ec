"""Servers start, stop, die, freeze and restart on the same data."""

from __future__ import annotations

import pytest
from kazoo.exceptions import ConnectionLoss, KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kframe_zookeeper.sandbox.sessions import session

from verification.zookeeper.servers import Ensemble, ServerHandle, free_ports


def test_ports_are_different() -> None:
    assert len(set(free_ports(20))) == 20


def test_data_survives_stop_and_kill(own_zookeeper: ServerHandle) -> None:
    server = own_zookeeper
    assert server.mode() == "standalone"
    with session(server.address) as kazoo:
        kazoo.create("/a", b"1")
    server.stop()
    server.start()
    with session(server.address) as kazoo:
        kazoo.create("/b", b"2")
        server.kill()
        assert server.mode() is None
        assert server.pid is None
        server.start()
    with session(server.address) as kazoo:
        assert sorted(kazoo.get_children("/")) == ["a", "b", "zookeeper"]


def test_frozen_server_responds_later(own_zookeeper: ServerHandle) -> None:
    with session(own_zookeeper.address) as kazoo:
        own_zookeeper.pause()
        result = kazoo.exists_async("/")
        with pytest.raises(KazooTimeoutError):
            result.get(timeout=0.2)
        own_zookeeper.resume()
        assert result.get(timeout=60) is not None


def test_frozen_server_can_be_stopped(own_zookeeper: ServerHandle) -> None:
    own_zookeeper.pause()
    own_zookeeper.stop()
    assert own_zookeeper.pid is None


def test_ensemble_survives_its_leader(ensemble: Ensemble) -> None:
    leader = ensemble.leader()
    assert len(ensemble.followers()) == 2
    with session(ensemble.address, connection_retry={"max_tries": -1, "max_delay": 0.2}) as kazoo:
        kazoo.create("/before", b"")
        leader.kill()
        assert ensemble.leader() is not leader
        assert kazoo.retry(kazoo.exists, "/before") is not None
    ensemble.start()
    assert len(ensemble.followers()) == 2


def test_client_without_login_is_refused(sasl_zookeeper: ServerHandle) -> None:
    with session(sasl_zookeeper.address) as kazoo, pytest.raises((KazooException, ConnectionLoss)):
        kazoo.get_children("/")


def test_server_start_failure_has_a_reason(own_zookeeper: ServerHandle) -> None:
    own_zookeeper.stop()
    (own_zookeeper.folder / "zoo.cfg").write_text("clientPort=none\n")
    with pytest.raises(RuntimeError, match="Error processing"):
        own_zookeeper.start()
