"""AlterConfigs, IncrementalAlterConfigs and DescribeConfigs (``docs/reference/controller/wire.md`` section 14)."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kframe.plugin import ErrorCode, KframeError
from kframe.plugin.cluster import ClusterState, topic_name_problem
from kframe.plugin.server import AclOperation, AclResourceType, ConfigChange, ConfigOperation
from kframe.plugin.store import ReadConfigs
from kframe_kafka_wire.apis.calls import Call, reason
from kframe_kafka_wire.apis.topic_settings import BROKER_KEYS, TOPIC_SETTINGS, Type, broker_synonyms, broker_value
from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.records.store import NoRecords, Records, settings_at

#: An error code, the settings of a topic, and the defaults of all brokers.
_StoredConfigs = tuple[int, Mapping[str, str], Mapping[str, str]]
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
#: Sources of a value (``DescribeConfigsResponse.ConfigSource``).
_OF_TOPIC, _OF_ALL_BROKERS, _STATIC, _DEFAULT = 1, 3, 4, 5
_SECRET: Final = re.compile(r"password|secret|sasl\.jaas\.config|keystore\.key|keystore\.certificate", re.IGNORECASE)
#: The fields of a setting in the response to CreateTopics.
_NEW_TOPIC_FIELDS: Final = "name", "value", "read_only", "config_source", "is_sensitive"
#: The controller's own settings that DescribeConfigs shows.
_CONTROLLER_KEYS: Final = (
    "broker.id",
    "node.id",
    "broker.rack",
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "control.plane.listener.name",
    "inter.broker.protocol.version",
    "zookeeper.connect",
)


async def alter_configs(call: Call) -> Fields:
    """Replace the settings of each resource."""
    return await _alter(call, replace=True)


async def incremental_alter_configs(call: Call) -> Fields:
    """Set, delete, append to or subtract from settings of each resource."""
    return await _alter(call, replace=False)


async def _alter(call: Call, *, replace: bool) -> Fields:
    resources = call.body["resources"]
    listed = Counter((resource["resource_type"], resource["resource_name"]) for resource in resources)
    codes: dict[tuple[int, str], tuple[int, str | None]] = {}
    changes: dict[tuple[int, str], ConfigChange] = {}
    for requested in resources:
        key = requested["resource_type"], requested["resource_name"]
        operations = _operations(requested["configs"])
        code, message = _refusal(call, *key)
        if listed[key] > 1:
            code, message = ErrorCode.INVALID_REQUEST, "each resource may be named once in a request"
        elif code == 0 and (malformed := _malformed(requested["configs"])) is not None:
            code, message = ErrorCode.INVALID_REQUEST, malformed
        elif code == 0 and operations is None:
            code, message = ErrorCode.INVALID_REQUEST, "an operation is none of SET, DELETE, APPEND and SUBTRACT"
        codes[key] = code, message
        if code == 0 and operations is not None and key != (BROKER, str(call.context.node.broker_id)):
            changes[key] = ConfigChange(None if key[0] == BROKER else key[1], operations)
    if changes:
        future = call.context.controller.alter_configs(
            list(changes.values()), replace=replace, validate_only=call.body["validate_only"]
        )
        result = await call.context.wait(future)
        for key, change in changes.items():
            code = result[change.topic]
            message = result.messages.get(change.topic)
            codes[key] = code, message or reason(call, code, key[1] or "all brokers")
    alterations = [
        {"error_code": code, "error_message": message, "resource_type": key[0], "resource_name": key[1]}
        for key, (code, message) in codes.items()
    ]
    return {"responses": alterations}


def _operations(configs: list[Fields]) -> tuple[tuple[ConfigOperation, str, str | None], ...] | None:
    kinds = [config.get("config_operation", ConfigOperation.SET) for config in configs]
    if not set(kinds) <= set(ConfigOperation):
        return None
    return tuple(
        (ConfigOperation(kind), config["name"], config["value"]) for kind, config in zip(kinds, configs, strict=True)
    )


def _malformed(configs: list[Fields]) -> str | None:
    """Kafka's message for settings that are repeated or have no value, else None."""
    names = [config["name"] for config in configs]
    if len(set(names)) < len(names):
        return "Error due to duplicate config keys"
    deletes = ConfigOperation.DELETE
    nulls = [
        config["name"] for config in configs if config["value"] is None and config.get("config_operation") != deletes
    ]
    return f"Null value not supported for : {', '.join(nulls)}" if nulls else None


