"""Fault sequences happen in a quiet simulation and keep every invariant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kframe_simulator import Simulation
from kframe_simulator.faults.plan import Action
from verification.simulator.at_rest import QUIET

START_MS = 2_000.0


def play(*actions: tuple[str, dict[str, Any]], **options: Any) -> Simulation:
    """Play actions 100 ms apart, then ten quiet seconds; no invariant may break."""
    plan = [Action(START_MS + 100.0 * number, kind, arguments) for number, (kind, arguments) in enumerate(actions)]
    plan.append(Action(START_MS + 10_000.0, "consume", {"pick": 0, "committed": False}))
    simulation = Simulation(replace(QUIET, **options), plan)
    assert simulation.run().violations == ()
    assert all(simulation.played[kind] for kind, _ in actions)
    return simulation


def test_controller_crashes_after_it_stored_the_end_of_a_cancelled_reassignment() -> None:
    simulation = play(("cancel_reassignment_and_crash", {"pick": 0}))
    assert simulation.ensemble.controller_epoch() == 2


def test_reassignment_is_cancelled_without_a_leader() -> None:
    simulation = play(("cancel_leaderless_reassignment", {"pick": 0}))
    assert simulation.watch.requested_targets["t", 0] == {(1, 2)}


def test_last_in_sync_replica_crashes_after_a_refused_controlled_shutdown() -> None:
    simulation = play(("crash_in_shutdown", {"pick": 0}), hold_last=True)
    (broker,) = [broker for broker in simulation.brokers.values() if broker.requests.past_shutdowns]
    assert broker.restarted_after_crash


def test_leader_stores_an_isr_while_its_reassignment_is_overridden() -> None:
    five = (1, 2, 3, 4, 5)
    reassign = ("reassign", {"pick": 1, "shift": 4, "factor": 1, "count": 1})
    simulation = play(("override_reassignment", {"pick": 0}), reassign, protocol="2.6", brokers=five)
    assert simulation.isr_writes_to_delay == 0
    assert len(set().union(*simulation.watch.requested_targets.values())) == 2


@pytest.mark.parametrize("next_step", [0, 1], ids=["deleted", "target-starts"])
@pytest.mark.parametrize("pick", [0, 3], ids=["one-target", "two-targets"])
def test_partition_without_a_leader_is_reassigned(pick: int, next_step: int) -> None:
    simulation = play(("reassign_without_state", {"pick": pick, "next_step": next_step}))
    assert simulation.watch.requested_targets["t", 2]
    assert ("t" in simulation.ensemble.topic_ids) is bool(next_step)


def test_broker_registers_again_before_a_deletion_request() -> None:
    simulation = play(("bounce_in_deletion", {"broker": 0, "for_ms": 500}), ("delete_topic", {"pick": 0}))
    assert simulation.brokers[1].incarnation == 2
    assert not simulation.ensemble.topic_ids


def test_response_of_earlier_term_arrives_after_log_directory_failure() -> None:
    simulation = play(("repeat_earlier_responses", {"pick": 0}))
    assert simulation.ensemble.controller_epoch() > 1


def test_record_is_unreadable_when_a_reassignment_ends() -> None:
    malform, reassign = (
        ("malform_at_completion", {"pick": 0}),
        ("reassign", {"pick": 1, "shift": 3, "factor": 1, "count": 1}),
    )
    simulation = play(malform, reassign)
    assert simulation.malformed_completions == 0
    assert simulation.watch.unreadable
