"""The controller dies, or is overtaken, at every point at which it writes; the next one finds a whole cluster.

Points W1 to W22 are those of ``reliability.md`` section 5. At each the process is ended as -9 does when the proxy has
its request in hand: not yet sent on, done but not answered, or answered. In a fourth way it is frozen there, another
takes the role over, and only then does the request arrive.

A tenth of this runs by default, drawn from a seed that is printed; KFRAME_KILLS=all runs everything, and
KFRAME_KILLS=<seed> another tenth.
"""

from __future__ import annotations

import os
import random
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from operator import methodcaller
from typing import Any, Final

import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.settings import settings_of_url
from kframe_zookeeper.testing.proxy import MULTI, Break, Direction, Link, Moment, Proxy
from kframe_zookeeper.testing.servers import ServerHandle
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.trees import Tree, changes, children, faults, live_brokers, read_tree
from kframe_zookeeper.testing.victims import Task, Victim, build, settle
from kframe_zookeeper.znodes import decode_config, decode_producer_ids, decode_state, decode_topic, encode_topics

from kframe.model.admin import ConfigChange, ConfigOperation, NewPartitions, NewTopic
from kframe.model.events import AlterConfigsRequested, ElectionType, ProducerIdsRequested
from kframe.model.tables import Targets, TopicTable
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.testing.store_world import ONE, TWO

PATIENCE_S: Final = float(os.environ.get("KP", "20"))
_OPERATION: Final = struct.Struct(">i?i")
CREATED, DELETED, WRITTEN = 1, 2, 5

#: Brokers 1 to 5 are registered; partition stuck-0 waits for a leader when the first controller takes office.
BROKERS: Final = (1, 2, 3, 4, 5)
CLUSTER: Final = {
    "orders": [healthy(1, 2, 3), healthy(2, 3, 1)],
    "moving": [healthy(1, 2), healthy(3, 1)],
    "doomed": [healthy(2, 3), healthy(3, 2)],
    "stuck": [PartitionSpec((4, 2), isr=(4, 2), leader_epoch=3)],
}
#: A topic of which one replica cannot be reached, so that its deletion waits.
HALTED: Final = {"halted": [PartitionSpec((2, 6), leader=2, isr=(2,))]}


class Way(Enum):
    """How the controller and its request come to part."""

    UNSENT = "killed before the request is sent on"
    UNANSWERED = "killed when the server has done it"
    ANSWERED = "killed when it has the answer"
    OVERTAKEN = "frozen, and the request arrives when another is controller"


MOMENTS: Final = {
    Way.UNSENT: Moment.BEFORE_REQUEST,
    Way.UNANSWERED: Moment.BEFORE_ANSWER,
    Way.ANSWERED: Moment.AFTER_ANSWER,
    Way.OVERTAKEN: Moment.BEFORE_REQUEST,
}  # fmt: skip

#: What an operator does, and what clients ask of the controller.
Trouble = Callable[[ZooKeeperWorld, Callable[[Task], None]], None]


def nothing(*_: object) -> None:
    """Taking office is trouble enough."""


@dataclass(frozen=True, slots=True)
class Case:
    """A write, and what leads to it."""

    point: int
    name: str
    operation: int
    path: str
    trouble: Trouble = nothing
    nth: int = 1
    before: Callable[[ZooKeeperWorld], None] = nothing
    topics: Mapping[str, Sequence[PartitionSpec]] = field(default_factory=dict)
    slow: tuple[int, ...] = ()
    mend: Callable[[ZooKeeperWorld], None] = nothing
    """What happens once the next controller is at work."""
    asked: bool = False
    """The trouble is a client's, who asks the next controller again."""
    fenced: bool = True
    reached: Callable[[Tree], bool] = bool

    def frame(self, root: str) -> bytes:
        """How the operation begins in a request."""
        path = (root + self.path).encode()
        return _OPERATION.pack(self.operation, False, -1) + struct.pack(">i", len(path)) + path


# -- troubles


def fails(*brokers: int) -> Trouble:
    return lambda world, _: world.unregister_brokers(brokers)


