"""Histories of lost logs that the invariants accept: observations without a defect, by seed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kframe_simulator import Simulation
from kframe_simulator.invariants import records
from kframe_simulator.simulation.observations import BecameLeader, LogChanged
from verification.simulator.at_rest import KEY, edit, log, promise, state, write
from verification.simulator.broken import close_channel


def register_again(simulation: Simulation, broker_id: int, known: bool = True) -> None:
    """Change the registration of a broker. ``known``: the controller has read it."""
    broker = simulation.brokers[broker_id]
    broker.registration = replace(broker.registration, broker_epoch=broker.registration.broker_epoch + 100)
    if known:
        channel = simulation.controllers[0].transport.channels[broker_id]
        channel.broker_epoch = broker.registration.broker_epoch


def lose_log(simulation: Simulation, broker_id: int) -> None:
    """The log of a broker is lost."""
    del simulation.brokers[broker_id].model.disks.logs[KEY]
    simulation.watch.record_history.logs_lost(broker_id, (KEY,))


def leads(simulation: Simulation, broker_id: int, leader_epoch: int) -> bool:
    """Whether a broker may lead without the promised record."""
    led = BecameLeader(simulation.brokers[broker_id], KEY, leader_epoch)
    return records.leaders_have_acknowledged_records(simulation.watch, led) is None


@pytest.fixture
def promised(simulation: Simulation) -> Simulation:
    """A simulation at rest with a promised record on all replicas, after the last write of the state."""
    write(simulation, 1, 2, 3)
    promise(simulation)
    simulation.watch.record_history.state_written(state(simulation))
    return simulation


@pytest.mark.parametrize(("believed", "had_it", "exempt"), [(1, True, True), (0, True, False), (1, False, False)])
def test_log_lost_after_a_complete_fetch_is_exempt(
    simulation: Simulation, believed: int, had_it: bool, exempt: bool
) -> None:
    """Seed 41907: a log directory failed while the Fetch that added its broker to the ISR was in flight."""
    write(simulation, 1, 3)
    promise(simulation)
    joins = state(simulation, isr=(1, 3, 2))._replace(before=simulation.ensemble.rows[KEY]._replace(isr=(1, 3)))
    simulation.brokers[1].model.partitions[KEY].replicas[2].end = believed
    if had_it:
        simulation.watch.record_history.brokers_with_lost_logs[KEY].add(2)
    simulation.watch.record_history.state_written(joins)
    assert (records.isr_members_have_acknowledged_records(simulation.watch, joins) is None) is exempt


@pytest.mark.parametrize(("believed", "had_it", "exempt"), [(1, True, True), (0, True, False), (1, False, False)])
def test_log_lost_after_a_fetch_is_exempt_before_the_isr_is_stored(
    simulation: Simulation, believed: int, had_it: bool, exempt: bool
) -> None:
    """Seed 360001523: a broker lost its disks while a Fetch was in flight, for which the leader then proposed it."""
    write(simulation, 1, 3, high_watermark=1)
    simulation.brokers[1].model.partitions[KEY].replicas[2].end = believed
    if had_it:
        simulation.watch.record_history.brokers_with_lost_logs[KEY].add(2)
    changed = LogChanged(simulation.brokers[1], KEY, log(simulation, 1))
    assert (records.high_watermark_is_replicated(simulation.watch, changed) is None) is exempt


@pytest.mark.parametrize("written", [True, False], ids=["state-written", "nothing-written"])
@pytest.mark.parametrize(("anew", "exempt"), [((1, 2), True), ((1,), False)], ids=["all", "all-but-one"])
def test_lost_log_is_exempt_if_all_isr_members_reregistered(
    promised: Simulation, anew: tuple[int, ...], exempt: bool, written: bool
) -> None:
    """Seeds 341 and 485: before a failover the leader restarted without its log, and the other member registered again.
    The controller removes members that registered again only if another member did not."""
    edit(promised, isr=(1, 2), leader_epoch=promised.ensemble.rows[KEY].leader_epoch + 1)
    lose_log(promised, 1)
    for broker_id in anew:
        register_again(promised, broker_id)
    if written:
        promised.watch.record_history.state_written(state(promised, isr=(1, 2)))
    promised.watch.record_history.became_leader(KEY, 1)
    assert leads(promised, 1, promised.ensemble.rows[KEY].leader_epoch + 1) is exempt


@pytest.mark.parametrize(
    ("unknown", "exempt"), [((2,), True), ((), False)], ids=["the-other-is-unknown", "the-other-is-registered"]
)
def test_lost_log_is_exempt_if_all_registered_isr_members_reregistered(
    promised: Simulation, unknown: tuple[int, ...], exempt: bool
) -> None:
    """Seeds 349281303 and 341: the leader restarted without its log, another member registered again. The third had
    failed, or its registration was unreadable. The controller raised the leader epoch, and removed the third after
    that."""
    history = promised.watch.record_history
    lose_log(promised, 1)
    for broker_id in (1, 3):
        register_again(promised, broker_id)
    for broker_id in unknown:
        close_channel(promised, broker_id)
    raised = state(promised)
    history.state_written(raised)
    assert leads(promised, 1, raised.after.leader_epoch) is exempt


@pytest.mark.parametrize(
    ("earlier", "anew", "exempt"),
    [((), (2, 3), True), ((), (2,), False), ((3,), (2,), False)],
    ids=["all", "all-but-one", "one-while-the-leader-led"],
)
def test_lost_log_is_exempt_if_a_state_without_a_leader_comes_first(
    simulation: Simulation, earlier: tuple[int, ...], anew: tuple[int, ...], exempt: bool
) -> None:
    """Seed 10012780: there was no controller. The leader failed, and the other members registered again, one with an
    empty disk. The failover removed the leader in a write of its own, before it elected the next one."""
    write(simulation, 1, 2, 3)
    promise(simulation)
    history = simulation.watch.record_history
    for broker_id in earlier:
        register_again(simulation, broker_id)
    history.state_written(state(simulation))
    lose_log(simulation, 2)
    for broker_id in anew:
        register_again(simulation, broker_id)
    close_channel(simulation, 1)
    removed = state(simulation, leader=-1, isr=(2, 3))
    history.state_written(removed)
    simulation.ensemble.rows[KEY] = removed.after
    elected = state(simulation, leader=2)
    history.state_written(elected)
    assert leads(simulation, 2, elected.after.leader_epoch) is exempt


@pytest.mark.parametrize(
    ("rewritten", "exempt"),
    [("unchanged", True), ("isr", True), ("never", False), ("again", False), ("before-the-loss", False)],
)
def test_lost_log_is_exempt_if_a_rewritten_state_masks_the_registration(
    promised: Simulation, rewritten: str, exempt: bool
) -> None:
    """Seed 40002255: the leader restarted without its log, and another client rewrote the state. No controller ran.
    Before 2.7-IV2 the other client may be a leader that writes an ISR."""
    history = promised.watch.record_history
    del promised.brokers[1].model.disks.logs[KEY]
    if rewritten != "before-the-loss":
        history.logs_lost(1, (KEY,))
    register_again(promised, 1)
    row = promised.ensemble.rows[KEY]
    if rewritten != "never":
        changes = {"isr": (1, 2)} if rewritten == "isr" else {}
        history.state_written(state(promised, leader_epoch=row.leader_epoch, **changes)._replace(process=None))
    if rewritten == "again":
        register_again(promised, 1)
    if rewritten == "before-the-loss":
        history.logs_lost(1, (KEY,))
    history.became_leader(KEY, 1)
    assert leads(promised, 1, row.leader_epoch) is exempt
    assert history.watched(KEY) is not exempt


@pytest.mark.parametrize(("known", "exempt"), [(False, True), (True, False)], ids=["not-known", "known"])
def test_lost_log_is_exempt_if_a_controller_wrote_the_state_without_the_registration(
    promised: Simulation, known: bool, exempt: bool
) -> None:
    """The neighbour of seed 40002255: a controller wrote the state before it handled the registration, and crashed. Its
    write has a new leader epoch, so that logs are compared further."""
    history = promised.watch.record_history
    lose_log(promised, 1)
    register_again(promised, 1, known)
    written = state(promised)
    history.state_written(written)
    assert history.promises[KEY]
    promised.ensemble.rows[KEY] = written.after
    history.became_leader(KEY, 1)
    assert leads(promised, 1, written.after.leader_epoch) is exempt
    assert history.watched(KEY)


@pytest.mark.parametrize(
    ("anew", "later", "exempt"),
    [((1, 2, 3), (), True), ((1, 2), (), False), ((1, 2, 3), (2,), False)],
    ids=["all", "all-but-one", "once-more"],
)
def test_lost_log_is_exempt_if_its_broker_leads_after_the_first_leader(
    promised: Simulation, anew: tuple[int, ...], later: tuple[int, ...], exempt: bool
) -> None:
    """The neighbour of seed 349281303: all ISR members had registered again, a follower with an empty disk. The leader
    got a new leader epoch, and failed before the follower had caught up."""
    history = promised.watch.record_history
    lose_log(promised, 2)
    for broker_id in anew:
        register_again(promised, broker_id)
    raised = state(promised)
    history.state_written(raised)
    assert history.promises[KEY]
    promised.ensemble.rows[KEY] = raised.after
    for broker_id in later:
        register_again(promised, broker_id)
    elected = state(promised, leader=2, isr=(2, 3))
    history.state_written(elected)
    assert leads(promised, 2, elected.after.leader_epoch) is exempt
