"""A shadow agrees with a controller that decides as Kafka does, and reports manual changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kframe.embedded import CountingTransport, MemoryEnsemble, VirtualClock
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.config import ControllerConfig
from kframe.model.events import ElectionType
from kframe.runtime.builder import ControllerBuilder
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.whatif.shadow import Comparison, Shadow

CONFIG = {"auto.leader.rebalance.enable": "false"}
TOPICS = {
    "t": [healthy(1, 2, 3), healthy(2, 3, 1), healthy(3, 1, 2)],
    "moved": [PartitionSpec((1, 2, 3), 2, (1, 2, 3), leader_epoch=4)],
    "thin": [PartitionSpec((1, 2), 1, (1,)), PartitionSpec((3,), 3, (3,))],
}


class ControlledCluster:
    """Three brokers, an active controller, and a shadow before its first observation."""

    def __init__(self) -> None:
        self.ensemble = MemoryEnsemble.from_cluster(cluster_of(TOPICS, (1, 2, 3)))
        self.controllers = 0
        self.take_over()
        self.shadow = Shadow(self.ensemble.connect(), ControllerConfig(CONFIG))
        self.shadow.open()

    def take_over(self) -> None:
        """Elect another controller."""
        self.controllers += 1
        store = self.ensemble.connect()
        self.controller = ControllerBuilder(
            1000 + self.controllers, store, CountingTransport(), CONFIG, clock=VirtualClock()
        ).build()
        self.controller.open()
        self.work()

    def work(self) -> None:
        self.controller.run_until_idle()

    def stop(self, *broker_ids: int) -> None:
        self.ensemble.unregister_brokers(broker_ids)
        self.work()

    def start(self, *broker_ids: int) -> None:
        self.ensemble.register_brokers(map(registration, broker_ids))
        self.work()

    def shut_down(self, broker_id: int) -> None:
        self.controller.controlled_shutdown(broker_id)
        self.work()

    def comparison(self) -> Comparison:
        """Return the shadow's comparison after all changes."""
        while self.shadow.poll():
            pass
        comparison = self.shadow.compare()
        assert comparison is not None
        assert not self.shadow.unsettled
        return comparison


@pytest.fixture
def cluster() -> ControlledCluster:
    return ControlledCluster()


def _bounce(cluster: ControlledCluster) -> None:
    cluster.ensemble.bounce_brokers((2,))
    cluster.work()


def _stop_poll_and_start(cluster: ControlledCluster) -> None:
    cluster.stop(1)
    cluster.shadow.poll()
    cluster.start(1)


def _shut_down_and_stop(cluster: ControlledCluster) -> None:
    cluster.shut_down(2)
    cluster.stop(2)


def _shut_down_without_stop(cluster: ControlledCluster) -> None:
    cluster.shut_down(1)


def _catch_up(cluster: ControlledCluster) -> None:
    cluster.ensemble.write_state("thin", 0, isr=(1, 2))
    cluster.shadow.poll()
    cluster.stop(1)


def _catch_up_in_between(cluster: ControlledCluster) -> None:
    cluster.stop(3)
    cluster.shadow.poll()
    cluster.ensemble.write_state("thin", 0, isr=(1, 2))
    cluster.shadow.poll()
    cluster.stop(1)


def _elect_preferred(cluster: ControlledCluster) -> None:
    cluster.controller.elect_leaders(ElectionType.PREFERRED, [("moved", 0)])
    cluster.work()


def _elect_preferred_by_znode(cluster: ControlledCluster) -> None:
    cluster.ensemble.request_preferred_election([("moved", 0)])
    cluster.work()


def _restart_and_elect_preferred(cluster: ControlledCluster) -> None:
    cluster.stop(1)
    cluster.shadow.poll()
    cluster.start(1)
    for partition in range(3):
        cluster.ensemble.write_state("t", partition, isr=(2, 3, 1))
    cluster.shadow.poll()
    cluster.controller.elect_leaders(ElectionType.PREFERRED, [("t", 0)])
    cluster.work()


def _create(cluster: ControlledCluster) -> None:
    cluster.controller.create_topics([NewTopic("new", 5, 2)])
    cluster.work()


def _add_partitions(cluster: ControlledCluster) -> None:
    cluster.controller.create_partitions([NewPartitions("t", 6)])
    cluster.work()


def _create_while_a_broker_is_offline(cluster: ControlledCluster) -> None:
    cluster.stop(3)
    cluster.shadow.poll()
    cluster.controller.create_topics([NewTopic("new", assignments=((0, (3, 1)), (1, (3,))))])
    cluster.work()


def _fail_over(cluster: ControlledCluster) -> None:
    cluster.controller.stop()
    cluster.shadow.poll()
    cluster.take_over()


def _fail_over_with_a_broker(cluster: ControlledCluster) -> None:
    """The controller's own broker fails, and no controller is active until the next election."""
    cluster.controller.stop()
    cluster.ensemble.unregister_brokers((1,))
    cluster.shadow.poll()
    cluster.take_over()