def _refusal(
    call: Call, kind: int, name: str, operation: AclOperation = AclOperation.ALTER_CONFIGS
) -> tuple[int, str | None]:
    """The error code of a resource that cannot be described or changed here, else 0."""
    controller_id = str(call.context.node.broker_id)
    if kind == TOPIC:
        if not call.is_authorized(operation, AclResourceType.TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED, reason(call, ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
        if not name:
            return ErrorCode.INVALID_REQUEST, "a topic without a name"
    elif kind in (BROKER, BROKER_LOGGER):
        if not call.is_authorized(operation):
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason(call, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, name)
        if name != controller_id and (name or kind == BROKER_LOGGER):
            message = f"Unexpected broker id, expected {controller_id} or empty string, but received {name}"
            return ErrorCode.INVALID_REQUEST, message
        if kind == BROKER_LOGGER and operation is AclOperation.ALTER_CONFIGS:
            return ErrorCode.INVALID_REQUEST, "a controller has no loggers of Kafka's to set"
    else:
        return ErrorCode.INVALID_REQUEST, f"resources of type {kind} have no settings here"
    return ErrorCode.NONE, None


async def describe_configs(call: Call) -> Fields:
    """Settings of topics, defaults of all brokers, and a few settings of the controller."""
    results = []
    for resource in call.body["resources"]:
        kind, name = resource["resource_type"], resource["resource_name"]
        code, message = _refusal(call, kind, name, AclOperation.DESCRIBE_CONFIGS)
        entries: list[Fields] = []
        if code == 0:
            code, entries = await _described(call, kind, name)
            message = "" if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else reason(call, code, name)
        keys = resource["configuration_keys"]
        keys_requested = set(keys) if keys else None  # An empty list requests all settings, as in Kafka.
        results.append(
            {
                "error_code": code,
                "error_message": message,
                "resource_type": kind,
                "resource_name": name,
                "configs": [entry for entry in entries if keys_requested is None or entry["name"] in keys_requested],
            }
        )
    return {"results": results}


async def _described(call: Call, kind: int, name: str) -> tuple[int, list[Fields]]:
    config = call.context.config
    if kind == BROKER_LOGGER:
        return ErrorCode.NONE, []
    if kind == BROKER and name:
        visible = {key: config[key] for key in _CONTROLLER_KEYS if key in config}
        return ErrorCode.NONE, [_entry(call, key, value, _STATIC, read_only=True) for key, value in visible.items()]
    store = call.context.controller.store

    def read_stored(cluster: ClusterState) -> _StoredConfigs:
        if kind == TOPIC and cluster.topics.find(name) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {}, {}
        return (
            ErrorCode.NONE,
            store.perform(ReadConfigs(name)) if kind == TOPIC else {},
            store.perform(ReadConfigs(None)),
        )

    try:
        stored = await call.context.inspect_cluster(read_stored)
        if stored is None:
            stored = await asyncio.to_thread(_read_stored, call.context.records, kind, name)
    except KframeError:
        return ErrorCode.UNKNOWN_SERVER_ERROR, []
    code, of_topic, broker_defaults = stored
    if code:
        return code, []
    if kind == BROKER:
        return code, [_entry(call, key, value, _OF_ALL_BROKERS) for key, value in sorted(broker_defaults.items())]
    static = await call.context.static_settings(BROKER_KEYS)
    return code, [_topic_entry(call, key, of_topic, broker_defaults, static) for key in TOPIC_SETTINGS]


def _read_stored(records: Records, kind: int, name: str) -> _StoredConfigs:
    """The same from the store's records: a standby can describe settings as any broker does."""
    if isinstance(records, NoRecords):
        return ErrorCode.NOT_CONTROLLER, {}, {}
    if kind == TOPIC and (topic_name_problem(name) or records.read_record(f"/brokers/topics/{name}") is None):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {}, {}
    of_topic = settings_at(records, f"/config/topics/{name}") if kind == TOPIC else {}
    return ErrorCode.NONE, of_topic, settings_at(records, "/config/brokers/<default>")


async def configs_of(call: Call, topic_configs: Mapping[str, Mapping[str, str]]) -> tuple[int, dict[str, list[Fields]]]:
    """An error code, and all settings of topics as CreateTopics reports them, by topic.

    ``topic_configs`` has the settings of the topics themselves. The code is not 0 if defaults are unknown (Kafka 3.9
    ``ConfigHelper.createTopicConfigEntry``).
    """
    store = call.context.controller.store
    try:
        broker_defaults = await call.context.wait(
            call.context.controller.inspect(lambda _cluster: store.perform(ReadConfigs(None)))
        )
    except KframeError:
        return ErrorCode.UNKNOWN_SERVER_ERROR, {}
    static = await call.context.static_settings(BROKER_KEYS)
    entries_by_name: dict[str, list[Fields]] = {}
    for name, config in topic_configs.items():
        entries = [_topic_entry(call, key, config, broker_defaults, static) for key in TOPIC_SETTINGS]
        entries_by_name[name] = [{key: entry[key] for key in _NEW_TOPIC_FIELDS} for entry in entries]
    return ErrorCode.NONE, entries_by_name


def _topic_entry(
    call: Call, key: str, of_topic: Mapping[str, str], broker_defaults: Mapping[str, str], static: Mapping[str, str]
) -> Fields:
    """The value in effect, and its synonyms in order of precedence (Kafka ``ConfigHelper.createTopicConfigEntry``).

    ``broker_defaults`` apply to all brokers, ``static`` is the server.properties of a broker. The controller's own
    settings have no influence.
    """
    setting = TOPIC_SETTINGS[key]
    configs = [(broker_defaults, _OF_ALL_BROKERS), (static, _STATIC)]
    synonyms = broker_synonyms(setting, configs, _DEFAULT)
    if key in of_topic:
        value = of_topic[key]
        synonyms.insert(0, (key, value, _OF_TOPIC))
    else:
        broker_values = (broker_value(setting, config) for config, _ in configs)
        value = next(
            (key_and_value[1] for key_and_value in broker_values if key_and_value is not None), setting.default
        )
    source = synonyms[0][2] if synonyms else _DEFAULT
    synonym_entries = [{"name": name, "value": text, "source": origin} for name, text, origin in synonyms]
    return _entry(call, key, value, source, setting.type, synonym_entries)


def _entry(
    call: Call,
    key: str,
    value: str,
    source: int,
    kind: Type = Type.STRING,
    synonyms: list[Any] | None = None,
    *,
    read_only: bool = False,
) -> Fields:
    secret = _SECRET.search(key) is not None
    visible_value = None if secret else value
    if synonyms is None:
        synonyms = [{"name": key, "value": visible_value, "source": source}]
    return {
        "name": key,
        "value": visible_value,
        "read_only": read_only,
        "is_default": source == _DEFAULT,
        "config_source": source,
        "is_sensitive": secret,
        "config_type": kind,
        "documentation": None,
        "synonyms": synonyms if call.body.get("include_synonyms") else (),
    }
