"""ZooKeeper is killed and restarted: sessions survive, and with them the role and the controller epoch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from kazoo.exceptions import NoNodeError
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.session.settings import settings_of_url
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.topics import decode_state

from kframe.errors import ErrorCode
from kframe.model.events import ElectionType
from kframe.plugin.store import Claim, OwnsRole
from kframe.runtime.controller import Controller
from kframe.testing.clusters import cluster_of, healthy, registration
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID
from kframe.testing.waiting import PATIENCE_S, wait_until
from verification.zookeeper.proxy import Proxy
from verification.zookeeper.servers import Ensemble, ServerHandle
from verification.zookeeper.stores import opened
from verification.zookeeper.victims import build, requests_received, settle

#: Short, so that the fence of a controller closes soon.
TIMEOUT_MS = 2_000
#: The second replica of each partition 0 is the leader after the failure of broker 1.
TOPICS = {f"topic-{number}": [healthy(1, 2, 3), healthy(2, 3, 1)] for number in range(10)}


def fixture_of(address: str, timeout_ms: int = TIMEOUT_MS) -> ZooKeeperFixture:
    settings = settings_of_url(f"zookeeper://{address}?session.timeout.ms={timeout_ms}")
    return ZooKeeperFixture(settings, cluster_of(TOPICS, registered=[1, 2, 3]))


@contextmanager
def running_controller(
    fixture: ZooKeeperFixture, controller_id: int, address: str | None = None
) -> Iterator[Controller]:
    """A controller with its own thread that has handled its events."""
    controller, loop = build(controller_id, fixture.connect(address))
    controller.open()
    loop.start()
    try:
        settle(controller)
        yield controller
    finally:
        controller.stop()


def role(fixture: ZooKeeperFixture) -> tuple[bytes | None, bytes]:
    """The record of the controller, or None, and the controller epoch."""
    try:
        record = fixture.operator.get(paths.CONTROLLER)[0]
    except NoNodeError:
        record = None
    return record, fixture.operator.get(paths.CONTROLLER_EPOCH)[0]


def leads(fixture: ZooKeeperFixture, leader: int) -> bool:
    """Whether ``leader`` leads each partition 0."""
    return all(b'"leader":%d,' % leader in fixture.operator.get(paths.state_path(name, 0))[0] for name in TOPICS)


def in_sync(fixture: ZooKeeperFixture, broker: int) -> bool:
    """Whether ``broker`` is in the ISR of each partition 0."""
    states = [paths.state_path(name, 0) for name in TOPICS]
    return all(broker in decode_state(fixture.operator.get(path)[0], path).isr for path in states)


def uncertain(store: ZooKeeperStore) -> bool:
    """Whether the session may have ended by the controller's own clock."""
    assert store._connection is not None
    return not store._connection.session.fence.is_open()


def store_of(controller: Controller) -> ZooKeeperStore:
    store = controller.store
    assert isinstance(store, ZooKeeperStore)
    return store


@pytest.mark.parametrize("long", [False, True], ids=["within the session", "beyond the session by its own clock"])
def test_role_survives_a_killed_server(own_zookeeper: ServerHandle, long: bool) -> None:
    """A restarted server gives each session its full timeout, so Kafka's controller keeps the role, too.

    ``test_failovers.py`` in the Kafka plugin compares both.
    """
    with (
        closing(fixture_of(own_zookeeper.address)) as fixture,
        running_controller(fixture, FIRST_ID) as controller,
        running_controller(fixture, SECOND_ID) as standby,
    ):
        before, connection = role(fixture), store_of(controller)._connection
        own_zookeeper.kill()
        if long:
            wait_until(lambda: uncertain(store_of(controller)))
        own_zookeeper.start()
        # The watches are armed again, so the next change is notified.
        wait_until(lambda: fixture.operator.connected)
        fixture.unregister_brokers([1])
        wait_until(lambda: leads(fixture, 2))
        assert role(fixture) == before
        assert store_of(controller)._connection is connection
        assert (controller.status().active, standby.status().active) == (True, False)
        assert settle(controller)