def _enable_unclean_election(cluster: ControlledCluster) -> None:
    cluster.stop(1)
    cluster.shadow.poll()
    cluster.ensemble.configure_topic("thin", {"unclean.leader.election.enable": "true"})
    cluster.work()


@pytest.mark.parametrize(
    "act",
    [
        lambda cluster: None,
        lambda cluster: cluster.stop(1),
        lambda cluster: cluster.stop(1, 2),
        lambda cluster: cluster.stop(3),
        lambda cluster: cluster.start(4),
        _bounce,
        _stop_poll_and_start,
        _shut_down_and_stop,
        _shut_down_without_stop,
        _catch_up,
        _catch_up_in_between,
        _elect_preferred,
        _elect_preferred_by_znode,
        _restart_and_elect_preferred,
        _create,
        _add_partitions,
        _create_while_a_broker_is_offline,
        _fail_over,
        _fail_over_with_a_broker,
        _enable_unclean_election,
    ],
)
def test_shadow_agrees_with_controller_decisions(
    cluster: ControlledCluster, act: Callable[[ControlledCluster], None]
) -> None:
    """Also after requests, which are not stored: the engine computes whether their result is possible."""
    act(cluster)
    comparison = cluster.comparison()
    assert [disagreement.line() for disagreement in comparison.disagreements] == []
    assert (comparison.compared, comparison.skipped) == (len(cluster.ensemble.stored()), 0)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"leader": 2}, "expected leader 1 epoch 0 isr 1,2,3, found leader 2 epoch 0 isr 1,2,3"),
        ({"leader_epoch": 7}, "expected leader 1 epoch 0 isr 1,2,3, found leader 1 epoch 7 isr 1,2,3"),
        ({"leader": 2, "leader_epoch": 1}, "expected leader 1 epoch 0 isr 1,2,3, found leader 2 epoch 1 isr 1,2,3"),
        ({"leader": 1, "leader_epoch": 2}, "expected leader 1 epoch 0 isr 1,2,3, found leader 1 epoch 2 isr 1,2,3"),
    ],
)
def test_modified_state_is_reported_once(cluster: ControlledCluster, changes: dict[str, int], difference: str) -> None:
    """One record and one log line report it. The shadow then accepts the stored state."""
    cluster.ensemble.write_state("t", 0, **changes)  # type: ignore[arg-type]
    assert cluster.shadow.poll()
    assert cluster.shadow.unsettled
    (disagreement,) = cluster.comparison().disagreements
    assert disagreement.line() == f"t-0: {difference}, after nothing that storage shows"
    record = disagreement.record("now")
    assert (record.at, record.topic, record.partition, record.causes) == ("now", "t", 0, [])
    assert cluster.comparison().disagreements == ()


def test_unhandled_broker_failure_is_reported(cluster: ControlledCluster) -> None:
    """The shadow reports each partition of the failed broker that still has it in the ISR."""
    cluster.ensemble.unregister_brokers((1,))
    comparison = cluster.comparison()
    assert sorted((disagreement.topic, disagreement.partition) for disagreement in comparison.disagreements) == [
        ("moved", 0),
        ("t", 0),
        ("t", 1),
        ("t", 2),
        ("thin", 0),
    ]
    assert {disagreement.causes for disagreement in comparison.disagreements} == {("brokers 2,3",)}


def test_unregistered_broker_in_isr_is_no_disagreement(cluster: ControlledCluster) -> None:
    """Leaders change ISRs, but an unregistered broker in an ISR is no disagreement."""
    cluster.stop(3)
    cluster.comparison()
    cluster.ensemble.write_state("t", 0, isr=(1, 2, 3))
    cluster.shadow.poll()
    cluster.start(4)
    assert [(disagreement.topic, disagreement.partition) for disagreement in cluster.comparison().disagreements] == []


def test_reassigning_and_deleting_topics_are_skipped(cluster: ControlledCluster) -> None:
    """Reassignments follow requests of brokers that the shadow does not observe."""
    cluster.controller.reassign({("t", 0): (2, 3)})
    cluster.work()
    cluster.ensemble.mark_for_deletion(["thin"])
    comparison = cluster.comparison()
    assert (comparison.compared, comparison.skipped, comparison.disagreements) == (1, 5, ())


def test_no_comparison_without_active_controller(cluster: ControlledCluster) -> None:
    cluster.controller.stop()
    cluster.ensemble.unregister_brokers((1,))
    cluster.shadow.poll()
    assert cluster.shadow.compare() is None
    cluster.take_over()
    assert cluster.comparison().disagreements == ()


def test_shadow_restarts_after_session_expiry(cluster: ControlledCluster) -> None:
    """The shadow does not compare changes from before its new session."""
    store = cluster.ensemble.connect()
    shadow = Shadow(store, ControllerConfig(CONFIG))
    shadow.open()
    cluster.ensemble.write_state("t", 0, leader=2)
    cluster.ensemble.expire(store)
    shadow.poll()
    shadow.poll()
    comparison = shadow.compare()
    assert comparison is not None
    assert comparison.disagreements == ()
