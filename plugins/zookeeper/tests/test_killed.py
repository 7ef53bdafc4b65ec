"""The controller dies, or is overtaken, at every point at which it writes; the next one finds a whole cluster.

Points W1 to W22 are those of ``reliability.md`` section 5. At each the process is ended as -9 does when the proxy has
its request in hand: not yet sent on, done but not answered, or answered. In a fourth way it is frozen there, another
takes the role over, and only then does the request arrive."""

from __future__ import annotations

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
from kframe_zookeeper.testing.proxy import MULTI, Break, Link, Moment, Proxy
from kframe_zookeeper.testing.servers import ServerHandle
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.trees import Tree, changes, children, faults, read_tree
from kframe_zookeeper.testing.victims import Task, Victim, build, settle
from kframe_zookeeper.znodes import decode_config, decode_producer_ids, decode_state, decode_topic, encode_topics

from kframe.model.admin import ConfigChange, ConfigOperation, NewPartitions, NewTopic
from kframe.model.events import AlterConfigsRequested, ElectionType, ProducerIdsRequested
from kframe.model.tables import Targets, TopicTable
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.testing.store_world import ONE, TWO

PATIENCE_S: Final = 30.0
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

#: Has a controller do something.
Do = Callable[[Task], None]
#: What operators and brokers do, and what clients ask of the controller.
Trouble = Callable[[ZooKeeperWorld, Do], None]


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
    before: Trouble = nothing
    """What the first controller finds, and is asked, before it is watched."""
    topics: Mapping[str, Sequence[PartitionSpec]] = field(default_factory=dict)
    slow: tuple[int, ...] = ()
    mend: Trouble = nothing
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
    def register(world: ZooKeeperWorld, _: Do) -> None:
        world.register_brokers([registration(broker)])

    return register


def loses_log_dir(world: ZooKeeperWorld, _: Do) -> None:
    world.notify_log_dir_event(2)


def notifies(world: ZooKeeperWorld, _: Do) -> None:
    world.notify_isr_changes([("orders", 0)])


def asks(name: str, *arguments: Any, **others: Any) -> Trouble:
    return lambda _, do: do(methodcaller(name, *arguments, **others))


def writes_topic(name: str, *replicas: tuple[int, ...]) -> Trouble:
    """As tools before topic ids write it, who do not know of the id."""

    def write(world: ZooKeeperWorld, _: Do) -> None:
        (data,) = encode_topics(TopicTable.of((name,), [replicas]))
        if world.operator.exists(paths.topic_path(name)):
            world.operator.set(paths.topic_path(name), data)
        else:
            world.operator.create(paths.topic_path(name), data)

    return write


def leaves_partition_without_state(world: ZooKeeperWorld, _: Do) -> None:
    (data,) = encode_topics(TopicTable.of(("new",), [[(1, 2), (2, 3)]]))
    transaction = world.operator.transaction()
    transaction.create(paths.topic_path("new"), data)
    transaction.create(paths.partitions_path("new"))
    transaction.create(paths.partition_path("new", 0))
    transaction.commit()


def grows_while_deleted(world: ZooKeeperWorld, do: Do) -> None:
    deletes("halted")(world, do)
    writes_topic("halted", (2, 6), (2, 3))(world, do)


def moves_and_cancels(_: ZooKeeperWorld, do: Do) -> None:
    for wanted in ((3, 4), None):
        do(methodcaller("reassign", {("moving", 0): wanted}))


def moves(targets: Mapping[tuple[str, int], Sequence[int]]) -> Trouble:
    return lambda world, _: world.leave_reassignments(Targets.of(list(targets.items())))


def deletes(*names: str) -> Trouble:
    return lambda world, _: world.mark_for_deletion(names)


def prefers(*partitions: tuple[str, int]) -> Trouble:
    return lambda world, _: world.leave_preferred_election(partitions)


def gets_producer_ids(world: ZooKeeperWorld, do: Do) -> None:
    epoch = world.operator.exists(paths.broker_path(1)).czxid
    do(methodcaller("submit", partial(ProducerIdsRequested, 1, epoch)))


# -- goals


def stored(tree: Tree, partition: str) -> Any:
    path = state(partition)
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


def moved_or_stayed(tree: Tree) -> bool:
    """Whether the cancellation was stored or not."""
    return any(placed("moving-0", *wanted)(tree) for wanted in ((3, 4), (1, 2)))


def gone(topic: str) -> Callable[[Tree], bool]:
    return lambda tree: not any(f"/{topic}/" in f"{path}/" for path in tree)


def grown(topic: str, count: int) -> Callable[[Tree], bool]:
    return lambda tree: len(children(tree, paths.partitions_path(topic))) == count


