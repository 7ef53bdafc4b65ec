"""The steps of administrators: topics, partitions, elections, reassignments, configurations, features and nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from kframe.core.kraft import controller_apis
from kframe.core.kraft.brokers import registration
from kframe.core.kraft.configuration import configs
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.features import feature_updates
from kframe.core.kraft.replication import elections, reassignment
from kframe.core.kraft.topics import topic_requests
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import KRAFT_VERSION, KraftElection
from kframe.scenario.fields import Empty, split_partition
from kframe.scenario.format import config_text
from kframe.scenario.kraft.admin_entries import assignments_of, operations_of, resource_name, resource_of
from kframe.scenario.kraft.arguments import (
    ConfigChanges,
    CreatedTopicEntry,
    CreatePartitionsEntry,
    CreateTopicsEntry,
    FeatureLevel,
    LeaderElection,
    ResourceConfigs,
)
from kframe.scenario.kraft.leader_steps import by_partition, topic_id_of
from kframe.scenario.kraft.quorum_run import QuorumRun

# --- topics


def create_topics(run: QuorumRun, argument: list[CreatedTopicEntry] | CreateTopicsEntry) -> dict[str, str]:
    """CreateTopics."""
    entries = argument.topics if isinstance(argument, CreateTopicsEntry) else argument
    validate_only = isinstance(argument, CreateTopicsEntry) and argument.validate_only
    requested = list(map(_creatable, entries))
    return _submit_topics(
        run,
        lambda context: controller_apis.create_topics(
            context, requested, run.names.new_topic_id, validate_only=validate_only
        ),
        [topic.name for topic in requested],
    )


def _submit_topics(
    run: QuorumRun,
    decide: Callable[[KraftContext], ControllerResult[Any]],
    names: Sequence[str],
    symbols: Mapping[UUID, str] | None = None,
) -> dict[str, str]:
    """The error of each topic; a refused request refuses all ``names``. ``symbols`` name the ids of the request."""
    error, results = run.submit("error", decide)
    if results is None:
        message = run.messages.pop("error", None)
        errors = {name: run.outcome(name, ErrorCode[error], message) for name in names}
    else:
        errors = {}
        for result in results:
            name = result.topic or (symbols or {}).get(result.topic_id, "")
            errors[name] = run.outcome(name, result.error, result.message)
    return dict(sorted(errors.items()))


def _creatable(topic: CreatedTopicEntry) -> topic_requests.CreatableTopic:
    values = {key: None if value is None else config_text(value) for key, value in topic.config.items()}
    return topic_requests.CreatableTopic(
        topic.name, topic.partitions, topic.replication_factor, assignments_of(topic), values
    )


def create_partitions(run: QuorumRun, argument: CreatePartitionsEntry | list[CreatePartitionsEntry]) -> dict[str, str]:
    """CreatePartitions."""
    requested = [
        topic_requests.CreatePartitionsTopic(
            topic.topic, topic.count, None if topic.assignments is None else tuple(map(tuple, topic.assignments))
        )
        for topic in (argument if isinstance(argument, list) else [argument])
    ]
    return _submit_topics(
        run,
        lambda context: controller_apis.create_partitions(context, requested),
        [topic.topic for topic in requested],
    )


def delete_topics(run: QuorumRun, argument: list[str]) -> dict[str, str]:
    """DeleteTopics by name, or by id (``id:t``)."""
    names = [name for name in argument if not name.startswith("id:")]
    ids = [topic_id_of(run, name.removeprefix("id:")) for name in argument if name.startswith("id:")]
    symbols = {topic_id: f"id:{run.names.topic(topic_id)}" for topic_id in ids}
    return _submit_topics(
        run,
        lambda context: controller_apis.delete_topics(context, names, ids),
        [*names, *symbols.values()],
        symbols,
    )


# --- partitions


def elect_leaders(run: QuorumRun, argument: LeaderElection) -> dict[str, str]:
    """ElectLeaders."""
    kind = KraftElection[argument.type.upper()]
    partitions = None if argument.partitions is None else list(map(split_partition, argument.partitions))
    return _submit_partitions(run, lambda context: elections.elect_leaders(context, kind, partitions))


def reassign(run: QuorumRun, argument: dict[str, list[int] | bool | None]) -> dict[str, str]:
    """AlterPartitionReassignments; null cancels."""
    named = dict(argument)
    allowed = named.pop("allow_replication_factor_change", True) is not False
    requests = [
        reassignment.RequestedReassignment(
            *split_partition(name), tuple(replicas) if isinstance(replicas, list) else None
        )
        for name, replicas in named.items()
    ]
    return _submit_partitions(
        run, lambda context: reassignment.reassign_partitions(context, requests, allow_factor_change=allowed)
    )


def cancel(run: QuorumRun, argument: list[str]) -> dict[str, str]:
    """Cancel reassignments."""
    return reassign(run, dict.fromkeys(argument))


def _submit_partitions(run: QuorumRun, decide: Any) -> dict[str, str]:
    error, results = run.submit("error", decide)
    if results is None:
        return {"error": error}
    errors = {}
    for result in results:
        name = f"{result.topic}-{result.partition}"
        errors[name] = run.outcome(name, result.error, result.message)
    return by_partition(errors)


def list_reassignments(run: QuorumRun, argument: Empty) -> dict[str, Any]:
    """ListPartitionReassignments of all partitions."""
    ongoing = reassignment.list_reassignments(run.quorum.context, None)
    return by_partition(
        {
            f"{item.topic}-{item.partition}": {
                "replicas": list(item.replicas),
                "adding_replicas": list(item.adding),
                "removing_replicas": list(item.removing),
            }
            for item in ongoing
        }
    )


# --- configurations and features


def set_config(run: QuorumRun, argument: list[ResourceConfigs] | ConfigChanges) -> dict[str, str]:
    """IncrementalAlterConfigs."""
    if isinstance(argument, ConfigChanges):
        return _alter_configs(run, argument.resources, validate_only=argument.validate_only)
    return _alter_configs(run, argument)


def replace_config(run: QuorumRun, argument: list[ResourceConfigs]) -> dict[str, str]:
    """AlterConfigs: configurations that are not named are deleted."""
    return _alter_configs(run, argument, replaces_all=True)


def _alter_configs(
    run: QuorumRun, resources: list[ResourceConfigs], *, replaces_all: bool = False, validate_only: bool = False
) -> dict[str, str]:
    changes = [
        configs.KraftConfigChange(resource_of(run.scenario, item), operations_of(item), replaces_all)
        for item in resources
    ]
    error, results = run.submit(
        "error", lambda context: controller_apis.alter_configs(context, changes, validate_only=validate_only)
    )
    if results is None:
        return {"error": error}
    return {
        resource_name(result.resource): run.outcome(resource_name(result.resource), result.error, result.message)
        for result in sorted(results, key=lambda result: result.resource)
    }


def update_features(run: QuorumRun, argument: dict[str, int | bool | FeatureLevel]) -> dict[str, str]:
    """UpdateFeatures. An upgrade of ``kraft.version`` writes the voters."""
    named = dict(argument)
    validate_only = named.pop("validate_only", False) is True
    updates = {}
    for name, value in named.items():
        level = value if isinstance(value, FeatureLevel) else FeatureLevel(int(value))
        updates[name] = level.level, feature_updates.UpgradeType(level.type)
    quorum = run.quorum

    def decide(context: Any) -> ControllerResult[Any]:
        result = feature_updates.update_features(
            context, updates, validate_only=validate_only, kraft_version=quorum.kraft_version
        )
        if not validate_only and updates.get(KRAFT_VERSION, (0,))[0] > quorum.kraft_version:
            quorum.upgrade_kraft_version()
        return result

    return {"error": run.submit("error", decide)[0]}


# --- nodes


def unregister(run: QuorumRun, argument: list[int]) -> dict[str, str]:
    """UnregisterBroker, one request each."""
    errors = {}
    for broker_id in argument:
        decide = partial(registration.unregister_broker, broker_id=broker_id)
        errors[str(broker_id)] = run.submit(str(broker_id), decide)[0]
    return errors


def unregister_controller(run: QuorumRun, argument: int) -> dict[str, str]:
    """UnregisterController."""
    return {"error": run.submit("error", lambda context: registration.unregister_controller(context, argument))[0]}
