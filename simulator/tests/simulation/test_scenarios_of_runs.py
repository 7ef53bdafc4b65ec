"""Runs exported as scenarios end in the same state or break the same invariant."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from kframe.model.cluster import PartitionView
from kframe.scenario.format import parse_scenario
from kframe.scenario.runner import ScenarioRunner
from kframe_simulator import Simulation, draw_plan, plan_of
from kframe_simulator.replication.scenario import Replication
from kframe_simulator.simulation.files import scenario_text
from verification.simulator.at_rest import break_elections

#: By class: seeds of simulations with operators, clients and this fault class only. In these, no two events are so
#: close that network delays decide the result, and no request of a client reaches a controller whose session may have
#: expired. A scenario has neither.
SEEDS: Final = {
    "crash": (1, 2),
    "restart": (1,),
    "bounce": (1, 2),
    "pause": (1, 3, 4),
    "expiry": (1, 2),
    "log-dir": (1, 2),
}

#: Leader, ISR and replicas of a partition.
State = tuple[int, tuple[int, ...], tuple[int, ...]]


def played(seed: int, *classes: str) -> tuple[Simulation, ScenarioRunner]:
    """A simulation at rest, and its scenario, not played yet."""
    options = replace(plan_of(seed)[0], faults=classes, quiescence=False)
    simulation = Simulation(options, draw_plan(options))
    result = simulation.run()
    text = scenario_text(options, simulation.played_steps, result.simulated_ms)
    return simulation, ScenarioRunner(parse_scenario(text, f"seed-{seed}"), make_replication=Replication)


def end_of_simulation(simulation: Simulation) -> dict[tuple[str, int], State]:
    return {key: (row.leader, tuple(sorted(row.isr)), row.replicas) for key, row in simulation.ensemble.rows.items()}


def views(runner: ScenarioRunner) -> list[PartitionView]:
    """Every stored partition."""
    cluster = runner.storage.stored()
    rows = [cluster.row(name, number) for name in cluster.topics.names for number in range(9)]
    return [cluster.view(row) for row in dict.fromkeys(rows) if row is not None]


def end_of_scenario(runner: ScenarioRunner) -> dict[tuple[str, int], State]:
    return {
        (view.topic, view.partition): (
            -1 if view.leader is None else view.leader,
            tuple(sorted(view.isr)),
            tuple(view.replicas),
        )
        for view in views(runner)
    }


@pytest.mark.parametrize(("fault", "seed"), [(fault, seed) for fault, seeds in SEEDS.items() for seed in seeds])
def test_exported_scenario_reaches_the_same_state(fault: str, seed: int) -> None:
    simulation, runner = played(seed, fault)
    for _ in runner.play_steps():
        pass
    assert simulation.played.keys() & {"reassign", "create_topic", "delete_topic", "shut_down"}
    assert end_of_scenario(runner) == end_of_simulation(simulation)


def raised_too_far(runner: ScenarioRunner) -> bool:
    """Play the scenario. Returns whether one write ever raised the leader epoch of a partition by more than one."""
    known: dict[tuple[str, int], tuple[int, int]] = {}
    wrong = False
    for _ in runner.play_steps():
        for view in views(runner):
            now = view.leader_epoch, view.partition_epoch
            before = known.get((view.topic, view.partition), now)
            wrong |= now[0] - before[0] > now[1] - before[1] >= 0
            known[view.topic, view.partition] = now
    return wrong


@pytest.mark.parametrize("broken", [False, True])
def test_exported_scenario_reproduces_violation(monkeypatch: pytest.MonkeyPatch, broken: bool) -> None:
    if broken:
        break_elections(monkeypatch)
    simulation, runner = played(2, "crash")
    assert ("I8" in {violation.number for violation in simulation.watch.violations}) is broken
    assert raised_too_far(runner) is broken
