"""What an action of a plan means in the world that it is played in, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kframe.embedded.layout import DELETE_TOPICS
from kframe.model.events import TopicPartition
from kframe.model.ids import NO_STATE

if TYPE_CHECKING:
    from kframe_simulator.simulation.brokers import BrokerProcess
    from kframe_simulator.simulation.controllers import ControllerProcess
    from kframe_simulator.simulation.world import World

Item = TypeVar("Item")


def tell(world: World, kind: str, argument: Any) -> None:
    """Say the action that is played as a step of a scenario."""
    world.story[-1] = world.story[-1]._replace(step={kind: argument})


def tell_of(world: World, topic: str, kind: str, argument: Any) -> None:
    """The same of an action that is about a topic; one that is to go is gone at once in a scenario."""
    if not world.ensemble.has_record(f"{DELETE_TOPICS}/{topic}"):
        tell(world, kind, argument)


def name(key: TopicPartition) -> str:
    """``topic-partition``."""
    return f"{key[0]}-{key[1]}"


def choose(items: Sequence[Item], number: int) -> Item | None:
    """The item that a number means among those that there are; None if there are none."""
    return items[number % len(items)] if items else None


def broker(world: World, arguments: Mapping[str, Any]) -> BrokerProcess:
    """The broker that an action names."""
    return world.brokers[world.options.brokers[arguments["broker"] % len(world.options.brokers)]]


def controller(world: World, arguments: Mapping[str, Any]) -> ControllerProcess:
    """A controller's process: every second number means the one at work, if there is one."""
    number = arguments["controller"]
    active = [controller_id for controller_id in world.controllers if controller_id.active]
    return active[0] if number % 2 and active else world.controllers[number // 2 % len(world.controllers)]


def partition(world: World, number: int) -> TopicPartition | None:
    """A partition that storage has."""
    return choose(sorted(world.ensemble.rows), number)


def partition_in_need(world: World, number: int) -> TopicPartition | None:
    """A partition that storage has; two of three numbers mean one without a leader, or without any state, if there is
    one."""
    needy = sorted(key for key, row in world.ensemble.rows.items() if row.leader < 0)
    return choose(needy, number // 3) if needy and number % 3 else partition(world, number)


def topic(world: World, number: int) -> str | None:
    """A topic that storage has."""
    return choose(sorted(world.ensemble.topic_ids), number)


def topic_in_need(world: World, number: int) -> str | None:
    """A topic that storage has; two of three numbers mean one that cannot be read, or that has a partition without a
    state or under reassignment, if there is one."""
    names, rows = sorted(world.ensemble.topic_ids), world.ensemble.rows
    unreadable = [item for item in names if not world.ensemble.readable([item])]
    needy = {key[0] for key, row in rows.items() if row.partition_epoch == NO_STATE or row.adding or row.removing}
    if number % 3 and (chosen := unreadable or sorted(needy)):
        return choose(chosen, number // 3)
    return choose(names, number)


def replicas(world: World, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """A replica list that an action asks for."""
    brokers, shift = world.options.brokers, arguments["shift"]
    order = brokers[shift % len(brokers) :] + brokers[: shift % len(brokers)]
    if shift % 2:
        order = order[::-1]
    return order[: min(arguments["factor"], len(order))]