def registers(broker: int) -> Trouble:
    return lambda world, _: returns(broker)(world)


def returns(broker: int) -> Callable[[ZooKeeperWorld], None]:
    def register(world: ZooKeeperWorld) -> None:
        world.register_brokers([registration(broker)])

    return register


def asks(name: str, *arguments: Any, **others: Any) -> Trouble:
    return lambda _, do: do(methodcaller(name, *arguments, **others))


def writes_topic(name: str, *replicas: tuple[int, ...]) -> Trouble:
    """As tools before topic ids write it, who do not know of the id."""

    def write(world: ZooKeeperWorld, _: object) -> None:
        (data,) = encode_topics(TopicTable.of((name,), [replicas]))
        if world.operator.exists(paths.topic_path(name)):
            world.operator.set(paths.topic_path(name), data)
        else:
            world.operator.create(paths.topic_path(name), data)

    return write


def leaves_partition_without_state(world: ZooKeeperWorld, _: object) -> None:
    def create() -> None:
        (data,) = encode_topics(TopicTable.of(("new",), [[(1, 2), (2, 3)]]))
        transaction = world.operator.transaction()
        transaction.create(paths.topic_path("new"), data)
        transaction.create(paths.partitions_path("new"))
        transaction.create(paths.partition_path("new", 0))
        transaction.commit()

    create()


def moves(targets: Mapping[tuple[str, int], Sequence[int]]) -> Trouble:
    return lambda world, _: world.leave_reassignments(Targets.of(list(targets.items())))


def deletes(*names: str) -> Trouble:
    return lambda world, _: world.mark_for_deletion(names)


def prefers(*partitions: tuple[str, int]) -> Trouble:
    return lambda world, _: world.leave_preferred_election(partitions)


def gets_producer_ids(world: ZooKeeperWorld, do: Callable[[Task], None]) -> None:
    epoch = world.operator.exists(paths.broker_path(1)).czxid
    do(methodcaller("submit", partial(ProducerIdsRequested, 1, epoch)))


# -- goals


def stored(tree: Tree, partition: str) -> Any:
    topic, _, number = partition.rpartition("-")
    path = paths.state_path(topic, int(number))
    return decode_state(tree[path].data, path)[0]


def replicas(tree: Tree, partition: str) -> list[int]:
    topic, _, number = partition.rpartition("-")
    return decode_topic(topic, tree[paths.topic_path(topic)].data).replicas[int(number)]


def led(partition: str, leader: int) -> Callable[[Tree], bool]:
    return lambda tree: bool(stored(tree, partition).leader == leader)


def synced(partition: str, *isr: int) -> Callable[[Tree], bool]:
    return lambda tree: set(stored(tree, partition).isr) == set(isr)


def placed(partition: str, *wanted: int) -> Callable[[Tree], bool]:
    return lambda tree: replicas(tree, partition) == list(wanted) and set(stored(tree, partition).isr) == set(wanted)


def gone(topic: str) -> Callable[[Tree], bool]:
    return lambda tree: not any(f"/{topic}/" in f"{path}/" for path in tree)


def grown(topic: str, count: int) -> Callable[[Tree], bool]:
    return lambda tree: len(children(tree, paths.partitions_path(topic))) == count


def has_no(broker: int) -> Callable[[Tree], bool]:
    """No partition of a kept topic that has another replica is led by this broker, or has it in sync."""
    return lambda tree: all(
        broker not in decode_state(node.data, path)[0].isr for path, node in tree.items() if path.endswith("/state")
    )


def configured(tree: Tree) -> bool:
    path = paths.config_path("topics", "orders")
    said = [node.data for path, node in tree.items() if path.startswith(paths.CONFIG_CHANGE)]
    return decode_config(tree[path].data, path)[0].get("retention.ms") == "5" and any(b"orders" in one for one in said)


def allocated(tree: Tree) -> bool:
    block = decode_producer_ids(tree[paths.PRODUCER_IDS].data)
    return block is not None and block.first % 1000 == 0


