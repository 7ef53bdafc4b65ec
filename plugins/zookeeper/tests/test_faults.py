"""What the store makes of broken connections, ended sessions, rivals and unreadable nodes, on a real ZooKeeper."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.settings import settings_of_url
from kframe_zookeeper.store import ZooKeeperStore
from kframe_zookeeper.testing.proxy import MULTI, MULTI_READ, Break, Direction, Link, Moment, Proxy
from kframe_zookeeper.testing.servers import ServerHandle
from kframe_zookeeper.testing.store_world import ZooKeeperWorld

from kframe.core.stored import apply
from kframe.errors import ControllerFenced, StoreError
from kframe.model.changes import WriteCode
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32
from kframe.model.events import (
    BrokerModified,
    BrokersChanged,
    DeletionsMarked,
    Elect,
    Event,
    SessionExpired,
    TopicModified,
    TopicsChanged,
)
from kframe.model.ids import NO_STATE
from kframe.testing.clusters import PartitionSpec, StateSpec, change_of, cluster_of, described, healthy, registration
from kframe.testing.store_world import ONE, TWO, codes, small_cluster

TOPICS, PARTITIONS = 12, 100
PATIENCE_S = 20.0
MOMENTS = pytest.mark.parametrize("moment", list(Moment), ids=lambda moment: moment.name.lower())


def big_cluster() -> ClusterState:
    """1,200 partitions, half of them with a state at version 0: three batches of writes."""
    specs = [healthy(1, 2) if number % 2 else PartitionSpec((1, 2)) for number in range(PARTITIONS)]
    return cluster_of({f"topic-{number:02}": specs for number in range(TOPICS)}, registered=[1, 2, 3])


def every_row(cluster: ClusterState, leader: int, leader_epoch: int, *, stored: int = 0) -> Any:
    """A change of every partition; ``stored`` is the version of those that had a state to begin with."""
    names = [cluster.name(row) for row in range(len(cluster))]
    states = {
        name: StateSpec(
            leader, (leader, 3), leader_epoch, NO_STATE if int(name.rpartition("-")[2]) % 2 == 0 else stored
        )
        for name in names
    }
    return change_of(cluster, states, 1)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


@pytest.fixture
def worlds(zookeeper: ServerHandle) -> Iterator[Callable[..., ZooKeeperWorld]]:
    made: list[ZooKeeperWorld] = []

    def make(cluster: ClusterState, **others: Any) -> ZooKeeperWorld:
        settings = replace(settings_of_url(f"zookeeper://{zookeeper.address}"), **others)
        made.append(ZooKeeperWorld(settings, cluster))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def proxy(zookeeper: ServerHandle) -> Iterator[Proxy]:
    with Proxy(zookeeper.address) as made:
        yield made


def opened(world: ZooKeeperWorld, proxy: Proxy | None = None, heard: list[Event] | None = None) -> ZooKeeperStore:
    """An open store, maybe behind a proxy."""
    store = world.connect(None if proxy is None else proxy.address)
    store.open((list[Event]() if heard is None else heard).append)
    return store


def controller(
    world: ZooKeeperWorld, proxy: Proxy, heard: list[Event] | None = None
) -> tuple[ZooKeeperStore, ClusterState]:
    """A controller behind a proxy, and what it has loaded."""
    store = opened(world, proxy, heard)
    assert store.claim(ONE) == 1
    store.prepare()
    return store, store.load()


# -- lost answers


@MOMENTS
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_every_row_is_written_once_whatever_breaks(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, moment: Moment, nth: int
) -> None:
    world = worlds(big_cluster())
    store, cluster = controller(world, proxy)
    change = every_row(cluster, 2, 5)
    broken = Break(moment, nth, MULTI)
    proxy.script(broken)
    result = store.write_states(cluster, change)
    assert broken.happened.wait(PATIENCE_S)
    assert set(codes(result)) == {"OK"}
    assert result.partition_epoch.tolist() == (change.expected + 1).tolist()
    apply(cluster, change, result.partition_epoch)
    assert described(store.load()) == described(cluster)


@MOMENTS
def test_what_is_stale_is_told_from_what_was_lost(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, moment: Moment
) -> None:
    world = worlds(big_cluster())
    store, cluster = controller(world, proxy)
    for partition in (1, 99):
        world.write_state("topic-00", partition, isr=[1])
        world.write_state("topic-07", partition, isr=[1])
    proxy.script(Break(moment, 2, MULTI), Break(moment, 4, MULTI))
    result = store.write_states(cluster, every_row(cluster, 2, 5))
    stale = [cluster.name(row) for row in np.flatnonzero(result.codes == WriteCode.STALE).tolist()]
    assert stale == ["topic-00-1", "topic-00-99", "topic-07-1", "topic-07-99"]
    assert (result.codes != WriteCode.OK).sum() == 4
    loaded = described(store.load())
    assert {one["isr"][0] for name, one in loaded.items() if name in stale} == {1}
    assert {tuple(one["isr"]) for name, one in loaded.items() if name not in stale} == {(2, 3)}


def test_what_another_wrote_over_ours_before_we_looked_is_stale(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    world = worlds(small_cluster())
    store, cluster = controller(world, proxy)

    def overtake(link: Link) -> None:
        world.write_state("orders", 0, isr=[3])
        link.cut()

    proxy.script(Break(Moment.BEFORE_ANSWER, 1, MULTI, overtake))
    result = store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2, 1), 5, 7)}, 1))
    assert codes(result) == ["STALE"]
    assert described(store.load())["orders-0"]["isr"] == [3]


@MOMENTS
def test_assignments_and_topics_survive_lost_answers(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, moment: Moment
) -> None:
    world = worlds(small_cluster())
    store, _ = controller(world, proxy)
    for _ in range(2):
        table = store.read_topics(("orders", "empty.topic"))
        proxy.script(Break(moment, 1, MULTI))
        assert store.write_assignments(table) == (WriteCode.OK, WriteCode.OK)
    proxy.script(Break(moment, 1, MULTI))
    ids = store.give_topic_ids(("orders",))
    assert store.read_topics(("orders",)).topic_ids == ids
    proxy.script(Break(moment, 1, MULTI))
    store.delete_topics(("orders",))
    assert store.read_topic_names() == {"empty.topic", "leaving_topic"}
    assert world.operator.exists(paths.config_path("topics", "orders")) is None


@MOMENTS
@pytest.mark.parametrize("takeover", [False, True])
def test_a_claim_whose_answer_is_lost_is_known_for_ours(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, moment: Moment, takeover: bool
) -> None:
    world = worlds(small_cluster())
    first = opened(world)
    assert first.claim(ONE) == 1
    if not takeover:
        first.release()
    store = opened(world, proxy)
    proxy.script(Break(moment, 1, MULTI))
    assert (store.take_over if takeover else store.claim)(TWO) == 2
    assert store.owns_role()
    store.prepare()
    assert world.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"


# -- rivals


def test_a_takeover_is_told_to_the_one_who_loses_and_fences_it(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world, heard = worlds(small_cluster()), list[Event]()
    first, second = opened(world, heard=heard), opened(world)
    assert first.claim(ONE) == 1
    cluster = first.load()
    world.settle()
    heard.clear()
    assert second.take_over(TWO) == 2
    world.settle()
    assert heard == [Elect()]
    assert (first.owns_role(), first.controller(), second.owns_role()) == (False, TWO, True)
    with pytest.raises(ControllerFenced):
        first.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))


def test_nobodys_controller_record_is_reported_and_left_alone(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    world.operator.create(paths.CONTROLLER, b"")
    store = opened(world)
    assert (store.claim(ONE), store.controller(), store.owns_role()) == (None, -1, False)
    assert list(store.quarantined()) == [paths.CONTROLLER]
    assert world.operator.get(paths.CONTROLLER)[0] == b""
    world.operator.delete(paths.CONTROLLER)
    assert (store.claim(ONE), store.controller(), store.quarantined()) == (1, ONE, {})


def test_our_broker_id_in_the_record_of_an_older_session_is_not_ours(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    older, newer = opened(world), opened(world)
    assert older.claim(ONE) == 1
    assert newer.claim(ONE) is None
    assert (newer.controller(), newer.owns_role()) == (ONE, False)
    with pytest.raises(ControllerFenced):
        newer.prepare()


@pytest.mark.parametrize("epoch", [b"", b"seven", b"-3", b"2147483647"])
def test_a_controller_epoch_that_nobody_can_follow_stops_the_claim(
    worlds: Callable[..., ZooKeeperWorld], epoch: bytes
) -> None:
    world = worlds(small_cluster())
    world.operator.create(paths.CONTROLLER_EPOCH, epoch)
    store = opened(world)
    with pytest.raises(StoreError):
        store.claim(ONE)
    assert world.operator.get(paths.CONTROLLER_EPOCH)[0] == epoch
    assert world.operator.exists(paths.CONTROLLER) is None


# -- watches


def test_no_change_is_missed_while_the_connection_is_gone(worlds: Callable[..., ZooKeeperWorld], proxy: Proxy) -> None:
    world, heard = worlds(small_cluster()), list[Event]()
    store, _ = controller(world, proxy, heard)
    store.read_deletions()
    session = store._connection
    heard.clear()
    proxy.refuse()
    proxy.cut()
    world.modify_broker(registration(3, rack="moved"))
    world.operator.set(paths.topic_path("orders"), world.operator.get(paths.topic_path("orders"))[0])
    world.mark_for_deletion(["orders"])
    world.operator.create(paths.PREFERRED_ELECTION, b"")
    proxy.refuse(False)
    until(lambda: len(heard) >= 3)
    world.settle()
    assert set(heard) == {BrokerModified(3), TopicModified("orders"), DeletionsMarked()}, "only what has changed"
    heard.clear()
    world.unregister_brokers([1])
    world.operator.create(paths.topic_path("new"), b"")
    world.operator.set(paths.topic_path("empty.topic"), world.operator.get(paths.topic_path("empty.topic"))[0])
    world.settle()
    assert set(heard) == {BrokersChanged(), TopicsChanged(), TopicModified("empty.topic")}, "the others still watch"
    assert store._connection is session


def test_the_end_of_the_controller_is_told_though_it_came_while_we_were_away(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    world, heard = worlds(small_cluster()), list[Event]()
    first, second = opened(world), opened(world, proxy, heard)
    first.claim(ONE)
    assert second.claim(TWO) is None
    world.settle()
    heard.clear()
    for _ in range(2):
        proxy.cut()
    proxy.refuse()
    proxy.cut()
    first.close()
    proxy.refuse(False)
    until(lambda: heard == [Elect()])
    assert second.claim(TWO) == 2


# -- sessions


@MOMENTS
def test_a_session_that_ends_in_the_middle_of_a_write_writes_nothing_more(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, moment: Moment
) -> None:
    world, heard = worlds(big_cluster()), list[Event]()
    store, cluster = controller(world, proxy, heard)
    before = store._connection
    assert before is not None
    credentials = before.session.client.client_id
    world.settle()
    heard.clear()

    def end(link: Link) -> None:
        world.end_session(credentials)
        link.cut()

    proxy.script(Break(moment, 2, MULTI, end))
    with pytest.raises((ControllerFenced, StoreError)):
        store.write_states(cluster, every_row(cluster, 2, 5))
    until(lambda: heard[-1:] == [Elect()])
    assert heard[0] == SessionExpired()
    left = described(store.load())
    assert store._connection is not before
    with pytest.raises(ControllerFenced):
        store.write_states(cluster, every_row(cluster, 2, 5))
    assert store.claim(TWO) == 2
    assert described(store.load()) == left, "nothing of the old session arrives in the new one"


def test_a_session_that_hears_nothing_ends_by_our_own_clock(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    world, heard = worlds(small_cluster(), session_timeout_ms=1500), list[Event]()
    store, cluster = controller(world, proxy, heard)
    before = store._connection
    assert before is not None
    heard.clear()
    proxy.drop(*Direction)
    begun = time.monotonic()
    with pytest.raises((ControllerFenced, StoreError)):
        store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
    assert time.monotonic() - begun < 10
    until(lambda: heard[:1] == [SessionExpired()])
    assert not before.session.fence.is_open()
    proxy.drop()
    proxy.cut()
    until(lambda: heard[-1:] == [Elect()])
    assert described(store.load()) == described(cluster)


def test_nothing_asked_for_without_a_connection_is_done_in_another_session(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    world, heard = worlds(small_cluster(), session_timeout_ms=2000), list[Event]()
    store, cluster = controller(world, proxy, heard)
    before = store._connection
    assert before is not None
    credentials = before.session.client.client_id
    failures: list[BaseException] = []

    def write() -> None:
        try:
            store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
        except StoreError as error:
            failures.append(error)
        except ControllerFenced as error:
            failures.append(error)

    proxy.refuse()
    proxy.cut()
    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    world.end_session(credentials)
    proxy.refuse(False)
    until(lambda: heard[-1:] == [Elect()])
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(failures) == 3
    assert described(store.load()) == described(cluster)


def test_a_frozen_server_that_comes_back_in_time_costs_nothing(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    world, heard = worlds(small_cluster(), session_timeout_ms=20_000), list[Event]()
    store, cluster = controller(world, proxy, heard)
    heard.clear()
    proxy.freeze()
    threading.Timer(0.5, proxy.thaw).start()
    result = store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
    assert codes(result) == ["OK"]
    assert heard == []


# -- nodes that nobody can read


def test_what_cannot_be_read_is_left_out_and_reported(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    expected = described(small_cluster())
    operator = world.operator
    operator.set(paths.state_path("orders", 0), b'{"controller_epoch":1,"leader":"1"}')
    operator.set(paths.state_path("orders", 1), b"")
    operator.set(paths.topic_path("empty.topic"), b"[]")
    operator.set(paths.broker_path(2), b'{"version":1')
    operator.set(paths.config_path("topics", "leaving_topic"), b"no")
    odd = b' { "isr" : [ 3 ], "leader" : -1, "leader_epoch" : 9, "version" : 1, "extra" : {}, '
    operator.set(paths.state_path("orders", 2), odd + b'"controller_epoch" : 4, "leader_recovery_state" : 1 } ')
    store = opened(world)
    loaded = store.load()
    assert set(store.quarantined()) == {
        paths.state_path("orders", 0), paths.state_path("orders", 1), paths.topic_path("empty.topic"),
        paths.broker_path(2), paths.config_path("topics", "leaving_topic"),
    }  # fmt: skip
    found = described(loaded)
    assert set(found) == {"orders-0", "orders-1", "orders-2", "leaving_topic-0"}
    assert [found[f"orders-{number}"]["leader"] for number in range(2)] == [None, None]
    assert found["orders-2"] == expected["orders-2"] | {"controller_epoch": 4, "partition_epoch": 1}
    assert loaded.brokers.registered_ids() == [1, 3]
    operator.set(paths.broker_path(2), operator.get(paths.broker_path(1))[0])
    assert [one.broker_id for one in store.read_brokers()] == [1, 2, 3]
    assert paths.broker_path(2) not in store.quarantined()


# -- bulk reads


def test_servers_without_multi_read_give_the_same(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(big_cluster())
    store = opened(world)
    expected = described(store.load())
    assert store._connection is not None
    store._connection.session.has_multi_read = False
    assert described(store.load()) == expected
    rows: Int32 = np.arange(1200, dtype=np.int32)[::-1].copy()
    cluster = store.load()
    assert store.read_states(cluster, rows).found.tolist() == [bool(row % 100 % 2) for row in rows.tolist()]


@MOMENTS
def test_a_load_goes_on_after_broken_connections(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, moment: Moment
) -> None:
    world = worlds(big_cluster())
    store, cluster = controller(world, proxy)
    proxy.script(*(Break(moment, nth, MULTI_READ) for nth in (1, 3, 5)))
    assert described(store.load()) == described(cluster)


def test_answers_too_long_for_the_connection_are_asked_for_in_parts(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(big_cluster())
    store = world.connect(reply_bytes_max=20_000)
    store.open(list[Event]().append)
    assert described(store.load()) == described(big_cluster())
