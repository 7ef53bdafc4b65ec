"""The steps of administrators over the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from kframe.core.kraft.configuration.configs import KraftConfigOperation
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import KraftElection
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
from verification.kraft.wire_scenarios.wire_run import WireRun

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
ALTER_CONFIGS: Final = 33
CREATE_PARTITIONS: Final = 37
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
UPDATE_FEATURES: Final = 57
UNREGISTER_BROKER: Final = 64
UNREGISTER_CONTROLLER: Final = 94
TIMEOUT: Final = {"timeout": 30_000}
#: Kafka ``ElectionType`` of the elections that are requested.
_ELECTION_TYPES: Final = {KraftElection.PREFERRED: 0, KraftElection.UNCLEAN: 1}
#: Kafka ``FeatureUpdate.UpgradeType``.
_UPGRADE_TYPES: Final = {"upgrade": 1, "safe_downgrade": 2, "unsafe_downgrade": 3}
_OPERATIONS: Final = {operation: number for number, operation in enumerate(KraftConfigOperation)}


def _outcome(run: WireRun, key: str, fields: dict[str, Any]) -> str:
    """The name of the error of a struct with error code and message."""
    return run.outcome(key, ErrorCode(fields["error_code"]), fields["error_message"])


# --- topics


def create_topics(run: WireRun, argument: list[CreatedTopicEntry] | CreateTopicsEntry) -> dict[str, str]:
    """CreateTopics."""
    entries = argument.topics if isinstance(argument, CreateTopicsEntry) else argument
    topics = [
        {
            "name": entry.name,
            "num_partitions": entry.partitions,
            "replication_factor": entry.replication_factor,
            "assignments": [
                {"partition_index": index, "broker_ids": replicas} for index, replicas in assignments_of(entry)
            ],
            "configs": [
                {"name": key, "value": None if value is None else config_text(value)}
                for key, value in entry.config.items()
            ],
        }
        for entry in entries
    ]
    validate_only = isinstance(argument, CreateTopicsEntry) and argument.validate_only
    response = run.ask(CREATE_TOPICS, {"topics": topics, "validate_only": validate_only, **TIMEOUT})
    return _by_topic(run, response["topics"])


def _by_topic(run: WireRun, results: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The error of each topic, by name, or ``id:`` and the symbol where the response has only the id."""
    named = {
        f"id:{run.names.topic(UUID(bytes=result['topic_id']))}" if result["name"] is None else result["name"]: result
        for result in results
    }
    return {name: _outcome(run, name, result) for name, result in sorted(named.items())}


def create_partitions(run: WireRun, argument: CreatePartitionsEntry | list[CreatePartitionsEntry]) -> dict[str, str]:
    """CreatePartitions."""
    topics = [
        {
            "name": entry.topic,
            "count": entry.count,
            "assignments": None
            if entry.assignments is None
            else [{"broker_ids": replicas} for replicas in entry.assignments],
        }
        for entry in (argument if isinstance(argument, list) else [argument])
    ]
    response = run.ask(CREATE_PARTITIONS, {"topics": topics, "validate_only": False, **TIMEOUT})
    return _by_topic(run, response["results"])


def delete_topics(run: WireRun, argument: list[str]) -> dict[str, str]:
    """DeleteTopics by name, or by id (``id:t``)."""
    topics = [
        {"name": None, "topic_id": topic_id_of(run, name.removeprefix("id:")).bytes}
        if name.startswith("id:")
        else {"name": name}
        for name in argument
    ]
    return _by_topic(run, run.ask(DELETE_TOPICS, {"topics": topics, **TIMEOUT})["responses"])


# --- partitions


