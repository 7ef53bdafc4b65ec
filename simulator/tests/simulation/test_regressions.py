"""Regression tests of defects of the simulator. See docs/evidence/simulation.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import EmbeddedBrokers, MemoryEnsemble, VirtualClock
from kframe.embedded.layout import REASSIGN_PARTITIONS
from kframe.errors import ErrorCode
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.events import Event, LeaderAndIsrResponseReceived, TopicPartition
from kframe.ports.store_requests import Claim, ReadBrokers, ReadReassignments
from kframe.runtime.loop import ControllerLoop
from kframe.scenario.format import parse_scenario
from kframe.scenario.runner import ScenarioRunner
from kframe_simulator import Action, Simulation, plan_of
from kframe_simulator import play as play_plan
from kframe_simulator.replication.scenario import Replication
from kframe_simulator.simulation.controllers import ControllerProcess
from verification.simulator.at_rest import QUIET


def play(partition: str, steps: list[str], protocol: str = "3.9") -> tuple[ScenarioRunner, list[dict[str, Any]]]:
    """Play steps on topic t with one partition on brokers 1 to 4."""
    text = "\n".join(
        [
            "schema: kframe.scenario/v1",
            "name: found",
            f'config: {{"inter.broker.protocol.version": "{protocol}", "kframe.reassignment.strict": true}}',
            "brokers: [{id: 1}, {id: 2}, {id: 3}, {id: 4}]",
            f"topics: [{{name: t, partitions: [{partition}]}}]",
            "steps:",
            *(f"  - {step}" for step in ("elect: {}", *steps)),
        ]
    )
    runner = ScenarioRunner(parse_scenario(text, "found"), make_replication=Replication)
    assert isinstance(runner.storage, MemoryEnsemble)
    return runner, list(runner.play_steps())


def stored(runner: ScenarioRunner) -> Any:
    view = runner.stored(("t", 0))
    assert view is not None
    return view


ALONE = "{partition: 0, replicas: [1], leader: 1, isr: [1]}"
#: Broker 2, added by a reassignment to 2 and 3, becomes leader and the whole ISR.
LED_BY_AN_ADDED_REPLICA = [
    "reassign: {t-0: [2, 3]}",
    "alter_partition: {t-0: {isr: [1, 2]}}",
    "broker_failure: [1]",
]


def test_reassignment_keeps_an_in_sync_replica() -> None:
    """Seed 606: an operator overrides a reassignment, and the only in-sync replica would be deleted."""
    runner, trace = play(ALONE, [*LED_BY_AN_ADDED_REPLICA, "reassign: {t-0: [3]}"])
    assert trace[-1]["response"] == {"t-0": "UNKNOWN_SERVER_ERROR"}
    assert trace[-1]["requests"] == []
    assert (stored(runner).leader, stored(runner).isr, stored(runner).replicas) == (2, (2,), (2, 3, 1))


def test_removed_leader_of_reassignment_is_replaced() -> None:
    """Seed 245: the partition counted as Online, without a leader."""
    back = ["broker_startup: [1]", "alter_partition: {t-0: {isr: [2, 1]}}"]
    runner, _ = play(ALONE, [*LED_BY_AN_ADDED_REPLICA, *back, "reassign: {t-0: [3]}"])
    assert (stored(runner).leader, stored(runner).isr, stored(runner).replicas) == (1, (1,), (3, 1))


def test_topic_deletion_removes_stored_reassignment() -> None:
    """Seed 30: the record stayed, and no operator could create another one."""
    runner, _ = play(ALONE, ["reassign_znode: {t-0: [2]}", "delete_topics: [t]"])
    store = runner.loop.store
    assert store.perform(ReadReassignments()) is None
    assert store.read_record(REASSIGN_PARTITIONS) is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("protocol", ["2.6", "2.7-IV1"])
def test_failed_broker_is_removed_from_isr_written_by_leader(protocol: str) -> None:
    """Seed 59: the controller's memory no longer had the broker in the ISR, so it wrote nothing."""
    runner, _ = play("{partition: 0, replicas: [1, 2, 3], leader: 1, isr: [1]}", [], protocol)
    runner.storage.write_state("t", 0, isr=[1, 2, 3])
    runner.storage.unregister_brokers([3])
    runner.run_until_idle()
    assert stored(runner).isr == (1, 2)


def test_role_won_in_an_ended_session_is_released() -> None:
    """Seed 449: the claim succeeded in the next session, and was then released as if it were the previous session's."""
    ensemble, clock = MemoryEnsemble.from_cluster(ClusterState()), VirtualClock()
    store = ensemble.connect()
    controller = ControllerCore(1000, ControllerConfig(), Selection({}))
    loop = ControllerLoop(controller, store, EmbeddedBrokers(clock), clock)
    loop.open()
    event = loop.queue.take()
    assert event is not None
    for effect in loop.handle(event):
        if isinstance(effect, Claim):
            ensemble.expire(store)
    loop.run_until_idle()
    assert controller.active


class Listening(Simulation):
    """A simulation that records the partitions with errors in responses."""

    def __init__(self, *args: Any) -> None:
        self.failed: set[tuple[int, TopicPartition]] = set()
        super().__init__(*args)

    def event_begins(self, process: ControllerProcess, event: Event) -> None:
        """Record errors of LeaderAndIsr."""
        if isinstance(event, LeaderAndIsrResponseReceived):
            wrong = {key for key, error in event.partition_errors if error is ErrorCode.UNKNOWN_SERVER_ERROR}
            self.failed |= {(event.broker_id, key) for key in wrong}
        super().event_begins(process, event)


