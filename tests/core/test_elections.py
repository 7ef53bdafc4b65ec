"""Elections through the engine, rule by rule (``elections.md`` sections 1 to 4 and 6); section 5 is the truth table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kframe.core import leadership, partition_machine
from kframe.core.leadership import Strategy
from kframe.core.selection import Selection
from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.admin import NewTopic
from kframe.model.asks import WriteStates
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, UInt8
from kframe.model.events import (
    BrokersChanged,
    ControlledShutdownRequested,
    CreateTopicsRequested,
    Elect,
    ElectionRequested,
    ElectionType,
    PreferredElectionLeft,
    ReassignmentRequested,
    RebalanceLeaders,
    TopicPartition,
    TopicSettingsChanged,
)
from kframe.model.ids import NO_BROKER_EPOCH, ElectionKind, PartitionState, ReplicaFlag
from kframe.model.tables import Targets
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from tests.core.driver import Driver, state_of

UNCLEAN = {"unclean.leader.election.enable": "true"}


class Overheard(Selection):
    """The built-in rules, and which kinds of election they were asked for, of which partitions."""

    def __init__(self) -> None:
        super().__init__({})
        self.heard: list[tuple[ElectionKind, list[str], list[int]]] = []

    def choose(
        self,
        cluster: ClusterState,
        kind: ElectionKind,
        rows: Int32,
        unclean_allowed: UInt8,
        builtin: Callable[[Int32], Int32],
    ) -> Int32:
        if len(rows):
            self.heard.append((kind, [cluster.name(row) for row in rows.tolist()], unclean_allowed.tolist()))
        return super().choose(cluster, kind, rows, unclean_allowed, builtin)


def world(
    *specs: PartitionSpec,
    live: tuple[int, ...] = (1, 2, 3),
    config: Mapping[str, object] | None = None,
    selection: Selection | None = None,
) -> Driver:
    """``t`` with these partitions, adopted."""
    driver = Driver(cluster_of({"t": list(specs)}, live), config, selection)
    driver.adopt()
    driver.forget()
    return driver


def elect(driver: Driver, strategy: Strategy) -> None:
    rows = driver.rows("t-0")
    driver.run(partition_machine.move(driver.context, rows, PartitionState.ONLINE, strategy))


# -- 1 inputs, 2 initial rule


def shut_down(driver: Driver) -> None:
    driver.cluster.brokers.shutting_down[driver.cluster.brokers.index_of([1])] = 1


def unregister(driver: Driver) -> None:
    driver.cluster.brokers.unregister(driver.cluster.brokers.index_of([1]))


def lose_the_directory(driver: Driver) -> None:
    driver.cluster.flag_replicas(0, driver.cluster.brokers.index_of([1]), ReplicaFlag.OFFLINE_DIR)


@pytest.mark.parametrize("befall", [shut_down, unregister, lose_the_directory])
@pytest.mark.parametrize("isr", [None, (1, 2, 3)], ids=["initial", "offline"])
def test_who_is_online(isr: tuple[int, ...] | None, befall: Callable[[Driver], None]) -> None:
    """elections 1: online is registered, not shutting down, and no offline log directory.
    elections 2: a shutting-down broker is not eligible.
    """
    driver = world(PartitionSpec((1, 2, 3), isr=isr))
    befall(driver)
    elect(driver, leadership.OFFLINE)
    assert state_of(driver.stored("t-0"))[:2] == (2, (2, 3))
    assert driver.told(Api.LEADER_AND_ISR, "t-0") == [2, 3]


def test_a_broker_that_shuts_down_does_not_count_as_online_elsewhere() -> None:
    """elections 1: shutting-down brokers count only in controlled shutdown, as recipients."""
    driver = world(PartitionSpec((1, 2, 3), 1, (1, 2, 3)))
    shut_down(driver)
    elect(driver, leadership.CONTROLLED_SHUTDOWN)
    assert state_of(driver.stored("t-0"))[:2] == (2, (2, 3))
    assert driver.told(Api.LEADER_AND_ISR, "t-0") == [1, 2, 3]


def test_the_target_of_a_reassignment_is_who_is_not_removed() -> None:
    """elections 1: target is replicas minus removing, order kept."""
    driver = world(PartitionSpec((1, 3, 2), 1, (1, 2, 3), removing_replicas=(1,)))
    elect(driver, leadership.REASSIGN)
    assert state_of(driver.stored("t-0")) == (3, (1, 2, 3), 1)
    assert driver.told(Api.LEADER_AND_ISR, "t-0") == [2, 3]


def test_a_partition_that_stayed_new_is_tried_again_when_a_broker_starts() -> None:
    """elections 2: retried whenever trigger-online runs."""
    driver = world(PartitionSpec((7, 8)), live=(1,))
    for broker_id, expected in ((2, None), (8, (8, (8,), 0))):
        driver.start_broker(broker_id)
        driver.handle(BrokersChanged())
        view = driver.stored("t-0")
        assert (state_of(view) if view.leader is not None else None) == expected


# -- 3 strategies


@pytest.mark.parametrize(
    "strategy", [leadership.OFFLINE, leadership.REASSIGN, leadership.PREFERRED, leadership.CONTROLLED_SHUTDOWN],
    ids=lambda strategy: strategy.kind.name,
)  # fmt: skip
def test_an_election_raises_the_leader_epoch_and_keeps_the_rest(strategy: Strategy) -> None:
    """elections 3: leader_epoch plus one, recovery kept.
    elections 3: a clean election keeps RECOVERING.
    state-machines 1: derived state.
    """
    spec = PartitionSpec((1, 2), 2, (2, 1), leader_epoch=5, controller_epoch=0, partition_epoch=3, recovery=1)
    driver = world(spec)
    elect(driver, strategy)
    view = driver.stored("t-0")
    assert (*state_of(view), view.recovery, view.partition_epoch) == (1, (2, 1), 6, 1, 4)
    assert driver.writes()[0].expected.tolist() == [3]


@pytest.mark.parametrize("strategy", [leadership.OFFLINE, leadership.UNCLEAN], ids=["by config", "by the operator"])
def test_no_election_is_unclean_while_an_isr_member_is_online(strategy: Strategy) -> None:
    """elections 3: unclean only if no ISR member is online."""
    overheard = Overheard()
    spec, dead = PartitionSpec((1, 2, 3), 3, (3, 2)), PartitionSpec((1, 9), 9, (9,))
    driver = world(spec, dead, live=(1, 2), config=UNCLEAN, selection=overheard)
    rows = driver.rows("t-0", "t-1")
    driver.run(partition_machine.move(driver.context, rows, PartitionState.ONLINE, strategy))
    assert overheard.heard == [(ElectionKind.OFFLINE, ["t-0", "t-1"], [0, 1])]
    assert state_of(driver.stored("t-0")) == (2, (2,), 1)
    assert state_of(driver.stored("t-1")) == (1, (1,), 1)
    assert driver.context.counters["UncleanLeaderElectionsPerSec"] == 1


def test_the_operator_may_elect_uncleanly_whatever_the_topic_says() -> None:
    """elections 3: allowUnclean of the strategy."""
    driver = world(PartitionSpec((1, 9), 9, (9,)))
    driver.cluster.topics.unclean[0] = 0
    elect(driver, leadership.UNCLEAN)
    assert (*state_of(driver.stored("t-0")), driver.stored("t-0").recovery) == (1, (1,), 1, 1)


def test_an_unclean_election_that_is_refused_by_storage_is_counted_again() -> None:
    """elections 3: the meter is marked before the write succeeds."""
    driver = world(PartitionSpec((1, 9), 9, (9,)), config=UNCLEAN)
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, leader_epoch=3))
    elect(driver, leadership.OFFLINE)
    assert state_of(driver.stored("t-0")) == (1, (1,), 4)
    assert driver.context.counters["UncleanLeaderElectionsPerSec"] == 2


def test_an_election_out_of_an_empty_isr_is_unclean() -> None:
    """elections 3: leader not in the old ISR means RECOVERING, also if that ISR was empty."""
    driver = world(PartitionSpec((1, 2), None, ()), config=UNCLEAN)
    elect(driver, leadership.OFFLINE)
    assert (*state_of(driver.stored("t-0")), driver.stored("t-0").recovery) == (1, (1,), 1, 1)


@pytest.mark.parametrize("protocol, recovery", [("3.2-IV0", 1), ("3.1-IV0", 0), ("3.9", 1), ("2.7", 0)])
def test_recovering_depends_on_the_inter_broker_protocol(protocol: str, recovery: int) -> None:
    """elections 3: RECOVERING from inter-broker protocol 3.2.
    state-machines 5: recovery state from inter-broker protocol 3.2.
    """
    driver = world(PartitionSpec((1, 9), 9, (9,)), config={**UNCLEAN, "inter.broker.protocol.version": protocol})
    elect(driver, leadership.OFFLINE)
    assert driver.stored("t-0").recovery == recovery


@pytest.mark.parametrize("strategy", [leadership.PREFERRED, leadership.REASSIGN], ids=["preferred", "reassign"])
def test_a_strategy_does_not_ask_whether_the_leader_is_right_already(strategy: Strategy) -> None:
    """elections 3: preferred and reassign do not check the present leader."""
    driver = world(healthy(1, 2, leader_epoch=5))
    elect(driver, strategy)
    assert state_of(driver.stored("t-0")) == (1, (1, 2), 6)


def test_controlled_shutdown_where_the_broker_does_not_lead_is_no_election() -> None:
    """elections 3: controlled shutdown of a follower."""
    overheard = Overheard()
    driver = world(healthy(2, 1, leader_epoch=5), selection=overheard)
    driver.handle(ControlledShutdownRequested(1, NO_BROKER_EPOCH, token=1))
    assert overheard.heard == []
    assert state_of(driver.stored("t-0")) == (2, (2,), 6)


# -- 4 answers


def answers(
    driver: Driver, election_type: ElectionType, partitions: tuple[TopicPartition, ...] | None
) -> dict[str, Any]:
    """Codes by partition, as the client sees them."""
    driver.handle(ElectionRequested(election_type, partitions, token=1))
    response = driver.replies[1]
    codes = {driver.cluster.name(row): ErrorCode(code) for row, code in zip(response.rows, response.codes, strict=True)}
    return codes | {f"{topic}-{partition}": code for (topic, partition), code in response.unknown}


P, U = ElectionType.PREFERRED, ElectionType.UNCLEAN


@pytest.mark.parametrize(
    "case, spec, election_type, code",
    [
        ("elected", PartitionSpec((1, 2), 2, (1, 2)), P, ErrorCode.NONE),
        ("elected uncleanly", PartitionSpec((1, 9), 9, (9,)), U, ErrorCode.NONE),
        ("preferred out of sync", PartitionSpec((1, 2), 2, (2,)), P, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        ("preferred dead", PartitionSpec((9, 2), 2, (2, 9)), P, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        ("nobody alive", PartitionSpec((8, 9), 9, (9,)), U, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
        ("preferred leads", healthy(1, 2), P, ErrorCode.ELECTION_NOT_NEEDED),
        ("dead preferred leads", healthy(9, 2), P, ErrorCode.ELECTION_NOT_NEEDED),
        ("live leader", PartitionSpec((1, 2), 2, (1, 2)), U, ErrorCode.ELECTION_NOT_NEEDED),
        ("no state", PartitionSpec((1, 2)), P, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        ("no state, unclean", PartitionSpec((1, 2)), U, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_codes(case: str, spec: PartitionSpec, election_type: ElectionType, code: ErrorCode) -> None:
    """elections 4: no leader found.
    elections 4: already valid.
    elections 4: partition without leadership.
    """
    driver = world(spec)
    before = driver.stored("t-0")
    assert answers(driver, election_type, (("t", 0),)) == {"t-0": code}
    assert (driver.stored("t-0") != before) is (code is ErrorCode.NONE)


@pytest.mark.parametrize("election_type", ElectionType, ids=lambda election_type: election_type.name)
def test_a_topic_that_is_being_deleted_is_refused(election_type: ElectionType) -> None:
    """elections 4: topic being deleted."""
    driver = world(PartitionSpec((1, 2), 2, (1, 2)), PartitionSpec((1, 2)))
    driver.cluster.topics.deleting[0] = 1
    expected = dict.fromkeys(("t-0", "t-1"), ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert answers(driver, election_type, (("t", 0), ("t", 1))) == expected
    assert driver.effects[:-1] == []


def test_unknown_partitions_are_named() -> None:
    """elections 4: unknown partition."""
    codes = answers(world(healthy(1, 2)), P, (("t", 0), ("t", 1), ("nobody", 0), ("t", 0)))
    assert codes == {
        "t-0": ErrorCode.ELECTION_NOT_NEEDED,
        "t-1": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "nobody-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def overtake(driver: Driver) -> None:
    driver.ensemble.write_state("t", 0, controller_epoch=9)


@pytest.mark.parametrize("election_type, code", [
    (P, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (U, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
])  # fmt: skip
def test_a_foreign_later_controller_means_no_leader(election_type: ElectionType, code: ErrorCode) -> None:
    """elections 4: foreign controller epoch."""
    driver = world(PartitionSpec((1, 2), 9, (1, 2, 9)))
    driver.before(WriteStates, lambda: overtake(driver))
    assert answers(driver, election_type, (("t", 0),)) == {"t-0": code}


def test_an_election_of_all_partitions_leaves_out_those_that_need_none() -> None:
    """elections 4: election of all partitions."""
    driver = world(healthy(1, 2), PartitionSpec((1, 2), 2, (2, 1)), PartitionSpec((9, 2), 2, (2,)))
    assert answers(driver, P, None) == {"t-1": ErrorCode.NONE, "t-2": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


# -- 6 who calls which strategy


def fail_over(driver: Driver) -> None:
    driver.handle(Elect())


def a_broker_starts(driver: Driver) -> None:
    driver.start_broker(5)
    driver.handle(BrokersChanged())


def a_broker_fails(driver: Driver) -> None:
    driver.ensemble.unregister_brokers([1])
    driver.handle(BrokersChanged())


def ask_for(election_type: ElectionType) -> Callable[[Driver], None]:
    return lambda driver: driver.handle(ElectionRequested(election_type, None))


def two_shuts_down(driver: Driver) -> None:
    driver.handle(ControlledShutdownRequested(2, NO_BROKER_EPOCH))


def time_to_rebalance(driver: Driver) -> None:
    driver.handle(RebalanceLeaders())


def is_reassigned(driver: Driver) -> None:
    driver.handle(ReassignmentRequested(Targets.of([(("t", 2), (3,))])))


def allow_unclean(driver: Driver) -> None:
    driver.ensemble.configure_topic("t", UNCLEAN)
    driver.handle(TopicSettingsChanged("t"))


def leave_preferred(driver: Driver) -> None:
    driver.ensemble.leave_preferred_election([("t", 3), ("nowhere", 0), ("t", 0)])
    driver.handle(PreferredElectionLeft())


def fail_over_with_preferred_left(driver: Driver) -> None:
    driver.ensemble.leave_preferred_election([("t", 2), ("t", 3)])
    driver.handle(Elect())


def new_topic(driver: Driver) -> None:
    driver.handle(CreateTopicsRequested((NewTopic("u", 2, 1),)))


@pytest.mark.parametrize(
    "event, expected",
    [
        (is_reassigned, [(ElectionKind.REASSIGN, ["t-2"])]),
        (allow_unclean, [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1"])]),
        (leave_preferred, [(ElectionKind.PREFERRED, ["t-3"])]),
        (fail_over_with_preferred_left, [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1"]),
                                         (ElectionKind.PREFERRED, ["t-3"])]),
        (new_topic, [(ElectionKind.INITIAL, ["u-0", "u-1"])]),
    ],
    ids=["reassignment", "unclean enabled", "preferred left", "preferred left for a failover", "new topic"],
)  # fmt: skip
def test_who_else_calls_which_strategy(
    event: Callable[[Driver], None], expected: list[tuple[ElectionKind, list[str]]]
) -> None:
    """
    elections 6: reassignment calls Reassign for those whose leader must move.
    elections 6: unclean election enabled calls Offline for the topic.
    elections 6: preferred elections left in storage call Preferred, also at failover.
    elections 6: new topics call the initial rule.
    """
    test_who_calls_which_strategy(event, expected)


@pytest.mark.parametrize("found", [(("t", 3),), (), (("nowhere", 9),), (("t", 0),)])
def test_preferred_election_left_in_storage_goes_in_any_case(found: tuple[TopicPartition, ...]) -> None:
    """elections 6: preferred elections left in storage are taken away, and the next one is watched for."""
    driver = world(PartitionSpec((1, 3)), healthy(1), healthy(2), PartitionSpec((3, 2), 2, (2, 3)))
    driver.ensemble.leave_preferred_election(found)
    driver.events.clear()
    driver.handle(PreferredElectionLeft())
    assert driver.store.read_preferred_election() is None
    assert driver.events == [PreferredElectionLeft()]
    driver.handle(PreferredElectionLeft())
    assert driver.events == [PreferredElectionLeft()], "it does not go on for ever"


@pytest.mark.parametrize(
    "event, expected",
    [
        (fail_over, [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1"])]),
        (a_broker_starts, [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1"])]),
        (a_broker_fails, [(ElectionKind.INITIAL, ["t-0"]), (ElectionKind.OFFLINE, ["t-1", "t-2"])]),
        (ask_for(P), [(ElectionKind.PREFERRED, ["t-3"])]),
        (ask_for(U), [(ElectionKind.OFFLINE, ["t-1"])]),
        (two_shuts_down, [(ElectionKind.CONTROLLED_SHUTDOWN, ["t-3"])]),
        (time_to_rebalance, [(ElectionKind.PREFERRED, ["t-3"])]),
    ],
    ids=["failover", "broker start", "broker failure", "preferred", "unclean", "controlled shutdown", "rebalance"],
)  # fmt: skip
def test_who_calls_which_strategy(
    event: Callable[[Driver], None], expected: list[tuple[ElectionKind, list[str]]]
) -> None:
    """elections 6: callers."""
    overheard = Overheard()
    specs = (PartitionSpec((1, 3)), PartitionSpec((9, 2), 9, (9, 2)), healthy(1, 3), PartitionSpec((3, 2), 2, (2, 3)),
             PartitionSpec((2,), 2, (2,)))  # fmt: skip
    driver = Driver(cluster_of({"t": list(specs)}, (1, 2, 3)), selection=overheard)
    if event not in (fail_over, fail_over_with_preferred_left):
        driver.adopt()
    event(driver)
    assert [(kind, names) for kind, names, _ in overheard.heard] == expected


@pytest.mark.parametrize("event", [fail_over, a_broker_starts, a_broker_fails])
def test_only_the_operator_elects_uncleanly(event: Callable[[Driver], None]) -> None:
    """elections 6: nobody but the operator carries allowUnclean."""
    overheard = Overheard()
    driver = Driver(cluster_of({"t": [PartitionSpec((1, 2, 9), 9, (9,)), healthy(1)]}, (1, 2)), selection=overheard)
    if event is not fail_over:
        driver.adopt()
    event(driver)
    assert {flag for _, _, allowed in overheard.heard for flag in allowed} == {0}


@pytest.mark.parametrize("event", [fail_over, a_broker_starts, a_broker_fails])
def test_topics_that_are_being_deleted_elect_nobody(event: Callable[[Driver], None]) -> None:
    """elections 6: topic not being deleted."""
    overheard = Overheard()
    cluster = cluster_of({"t": [PartitionSpec((1, 2)), PartitionSpec((1, 2), 9, (2,))]}, (1, 2))
    cluster.topics.deleting[0] = 1
    driver = Driver(cluster, selection=overheard)
    if event is not fail_over:
        driver.adopt()
    event(driver)
    assert overheard.heard == []
