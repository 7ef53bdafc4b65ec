"""Requests that a certain broker must answer: for its own configurations and for its log directories.

A broker refuses to change configurations of another (``ConfigAdminManager.preprocess``, ``ZkAdminManager``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from kframe.plugin import ErrorCode, StoreError
from kframe.plugin.admin import ConfigResource, DirectoryLog, LogDirectory, volume_bytes
from kframe.plugin.cluster import TopicPartition
from kframe_kafka_wire.connections.node import CONNECTION_ERRORS, Bootstrap, NodeConnection
from kframe_kafka_wire.protocol.errors import error_of

#: API keys.
DESCRIBE_CONFIGS: Final = 32
ALTER_LOG_DIRS: Final = 34
DESCRIBE_LOG_DIRS: Final = 35
ALTER_CONFIGS: Final = 44
#: Types of resources, and operations of IncrementalAlterConfigs.
_TOPIC, _BROKER = 2, 4
_SET, _DELETE = 0, 1
#: Kafka's ``DescribeConfigsResponse.ConfigSource`` of own values: of a topic, and of a broker.
_OWN: Final = {_TOPIC: 1, _BROKER: 2}


class BrokerUnreachable(StoreError):
    """A broker is not live, or does not answer."""


class BrokerConnections:
    """A connection to each broker that was asked."""

    def __init__(self, bootstrap: Bootstrap) -> None:
        self.addresses: Mapping[int, tuple[str, int]] = {}
        """Hosts and ports of the live brokers, by id."""
        self._bootstrap = bootstrap
        self._nodes: dict[int, NodeConnection] = {}

    def ask(self, broker_id: int, api_key: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The response of a broker. A lost connection is opened once more. Raises StoreError, BrokerUnreachable."""
        node = self._nodes.pop(broker_id, None)
        if node is not None:
            with suppress(*CONNECTION_ERRORS):
                response = node.ask(api_key, fields)
                self._nodes[broker_id] = node
                return response
            node.close()
        if broker_id not in self.addresses:
            raise BrokerUnreachable(f"broker {broker_id} is not live")
        try:
            node = self._bootstrap.to_address(*self.addresses[broker_id])
            response = node.ask(api_key, fields)
        except CONNECTION_ERRORS as error:
            raise BrokerUnreachable(f"broker {broker_id}: {error}") from error
        self._nodes[broker_id] = node
        return response

    def close(self) -> None:
        """Disconnect."""
        for node in self._nodes.values():
            node.close()
        self._nodes.clear()


def addresses_of(response: Mapping[str, Any]) -> dict[int, tuple[str, int]]:
    """Hosts and ports of the live brokers in a response to Metadata, by id."""
    return {broker["node_id"]: (broker["host"], broker["port"]) for broker in response["brokers"]}


def describe_request(resources: Mapping[ConfigResource, Sequence[str]]) -> dict[str, Any]:
    """The fields of DescribeConfigs."""
    return {
        "resources": [{**_fields(resource), "configuration_keys": list(keys)} for resource, keys in resources.items()]
    }


def configs_of(response: Mapping[str, Any]) -> dict[ConfigResource, dict[str, str]]:
    """The own values of each resource. Raises StoreError for a refusal."""
    configs = {}
    for result in response["results"]:
        code, kind = error_of(result["error_code"]), result["resource_type"]
        if code is not ErrorCode.NONE:
            raise StoreError(f"configurations of {result['resource_name']}: found {code.name}, expected their values")
        configs[_resource(result)] = values_from(result, _OWN[kind])
    return configs


def values_from(result: Mapping[str, Any], source: int) -> dict[str, str]:
    """The settings of a resource that come from a ``ConfigSource``. The values of passwords are not sent."""
    return {
        entry["name"]: entry["value"]
        for entry in result["configs"]
        if entry["config_source"] == source and entry["value"] is not None
    }


def alter_request(changes: Mapping[ConfigResource, Mapping[str, str | None]]) -> dict[str, Any]:
    """The fields of IncrementalAlterConfigs."""
    return {
        "resources": [
            {
                **_fields(resource),
                "configs": [
                    {"name": name, "config_operation": _DELETE if value is None else _SET, "value": value}
                    for name, value in values.items()
                ],
            }
            for resource, values in changes.items()
        ],
        "validate_only": False,
    }


def codes_of(response: Mapping[str, Any]) -> dict[ConfigResource, ErrorCode]:
    """The code of each resource in a response to IncrementalAlterConfigs."""
    return {_resource(result): error_of(result["error_code"]) for result in response["responses"]}


def directories_of(response: Mapping[str, Any]) -> tuple[LogDirectory, ...]:
    """The log directories in a response to DescribeLogDirs.

    Raises StoreError for a refusal, which has no directory: older versions have no error of their own
    (``KafkaApis.handleDescribeLogDirsRequest``).
    """
    if not response["results"]:
        code = error_of(response.get("error_code", 0)) or ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        raise StoreError(f"log directories: found {code.name}, expected their replicas")
    return tuple(map(_directory, response["results"]))


def _directory(result: Mapping[str, Any]) -> LogDirectory:
    logs = [
        DirectoryLog(topic["name"], log["partition_index"], log["partition_size"], log["is_future_key"])
        for topic in result["topics"]
        for log in topic["partitions"]
    ]
    code = error_of(result["error_code"])
    return LogDirectory(
        result["log_dir"],
        logs,
        None if code is ErrorCode.NONE else code.name,
        volume_bytes(result.get("total_bytes")),
        volume_bytes(result.get("usable_bytes")),
        result.get("is_cordoned", False),
    )


def move_request(paths: Mapping[TopicPartition, str]) -> dict[str, Any]:
    """The fields of AlterReplicaLogDirs."""
    topics: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), path in paths.items():
        topics.setdefault(path, {}).setdefault(topic, []).append(partition)
    return {
        "dirs": [
            {"path": path, "topics": [{"name": name, "partitions": numbers} for name, numbers in by_topic.items()]}
            for path, by_topic in topics.items()
        ]
    }


def move_codes(response: Mapping[str, Any]) -> dict[TopicPartition, ErrorCode]:
    """The code of each partition in a response to AlterReplicaLogDirs."""
    return {
        (topic["topic_name"], partition["partition_index"]): error_of(partition["error_code"])
        for topic in response["results"]
        for partition in topic["partitions"]
    }


def _fields(resource: ConfigResource) -> dict[str, Any]:
    if resource.broker_id is None:
        return {"resource_type": _TOPIC, "resource_name": resource.topic}
    return {"resource_type": _BROKER, "resource_name": str(resource.broker_id)}


def _resource(result: Mapping[str, Any]) -> ConfigResource:
    if result["resource_type"] == _TOPIC:
        return ConfigResource(result["resource_name"])
    return ConfigResource(None, int(result["resource_name"]))
