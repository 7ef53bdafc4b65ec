"""A controller is killed or deposed at each of its writes; the next controller finds a consistent cluster.

W1 to W22 are the writes of ``invariants.md``. The process is killed by SIGKILL while the proxy holds its request:
before it is forwarded, before the response is forwarded, or afterwards. In a fourth variant the process is frozen,
another controller takes over, and only then the request is forwarded.

``kframe controller run`` is killed at some of the writes. It has no brokers that respond, and receives requests through
ZooKeeper only. The controller that follows has both.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import pytest
from kframe_zookeeper.znodes import paths

from kframe.model.admin import ConfigChange, ConfigOperation, NewPartitions, NewTopic
from kframe.model.events import AlterConfigsRequested, ElectionType
from kframe.testing.clusters import PartitionSpec, cluster_of
from kframe.testing.store_fixture import FIRST_ID
from verification.zookeeper.actions import (
    allocated,
    another_controller_elected,
    calls,
    configured,
    configures,
    deletes,
    fails,
    gets_producer_ids,
    grows_while_deleted,
    has_isr,
    has_leader,
    has_partitions,
    has_replicas,
    leaves_partition_without_state,
    loses_log_dir,
    no_action,
    notifies_isr_change,
    prefers,
    reassigned_or_cancelled,
    reassigns,
    reassigns_and_cancels,
    rebalances,
    registers,
    state,
    topic_deleted,
    writes_topic,
)
from verification.zookeeper.commands import ControllerRun
from verification.zookeeper.killing import (
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
from verification.zookeeper.proxy import Proxy
from verification.zookeeper.sessions import FixtureFactory

RETENTION: Final = ConfigChange("orders", ((ConfigOperation.SET, "retention.ms", "5"),))
MOVE: Final = reassigns({("moving", 0): (3, 4)})
MOVED: Final = has_replicas("moving-0", 3, 4)
MOVES: Final = reassigns({("moving", 0): (2, 4), ("moving", 1): (3, 5)})
ALL_MOVED: Final = has_replicas("moving-1", 3, 5)
NEW: Final = writes_topic("new", (1, 2), (2, 3))
CREATE: Final = calls("create_topics", [NewTopic("new", assignments=((0, (1, 2)), (1, (2, 3))))], timeout_ms=0)
GROW: Final = calls("create_partitions", [NewPartitions("orders", 3, ((3, 1, 2),))])
CONFIGURE: Final = calls("submit", partial(AlterConfigsRequested, (RETENTION,), False, False))
DELETE: Final = deletes("deleting")
ELECT: Final = calls("elect_leaders", ElectionType.PREFERRED)
ELECT_ANY: Final = calls("elect_leaders", ElectionType.UNCLEAN, [("lost", 0)])
ASK_MOVE: Final = calls("reassign", {("moving", 0): (3, 4)})
ASK_DELETE: Final = calls("delete_topics", ["deleting"])
STOP: Final = calls("controlled_shutdown", 1)
#: The preferred replica is not the leader.
APART: Final = {"apart": [PartitionSpec((1, 2), leader=2, isr=(2, 1))]}
#: A replica has to catch up.
BEHIND: Final = {"behind": [PartitionSpec((1, 2), leader=1, isr=(1,))]}
#: A topic with a replica on an offline broker, so that its deletion waits.
HALTED: Final = {"halted": [PartitionSpec((2, 6), leader=2, isr=(2,))]}
#: All in-sync replicas are offline, and another replica is online.
LOST: Final = {"lost": [PartitionSpec((6, 2), isr=(6,))]}
ALLOW_UNCLEAN: Final = configures("lost", {"unclean.leader.election.enable": "true"})
#: No broker has to confirm the deletion of this topic.
EMPTY: Final[dict[str, list[PartitionSpec]]] = {"empty": []}
#: The only replica is offline.
OFFLINE: Final = {"away": [PartitionSpec((6,), isr=(6,))]}

LOG_DIR: Final = f"{paths.LOG_DIR_EVENT}0000000000"
ISR: Final = f"{paths.ISR_CHANGE}0000000000"
ORDERS, MOVING, DELETING = (paths.topic_path(name) for name in ("orders", "moving", "deleting"))
TOPIC: Final = paths.topic_path("new")
LAME: Final = paths.topic_path("halted")
SETTINGS: Final = paths.config_path("topics", "orders")
MARK: Final = paths.delete_topic_path("deleting")
RECORD: Final = paths.REASSIGN_PARTITIONS

ELECTIONS: Final = (
    Case(1, "election", CREATED, paths.CONTROLLER_EPOCH),
    Case(2, "election", CREATED, paths.CONTROLLER),
    Case(2, "takeover", DELETED, paths.CONTROLLER, before=another_controller_elected, takeover=True),
    Case(3, "election", CREATED, paths.FEATURE),
    Case(4, "election", DELETED, LOG_DIR, before=loses_log_dir),
    Case(4, "notified", DELETED, LOG_DIR, loses_log_dir),
    Case(5, "election", DELETED, ISR, before=notifies_isr_change),
    Case(5, "notified", DELETED, ISR, notifies_isr_change),
    Case(21, "resign", DELETED, paths.CONTROLLER, calls("resign")),
    Case(21, "stop", DELETED, paths.CONTROLLER, calls("stop")),
)
STATES: Final = (
    Case(6, "topic", CREATED, f"{TOPIC}/partitions", NEW, reached=has_partitions("new", 2)),
    Case(7, "topic", CREATED, f"{TOPIC}/partitions/1", NEW, reached=has_partitions("new", 2)),
    Case(7, "client topic", CREATED, f"{TOPIC}/partitions/1", CREATE, by_client=True, reached=has_partitions("new", 2)),
    Case(7, "growth", CREATED, f"{ORDERS}/partitions/2", GROW, by_client=True, reached=has_partitions("orders", 3)),
    Case(8, "topic", CREATED, state("new-0"), NEW, reached=has_leader("new-1", 2)),
    Case(8, "orphan", CREATED, state("new-0"), leaves_partition_without_state, nth=2, reached=has_leader("new-0", 1)),
    Case(9, "election", WRITTEN, state("stuck-0"), reached=has_leader("stuck-0", 4)),
    Case(9, "takeover", WRITTEN, state("stuck-0"), before=another_controller_elected, takeover=True,
         reached=has_leader("stuck-0", 4)),
    Case(9, "unclean", WRITTEN, state("lost-0"), ALLOW_UNCLEAN, topics=LOST, reached=has_leader("lost-0", 2)),
    Case(9, "client unclean", WRITTEN, state("lost-0"), ELECT_ANY, topics=LOST, by_client=True,
         reached=has_leader("lost-0", 2)),
    Case(9, "rebalance", WRITTEN, state("apart-0"), rebalances, topics=APART, by_client=True,
         reached=has_leader("apart-0", 1)),
    Case(9, "failure", WRITTEN, state("orders-0"), fails(1), reached=has_leader("orders-0", 2)),
    Case(9, "failures", WRITTEN, state("moving-0"), fails(1, 3), reached=has_leader("moving-0", 2)),
    Case(9, "return", WRITTEN, state("away-0"), registers(6), topics=OFFLINE, reached=has_leader("away-0", 6)),
    Case(9, "preferred", WRITTEN, state("apart-0"), prefers(("apart", 0)), topics=APART,
         reached=has_leader("apart-0", 1)),
    Case(9, "client", WRITTEN, state("apart-0"), ELECT, topics=APART, by_client=True, reached=has_leader("apart-0", 1)),
    Case(9, "shutdown", WRITTEN, state("orders-0"), STOP, by_client=True, reached=has_leader("orders-0", 2)),
    Case(10, "failure", WRITTEN, state("orders-1"), fails(1), reached=has_isr("orders-1", 2, 3)),
    Case(10, "shutdown", WRITTEN, state("orders-1"), STOP, repair=fails(1), reached=has_isr("orders-1", 2, 3)),
    Case(11, "reassignment begun", WRITTEN, state("moving-0"), MOVE, reached=MOVED),
    Case(11, "reassignment done", WRITTEN, state("moving-0"), MOVE, nth=4, reached=MOVED),
    Case(11, "reassignment ended", WRITTEN, state("moving-0"), MOVE, nth=5, reached=MOVED),
    Case(12, "election", WRITTEN, state("behind-0"), topics=BEHIND, reached=has_isr("behind-0", 1, 2)),
    Case(12, "reassignment", WRITTEN, state("moving-0"), MOVE, nth=2, reached=MOVED),
)  # fmt: skip
ASSIGNMENTS: Final = (
    Case(13, "reassignment begun", WRITTEN, MOVING, MOVE, reached=MOVED),
    Case(13, "reassignment done", WRITTEN, MOVING, MOVE, nth=2, reached=MOVED),
    Case(13, "client", WRITTEN, MOVING, ASK_MOVE, by_client=True, reached=MOVED),
    Case(13, "cancel", WRITTEN, MOVING, reassigns_and_cancels, nth=2, slow=(4,), reached=reassigned_or_cancelled),
    Case(13, "growth", WRITTEN, ORDERS, GROW, by_client=True, reached=has_partitions("orders", 3)),
    Case(14, "id", WRITTEN, ORDERS, writes_topic("orders", (1, 2, 3), (2, 3, 1))),
    Case(
        14,
        "growth",
        WRITTEN,
        LAME,
        grows_while_deleted,
        topics=HALTED,
        repair=registers(6),
        reached=topic_deleted("halted"),
    ),
    Case(15, "election", WRITTEN, ORDERS),
    Case(15, "topic", WRITTEN, TOPIC, NEW, reached=has_partitions("new", 2)),
    Case(16, "one of two", WRITTEN, RECORD, MOVES, slow=(5,), reached=ALL_MOVED),
    Case(16, "last", DELETED, RECORD, MOVES, reached=ALL_MOVED),
    Case(16, "unknown", DELETED, RECORD, reassigns({("nobody", 0): (1,)})),
    Case(17, "preferred", DELETED, paths.PREFERRED_ELECTION, prefers(("stuck", 0))),
)
ENDS: Final = (
    Case(18, "states", DELETED, state("deleting-0"), DELETE, reached=topic_deleted("deleting")),
    Case(18, "partition", DELETED, f"{DELETING}/partitions/1", DELETE, reached=topic_deleted("deleting")),
    Case(18, "partitions", DELETED, f"{DELETING}/partitions", DELETE, reached=topic_deleted("deleting")),
    Case(18, "topic", DELETED, DELETING, DELETE, reached=topic_deleted("deleting")),
    Case(19, "deleted", DELETED, paths.config_path("topics", "deleting"), DELETE, reached=topic_deleted("deleting")),
    Case(19, "client", WRITTEN, SETTINGS, CONFIGURE, by_client=True, fenced=False, reached=configured),
    Case(20, "deleted", DELETED, paths.delete_topic_path("deleting"), DELETE, reached=topic_deleted("deleting")),
    Case(20, "unknown", DELETED, paths.delete_topic_path("nobody"), deletes("nobody")),
    Case(20, "client", CREATED, MARK, ASK_DELETE, by_client=True, fenced=False, reached=topic_deleted("deleting")),
    Case(22, "block", WRITTEN, paths.PRODUCER_IDS, gets_producer_ids, by_client=True, fenced=False, reached=allocated),
)

COMMAND_ELECTIONS: Final = (
    Case(2, "election", CREATED, paths.CONTROLLER),
    Case(2, "takeover", DELETED, paths.CONTROLLER, before=another_controller_elected, takeover=True),
)
COMMAND_WRITES: Final = (
    Case(8, "topic", CREATED, state("new-0"), NEW, reached=has_partitions("new", 2)),
    Case(9, "failure", WRITTEN, state("orders-0"), fails(1), reached=has_leader("orders-0", 2)),
    Case(13, "reassignment begun", WRITTEN, MOVING, MOVE, reached=MOVED),
    Case(
        18, "topic", DELETED, paths.topic_path("empty"), deletes("empty"), topics=EMPTY, reached=topic_deleted("empty")
    ),
)


def name_of(value: Case | Interruption) -> str:
    text = value.name.lower() if isinstance(value, Interruption) else f"W{value.point}-{value.name}"
    return text.replace(" ", "-")


CASES: Final = (*ELECTIONS, *STATES, *ASSIGNMENTS, *ENDS)
#: The first case of each write point.
FIRST_CASES: Final = {case.point: case for case in reversed(CASES)}.values()
#: Each interruption of the first case of each write point is the usual test; the others are extended.
KILLS: Final = [
    pytest.param(case, interruption, marks=() if case in FIRST_CASES else pytest.mark.extended)
    for case in CASES
    for interruption in Interruption
    if case.fenced or interruption is not Interruption.OVERTAKEN
]
COMMAND_KILLS: Final = [
    pytest.param(case, interruption, marks=pytest.mark.extended if interruption is Interruption.UNSENT else ())
    for case in (*COMMAND_ELECTIONS, *COMMAND_WRITES)
    for interruption in (Interruption.UNSENT, Interruption.UNANSWERED, Interruption.OVERTAKEN)
    if case in COMMAND_WRITES or interruption is not Interruption.OVERTAKEN
]


@pytest.mark.parametrize("case, interruption", KILLS, ids=name_of)
def test_next_controller_loads_a_consistent_cluster(
    case: Case, interruption: Interruption, make_fixture: FixtureFactory, proxy: Proxy
) -> None:
    fixture = make_fixture(cluster_of({**CLUSTER, **case.topics}, BROKERS), session_timeout_ms=20_000)
    case.before(fixture, no_action)
    check_takeover(StoppedController(case, interruption, fixture, proxy), case, interruption, fixture)


@pytest.mark.parametrize("case, interruption", COMMAND_KILLS, ids=name_of)
def test_controller_after_a_killed_command_loads_a_consistent_cluster(
    case: Case, interruption: Interruption, make_fixture: FixtureFactory, proxy: Proxy, tmp_path: Path
) -> None:
    fixture = make_fixture(cluster_of({**CLUSTER, **case.topics}, BROKERS), session_timeout_ms=20_000)
    case.before(fixture, no_action)
    connect_string = fixture.settings(proxy.address).connect_string
    victim = ControllerRun(FIRST_ID, connect_string, tmp_path / "victim", *(["--takeover"] if case.takeover else []))
    check_takeover(StoppedController(case, interruption, fixture, proxy, victim), case, interruption, fixture)