def configured(tree: Tree) -> bool:
    path = paths.config_path("topics", "orders")
    said = [node.data for path, node in tree.items() if path.startswith(paths.CONFIG_CHANGE)]
    return decode_config(tree[path].data, path)[0].get("retention.ms") == "5" and any(b"orders" in one for one in said)


def allocated(tree: Tree) -> bool:
    block = decode_producer_ids(tree[paths.PRODUCER_IDS].data)
    return block is not None and block.first % 1000 == 0


def state(partition: str) -> str:
    topic, _, number = partition.rpartition("-")
    return paths.state_path(topic, int(number))


RETENTION: Final = ConfigChange("orders", ((ConfigOperation.SET, "retention.ms", "5"),))
MOVE: Final = moves({("moving", 0): (3, 4)})
MOVED: Final = placed("moving-0", 3, 4)
MOVES: Final = moves({("moving", 0): (2, 4), ("moving", 1): (3, 5)})
ALL_MOVED: Final = placed("moving-1", 3, 5)
NEW: Final = writes_topic("new", (1, 2), (2, 3))
CREATE: Final = asks("create_topics", [NewTopic("new", assignments=((0, (1, 2)), (1, (2, 3))))], timeout_ms=0)
GROW: Final = asks("create_partitions", [NewPartitions("orders", 3, ((3, 1, 2),))])
CONFIGURE: Final = asks("submit", partial(AlterConfigsRequested, (RETENTION,), False, False))
DELETE: Final = deletes("doomed")
ELECT: Final = asks("elect_leaders", ElectionType.PREFERRED)
ASK_MOVE: Final = asks("reassign", {("moving", 0): (3, 4)})
ASK_DELETE: Final = asks("delete_topics", ["doomed"])
STOP: Final = asks("controlled_shutdown", 1)
#: The preferred replica does not lead.
APART: Final = {"apart": [PartitionSpec((1, 2), leader=2, isr=(2, 1))]}
#: A replica is to catch up.
BEHIND: Final = {"behind": [PartitionSpec((1, 2), leader=1, isr=(1,))]}
#: A topic of which one replica cannot be reached, so that its deletion waits.
HALTED: Final = {"halted": [PartitionSpec((2, 6), leader=2, isr=(2,))]}
#: Its only replica is away.
AWAY: Final = {"away": [PartitionSpec((6,), isr=(6,))]}

LOG_DIR: Final = f"{paths.LOG_DIR_EVENT}0000000000"
ISR: Final = f"{paths.ISR_CHANGE}0000000000"
ORDERS, MOVING, DOOMED = (paths.topic_path(name) for name in ("orders", "moving", "doomed"))
TOPIC: Final = paths.topic_path("new")
LAME: Final = paths.topic_path("halted")
SETTINGS: Final = paths.config_path("topics", "orders")
MARK: Final = paths.delete_topic_path("doomed")
RECORD: Final = paths.REASSIGN_PARTITIONS

