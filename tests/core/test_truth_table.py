"""The truth table of the elections (``elections.md`` section 5) and further rows through the whole engine.

Each row is a cluster before an election, with the event that triggers it. Where no event exists, the operation runs
directly. Broker 9 has no replicas: its start makes the controller elect leaders of offline partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import isroutine
from typing import Final, TypeAlias

import pytest

from kframe import kernels
from kframe.core.selectors.kafka_selectors import ControlledShutdown082
from kframe.core.selectors.leader_selection import FaultKind, Selection
from kframe.core.state_machines import leader_election, partition_state_machine
from kframe.core.state_machines.leader_election import Strategy
from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.events import (
    ControlledShutdownRequested,
    ElectionRequested,
    ElectionType,
)
from kframe.model.ids import NO_BROKER_EPOCH, ElectionKind, PartitionState, ReplicaFlag
from kframe.ports.store_requests import WriteStates
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from tests.core.driver import Driver, active, state_of
from verification import reference

Brokers: TypeAlias = tuple[int, ...]

UNCLEAN: Final = {"unclean.leader.election.enable": "true"}
OLD_UNCLEAN: Final = {**UNCLEAN, "inter.broker.protocol.version": "3.1"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table. ``elected`` is (leader, isr, leader epoch), or None. ``recipients`` are the brokers of the
    rule; unregistered ones receive nothing."""

    number: int
    strategy: str
    replicas: Brokers
    isr: Brokers | None
    live: Brokers
    elected: tuple[int, Brokers, int] | None
    recipients: Brokers = ()
    shutting_down: Brokers = ()
    leader: int | None = None
    leader_epoch: int = 4
    removing: Brokers = ()
    offline_dir: Brokers = ()
    recovery: tuple[int, int] = (0, 0)
    """Recovery state before and after."""
    config: dict[str, str] | None = None
    unclean: int = 0
    """The count of the unclean elections meter."""