MOVE: Final = {("moving", 0): (3, 4)}
TWO_MOVES: Final = {("moving", 0): (2, 4), ("moving", 1): (3, 5)}
GROWTH: Final = NewPartitions("orders", 3, ((3, 1, 2),))
RETENTION: Final = ConfigChange("orders", ((ConfigOperation.SET, "retention.ms", "5"),))
UNCLEAN: Final = ConfigChange("orders", ((ConfigOperation.SET, "unclean.leader.election.enable", "true"),))


def state(partition: str) -> str:
    topic, _, number = partition.rpartition("-")
    return paths.state_path(topic, int(number))


LOG_DIR, ISR = f"{paths.LOG_DIR_EVENT}0000000000", f"{paths.ISR_CHANGE}0000000000"
DOOMED: Final = paths.topic_path("doomed")

CASES: Final = (
    Case(1, "office", CREATED, paths.CONTROLLER_EPOCH),
    Case(2, "office", CREATED, paths.CONTROLLER),
    Case(3, "office", CREATED, paths.FEATURE),
    Case(4, "office", DELETED, LOG_DIR, before=lambda world: world.notify_log_dir_event(2)),
    Case(4, "heard", DELETED, LOG_DIR, lambda world, _: world.notify_log_dir_event(2)),
    Case(5, "office", DELETED, ISR, before=lambda world: world.notify_isr_changes([("orders", 0)])),
    Case(5, "heard", DELETED, ISR, lambda world, _: world.notify_isr_changes([("orders", 0)])),
    Case(6, "topic", CREATED, paths.partitions_path("new"), writes_topic("new", (1, 2), (2, 3)), reached=grown("new", 2)),
    Case(7, "topic", CREATED, paths.partition_path("new", 1), writes_topic("new", (1, 2), (2, 3)), reached=grown("new", 2)),
    Case(7, "growth", CREATED, paths.partition_path("orders", 2), asks("create_partitions", [GROWTH]), asked=True, reached=grown("orders", 3)),
    Case(8, "topic", CREATED, state("new-0"), writes_topic("new", (1, 2), (2, 3)), reached=led("new-1", 2)),
    Case(8, "parent", CREATED, state("new-0"), leaves_partition_without_state, nth=2, reached=led("new-0", 1)),
    Case(9, "office", WRITTEN, state("stuck-0"), reached=led("stuck-0", 4)),
    Case(9, "failure", WRITTEN, state("orders-0"), fails(1), reached=led("orders-0", 2)),
    Case(9, "failures", WRITTEN, state("moving-0"), fails(1, 3), reached=led("moving-0", 2)),
    Case(9, "return", WRITTEN, state("halted-0"), registers(6), topics={"halted": [PartitionSpec((6,), isr=(6,))]}, reached=led("halted-0", 6)),
    Case(9, "preferred", WRITTEN, state("apart-0"), prefers(("apart", 0)), topics={"apart": [PartitionSpec((1, 2), leader=2, isr=(2, 1))]}, reached=led("apart-0", 1)),
    Case(9, "asked", WRITTEN, state("apart-0"), asks("elect_leaders", ElectionType.PREFERRED), asked=True, topics={"apart": [PartitionSpec((1, 2), leader=2, isr=(2, 1))]}, reached=led("apart-0", 1)),
    Case(9, "shutdown", WRITTEN, state("orders-0"), asks("controlled_shutdown", 1), asked=True, reached=led("orders-0", 2)),
    Case(10, "failure", WRITTEN, state("orders-1"), fails(1), reached=synced("orders-1", 2, 3)),
    Case(10, "shutdown", WRITTEN, state("orders-1"), asks("controlled_shutdown", 1), mend=lambda world: world.unregister_brokers([1]), reached=has_no(1)),
    Case(11, "move begun", WRITTEN, state("moving-0"), moves(MOVE), reached=placed("moving-0", 3, 4)),
    Case(11, "move done", WRITTEN, state("moving-0"), moves(MOVE), nth=3, reached=placed("moving-0", 3, 4)),
    Case(11, "move ended", WRITTEN, state("moving-0"), moves(MOVE), nth=4, reached=placed("moving-0", 3, 4)),
    Case(12, "office", WRITTEN, state("behind-0"), topics={"behind": [PartitionSpec((1, 2), leader=1, isr=(1,))]}, reached=synced("behind-0", 1, 2)),
    Case(12, "move", WRITTEN, state("moving-0"), moves(MOVE), nth=2, reached=placed("moving-0", 3, 4)),
    Case(13, "move begun", WRITTEN, paths.topic_path("moving"), moves(MOVE), reached=placed("moving-0", 3, 4)),
    Case(13, "move done", WRITTEN, paths.topic_path("moving"), moves(MOVE), nth=2, reached=placed("moving-0", 3, 4)),
    Case(13, "asked", WRITTEN, paths.topic_path("moving"), asks("reassign", MOVE), asked=True, reached=placed("moving-0", 3, 4)),
    Case(13, "growth", WRITTEN, paths.topic_path("orders"), asks("create_partitions", [GROWTH]), asked=True, reached=grown("orders", 3)),
    Case(14, "id", WRITTEN, paths.topic_path("orders"), writes_topic("orders", (1, 2, 3), (2, 3, 1))),
    Case(14, "growth", WRITTEN, paths.topic_path("halted"), lambda world, _: (deletes("halted")(world, _), writes_topic("halted", (2, 6), (2, 3))(world, _))[0], topics=HALTED, mend=returns(6), reached=gone("halted")),
    Case(15, "office", WRITTEN, paths.topic_path("orders")),
    Case(15, "topic", WRITTEN, paths.topic_path("new"), writes_topic("new", (1, 2)), reached=grown("new", 1)),
    Case(16, "one of two", WRITTEN, paths.REASSIGN_PARTITIONS, moves(TWO_MOVES), slow=(5,), reached=placed("moving-1", 3, 5)),
    Case(16, "last", DELETED, paths.REASSIGN_PARTITIONS, moves(TWO_MOVES), reached=placed("moving-1", 3, 5)),
    Case(16, "unknown", DELETED, paths.REASSIGN_PARTITIONS, moves({("nobody", 0): (1,)})),
    Case(17, "preferred", DELETED, paths.PREFERRED_ELECTION, prefers(("stuck", 0))),
    Case(18, "states", DELETED, state("doomed-0"), deletes("doomed"), reached=gone("doomed")),
    Case(18, "partition", DELETED, paths.partition_path("doomed", 1), deletes("doomed"), reached=gone("doomed")),
    Case(18, "partitions", DELETED, paths.partitions_path("doomed"), deletes("doomed"), reached=gone("doomed")),
    Case(18, "topic", DELETED, DOOMED, deletes("doomed"), reached=gone("doomed")),
    Case(19, "deleted", DELETED, paths.config_path("topics", "doomed"), deletes("doomed"), reached=gone("doomed")),
    Case(19, "asked", WRITTEN, paths.config_path("topics", "orders"), asks("submit", partial(AlterConfigsRequested, (RETENTION,), False, False)), asked=True, fenced=False, reached=configured),
    Case(20, "deleted", DELETED, paths.delete_topic_path("doomed"), deletes("doomed"), reached=gone("doomed")),
    Case(20, "unknown", DELETED, paths.delete_topic_path("nobody"), deletes("nobody")),
    Case(20, "asked", CREATED, paths.delete_topic_path("doomed"), asks("delete_topics", ["doomed"]), asked=True, fenced=False, reached=gone("doomed")),
    Case(21, "resign", DELETED, paths.CONTROLLER, asks("resign")),
    Case(21, "stop", DELETED, paths.CONTROLLER, asks("stop")),
    Case(22, "block", WRITTEN, paths.PRODUCER_IDS, gets_producer_ids, asked=True, fenced=False, reached=allocated),
)  # fmt: skip