def test_requests_during_an_outage_are_done_after_it(own_zookeeper: ServerHandle) -> None:
    """The write waits. Brokers receive nothing until the session is certain to live."""
    with closing(fixture_of(own_zookeeper.address)) as fixture, running_controller(fixture, FIRST_ID) as controller:
        fixture.unregister_brokers([1])
        wait_until(lambda: leads(fixture, 2))
        fixture.register_brokers([registration(1)])
        wait_until(lambda: in_sync(fixture, 1))
        settle(controller)
        before, requests = role(fixture), requests_received(controller)
        own_zookeeper.kill()
        elected = controller.elect_leaders(ElectionType.PREFERRED)
        wait_until(lambda: uncertain(store_of(controller)))
        assert (elected.done(), requests_received(controller)) == (False, requests)
        own_zookeeper.start()
        assert set(elected.result(PATIENCE_S).by_partition().values()) == {ErrorCode.NONE}
        assert requests_received(controller) > requests
        wait_until(lambda: fixture.operator.connected)
        assert leads(fixture, 1)
        assert role(fixture) == before


def test_controller_can_be_stopped_during_an_outage(own_zookeeper: ServerHandle) -> None:
    """It does not wait for a server that may never return. Its record is deleted when its session expires."""
    fixture = fixture_of(own_zookeeper.address)
    try:
        with running_controller(fixture, FIRST_ID) as controller:
            own_zookeeper.kill()
            waiting = controller.elect_leaders(ElectionType.PREFERRED)
            controller.stop()
            assert waiting.result(PATIENCE_S).error == ErrorCode.NOT_CONTROLLER
    finally:
        own_zookeeper.start()
        fixture.close()


def test_role_survives_a_killed_ensemble_member(ensemble: Ensemble) -> None:
    """The controller continues its session on another member."""
    ensemble.start()
    fixture = fixture_of(ensemble.address, timeout_ms=10_000)
    try:
        with running_controller(fixture, FIRST_ID) as controller, running_controller(fixture, SECOND_ID):
            before, connection = role(fixture), store_of(controller)._connection
            assert connection is not None
            client = connection.session.client
            port = client._connection._socket.getpeername()[1]
            (member,) = (server for server in ensemble.servers if server.port == port)
            member.kill()
            wait_until(lambda: client.connected and client._connection._socket.getpeername()[1] != port)
            wait_until(lambda: fixture.operator.connected)
            fixture.unregister_brokers([1])
            wait_until(lambda: leads(fixture, 2))
            assert (role(fixture), store_of(controller)._connection) == (before, connection)
    finally:
        ensemble.start()
        fixture.close()


def test_controller_cut_off_beyond_its_session_resigns_once(zookeeper: ServerHandle, proxy: Proxy) -> None:
    """The server expires the session and another controller is elected once. The first changes nothing after its
    return."""
    with (
        closing(fixture_of(zookeeper.address)) as fixture,
        running_controller(fixture, FIRST_ID, proxy.address) as first,
        running_controller(fixture, SECOND_ID) as second,
    ):
        assert first.status().active
        requests = requests_received(first)
        proxy.refuse()
        proxy.cut()
        wait_until(lambda: second.status().active)
        assert role(fixture)[1] == b"2"
        fixture.unregister_brokers([1])
        wait_until(lambda: leads(fixture, 2))
        assert first.status().active  # The controller still considers itself active, and waits for the server.
        proxy.refuse(False)
        wait_until(lambda: not first.status().active)
        wait_until(lambda: first.status().active_controller == SECOND_ID)
        assert (requests_received(first), role(fixture)[1]) == (requests, b"2")
        assert second.status().active


def test_role_lost_without_a_connection_is_checked_before_acting(zookeeper: ServerHandle, proxy: Proxy) -> None:
    """The session lives, so only ``/controller`` shows the loss. Nothing is done before it was read."""
    worker_may_continue = threading.Event()

    def block_worker() -> None:
        worker_may_continue.wait(PATIENCE_S)

    with closing(fixture_of(zookeeper.address, timeout_ms=20_000)) as fixture:
        store = opened(fixture, proxy)
        assert store.perform(Claim(FIRST_ID)) == 1
        assert store.may_act()
        connection, worker = store._connection, store._worker
        assert connection is not None
        assert worker is not None
        worker.put(block_worker)
        try:
            proxy.refuse()
            proxy.cut()
            wait_until(lambda: not connection.session.client.connected)
            fixture.drop_controller()
            proxy.refuse(False)
            wait_until(lambda: connection.session.client.connected)
            assert connection.session.fence.is_open()
            assert not store.may_act()
        finally:
            worker_may_continue.set()
        wait_until(lambda: connection.claim is None)
        assert not store.perform(OwnsRole())