TABLE: Final = (
    Row(1, "initial", (2, 4), None, (2, 4), (2, (2, 4), 0), (2, 4)),
    Row(2, "initial", (2, 4), None, (4,), (4, (4,), 0), (4,)),
    Row(3, "initial", (2, 4), None, (2, 4), (4, (4,), 0), (4,), shutting_down=(2,)),
    Row(4, "initial", (2, 4), None, (), None),
    Row(5, "offline", (2, 4), (2, 4), (4,), (4, (4,), 8), (4,), leader_epoch=7),
    Row(6, "offline", (2, 4, 6), (6, 4, 2), (4, 6), (4, (6, 4), 1), (4, 6), leader_epoch=0),
    Row(7, "offline", (2, 4), (2,), (4,), None),
    Row(8, "offline", (2, 4), (2,), (4,), (4, (4,), 5), (4,), recovery=(0, 1), config=UNCLEAN, unclean=1),
    Row(9, "offline", (2, 4), (2,), (4,), (4, (4,), 5), (4,), config=OLD_UNCLEAN, unclean=1),
    Row(10, "offline", (2, 4), (2,), (), None, config=UNCLEAN),
    Row(11, "offline", (2, 4), (2, 4), (2, 4), (4, (4,), 5), (4,), shutting_down=(2,)),
    Row(12, "admin unclean", (2, 4), (2, 4), (4,), (4, (4,), 5), (4,)),
    Row(13, "offline", (2, 4), (2,), (2, 4), None, offline_dir=(2,)),
    Row(14, "offline", (2, 4), (4,), (2, 4), (4, (4,), 5), (2, 4), recovery=(1, 1)),
    Row(15, "reassign", (4, 5, 6, 1, 2, 3), (1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6), (4, (1, 2, 3, 4, 5, 6), 5),
        (4, 5, 6), leader=1, removing=(1, 2, 3)),
    Row(16, "reassign", (2, 4), (2, 4), (4,), (4, (2, 4), 5), (4,)),
    Row(17, "reassign", (2, 4), (2,), (4,), None),
    Row(18, "reassign", (2, 4), (), (2,), None),
    Row(19, "preferred", (2, 4), (2, 4), (2, 4), (2, (2, 4), 5), (2, 4), leader=4),
    Row(20, "preferred", (2, 4), (4,), (2, 4), None, leader=4),
    Row(21, "preferred", (2, 4), (2, 4), (4,), None, leader=4),
    Row(22, "preferred", (2, 4), (2, 4), (2, 4), None, leader=4, shutting_down=(2,)),
    Row(23, "shutdown of 2", (2, 4), (2, 4), (2, 4), (4, (4,), 5), (2, 4), leader=2),
    Row(24, "shutdown of 2", (2, 4), (2,), (2, 4), None, leader=2),
    Row(25, "shutdown of 2", (2, 4), (2, 4), (2, 4), None, leader=2, shutting_down=(4,)),
    Row(26, "shutdown of 2", (2, 4, 6), (6, 2, 4), (2, 6), (6, (6, 4), 5), (2, 6), leader=2),
    # Combinations of rules that the table of the page does not have.
    Row(28, "initial", (2, 4), None, (2, 4), (4, (4,), 0), (4,), offline_dir=(2,)),
    Row(29, "offline", (2, 4, 6), (), (4, 6), (4, (4,), 5), (4, 6), recovery=(0, 1), config=UNCLEAN, unclean=1),
    Row(30, "offline", (2, 4), (2,), (2, 4), (4, (4,), 5), (4,), offline_dir=(2,), recovery=(0, 1), config=UNCLEAN,
        unclean=1),
    Row(31, "offline", (2, 4), (2, 4), (4,), (4, (4,), 5), (4,), config=UNCLEAN),
    Row(32, "admin unclean", (2, 4), (2,), (4,), (4, (4,), 5), (4,), recovery=(0, 1), unclean=1),
    Row(33, "reassign", (2, 4), (2, 4), (4,), (4, (2, 4), 5), (4,), recovery=(1, 1)),
    Row(34, "preferred", (2, 4), (2, 4), (2, 4), (2, (2, 4), 5), (2, 4), leader=4, recovery=(1, 1)),
    Row(35, "shutdown of 2", (2, 4), (2, 4), (2, 4), (4, (4,), 5), (2, 4), leader=2, recovery=(1, 1)),
)  # fmt: skip


def driver_of(row: Row, selection: Selection | None = None) -> Driver:
    """Return a controller that has ``t-0`` as the row states. Values that storage cannot contain are set directly."""
    spec = PartitionSpec(
        row.replicas,
        row.leader,
        row.isr,
        row.leader_epoch,
        partition_epoch=3,
        recovery=row.recovery[0],
        removing_replicas=row.removing,
    )
    driver = Driver(cluster_of({"t": [spec]}, row.live), row.config, selection)
    cluster = driver.adopt().cluster
    cluster.brokers.shutting_down[cluster.brokers.index_of(row.shutting_down)] = 1
    cluster.flag_replicas(0, cluster.brokers.index_of(row.offline_dir), ReplicaFlag.OFFLINE_DIR)
    driver.forget()
    return driver


def hold(driver: Driver, strategy: str) -> None:
    match strategy:
        case "initial" | "offline":
            driver.start_brokers(9)
        case "admin unclean":
            driver.handle(ElectionRequested(ElectionType.UNCLEAN, (("t", 0),), token=1))
        case "preferred":
            driver.handle(ElectionRequested(ElectionType.PREFERRED, (("t", 0),), token=1))
        case "shutdown of 2":
            driver.handle(ControlledShutdownRequested(2, NO_BROKER_EPOCH, token=1))
        case "reassign":
            elect(driver, leader_election.REASSIGN)


def elect(driver: Driver, strategy: Strategy) -> None:
    """Elect a leader of t-0 outside of any event."""
    rows = driver.rows("t-0")
    driver.run(partition_state_machine.transition(driver.context, rows, PartitionState.ONLINE, strategy))


