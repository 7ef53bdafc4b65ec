"""``kframe controller run`` is killed or deposed at some of its writes; see ``test_killed``.

The process stops before its request is forwarded, after the server has performed it, or is frozen until another
controller has the role. It has no brokers that answer, and receives requests through ZooKeeper only. The controller
that follows has both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.testing.actions import (
    another_rules,
    deletes,
    fails,
    gone,
    grown,
    led,
    moves,
    placed,
    state,
    writes_topic,
)
from kframe_zookeeper.testing.commands import ControllerRun
from kframe_zookeeper.testing.killing import (
    BROKERS,
    CLUSTER,
    CREATED,
    DELETED,
    WRITTEN,
    Case,
    StoppedController,
    Way,
    play,
)
from kframe_zookeeper.testing.proxy import Proxy
from kframe_zookeeper.testing.zookeeper_fixture import FixtureFactory

from kframe.testing.clusters import PartitionSpec, cluster_of
from kframe.testing.store_fixture import FIRST_ID

#: No broker has to confirm a deletion.
EMPTY: Final[dict[str, list[PartitionSpec]]] = {"empty": []}
NEW: Final = writes_topic("new", (1, 2), (2, 3))
MOVE: Final = moves({("moving", 0): (3, 4)})
ELECTIONS: Final = (
    Case(2, "office", CREATED, paths.CONTROLLER),
    Case(2, "takeover", DELETED, paths.CONTROLLER, before=another_rules, takeover=True),
)
WORK: Final = (
    Case(8, "topic", CREATED, state("new-0"), NEW, reached=grown("new", 2)),
    Case(9, "failure", WRITTEN, state("orders-0"), fails(1), reached=led("orders-0", 2)),
    Case(13, "move begun", WRITTEN, paths.topic_path("moving"), MOVE, reached=placed("moving-0", 3, 4)),
    Case(18, "topic", DELETED, paths.topic_path("empty"), deletes("empty"), topics=EMPTY, reached=gone("empty")),
)
KILLS: Final = [
    pytest.param(case, way, id=f"W{case.point}-{case.name}-{way.name.lower()}".replace(" ", "-"))
    for case in (*ELECTIONS, *WORK)
    for way in (Way.UNSENT, Way.UNANSWERED, *([Way.OVERTAKEN] if case in WORK else []))
]


@pytest.mark.parametrize("case, way", KILLS)
def test_next_controller_loads_a_consistent_cluster(
    case: Case, way: Way, make_fixture: FixtureFactory, proxy: Proxy, tmp_path: Path
) -> None:
    fixture = make_fixture(cluster_of({**CLUSTER, **case.topics}, BROKERS), session_timeout_ms=20_000)
    case.before(fixture, lambda _: None)
    connect_string = fixture.settings(proxy.address).connect_string
    victim = ControllerRun(FIRST_ID, connect_string, tmp_path / "victim", *(["--takeover"] if case.takeover else []))
    play(StoppedController(case, way, fixture, proxy, victim), case, way, fixture)
