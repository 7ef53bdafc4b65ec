"""Resolves the targets of an action in the simulation, and records it as a scenario step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from kframe.embedded.layout import DELETE_TOPICS
from kframe.model.events import TopicPartition
from kframe.model.ids import NO_STATE
from kframe_simulator.simulation.brokers import BrokerProcess
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.state import SimulationState

Item = TypeVar("Item")
#: Performs an action with its arguments. Returns whether it had an effect.
Perform: TypeAlias = Callable[[SimulationState, Mapping[str, Any]], bool]


def by_kind(*functions: Perform) -> dict[str, Perform]:
    """Functions by the kind of action that they are named after: ``_cut`` performs ``cut``."""
    return {function.__name__.removeprefix("_"): function for function in functions}


def on_controller(act: Callable[[SimulationState, ControllerProcess, Mapping[str, Any]], None]) -> Perform:
    """An action on the controller process that its arguments name. It has an effect if the process runs."""

    def perform(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
        process = controller(simulation, arguments)
        if process.running:
            act(simulation, process, arguments)
        return process.running

    perform.__name__ = act.__name__
    return perform


def record_step(simulation: SimulationState, kind: str, argument: Any) -> None:
    """Record the current action as a scenario step."""
    simulation.played_steps[-1] = simulation.played_steps[-1]._replace(step={kind: argument})


def record_topic_step(simulation: SimulationState, topic: str, kind: str, argument: Any) -> None:
    """Record an action on a topic. A topic marked for deletion is deleted at once in a scenario."""
    if not simulation.ensemble.has_record(f"{DELETE_TOPICS}/{topic}"):
        record_step(simulation, kind, argument)


def name(key: TopicPartition) -> str:
    """``topic-partition``."""
    return f"{key[0]}-{key[1]}"


def choose(items: Sequence[Item], number: int) -> Item | None:
    """The item that a number selects. None if there are no items."""
    return items[number % len(items)] if items else None


def broker(simulation: SimulationState, arguments: Mapping[str, Any]) -> BrokerProcess:
    """The broker that an action names."""
    return simulation.brokers[simulation.options.brokers[arguments["broker"] % len(simulation.options.brokers)]]


def controller(simulation: SimulationState, arguments: Mapping[str, Any]) -> ControllerProcess:
    """A controller process. Every second number selects the active controller, if there is one."""
    number = arguments["controller"]
    active = [process for process in simulation.controllers if process.active]
    return active[0] if number % 2 and active else simulation.controllers[number // 2 % len(simulation.controllers)]


def running_controller(simulation: SimulationState) -> ControllerProcess | None:
    """The process that owns the role in storage, if it runs."""
    process = simulation.controller(-1)
    return process if process is not None and process.running else None


def partition(simulation: SimulationState, number: int) -> TopicPartition | None:
    """A stored partition."""
    return choose(sorted(simulation.ensemble.rows), number)


def partition_without_leader_first(simulation: SimulationState, number: int) -> TopicPartition | None:
    """A stored partition. Two of three numbers select a partition without a leader or a state, if there is one."""
    leaderless = sorted(key for key, row in simulation.ensemble.rows.items() if row.leader < 0)
    return choose(leaderless, number // 3) if leaderless and number % 3 else partition(simulation, number)


def topic(simulation: SimulationState, number: int) -> str | None:
    """A stored topic."""
    return choose(sorted(simulation.ensemble.topic_ids), number)


def unsettled_topic_first(simulation: SimulationState, number: int) -> str | None:
    """A stored topic. Two of three numbers select an unreadable topic, or a topic that has a partition without a state
    or under reassignment."""
    names, rows = sorted(simulation.ensemble.topic_ids), simulation.ensemble.rows
    unreadable = [item for item in names if not simulation.ensemble.readable([item])]
    unsettled = {key[0] for key, row in rows.items() if row.partition_epoch == NO_STATE or row.adding or row.removing}
    if number % 3 and (candidates := unreadable or sorted(unsettled)):
        return choose(candidates, number // 3)
    return choose(names, number)


def replicas(simulation: SimulationState, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """The replica list of an action."""
    brokers, shift = simulation.options.brokers, arguments["shift"]
    order = brokers[shift % len(brokers) :] + brokers[: shift % len(brokers)]
    if shift % 2:
        order = order[::-1]
    return order[: min(arguments["factor"], len(order))]