def _indexes_by_topic(names: Iterable[str]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in map(split_partition, names):
        topics.setdefault(topic, []).append(index)
    return topics


def elect_leaders(run: WireRun, argument: LeaderElection) -> dict[str, str]:
    """ElectLeaders."""
    topics = (
        None
        if argument.partitions is None
        else [
            {"topic": topic, "partitions": indexes} for topic, indexes in _indexes_by_topic(argument.partitions).items()
        ]
    )
    election = _ELECTION_TYPES[KraftElection[argument.type.upper()]]
    response = run.ask(ELECT_LEADERS, {"election_type": election, "topic_partitions": topics, **TIMEOUT})
    if response["error_code"]:
        return {"error": ErrorCode(response["error_code"]).name}
    results = {
        f"{topic['topic']}-{result['partition_id']}": result
        for topic in response["replica_election_results"]
        for result in topic["partition_result"]
    }
    return by_partition({name: _outcome(run, name, result) for name, result in results.items()})


def reassign(run: WireRun, argument: dict[str, list[int] | bool | None]) -> dict[str, str]:
    """AlterPartitionReassignments; null cancels."""
    named = dict(argument)
    allowed = named.pop("allow_replication_factor_change", True)
    topics = [
        {
            "name": topic,
            "partitions": [{"partition_index": index, "replicas": named[f"{topic}-{index}"]} for index in indexes],
        }
        for topic, indexes in _indexes_by_topic(named).items()
    ]
    fields = {"topics": topics, "allow_replication_factor_change": allowed, **TIMEOUT}
    response = run.ask(ALTER_PARTITION_REASSIGNMENTS, fields)
    if response["error_code"]:
        return {"error": _outcome(run, "error", response)}
    results = {
        f"{topic['name']}-{result['partition_index']}": result
        for topic in response["responses"]
        for result in topic["partitions"]
    }
    return by_partition({name: _outcome(run, name, result) for name, result in results.items()})


def cancel(run: WireRun, argument: list[str]) -> dict[str, str]:
    """Cancel reassignments."""
    return reassign(run, dict.fromkeys(argument))


def list_reassignments(run: WireRun, _argument: Empty) -> dict[str, Any]:
    """ListPartitionReassignments of all partitions."""
    response = run.ask(LIST_PARTITION_REASSIGNMENTS, {"topics": None, **TIMEOUT})
    lists = ("replicas", "adding_replicas", "removing_replicas")
    return by_partition(
        {
            f"{topic['name']}-{partition['partition_index']}": {field: list(partition[field]) for field in lists}
            for topic in response["topics"]
            for partition in topic["partitions"]
        }
    )


# --- configurations and features


def set_config(run: WireRun, argument: list[ResourceConfigs] | ConfigChanges) -> dict[str, str]:
    """IncrementalAlterConfigs."""
    resources = argument.resources if isinstance(argument, ConfigChanges) else argument
    validate_only = isinstance(argument, ConfigChanges) and argument.validate_only
    return _alter_configs(run, INCREMENTAL_ALTER_CONFIGS, resources, validate_only=validate_only)


def replace_config(run: WireRun, argument: list[ResourceConfigs]) -> dict[str, str]:
    """AlterConfigs: configurations that are not named are deleted."""
    return _alter_configs(run, ALTER_CONFIGS, argument, validate_only=False)


def _alter_configs(
    run: WireRun, api_key: int, entries: list[ResourceConfigs], *, validate_only: bool
) -> dict[str, str]:
    resources = []
    for entry in entries:
        kind, name = resource_of(run.scenario, entry)
        changes = [
            {"name": key, "config_operation": _OPERATIONS[operation], "value": value}
            for key, (operation, value) in operations_of(entry).items()
        ]
        resources.append({"resource_type": kind, "resource_name": name, "configs": changes})
    response = run.ask(api_key, {"resources": resources, "validate_only": validate_only})
    results = sorted(
        ((result["resource_type"], result["resource_name"]), result["error_code"], result["error_message"])
        for result in response["responses"]
    )
    return {
        resource_name(resource): run.outcome(resource_name(resource), ErrorCode(code), message)
        for resource, code, message in results
    }


def update_features(run: WireRun, argument: dict[str, int | bool | FeatureLevel]) -> dict[str, str]:
    """UpdateFeatures."""
    named = dict(argument)
    validate_only = named.pop("validate_only", False) is True
    updates = []
    for name, value in named.items():
        level = value if isinstance(value, FeatureLevel) else FeatureLevel(int(value))
        upgrade_type = _UPGRADE_TYPES[level.type]
        updates.append({"feature": name, "max_version_level": level.level, "upgrade_type": upgrade_type})
    fields = {"feature_updates": updates, "validate_only": validate_only, **TIMEOUT}
    return {"error": _outcome(run, "error", run.ask(UPDATE_FEATURES, fields))}


# --- nodes


def unregister(run: WireRun, argument: list[int]) -> dict[str, str]:
    """UnregisterBroker, one request each."""
    return {
        str(broker_id): _outcome(run, str(broker_id), run.ask(UNREGISTER_BROKER, {"broker_id": broker_id}))
        for broker_id in argument
    }


def unregister_controller(run: WireRun, argument: int) -> dict[str, str]:
    """UnregisterController."""
    return {"error": _outcome(run, "error", run.ask(UNREGISTER_CONTROLLER, {"controller_id": argument}))}
