"""Actions of operators, brokers and clients on a cluster with a controller, and checks of their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Any, Final

from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.cluster import decode_producer_ids
from kframe_zookeeper.znodes.configs import decode_config
from kframe_zookeeper.znodes.topics import decode_state, decode_topic, encode_topics

from kframe import events
from kframe.plugin.cluster import Targets, TopicTable
from kframe.plugin.controller import Controller
from kframe.plugin.store import Claim
from kframe.testing.clusters import registration
from verification.zookeeper.trees import Tree, children
from verification.zookeeper.victims import Task

#: The id of a third controller.
THIRD_ID: Final = 103

#: Runs a task in a controller.
RunTask = Callable[[Task], None]
#: An action on the fixture or, through the task runner, on the controller.
Action = Callable[[ZooKeeperFixture, RunTask], None]


def no_action(*_: object) -> None:
    """No action beside the election."""


# -- actions


def fails(*brokers: int) -> Action:
    """Delete the registrations of these brokers in one transaction."""
    return lambda fixture, _: fixture.unregister_brokers(brokers)


def registers(broker: int) -> Action:
    """A broker registers, or registers again."""

    def register(fixture: ZooKeeperFixture, _: RunTask) -> None:
        fixture.register_brokers([registration(broker)])

    return register


def loses_log_dir(fixture: ZooKeeperFixture, _: RunTask) -> None:
    """Broker 2 reports a failed log directory."""
    fixture.notify_log_dir_event(2)


def notifies_isr_change(fixture: ZooKeeperFixture, _: RunTask) -> None:
    """A leader reports an ISR change."""
    fixture.notify_isr_changes([("orders", 0)])


def calls(name: str, *arguments: Any, **keywords: Any) -> Action:
    """A client calls this method of the controller."""
    return lambda _, run_task: run_task(methodcaller(name, *arguments, **keywords))


def writes_topic(name: str, *replicas: tuple[int, ...]) -> Action:
    """Write a topic without an id, as tools before Kafka 2.8 do."""

    def write(fixture: ZooKeeperFixture, _: RunTask) -> None:
        (data,) = encode_topics(TopicTable.of((name,), [replicas]))
        if fixture.operator.exists(paths.topic_path(name)):
            fixture.operator.set(paths.topic_path(name), data)
        else:
            fixture.operator.create(paths.topic_path(name), data)

    return write


def leaves_partition_without_state(fixture: ZooKeeperFixture, _: RunTask) -> None:
    """Leave a partition without a state, as a controller does that dies while it creates a topic."""
    (data,) = encode_topics(TopicTable.of(("new",), [[(1, 2), (2, 3)]]))
    transaction = fixture.operator.transaction()
    transaction.create(paths.topic_path("new"), data)
    transaction.create(paths.partitions_path("new"))
    transaction.create(paths.partition_path("new", 0))
    transaction.commit()


def grows_while_deleted(fixture: ZooKeeperFixture, run_task: RunTask) -> None:
    """Give a topic under deletion a new partition and a replica on a missing broker."""
    deletes("halted")(fixture, run_task)
    writes_topic("halted", (2, 6), (2, 3))(fixture, run_task)


def reassigns_and_cancels(_: ZooKeeperFixture, run_task: RunTask) -> None:
    """A client requests a reassignment, then cancels it."""
    for target in ((3, 4), None):
        run_task(methodcaller("reassign", {("moving", 0): target}))


def reassigns(targets: Mapping[tuple[str, int], Sequence[int]]) -> Action:
    """An operator writes these reassignments, as Kafka's tools up to 2.8 do."""
    return lambda fixture, _: fixture.request_reassignments(Targets.of(list(targets.items())))


def deletes(*names: str) -> Action:
    """An operator marks these topics for deletion."""
    return lambda fixture, _: fixture.mark_for_deletion(names)


def prefers(*partitions: tuple[str, int]) -> Action:
    """An operator requests preferred leader elections."""
    return lambda fixture, _: fixture.request_preferred_election(partitions)


def another_controller_elected(fixture: ZooKeeperFixture, _: RunTask) -> None:
    """Another controller takes the role, and does not contend again when it loses it."""
    store = fixture.connect()
    store.open(no_action)
    assert store.perform(Claim(THIRD_ID)) == 1


def configures(topic: str, config: Mapping[str, str]) -> Action:
    """An operator changes the settings of a topic."""
    return lambda fixture, _: fixture.configure_topic(topic, config)


def rebalances(_: ZooKeeperFixture, run_task: RunTask) -> None:
    """The timer of the preferred leader rebalancing fires."""
    run_task(_queue_rebalance)


def _queue_rebalance(controller: Controller) -> None:
    controller._loop.queue.put(events.RebalanceLeaders())


def gets_producer_ids(fixture: ZooKeeperFixture, run_task: RunTask) -> None:
    """Broker 1 requests a block of producer ids."""
    epoch = fixture.operator.exists(paths.broker_path(1)).czxid
    run_task(methodcaller("submit", partial(events.ProducerIdsRequested, 1, epoch)))


# -- goals


def state_of(tree: Tree, partition: str) -> Any:
    """The state of a partition."""
    path = state(partition)
    return decode_state(tree[path].data, path)


def replicas(tree: Tree, partition: str) -> list[int]:
    """The assignment of a partition."""
    topic, _, number = partition.rpartition("-")
    return decode_topic(topic, tree[paths.topic_path(topic)].data).replicas[int(number)]


def has_leader(partition: str, leader: int) -> Callable[[Tree], bool]:
    """Whether this broker is the leader."""
    return lambda tree: bool(state_of(tree, partition).leader == leader)


def has_isr(partition: str, *isr: int) -> Callable[[Tree], bool]:
    """Whether the ISR has these members."""
    return lambda tree: set(state_of(tree, partition).isr) == set(isr)


def has_replicas(partition: str, *expected: int) -> Callable[[Tree], bool]:
    """Whether these are the replicas, and all are in sync."""
    return lambda tree: (
        replicas(tree, partition) == list(expected) and set(state_of(tree, partition).isr) == set(expected)
    )


def reassigned_or_cancelled(tree: Tree) -> bool:
    """Whether the reassignment is complete or cancelled."""
    return any(has_replicas("moving-0", *target)(tree) for target in ((3, 4), (1, 2)))


def topic_deleted(topic: str) -> Callable[[Tree], bool]:
    """Whether no node of the topic is left."""
    return lambda tree: not any(f"/{topic}/" in f"{path}/" for path in tree)


def has_partitions(topic: str, count: int) -> Callable[[Tree], bool]:
    """Whether ``count`` partitions have a state."""
    return lambda tree: len(children(tree, paths.partitions_path(topic))) == count


def configured(tree: Tree) -> bool:
    """Whether the setting is stored, with a notification."""
    path = paths.config_path("topics", "orders")
    notifications = [node.data for path, node in tree.items() if path.startswith(paths.CONFIG_CHANGE)]
    return decode_config(tree[path].data, path).get("retention.ms") == "5" and any(
        b"orders" in record for record in notifications
    )


def allocated(tree: Tree) -> bool:
    """Whether the block of producer ids is valid."""
    block = decode_producer_ids(tree[paths.PRODUCER_IDS].data)
    return block is not None and block.first % 1000 == 0


def state(partition: str) -> str:
    """Path of a partition's state."""
    topic, _, number = partition.rpartition("-")
    return paths.state_path(topic, int(number))