OFFICE: Final = (
    Case(1, "office", CREATED, paths.CONTROLLER_EPOCH),
    Case(2, "office", CREATED, paths.CONTROLLER),
    Case(3, "office", CREATED, paths.FEATURE),
    Case(4, "office", DELETED, LOG_DIR, before=loses_log_dir),
    Case(4, "heard", DELETED, LOG_DIR, loses_log_dir),
    Case(5, "office", DELETED, ISR, before=notifies),
    Case(5, "heard", DELETED, ISR, notifies),
    Case(21, "resign", DELETED, paths.CONTROLLER, asks("resign")),
    Case(21, "stop", DELETED, paths.CONTROLLER, asks("stop")),
)
STATES: Final = (
    Case(6, "topic", CREATED, f"{TOPIC}/partitions", NEW, reached=grown("new", 2)),
    Case(7, "topic", CREATED, f"{TOPIC}/partitions/1", NEW, reached=grown("new", 2)),
    Case(7, "asked topic", CREATED, f"{TOPIC}/partitions/1", CREATE, asked=True, reached=grown("new", 2)),
    Case(7, "growth", CREATED, f"{ORDERS}/partitions/2", GROW, asked=True, reached=grown("orders", 3)),
    Case(8, "topic", CREATED, state("new-0"), NEW, reached=led("new-1", 2)),
    Case(8, "orphan", CREATED, state("new-0"), leaves_partition_without_state, nth=2, reached=led("new-0", 1)),
    Case(9, "office", WRITTEN, state("stuck-0"), reached=led("stuck-0", 4)),
    Case(9, "failure", WRITTEN, state("orders-0"), fails(1), reached=led("orders-0", 2)),
    Case(9, "failures", WRITTEN, state("moving-0"), fails(1, 3), reached=led("moving-0", 2)),
    Case(9, "return", WRITTEN, state("away-0"), registers(6), topics=AWAY, reached=led("away-0", 6)),
    Case(9, "preferred", WRITTEN, state("apart-0"), prefers(("apart", 0)), topics=APART, reached=led("apart-0", 1)),
    Case(9, "asked", WRITTEN, state("apart-0"), ELECT, topics=APART, asked=True, reached=led("apart-0", 1)),
    Case(9, "shutdown", WRITTEN, state("orders-0"), STOP, asked=True, reached=led("orders-0", 2)),
    Case(10, "failure", WRITTEN, state("orders-1"), fails(1), reached=synced("orders-1", 2, 3)),
    Case(10, "shutdown", WRITTEN, state("orders-1"), STOP, mend=fails(1), reached=synced("orders-1", 2, 3)),
    Case(11, "move begun", WRITTEN, state("moving-0"), MOVE, reached=MOVED),
    Case(11, "move done", WRITTEN, state("moving-0"), MOVE, nth=3, reached=MOVED),
    Case(11, "move ended", WRITTEN, state("moving-0"), MOVE, nth=4, reached=MOVED),
    Case(12, "office", WRITTEN, state("behind-0"), topics=BEHIND, reached=synced("behind-0", 1, 2)),
    Case(12, "move", WRITTEN, state("moving-0"), MOVE, nth=2, reached=MOVED),
)
ASSIGNMENTS: Final = (
    Case(13, "move begun", WRITTEN, MOVING, MOVE, reached=MOVED),
    Case(13, "move done", WRITTEN, MOVING, MOVE, nth=2, reached=MOVED),
    Case(13, "asked", WRITTEN, MOVING, ASK_MOVE, asked=True, reached=MOVED),
    Case(13, "cancel", WRITTEN, MOVING, moves_and_cancels, nth=2, slow=(4,), reached=moved_or_stayed),
    Case(13, "growth", WRITTEN, ORDERS, GROW, asked=True, reached=grown("orders", 3)),
    Case(14, "id", WRITTEN, ORDERS, writes_topic("orders", (1, 2, 3), (2, 3, 1))),
    Case(14, "growth", WRITTEN, LAME, grows_while_deleted, topics=HALTED, mend=registers(6), reached=gone("halted")),
    Case(15, "office", WRITTEN, ORDERS),
    Case(15, "topic", WRITTEN, TOPIC, NEW, reached=grown("new", 2)),
    Case(16, "one of two", WRITTEN, RECORD, MOVES, slow=(5,), reached=ALL_MOVED),
    Case(16, "last", DELETED, RECORD, MOVES, reached=ALL_MOVED),
    Case(16, "unknown", DELETED, RECORD, moves({("nobody", 0): (1,)})),
    Case(17, "preferred", DELETED, paths.PREFERRED_ELECTION, prefers(("stuck", 0))),
)
ENDS: Final = (
    Case(18, "states", DELETED, state("doomed-0"), DELETE, reached=gone("doomed")),
    Case(18, "partition", DELETED, f"{DOOMED}/partitions/1", DELETE, reached=gone("doomed")),
    Case(18, "partitions", DELETED, f"{DOOMED}/partitions", DELETE, reached=gone("doomed")),
    Case(18, "topic", DELETED, DOOMED, DELETE, reached=gone("doomed")),
    Case(19, "deleted", DELETED, paths.config_path("topics", "doomed"), DELETE, reached=gone("doomed")),
    Case(19, "asked", WRITTEN, SETTINGS, CONFIGURE, asked=True, fenced=False, reached=configured),
    Case(20, "deleted", DELETED, paths.delete_topic_path("doomed"), DELETE, reached=gone("doomed")),
    Case(20, "unknown", DELETED, paths.delete_topic_path("nobody"), deletes("nobody")),
    Case(20, "asked", CREATED, MARK, ASK_DELETE, asked=True, fenced=False, reached=gone("doomed")),
    Case(22, "block", WRITTEN, paths.PRODUCER_IDS, gets_producer_ids, asked=True, fenced=False, reached=allocated),
)


# -- the test


KILLS: Final = [
    pytest.param(case, way, id=f"W{case.point}-{case.name}-{way.name.lower()}".replace(" ", "-"))
    for case in (*OFFICE, *STATES, *ASSIGNMENTS, *ENDS)
    for way in Way
    if case.fenced or way is not Way.OVERTAKEN
]


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
        case.before(made[-1], nothing)
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


@pytest.mark.parametrize("case, way", KILLS)
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
            case.mend(world, nothing)
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
