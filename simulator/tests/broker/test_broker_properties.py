"""Replication properties under any order of messages, crashes and clean elections."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.model.protocol import InterBrokerProtocol
from kframe_simulator.broker.config import BrokerConfig
from verification.simulator.broker_state_machine import IDS, BrokerStateMachine
from verification.support.properties import examples

#: Short enough that ISRs shrink within a history.
LAG_MS = 3_000.0
STEPS = 250
EXAMPLES = 20


def next_step(
    chance: random.Random, simulation: BrokerStateMachine, lossy: bool, crash_chance: float
) -> tuple[str, tuple[object, ...]]:
    """The next rule and its arguments."""
    broker, number = chance.choice(IDS), chance.random()
    if number < 0.12:
        leader = simulation.stored.leader if simulation.stored.leader in IDS and chance.random() < 0.8 else broker
        return "produce", (leader, chance.choice((-1, -1, 1)))
    if number < 0.6:
        index = chance.randrange(8) if chance.random() < 0.4 else 0
        return "deliver", (index, lossy and chance.random() < 0.1, chance.random() < 0.05)
    if number < 0.86:
        return "handle_request", (broker, chance.random() < 0.05)
    if number < 0.95:
        return "wait", (chance.choice((1, 50, 500, 500, 1_000, 4_000)),)
    if number < 0.95 + crash_chance:
        return "crash", (broker,)
    return ("restart" if number < 0.99 else "transfer_leadership"), (broker,)


@pytest.mark.parametrize("protocol", ["3.9", "2.7-IV1", "2.6"])
@pytest.mark.parametrize("min_insync_replicas", [1, 2])
@examples(0.4)
@given(seed=st.integers(0, 2**32), lossy=st.booleans(), crash_chance=st.sampled_from((0.0, 0.01, 0.03)))
def test_logs_match_and_committed_records_stay(
    protocol: str, min_insync_replicas: int, seed: int, lossy: bool, crash_chance: float
) -> None:
    """Log matching and leader completeness hold after every step. The high watermark is within the maximal ISR, and
    acknowledged records are on all ISR members."""
    config = BrokerConfig(
        protocol=InterBrokerProtocol.parse(protocol), replica_lag_time_max_ms=LAG_MS, fetch_records_max=2,
        min_insync_replicas=min_insync_replicas,
    )  # fmt: skip
    simulation, chance = BrokerStateMachine(config), random.Random(seed)
    for _ in range(STEPS):
        name, arguments = next_step(chance, simulation, lossy, crash_chance)
        rule: Callable[..., None] = getattr(simulation, name)
        rule(*arguments)
        simulation.check()


def test_histories_exercise_all_invariants() -> None:
    """Records are acknowledged, leaders change, and ISRs shrink and expand."""
    acked = epochs = changes = 0
    for seed in range(30):
        simulation, chance = BrokerStateMachine(BrokerConfig(replica_lag_time_max_ms=LAG_MS)), random.Random(seed)
        for _ in range(STEPS):
            name, arguments = next_step(chance, simulation, lossy=False, crash_chance=0.01)
            getattr(simulation, name)(*arguments)
        acked, epochs = acked + len(simulation.acked), epochs + simulation.stored.leader_epoch
        changes += simulation.stored.partition_epoch - (simulation.stored.leader_epoch - 1)
    assert acked > 150
    assert epochs > 100
    assert changes > 30