# -- the test


def chosen() -> list[Any]:
    """What runs: each case in one way, and some in all ways; or everything."""
    wish = os.environ.get("KFRAME_KILLS", "1")
    pairs = [(case, way) for case in CASES for way in Way if case.fenced or way is not Way.OVERTAKEN]
    if wish != "all":
        drawn = random.Random(int(wish))
        pairs = [pair for pair in pairs if drawn.random() < SHARE]
    return [
        pytest.param(case, way, id=f"W{case.point} {case.name}-{way.name.lower()}".replace(" ", "-"))
        for case, way in pairs
    ]


SHARE: Final = 1.0


@pytest.fixture
def proxy(zookeeper: ServerHandle) -> Iterator[Proxy]:
    with Proxy(zookeeper.address) as made:
        yield made


@pytest.fixture
def worlds(zookeeper: ServerHandle) -> Iterator[Callable[[Case], ZooKeeperWorld]]:
    made: list[ZooKeeperWorld] = []

    def make(case: Case) -> ZooKeeperWorld:
        settings = settings_of_url(f"zookeeper://{zookeeper.address}?session.timeout.ms=20000")
        made.append(ZooKeeperWorld(settings, cluster_of({**CLUSTER, **case.topics}, BROKERS)))
        case.before(made[-1])
        return made[-1]

    yield make
    for world in made:
        world.close()


