"""Connections that break before and after a request is done: what was written is found out, and written once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.testing.proxy import MULTI, Break, Link, Moment, Proxy
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import MOMENTS, PATIENCE_S, big_cluster, controller, every_row, opened

from kframe.core.state.stored_states import apply
from kframe.model.changes import WriteCode
from kframe.testing.clusters import StateSpec, change_of, described
from kframe.testing.store_world import ONE, TWO, codes, small_cluster


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


def test_a_claim_that_was_lost_is_not_seen_in_that_of_a_rival(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    """The rival's has the controller epoch and the version that ours would have had, and perhaps our broker id: only
    the session tells them apart."""
    world = worlds(small_cluster())
    rival, store = opened(world), opened(world, proxy)
    assert rival.claim(ONE) == 1
    rival.release()

    def overtake(link: Link) -> None:
        assert rival.claim(ONE) == 2
        link.cut()

    proxy.script(Break(Moment.BEFORE_REQUEST, 1, MULTI, overtake))
    assert store.claim(ONE) is None
    assert (rival.owns_role(), store.owns_role()) == (True, False)
