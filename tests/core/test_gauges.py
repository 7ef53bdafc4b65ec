"""Every gauge equals a recount from scratch after any events, and rows without changes are not counted again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.core.state.metrics import INACTIVE
from kframe.embedded import Api, EmbeddedBrokers, MemoryEnsemble, VirtualClock
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.arrays import Ragged
from kframe.model.cluster import ClusterState, PartitionView
from kframe.model.config import ControllerConfig
from kframe.model.events import (
    AlterPartitionRequested,
    ControlledShutdownRequested,
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    ElectionRequested,
    ElectionType,
    ReassignmentRequested,
    ResignRequested,
)
from kframe.model.ids import NO_BROKER_EPOCH, NO_LEADER, PartitionState, ReplicaState
from kframe.model.tables import RequestedPartitions, Targets
from kframe.runtime.loop import ControllerLoop
from kframe.scenario.format import read_scenario
from kframe.scenario.runner import ScenarioRunner
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from verification.support.properties import examples
from verification.support.sampling import every_nth

BROKERS = (1, 2, 3, 4)
SCENARIOS = sorted((Path(__file__).parents[1] / "golden" / "scenarios").glob("*.yaml"))


def recount(controller: ControllerCore) -> dict[str, int]:
    """Return all gauges by their definitions (``controller.md`` section 16), partition by partition."""
    if not controller.active:
        return dict(INACTIVE)
    cluster = controller.cluster
    topics = cluster.topics
    queued = {name for name in topics.names if name in topics and topics.deleting[topics.find(name)]}
    started = {name for name in queued if topics.deletion_started[topics.find(name)]}
    halted = {name for name in queued if topics.deletion_halted[topics.find(name)]}
    partitions = list(cluster)
    led = [partition for partition in partitions if partition.leader is not None]
    deleting = Counter(
        state for partition in partitions if partition.topic in queued for state in partition.replica_states
    )
    return {
        "ActiveControllerCount": 1,
        "GlobalTopicCount": sum(name in topics for name in set(topics.names)),
        "GlobalPartitionCount": len(led),
        "OfflinePartitionsCount": sum(
            partition.state is PartitionState.OFFLINE and partition.topic not in started for partition in partitions
        ),
        "PreferredReplicaImbalanceCount": sum(
            imbalanced(partition) for partition in led if partition.topic not in queued
        ),
        "TopicsToDeleteCount": len(queued),
        "TopicsIneligibleToDeleteCount": len(halted),
        "ReplicasToDeleteCount": deleting.total() - deleting[ReplicaState.DELETION_SUCCESSFUL],
        "ReplicasIneligibleToDeleteCount": deleting[ReplicaState.DELETION_INELIGIBLE],
        "ActiveBrokerCount": len(cluster.brokers.registered_ids()),
        "FencedBrokerCount": 0,
    }


def imbalanced(partition: PartitionView) -> bool:
    preferred = partition.replicas[0]
    if preferred in partition.adding_replicas:
        return preferred in partition.isr
    return partition.leader == NO_LEADER or partition.leader != preferred  # the list may contain broker -1


class Simulation:
    """A controller with two topics on four brokers, and every event that can change it."""

    def __init__(self) -> None:
        led_by_second = PartitionSpec((3, 2), leader=2, isr=(2, 3))
        cluster = cluster_of({"a": [healthy(1, 2, 3), led_by_second, healthy(4)], "b": [healthy(2, 1)]}, BROKERS)
        self.ensemble = MemoryEnsemble.from_cluster(cluster)
        self.store = self.ensemble.connect()
        self.clock = VirtualClock()
        self.brokers = EmbeddedBrokers(self.clock)
        config = ControllerConfig({"unclean.leader.election.enable": True, "auto.leader.rebalance.enable": False})
        self.loop = ControllerLoop(ControllerCore(1000, config, Selection({})), self.store, self.brokers, self.clock)
        self.loop.open()

    def settle(self) -> dict[str, int]:
        """Handle all pending events. Return the gauges."""
        self.loop.run_until_idle()
        return dict(self.loop.status().gauges)

    def do(self, operation: str, x: int, y: int) -> None:
        getattr(self, f"do_{operation}")(x, y)

    def topic(self, x: int) -> str:
        return "abcd"[x % 4]

    def views(self) -> list[PartitionView]:
        return list(self.ensemble.states.cluster)

    def broker(self, x: int) -> int:
        return BROKERS[x % len(BROKERS)]

    def registered(self, broker_id: int) -> bool:
        return broker_id in {registration.broker_id for registration in self.ensemble.registrations()}

    def do_create(self, x: int, y: int) -> None:
        topic = NewTopic(self.topic(x), partitions=1 + y % 3, replication_factor=1 + y % 2)
        self.loop.submit(lambda token: CreateTopicsRequested((topic,), start_index=y, shift=x, token=token))

    def do_grow(self, x: int, y: int) -> None:
        growth = NewPartitions(self.topic(x), count=1 + y % 6)
        self.loop.submit(lambda token: CreatePartitionsRequested((growth,), token=token))

    def do_delete(self, x: int, y: int) -> None:
        self.loop.submit(lambda token: DeleteTopicsRequested((self.topic(x),), token=token))

    def do_vanish(self, x: int, y: int) -> None:
        """Delete a topic from storage without the controller, as an operator can."""
        self.ensemble.topics.delete(self.ensemble._operator, (self.topic(x),))  # no Kafka tool does this

    def do_reassign(self, x: int, y: int) -> None:
        views = self.views()
        if views:
            view = views[x % len(views)]
            replicas = [self.broker(y + offset) for offset in range(1 + y % 3)]
            targets = Targets.of([((view.topic, view.partition), None if y % 7 == 0 else replicas)])
            self.loop.submit(lambda token: ReassignmentRequested(targets, token))

    def do_alter(self, x: int, y: int) -> None:
        """The leader of a partition proposes an ISR of itself and some other replicas."""
        registrations = {registration.broker_id: registration for registration in self.ensemble.registrations()}
        views = [view for view in self.views() if view.leader in registrations]
        if not views:
            return
        view = views[x % len(views)]
        leader = view.leader or 0
        others = [broker for position, broker in enumerate(view.replicas) if broker != leader and (y >> position) & 1]
        self.loop.submit(
            lambda token: AlterPartitionRequested(
                leader,
                registrations[leader].broker_epoch,
                1,
                RequestedPartitions.of([(view.topic, view.partition)]),
                np.array([view.leader_epoch], np.int32),
                np.array([view.partition_epoch], np.int32),
                np.array([view.recovery], np.uint8),
                Ragged.of([[leader, *others]]),
                token,
            )
        )

    def do_down(self, x: int, y: int) -> None:
        if self.registered(self.broker(x)):
            self.ensemble.unregister_brokers([self.broker(x)])

    def do_up(self, x: int, y: int) -> None:
        if not self.registered(self.broker(x)):
            self.ensemble.register_brokers([registration(self.broker(x))])

    def do_bounce(self, x: int, y: int) -> None:
        if self.registered(self.broker(x)):
            self.ensemble.bounce_brokers([self.broker(x)])

    def do_elect(self, x: int, y: int) -> None:
        self.loop.submit(lambda token: ElectionRequested(ElectionType(x % 2), None, token))

    def do_shut_down(self, x: int, y: int) -> None:
        self.loop.submit(lambda token: ControlledShutdownRequested(self.broker(x), NO_BROKER_EPOCH, token))

    def do_refuse_deletion(self, x: int, y: int) -> None:
        self.brokers.respond_with(self.broker(x), ("KAFKA_STORAGE_ERROR", "SILENT", "NONE")[y % 3], Api.STOP_REPLICA)

    def do_fail_log_dir(self, x: int, y: int) -> None:
        views = self.views()
        if views:
            view = views[y % len(views)]
            self.brokers.fail_log_dir(self.broker(x), [f"{view.topic}-{view.partition}"])
            self.ensemble.notify_log_dir_event(self.broker(x))

    def do_race(self, x: int, y: int) -> None:
        """Write a state as a broker does, with an ISR change notification."""
        views = [view for view in self.views() if view.leader is not None]
        if views:
            view = views[x % len(views)]
            isr = view.isr[: 1 + y % 2]
            self.ensemble.write_state(view.topic, view.partition, leader=isr[-1], isr=isr)
            if y % 3:
                self.ensemble.notify_isr_changes([(view.topic, view.partition)])

    def do_depose(self, x: int, y: int) -> None:
        if self.loop.controller.active:
            self.ensemble.drop_controller()

    def do_expire(self, x: int, y: int) -> None:
        self.ensemble.expire(self.store)

    def do_resign(self, x: int, y: int) -> None:
        self.loop.queue.put(ResignRequested())


WHAT = sorted(name.removeprefix("do_") for name in vars(Simulation) if name.startswith("do_"))
STEPS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 23), st.integers(0, 23)), max_size=25)


@example([("down", 2, 0), ("delete", 0, 0)])  # A topic with an offline replica is ineligible for deletion.
@given(STEPS)
@settings(examples(1.6), suppress_health_check=[HealthCheck.too_slow])
def test_gauges_equal_recount_after_any_history(steps: list[tuple[str, int, int]]) -> None:
    simulation = Simulation()
    assert simulation.settle() == recount(simulation.loop.controller)
    for operation, x, y in steps:
        simulation.do(operation, x, y)
        gauges = simulation.settle()
        assert gauges == recount(simulation.loop.controller), (operation, x, y)
    simulation.loop.stop()
    assert simulation.loop.status().gauges == INACTIVE


def test_ineligible_replica_counts_while_deletion_is_pending() -> None:
    simulation = Simulation()
    simulation.brokers.respond_with(1, "KAFKA_STORAGE_ERROR", Api.STOP_REPLICA)
    simulation.brokers.respond_with(2, "SILENT", Api.STOP_REPLICA)
    simulation.settle()
    simulation.do_delete(1, 0)
    gauges = simulation.settle()
    assert gauges == recount(simulation.loop.controller)
    assert (gauges["ReplicasToDeleteCount"], gauges["ReplicasIneligibleToDeleteCount"]) == (2, 1)


@pytest.mark.parametrize("path", every_nth(4, SCENARIOS), ids=lambda path: path.stem)
def test_gauges_equal_recount_in_golden_scenario(path: Path) -> None:
    runner = ScenarioRunner(read_scenario(path))
    for entry in runner.play_steps():
        assert runner.loop.status().gauges == recount(runner.loop.controller), entry["step"]


PREFERRED_CASES: list[tuple[str, PartitionSpec, int]] = [
    ("the preferred replica leads", PartitionSpec((1, 2), 1, (1, 2)), 0),
    ("another replica leads", PartitionSpec((1, 2), 2, (1, 2)), 1),
    ("no leader", PartitionSpec((1, 2), -1, (1, 2)), 1),
    ("it never had a leader", PartitionSpec((1, 2)), 0),
    ("the preferred replica is being added, not in sync", PartitionSpec((3, 1), 1, (1,), adding_replicas=(3,)), 0),
    ("the preferred replica is being added, in sync", PartitionSpec((3, 1), 1, (1, 3), adding_replicas=(3,)), 1),
    ("another is being added", PartitionSpec((1, 3), 1, (1, 3), adding_replicas=(3,)), 0),
]


@pytest.mark.parametrize("spec, expected", [case[1:] for case in PREFERRED_CASES], ids=[c[0] for c in PREFERRED_CASES])
def test_preferred_replica_imbalance(spec: PartitionSpec, expected: int) -> None:
    """controller 11.4: PreferredReplicaImbalanceCount."""
    loop = adopted(cluster_of({"t": [spec]}, registered=(1, 2, 3)))
    assert loop.status().gauges["PreferredReplicaImbalanceCount"] == expected


def adopted(cluster: ClusterState) -> ControllerLoop:
    """Return a controller of this cluster that has not changed anything."""
    store = MemoryEnsemble.from_cluster(cluster).connect()
    clock = VirtualClock()
    loop = ControllerLoop(ControllerCore(1, ControllerConfig(), Selection({})), store, EmbeddedBrokers(clock), clock)
    loop.adopt()
    return loop


def test_halted_deleting_topic_stays_in_gauges() -> None:
    """A dead broker halts the deletion. Its replicas stay offline, since the deletion cannot start."""
    simulation = Simulation()
    simulation.do_down(3, 0)
    simulation.settle()
    simulation.do_reassign(0, 1)
    simulation.settle()
    simulation.do_delete(0, 0)
    gauges = simulation.settle()
    assert gauges == recount(simulation.loop.controller)
    assert (gauges["TopicsToDeleteCount"], gauges["TopicsIneligibleToDeleteCount"]) == (1, 1)
    assert gauges["PreferredReplicaImbalanceCount"] == 0


# -- cost


@pytest.mark.parametrize("partitions", [1_000, 50_000])
def test_change_of_an_isr_alone_counts_no_row(partitions: int) -> None:
    replicas = Ragged(np.arange(0, 2 * partitions + 1, 2, dtype=np.int32), np.tile([0, 1], partitions).astype(np.int32))
    cluster = ClusterState()
    cluster.brokers.register([registration(1, broker_epoch=7), registration(2, broker_epoch=7)])
    zeros = np.zeros(partitions, np.int32)
    values: dict[str, Any] = {"leader": zeros, "leader_epoch": zeros, "partition_epoch": zeros}
    cluster.add_topics(["t"], np.array([partitions]), replicas, replicas, values)
    loop = adopted(cluster)
    rows = loop.controller.context.gauges.rows
    before = rows.visited
    assert before == partitions
    zero, isr = np.zeros(1, np.int32), Ragged.of([[1]])
    loop.submit(
        lambda token: AlterPartitionRequested(
            1, 7, 1, RequestedPartitions.of([("t", 5)]), zero, zero, np.zeros(1, np.uint8), isr, token
        )
    )
    loop.run_until_idle()
    assert loop.controller.cluster["t", 5].isr == (1,)
    assert rows.visited == before
