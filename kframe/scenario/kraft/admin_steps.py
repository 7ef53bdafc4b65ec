"""The steps of administrators: topics, partitions, elections, reassignments, configurations, features and nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from kframe.core.kraft import (
    admin_requests,
    broker_events,
    configs,
    elections,
    features,
    node_requests,
    reassignment,
    topics,
)
from kframe.core.kraft.configs import KraftConfigOperation
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.decision import ControllerResult
from kframe.errors import ErrorCode, ScenarioError
from kframe.model.kraft.ids import KRAFT_VERSION, KraftElection, ResourceType
from kframe.scenario.fields import Empty
from kframe.scenario.kraft.arguments import (
    ConfigChanges,
    CreatedTopicEntry,
    CreatePartitionsEntry,
    CreateTopicsEntry,
    FeatureLevel,
    LeaderElection,
    ResourceConfigs,
    Scalar,
)
from kframe.scenario.kraft.broker_steps import by_partition, split_partition, topic_id_of
from kframe.scenario.kraft.image import RESOURCES
from kframe.scenario.kraft.playing import KraftPlay, config_text

# --- topics


def create_topics(play: KraftPlay, argument: list[CreatedTopicEntry] | CreateTopicsEntry) -> dict[str, str]:
    """CreateTopics."""
    entries = argument.topics if isinstance(argument, CreateTopicsEntry) else argument
    validate_only = isinstance(argument, CreateTopicsEntry) and argument.validate_only
    requested = list(map(_creatable, entries))
    return _topic_answers(
        play,
        lambda context: admin_requests.create_topics(
            context, requested, play.names.new_topic_id, validate_only=validate_only
        ),
        [topic.name for topic in requested],
    )


def _topic_answers(
    play: KraftPlay, decide: Callable[[KraftContext], ControllerResult], names: Sequence[str],
    symbols: Mapping[UUID, str] | None = None,
) -> dict[str, str]:  # fmt: skip
    """The error of each topic; a refused request refuses all ``names``. ``symbols`` name the ids of the request."""
    error, results = play.submit("error", decide)
    if results is None:
        message = play.messages.pop("error", None)
        answers = {name: play.outcome(name, ErrorCode[error], message) for name in names}
    else:
        answers = {}
        for result in results:
            name = result.topic or (symbols or {}).get(result.topic_id, "")
            answers[name] = play.outcome(name, result.error, result.message)
    return dict(sorted(answers.items()))


def _creatable(topic: CreatedTopicEntry) -> topics.CreatableTopic:
    values = {key: None if value is None else config_text(value) for key, value in topic.config.items()}
    return topics.CreatableTopic(topic.name, topic.partitions, topic.replication_factor, _assignments(topic), values)


def _assignments(topic: CreatedTopicEntry) -> tuple[tuple[int, tuple[int, ...]], ...]:
    if isinstance(topic.assignments, dict):
        return tuple((partition, tuple(replicas)) for partition, replicas in topic.assignments.items())
    listed = topic.assignments
    count = len(listed) if topic.repeat is None or not listed else topic.repeat
    return tuple((index, tuple(listed[index % len(listed)])) for index in range(count))


def create_partitions(play: KraftPlay, argument: CreatePartitionsEntry | list[CreatePartitionsEntry]) -> dict[str, str]:
    """CreatePartitions."""
    requested = [
        topics.CreatePartitionsTopic(
            topic.topic, topic.count, None if topic.assignments is None else tuple(map(tuple, topic.assignments))
        )
        for topic in (argument if isinstance(argument, list) else [argument])
    ]
    return _topic_answers(
        play,
        lambda context: admin_requests.create_partitions(context, requested),
        [topic.topic for topic in requested],
    )


def delete_topics(play: KraftPlay, argument: list[str]) -> dict[str, str]:
    """DeleteTopics by name, or by id (``id:t``)."""
    names = [name for name in argument if not name.startswith("id:")]
    ids = [topic_id_of(play, name.removeprefix("id:")) for name in argument if name.startswith("id:")]
    symbols = {topic_id: f"id:{play.names.topic(topic_id)}" for topic_id in ids}
    return _topic_answers(
        play,
        lambda context: admin_requests.delete_topics(context, names, ids),
        [*names, *symbols.values()],
        symbols,
    )


# --- partitions


def elect_leaders(play: KraftPlay, argument: LeaderElection) -> dict[str, str]:
    """ElectLeaders."""
    kind = KraftElection[argument.type.upper()]
    partitions = None if argument.partitions is None else list(map(split_partition, argument.partitions))
    return _partition_answers(play, lambda context: elections.elect_leaders(context, kind, partitions))


def reassign(play: KraftPlay, argument: dict[str, list[int] | bool | None]) -> dict[str, str]:
    """AlterPartitionReassignments; null cancels."""
    named = dict(argument)
    allowed = named.pop("allow_replication_factor_change", True) is not False
    requests = [
        reassignment.RequestedReassignment(
            *split_partition(name), tuple(replicas) if isinstance(replicas, list) else None
        )
        for name, replicas in named.items()
    ]
    return _partition_answers(
        play, lambda context: reassignment.reassign_partitions(context, requests, allow_factor_change=allowed)
    )


def cancel(play: KraftPlay, argument: list[str]) -> dict[str, str]:
    """Cancel reassignments."""
    return reassign(play, dict.fromkeys(argument))


def _partition_answers(play: KraftPlay, decide: Any) -> dict[str, str]:
    error, results = play.submit("error", decide)
    if results is None:
        return {"error": error}
    answers = {}
    for result in results:
        name = f"{result.topic}-{result.partition}"
        answers[name] = play.outcome(name, result.error, result.message)
    return by_partition(answers)


def list_reassignments(play: KraftPlay, argument: Empty) -> dict[str, Any]:
    """ListPartitionReassignments of all partitions."""
    ongoing = reassignment.list_reassignments(play.quorum.context, None)
    return by_partition({
        f"{item.topic}-{item.partition}": {
            "replicas": list(item.replicas), "adding_replicas": list(item.adding),
            "removing_replicas": list(item.removing),
        }
        for item in ongoing
    })  # fmt: skip


# --- configurations and features


def set_config(play: KraftPlay, argument: list[ResourceConfigs] | ConfigChanges) -> dict[str, str]:
    """IncrementalAlterConfigs."""
    if isinstance(argument, ConfigChanges):
        return _alter_configs(play, argument.resources, validate_only=argument.validate_only)
    return _alter_configs(play, argument)


def replace_config(play: KraftPlay, argument: list[ResourceConfigs]) -> dict[str, str]:
    """AlterConfigs: configurations that are not named are deleted."""
    return _alter_configs(play, argument, replaces_all=True)


def _alter_configs(
    play: KraftPlay, resources: list[ResourceConfigs], *, replaces_all: bool = False, validate_only: bool = False
) -> dict[str, str]:
    changes = [configs.KraftConfigChange(_resource(play, item), _operations(item), replaces_all) for item in resources]
    error, results = play.submit(
        "error", lambda context: admin_requests.alter_configs(context, changes, validate_only=validate_only)
    )
    if results is None:
        return {"error": error}
    return {
        _resource_name(result.resource): play.outcome(_resource_name(result.resource), result.error, result.message)
        for result in sorted(results, key=lambda result: result.resource)
    }


def _resource(play: KraftPlay, item: ResourceConfigs) -> tuple[int, str]:
    named = {
        ResourceType.TOPIC: item.topic, ResourceType.BROKER: item.broker, ResourceType.GROUP: item.group,
        ResourceType.CLIENT_METRICS: item.client_metrics,
    }  # fmt: skip
    given = [(int(kind), str(name)) for kind, name in named.items() if name is not None]
    if len(given) != 1:
        expected = "one of topic, broker, group, client-metrics"
        raise ScenarioError(f"{play.scenario.source}: set_config", f"{len(given)} resources in an entry", expected)
    return given[0]


def _resource_name(resource: tuple[int, str]) -> str:
    return f"{RESOURCES[ResourceType(resource[0])]}:{resource[1]}"


def _operations(item: ResourceConfigs) -> dict[str, tuple[KraftConfigOperation, str | None]]:
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


def update_features(play: KraftPlay, argument: dict[str, int | bool | FeatureLevel]) -> dict[str, str]:
    """UpdateFeatures. An upgrade of ``kraft.version`` writes the voters."""
    named = dict(argument)
    validate_only = named.pop("validate_only", False) is True
    updates = {}
    for name, value in named.items():
        level = value if isinstance(value, FeatureLevel) else FeatureLevel(int(value))
        updates[name] = level.level, features.UpgradeType(level.type)
    quorum = play.quorum

    def decide(context: Any) -> ControllerResult:
        result = features.update_features(
            context, updates, validate_only=validate_only, kraft_version=quorum.kraft_version
        )
        if not validate_only and updates.get(KRAFT_VERSION, (0,))[0] > quorum.kraft_version:
            quorum.upgrade_kraft_version()
        return result

    return {"error": play.submit("error", decide)[0]}


# --- nodes


def unregister(play: KraftPlay, argument: list[int]) -> dict[str, str]:
    """UnregisterBroker, one request each."""
    return {str(broker_id): _unregister(play, broker_id) for broker_id in argument}


def _unregister(play: KraftPlay, broker_id: int) -> str:
    error, _ = play.submit(str(broker_id), lambda context: broker_events.unregister_broker(context, broker_id))
    return error


def unregister_controller(play: KraftPlay, argument: int) -> dict[str, str]:
    """UnregisterController."""
    return {"error": play.submit("error", lambda context: node_requests.unregister_controller(context, argument))[0]}