class Scene:
    """The first controller, and the moment at which it and its request part."""

    def __init__(self, case: Case, way: Way, world: ZooKeeperWorld, proxy: Proxy) -> None:
        self._way = way
        self._parted, self._arrives = threading.Event(), threading.Event()
        frame = case.frame(world.settings().chroot)
        self._answered = Break(Moment.BEFORE_ANSWER, case.nth, MULTI, nothing, frame)
        script = (Break(MOMENTS[way], case.nth, MULTI, self._part, frame), self._answered)
        self.victim = Victim(ONE, world.settings(proxy.address), slow=case.slow)
        if case.trouble is nothing:
            proxy.script(*script)
            self.victim.stand()
        else:
            self.victim.stand()
            assert self.victim.settle()
            proxy.script(*script)
            case.trouble(world, self.victim.do)
        assert self._parted.wait(PATIENCE_S), "it does not write that"
        if way is not Way.OVERTAKEN:
            world.end_session(self.victim.client_id)

    def deliver(self) -> None:
        """Let the request of the frozen controller arrive, and wake it."""
        self._arrives.set()
        assert self._answered.happened.wait(PATIENCE_S)
        self.victim.wake()
        assert not self.victim.settle()

    def close(self) -> None:
        self._arrives.set()
        self.victim.close()

    def _part(self, link: Link) -> None:
        if self._way is Way.OVERTAKEN:
            self.victim.freeze()
            self._parted.set()
            self._arrives.wait(PATIENCE_S)
            return
        self.victim.kill()
        if self._way is Way.UNSENT:
            link.cut()
        self._parted.set()


def wrong(case: Case, before: Tree, world: ZooKeeperWorld) -> list[str]:
    """What there is to say against the tree as it is now."""
    after = read_tree(world.operator)
    found = faults(before, after)
    return found or ([] if case.reached(after) else ["the goal is not reached"])


@pytest.mark.parametrize("case, way", chosen())
def test_the_next_controller_finds_a_whole_cluster(
    case: Case, way: Way, worlds: Callable[[Case], ZooKeeperWorld], proxy: Proxy
) -> None:
    world = worlds(case)
    scene = Scene(case, way, world, proxy)
    try:
        before = read_tree(world.operator)
        following, loop = build(TWO, world.connect())
        following.open(takeover=way is Way.OVERTAKEN)
        loop.start()
        try:
            until(lambda: following.status().active)
            case.mend(world)
            if case.asked:
                case.trouble(world, lambda task: task(following))
            until(lambda: not wrong(case, before, world), lambda: str(wrong(case, before, world)))
            world.settle()
            assert settle(following)
            assert wrong(case, before, world) == []
            if way is Way.OVERTAKEN:
                settled = read_tree(world.operator)
                scene.deliver()
                assert changes(settled, read_tree(world.operator)) == []
                assert following.status().active
        finally:
            following.stop()
    finally:
        scene.close()


def until(holds: Callable[[], bool], missing: Callable[[], str] = lambda: "it does not happen") -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, missing()
        time.sleep(0.02)