@pytest.fixture(params=["compiled", "reference"])
def _kernels_in_use(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the engine on the compiled kernels. Then run it on their reference twins."""
    if request.param == "reference":
        for name in (name for name, twin in vars(reference).items() if isroutine(twin)):
            monkeypatch.setattr(kernels, name, getattr(reference, name))


@pytest.mark.usefixtures("_kernels_in_use")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"row {row.number}: {row.strategy}")
def test_election_equals_truth_table(row: Row) -> None:
    """elections 5: truth table."""
    driver = driver_of(row)
    before = driver.stored("t-0")
    hold(driver, row.strategy)
    after = driver.stored("t-0")
    if row.elected is None:
        assert after == before
        assert driver.writes() == []
    else:
        assert state_of(after) == row.elected
        assert (after.recovery, after.partition_epoch) == (row.recovery[1], before.partition_epoch + 1)
        assert driver.known("t-0").state is PartitionState.ONLINE
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == list(row.recipients)
    assert [request["partitions"]["t-0"]["is_new"] for request in driver.requests(Api.LEADER_AND_ISR)] == [
        row.strategy == "initial"
    ] * len(row.recipients)
    assert driver.context.counters["UncleanLeaderElectionsPerSec"] == row.unclean
    if row.strategy == "preferred":
        code = ErrorCode.NONE if row.elected else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert driver.replies[1].codes.tolist() == [code]
    if row.strategy == "shutdown of 2":
        assert driver.replies[1].remaining.tolist() == ([] if row.elected else [0])


@pytest.mark.parametrize(
    "row, faults",
    [
        (Row(27, "shutdown of 2", (2, 4, 6), (4, 2, 6), (2, 6), (6, (4, 6), 5), (2, 6), leader=2), 1),
        (Row(0, "shutdown of 2", (2, 4, 6), (6, 2, 4), (2, 4, 6), (6, (6, 4), 5), (2, 4, 6), leader=2), 0),
    ],
    ids=["row 27: the head of the ISR is dead", "the head of the ISR is live"],
)
def test_0_8_2_rule_elects_head_of_isr_unless_dead(row: Row, faults: int) -> None:
    """elections 5: row 27, where the 0.8.2 rule elects a dead broker.
    elections 3.1: controlled shutdown by the head of the new ISR.

    The built-in rule replaces the choice of a dead broker, and the fault is counted.
    """
    selection = Selection({ElectionKind.CONTROLLED_SHUTDOWN: ControlledShutdown082()})
    driver = driver_of(row, selection)
    hold(driver, row.strategy)
    assert state_of(driver.stored("t-0")) == row.elected
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == list(row.recipients)
    assert selection.faults[("controlled-shutdown-0.8.2", FaultKind.NOT_ELIGIBLE)] == faults


def test_unassigned_live_isr_member_prevents_unclean_election() -> None:
    """elections 3: unclean only if no ISR member is online."""
    driver = active(PartitionSpec((1, 2), 9, (3,)), PartitionSpec((1, 9), 9, (9,)), config=UNCLEAN)
    rows = driver.rows("t-0", "t-1")
    driver.run(partition_state_machine.transition(driver.context, rows, PartitionState.ONLINE, leader_election.OFFLINE))
    assert [state_of(driver.stored(name)) for name in ("t-0", "t-1")] == [(9, (3,), 0), (1, (1,), 1)]


def test_rejected_unclean_election_is_counted_on_retry() -> None:
    """elections 3: the meter is marked before the write succeeds."""
    driver = active(PartitionSpec((1, 9), 9, (9,)), config=UNCLEAN)
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, leader_epoch=3))
    elect(driver, leader_election.OFFLINE)
    assert state_of(driver.stored("t-0")) == (1, (1,), 4)
    assert driver.context.counters["UncleanLeaderElectionsPerSec"] == 2


@pytest.mark.parametrize(
    "strategy", [leader_election.PREFERRED, leader_election.REASSIGN], ids=["preferred", "reassign"]
)
def test_strategy_elects_without_checking_current_leader(strategy: Strategy) -> None:
    """elections 3: preferred and reassign do not check the present leader."""
    driver = active(healthy(1, 2, leader_epoch=5))
    elect(driver, strategy)
    assert state_of(driver.stored("t-0")) == (1, (1, 2), 6)
