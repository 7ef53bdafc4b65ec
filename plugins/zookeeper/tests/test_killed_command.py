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
    another_controller_elected,
    deletes,
    fails,
    has_leader,
    has_partitions,
    has_replicas,
    reassigns,
    state,
    topic_deleted,
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
    Interruption,
    StoppedController,
    check_takeover,
)
from kframe_zookeeper.testing.proxy import Proxy
from kframe_zookeeper.testing.zookeeper_fixture import FixtureFactory

from kframe.testing.clusters import PartitionSpec, cluster_of
from kframe.testing.store_fixture import FIRST_ID

#: No broker has to confirm a deletion.
EMPTY: Final[dict[str, list[PartitionSpec]]] = {"empty": []}
NEW: Final = writes_topic("new", (1, 2), (2, 3))
MOVE: Final = reassigns({("moving", 0): (3, 4)})
ELECTIONS: Final = (
    Case(2, "election", CREATED, paths.CONTROLLER),
    Case(2, "takeover", DELETED, paths.CONTROLLER, before=another_controller_elected, takeover=True),
)
WORK: Final = (
    Case(8, "topic", CREATED, state("new-0"), NEW, reached=has_partitions("new", 2)),
    Case(9, "failure", WRITTEN, state("orders-0"), fails(1), reached=has_leader("orders-0", 2)),
    Case(13, "reassignment begun", WRITTEN, paths.topic_path("moving"), MOVE, reached=has_replicas("moving-0", 3, 4)),
    Case(18, "topic", DELETED, paths.topic_path("empty"), deletes("empty"), topics=EMPTY,
         reached=topic_deleted("empty")),
)  # fmt: skip
KILLS: Final = [
    pytest.param(case, interruption, id=f"W{case.point}-{case.name}-{interruption.name.lower()}".replace(" ", "-"))
    for case in (*ELECTIONS, *WORK)
    for interruption in Interruption
    if interruption is not Interruption.ANSWERED and (case in WORK or interruption is not Interruption.OVERTAKEN)
]


@pytest.mark.parametrize("case, interruption", KILLS)
def test_next_controller_loads_a_consistent_cluster(
    case: Case, interruption: Interruption, make_fixture: FixtureFactory, proxy: Proxy, tmp_path: Path
) -> None:
    fixture = make_fixture(cluster_of({**CLUSTER, **case.topics}, BROKERS), session_timeout_ms=20_000)
    case.before(fixture, lambda _: None)
    connect_string = fixture.settings(proxy.address).connect_string
    victim = ControllerRun(FIRST_ID, connect_string, tmp_path / "victim", *(["--takeover"] if case.takeover else []))
    check_takeover(StoppedController(case, interruption, fixture, proxy, victim), case, interruption, fixture)
