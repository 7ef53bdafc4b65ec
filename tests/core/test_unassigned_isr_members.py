"""ISR members that are not assigned: a controller lost the role before it removed them. Or before it notified the
leader."""

from __future__ import annotations

import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.effects import Send
from kframe.model.events import ReassignmentRequested
from kframe.model.tables import Targets
from kframe.ports.store_requests import WriteAssignments, WriteStates
from kframe.testing.clusters import PartitionSpec, registration
from tests.core.driver import assigned, elected, proposal, quiet, state_of
from tests.core.reassignments import reassign, store_reassignments

DEAD = 9
BROKERS = [registration(broker_id, broker_epoch=100 + broker_id) for broker_id in (1, 2, 3)]


@pytest.mark.parametrize(
    ("replicas", "leader", "isr", "after"),
    [
        pytest.param((1, 3), 1, (1, 2), (1, (1,), 6), id="follower"),
        pytest.param((DEAD, 3), DEAD, (DEAD, 2), (-1, (DEAD,), 7), id="removed before dead members"),
        pytest.param((1, 3), 2, (2, 1), (1, (1,), 7), id="leader with a live successor"),
        pytest.param((DEAD, 3), 2, (2, DEAD), (2, (2,), 6), id="leader without a live successor"),
        pytest.param((1, 3), 2, (2,), (2, (2,), 5), id="only member"),
        pytest.param((1, 3), 1, (1, 2, 4), (1, (1,), 6), id="two members"),
        pytest.param((2, 1), 1, (1, 2), (1, (1, 2), 5), id="all members are assigned"),
    ],
)
def test_failover_removes_unassigned_isr_members(
    replicas: tuple[int, ...], leader: int, isr: tuple[int, ...], after: tuple[int, tuple[int, ...], int]
) -> None:
    driver = elected({"t": (PartitionSpec(replicas, leader, isr, 5),)}, (1, 2, 3, 4))
    assert state_of(driver.stored("t-0")) == after


@pytest.mark.parametrize("strict", [False, True])
def test_unassigned_leader_without_successor_receives_its_leader_epoch(strict: bool) -> None:
    """Simulator seed 40002842: an override dropped the leader. The only assigned in-sync replica failed."""
    keys = {"kframe_reassignment_strict": strict}
    driver = elected({"t": (PartitionSpec((1, DEAD), 2, (2, DEAD), 5),)}, (1, 2, 3), **keys)
    stored = driver.stored("t-0")
    assert (stored.leader, stored.isr) == (2, (2,))
    assert (stored.replicas, stored.removing_replicas) == (((1, DEAD, 2), (2,)) if strict else ((1, DEAD), ()))
    sent = driver.entries(Api.LEADER_AND_ISR, "t-0")
    epochs = {broker: entry["leader_epoch"] for broker, entry in sent.items()}
    assert epochs == dict.fromkeys((1, 2) if strict else (1,), stored.leader_epoch)


@pytest.mark.parametrize("refused", [False, True])
def test_leader_with_outdated_assignment_receives_new_assignment(refused: bool) -> None:
    """Found by the simulator, seed 2085: a controller stored a cancelled reassignment. It lost the role before it
    notified the leader."""
    keys = {"kframe_reassignment_strict": True, "kframe_alter_partition_strict": refused}
    driver = quiet({"t": [PartitionSpec((1, 3), 1, (1, 3), 5)]}, BROKERS, **keys)
    driver.handle(proposal((1, 3, 2), 5, 0, sender=1, broker_epoch=101))
    assert (driver.stored("t-0").isr, driver.stored("t-0").leader_epoch > 5) == ((1, 3), True)
    recipients = driver.entries(Api.LEADER_AND_ISR, "t-0")
    assert {broker: tuple(entry["replicas"]) for broker, entry in recipients.items()} == {1: (1, 3), 3: (1, 3)}


def test_leader_with_current_assignment_receives_no_request() -> None:
    driver = quiet({"t": [PartitionSpec((1, 3), 1, (1,), 5)]}, BROKERS, kframe_reassignment_strict=True)
    driver.handle(proposal((1, 3), 5, 0, sender=1, broker_epoch=101))
    assert (state_of(driver.stored("t-0")), driver.recipients(Api.LEADER_AND_ISR, "t-0")) == ((1, (1, 3), 5), [])


