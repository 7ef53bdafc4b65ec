"""What the entries of an administrator's step say, for requests."""

from __future__ import annotations

from kframe.core.kraft.configuration.configs import KraftConfigOperation
from kframe.errors import ScenarioError
from kframe.model.kraft.ids import ResourceType
from kframe.scenario.format import config_text
from kframe.scenario.kraft.arguments import CreatedTopicEntry, ResourceConfigs, Scalar
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.image import RESOURCES


def assignments_of(topic: CreatedTopicEntry) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The replicas of each partition of a topic to create."""
    if isinstance(topic.assignments, dict):
        return tuple((partition, tuple(replicas)) for partition, replicas in topic.assignments.items())
    listed = topic.assignments
    count = len(listed) if topic.repeat is None or not listed else topic.repeat
    return tuple((index, tuple(listed[index % len(listed)])) for index in range(count))


def resource_of(scenario: KraftScenario, item: ResourceConfigs) -> tuple[int, str]:
    """Type and name of the resource. Raises ScenarioError unless the entry names one."""
    named = {
        ResourceType.TOPIC: item.topic,
        ResourceType.BROKER: item.broker,
        ResourceType.GROUP: item.group,
        ResourceType.CLIENT_METRICS: item.client_metrics,
    }
    selected = [(int(kind), str(name)) for kind, name in named.items() if name is not None]
    if len(selected) != 1:
        expected = "one of topic, broker, group, client-metrics"
        raise ScenarioError(f"{scenario.source}: set_config", f"{len(selected)} resources in an entry", expected)
    return selected[0]


def resource_name(resource: tuple[int, str]) -> str:
    """A resource in the form of a trace."""
    return f"{RESOURCES[ResourceType(resource[0])]}:{resource[1]}"


def operations_of(item: ResourceConfigs) -> dict[str, tuple[KraftConfigOperation, str | None]]:
    """The operation and the value of each key."""
    named: dict[KraftConfigOperation, dict[str, Scalar]] = {
        KraftConfigOperation.SET: item.set,
        KraftConfigOperation.DELETE: dict.fromkeys(item.delete),
        KraftConfigOperation.APPEND: item.append,
        KraftConfigOperation.SUBTRACT: item.subtract,
    }
    return {
        key: (operation, None if value is None else config_text(value))
        for operation, values in named.items()
        for key, value in values.items()
    }
