"""Connections that break before or after a request is performed. The outcome is verified, and each write is done
once."""

from __future__ import annotations

import numpy as np
import pytest
from kframe_zookeeper.znodes import paths

from kframe.core.state.stored_states import apply
from kframe.model.changes import WriteCode
from kframe.plugin.store import (
    AssignTopicIds,
    Claim,
    DeleteTopics,
    Load,
    OwnsRole,
    Prepare,
    ReadTopicNames,
    ReadTopics,
    ReleaseRole,
    WriteAssignments,
    WriteStates,
)
from kframe.testing.clusters import StateSpec, change_of, described
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID, codes, small_cluster
from kframe.testing.waiting import PATIENCE_S
from verification.zookeeper.proxy import MULTI, Break, BreakPoint, Link, Proxy
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.stores import BREAK_POINTS, big_cluster, controller, every_row, opened


@BREAK_POINTS
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_lost_answers_write_every_row_once(
    make_fixture: FixtureFactory, proxy: Proxy, break_point: BreakPoint, nth: int
) -> None:
    fixture = make_fixture(big_cluster())
    store, cluster = controller(fixture, proxy)
    change = every_row(cluster, 2, 5)
    broken = Break(break_point, nth, MULTI)
    proxy.script(broken)
    result = store.perform(WriteStates(cluster, change))
    assert broken.happened.wait(PATIENCE_S)
    assert set(codes(result)) == {"OK"}
    assert result.partition_epoch.tolist() == (change.expected + 1).tolist()
    apply(cluster, change, result.partition_epoch)
    assert described(store.perform(Load())) == described(cluster)


@BREAK_POINTS
def test_stale_rows_differ_from_lost_responses(
    make_fixture: FixtureFactory, proxy: Proxy, break_point: BreakPoint
) -> None:
    fixture = make_fixture(big_cluster())
    store, cluster = controller(fixture, proxy)
    for partition in (1, 99):
        fixture.write_state("topic-00", partition, isr=[1])
        fixture.write_state("topic-07", partition, isr=[1])
    proxy.script(Break(break_point, 2, MULTI), Break(break_point, 4, MULTI))
    result = store.perform(WriteStates(cluster, every_row(cluster, 2, 5)))
    stale = [cluster.name(row) for row in np.flatnonzero(result.codes == WriteCode.STALE).tolist()]
    assert stale == ["topic-00-1", "topic-00-99", "topic-07-1", "topic-07-99"]
    assert (result.codes != WriteCode.OK).sum() == 4
    loaded = described(store.perform(Load()))
    assert {state["isr"][0] for name, state in loaded.items() if name in stale} == {1}
    assert {tuple(state["isr"]) for name, state in loaded.items() if name not in stale} == {(2, 3)}


def test_row_overwritten_before_verification_is_stale(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    fixture = make_fixture(small_cluster())
    store, cluster = controller(fixture, proxy)

    def overwrite_row(link: Link) -> None:
        fixture.write_state("orders", 0, isr=[3])
        link.cut()

    proxy.script(Break(BreakPoint.BEFORE_RESPONSE, 1, MULTI, overwrite_row))
    result = store.perform(WriteStates(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2, 1), 5, 7)}, 1)))
    assert codes(result) == ["STALE"]
    assert described(store.perform(Load()))["orders-0"]["isr"] == [3]


@BREAK_POINTS
def test_topics_and_assignments_survive_lost_responses(
    make_fixture: FixtureFactory, proxy: Proxy, break_point: BreakPoint
) -> None:
    fixture = make_fixture(small_cluster())
    store, _ = controller(fixture, proxy)
    for _ in range(2):
        table = store.perform(ReadTopics(("orders", "empty.topic")))
        proxy.script(Break(break_point, 1, MULTI))
        assert store.perform(WriteAssignments(table)) == (WriteCode.OK, WriteCode.OK)
    proxy.script(Break(break_point, 1, MULTI))
    ids = store.perform(AssignTopicIds(("orders",)))
    assert store.perform(ReadTopics(("orders",))).topic_ids == ids
    proxy.script(Break(break_point, 1, MULTI))
    store.perform(DeleteTopics(("orders",)))
    assert store.perform(ReadTopicNames()) == {"empty.topic", "leaving_topic"}
    assert fixture.operator.exists(paths.config_path("topics", "orders")) is None


@BREAK_POINTS
@pytest.mark.parametrize("takeover", [False, True])
def test_claim_with_a_lost_response_is_recognised(
    make_fixture: FixtureFactory, proxy: Proxy, break_point: BreakPoint, takeover: bool
) -> None:
    fixture = make_fixture(small_cluster())
    first = opened(fixture)
    assert first.perform(Claim(FIRST_ID)) == 1
    if not takeover:
        first.perform(ReleaseRole())
    store = opened(fixture, proxy)
    proxy.script(Break(break_point, 1, MULTI))
    assert store.perform(Claim(SECOND_ID, takeover)) == 2
    assert store.perform(OwnsRole())
    store.perform(Prepare())
    assert fixture.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"


def test_claim_of_other_controller_is_not_a_lost_answer(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    """The rival's claim has the same controller epoch and version, and perhaps the same id. Only the session
    differs."""
    fixture = make_fixture(small_cluster())
    rival, store = opened(fixture), opened(fixture, proxy)
    assert rival.perform(Claim(FIRST_ID)) == 1
    rival.perform(ReleaseRole())

    def claim_first(link: Link) -> None:
        assert rival.perform(Claim(FIRST_ID)) == 2
        link.cut()

    proxy.script(Break(BreakPoint.BEFORE_REQUEST, 1, MULTI, claim_first))
    assert store.perform(Claim(FIRST_ID)) is None
    assert (rival.perform(OwnsRole()), store.perform(OwnsRole())) == (True, False)