@pytest.mark.parametrize("strict", [False, True])
def test_reassignment_to_no_replicas_raises_leader_epoch(strict: bool) -> None:
    """The adding replica is removed. Under the same leader epoch the leader would keep it in its list."""
    moving = PartitionSpec((1, 3, 2), 1, (1, 3), 5, adding_replicas=(2,))
    driver = quiet({"t": [moving]}, BROKERS, kframe_reassignment_strict=strict)
    store_reassignments(driver, [(("t", 0), ())])
    sent = driver.entries(Api.LEADER_AND_ISR, "t-0")[1]
    assert (sent["leader_epoch"], tuple(sent["replicas"])) == (6 if strict else 5, (1, 3))


@pytest.mark.parametrize("strict", [False, True])
def test_cancellation_raises_leader_epoch_before_assignment_is_stored(strict: bool) -> None:
    """Found by the simulator, seed 164: a controller stored the end of a reassignment and lost the role before it
    notified brokers. Its successor sent the same leader epoch. The leader kept its list of replicas."""
    moving = PartitionSpec((1, 3, 2), 1, (1, 3), 5, adding_replicas=(2,))
    driver = quiet({"t": [moving]}, BROKERS, kframe_reassignment_strict=strict)
    epochs: list[int | None] = []
    driver.before(WriteAssignments, lambda: epochs.append(driver.stored("t-0").leader_epoch))
    driver.ask(ReassignmentRequested(Targets.of([(("t", 0), None)]), token=1))
    assert epochs == [6 if strict else 5]


@pytest.mark.parametrize("strict", [False, True])
def test_cancellation_without_leader_notifies_registered_replicas(strict: bool) -> None:
    """Found by the simulator, seed 3555: the only ISR member was dead. Its reassignment was cancelled then. The leader
    epoch increased, and no registered replica received it."""
    moving = PartitionSpec((1, DEAD), -1, (DEAD,), 5, removing_replicas=(DEAD,))
    driver = quiet({"t": [moving]}, BROKERS, kframe_reassignment_strict=strict)
    driver.ask(ReassignmentRequested(Targets.of([(("t", 0), None)]), token=1))
    assert (assigned(driver.stored("t-0")), driver.stored("t-0").leader) == (((1, DEAD), (), ()), -1)
    recipients = [
        (broker, entry["leader_epoch"]) for broker, entry in driver.entries(Api.LEADER_AND_ISR, "t-0").items()
    ]
    assert recipients == ([(1, driver.stored("t-0").leader_epoch)] if strict else [])


def test_isr_member_outside_overridden_target_is_removed() -> None:
    """Found by the simulator, seed 47689: a reassignment was overridden. Before the leader was notified, it wrote an
    ISR with a replica of the first target. Kafka's next write is based on that ISR."""
    moving = PartitionSpec((4, 1, 2), 1, (1, 2), 5, adding_replicas=(4,))
    driver = quiet({"t": [moving]}, kframe_reassignment_strict=True)
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1, 2, 4)))
    reassign(driver, 3, 1, 2)
    assert assigned(driver.stored("t-0")) == ((3, 1, 2), (3,), ())
    assert (driver.stored("t-0").isr, driver.stored("t-0").leader) == ((1, 2), 1)


def test_replica_that_joins_while_another_leaves_is_removed_before_it_is_deleted() -> None:
    """Found by the simulator, seed 40000045: an override dropped two replicas. Their removal had read the ISR without
    the first one. The leader added it before the second one was removed. It was deleted as an ISR member."""
    moving = PartitionSpec((3, 4, 1, 2), 1, (1, 2, 4), 5, adding_replicas=(3, 4))
    driver = quiet({"t": [moving]}, inter_broker_protocol_version="2.7-IV1")
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1, 2, 4, 3)))
    sent: list[tuple[int, ...]] = []
    driver.before(Send, lambda: sent.append(driver.stored("t-0").isr))
    assert reassign(driver, 1, 2) == [ErrorCode.NONE]
    assert sent[0] == (1, 2)