def test_r47_cluster_converges_after_partly_applied_leader_and_isr() -> None:
    """KAFKA-9769: brokers apply LeaderAndIsr and return an error, while one of them restarts."""
    options, _ = plan_of(7)
    plan = [
        *(Action(1_000.0, "half_apply", {"broker": broker}) for broker in range(len(options.brokers))),
        Action(1_100.0, "crash_broker", {"broker": 1}),
        Action(9_000.0, "half_apply", {"broker": 1}),
        Action(9_100.0, "start_broker", {"broker": 0}),
    ]
    simulation = Listening(replace(options, producers=()), plan)
    assert simulation.run().violations == ()
    assert len({broker for broker, _ in simulation.failed}) >= 2


@pytest.mark.parametrize("which", [0, 1], ids=["registration", "topic"])
def test_repaired_znode_is_read_without_failover(which: int) -> None:
    """Seeds 33, 50, 2000006: the topic stayed unknown until the next failover, or its leader proposed nothing."""
    options, _ = plan_of(7)
    plan = [
        Action(1_000.0, "malform", {"which": which ^ 1, "pick": 0}),
        Action(1_100.0, "drop_controller"),
        Action(2_000.0, "crash_broker", {"broker": 1}),
    ]
    result = play_plan(replace(options, producers=()), plan)
    assert result.violations == ()
    assert result.played["malform"] == result.played["drop_controller"] == 1


def test_unreadable_registration_does_not_fail_broker() -> None:
    """Seed 56291: the broker was taken for dead. It received older requests after newer ones."""
    options, _ = plan_of(7)
    simulation = Simulation(
        replace(options, producers=(), controllers=1), [Action(1_000.0, "malform", {"which": 1, "pick": 0})]
    )
    observed: list[tuple[bool, int]] = []
    simulation.scheduler.after(
        1_500.0,
        lambda: observed.append(
            (bool(simulation.ensemble.broken), len(simulation.controllers[0].store.perform(ReadBrokers())))
        ),
    )
    assert simulation.run().violations == ()
    assert observed == [(True, len(options.brokers))]


def test_repeated_proposals_change_no_recovering_partition() -> None:
    """Seeds 8200015 and 200100: leaders repeated proposals that they had never made, and received no responses."""
    options, _ = plan_of(8200015)
    plan = [
        Action(20_621.6, "cancel_leaderless_reassignment", {"pick": 17}),
        Action(27_588.1, "config", {"pick": 38, "unclean": True}),
        Action(43_367.7, "misdirect", {"for_ms": 3_912}),
    ]
    result = play_plan(options, plan)
    assert result.violations == ()
    assert result.played["misdirect"] == 1


def test_leaders_that_write_isrs_themselves_repeat_no_proposals() -> None:
    """Seed 10000896: before 2.7-IV2 a repeated proposal was older than the ISR that its leader had written."""
    options, _ = plan_of(10000896)
    plan = [
        Action(3_823.7, "misdirect", {"for_ms": 2_044}),
        Action(3_867.9, "bounce_broker", {"broker": 1}),
        Action(4_449.5, "expire_controller", {"controller": 27}),
    ]
    result = play_plan(options, plan)
    assert result.violations == ()
    assert result.played["misdirect"] == result.played["bounce_broker"] == 1


def test_deposed_controller_refuses_no_partition_of_its_successor() -> None:
    """Seed 40000648: it refused the ISR as of an unknown partition, and the leader proposed no other one."""
    options, _ = plan_of(40000648)
    plan = [
        Action(2_034.5, "misdirect", {"for_ms": 2_968}),
        Action(2_127.6, "create_partitions", {"pick": 55, "shift": 34, "factor": 3, "count": 1}),
        Action(3_993.9, "shut_down", {"broker": 46}),
        Action(4_552.9, "start_broker", {"broker": 47}),
    ]
    result = play_plan(options, plan)
    assert result.violations == ()
    assert result.played["misdirect"] == result.played["create_partitions"] == 1


def test_storage_error_of_earlier_registration_does_not_stop_a_replica() -> None:
    """From review: the response was handled after the broker had registered again with another disk. The controller
    stopped the replica for good."""
    plan = [
        Action(2_000.0, "delay_reply", {"broker": 0, "controller": 1, "for_ms": 5_500}),
        Action(2_001.0, "fail_log_dir", {"broker": 0}),
    ]
    result = play_plan(replace(QUIET, controllers=1), plan)
    assert result.violations == ()
    assert result.played == {"delay_reply": 1, "fail_log_dir": 1}


def test_cluster_is_not_quiet_before_the_next_election() -> None:
    """Seed 10033109: after ten failed elections the only controller waits 25 seconds before the next one. A broker that
    registers meanwhile is unknown to the others until then."""
    plan = [Action(2_000.0, "fail_failovers", {"times": 10}), Action(28_500.0, "bounce_broker", {"broker": 1})]
    result = play_plan(replace(QUIET, controllers=1, quiescence=True), plan)
    assert result.violations == ()
    assert result.played == {"fail_failovers": 1, "bounce_broker": 1}
