"""Changes of topic and broker settings (Kafka 3.9 ``ZkAdminManager`` and ``ConfigHandler``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kframe.core.context import Context, Operation, ask
from kframe.core.state_machines import partition_state_machine
from kframe.core.topics import topic_metadata
from kframe.core.topics.topic_validation import settings_problem
from kframe.errors import ErrorCode
from kframe.model import broker_configs, topic_configs
from kframe.model.admin import ConfigChange, ConfigOperation
from kframe.model.config import UNCLEAN
from kframe.model.events import AlterConfigsRequested
from kframe.model.log_entries import Message
from kframe.ports.store_requests import ReadConfigs, WriteConfigs


@dataclass(frozen=True, slots=True)
class ConfigsResponse:
    """A code for each resource: a topic by name, or None for all brokers."""

    codes: dict[str | None, ErrorCode]
    messages: dict[str | None, str] = field(default_factory=dict)
    """Kafka's error messages for refused settings, by resource."""


def refused(request: AlterConfigsRequested, error: ErrorCode) -> ConfigsResponse:
    """The refusal of a request."""
    return ConfigsResponse({change.topic: error for change in request.changes})


def alter_configs(context: Context, request: AlterConfigsRequested) -> Operation[ConfigsResponse]:
    """Validate and store changes of settings, resource by resource."""
    listed = [change.topic for change in request.changes]
    codes: dict[str | None, ErrorCode] = {}
    messages: dict[str | None, str] = {}
    for change in request.changes:
        message = None
        error = ErrorCode.INVALID_REQUEST if listed.count(change.topic) > 1 else _refusal(context, change)
        if error is ErrorCode.INVALID_CONFIG:
            message = _not_a_list(change)
        elif error is ErrorCode.NONE:
            before = yield from ask(ReadConfigs(change.topic))
            after = _changed({} if request.replace else before, change)
            error, message = _validate(context, change.topic, after)
            if error == ErrorCode.NONE and not request.validate_only:
                yield from ask(WriteConfigs(change.topic, after))
        codes[change.topic] = error
        if message is not None:
            messages[change.topic] = message
    return ConfigsResponse(codes, messages)


def topic_settings_changed(context: Context, name: str) -> Operation[None]:
    """A topic's settings were written: if it allows unclean elections, elect leaders of its partitions without one.

    Kafka does so whichever setting changed.
    """
    columns = context.cluster.topics
    index = columns.find(name)
    if index is None:
        return
    yield from topic_metadata.read_settings(context, (name,))
    if columns.unclean[index] == 1:
        context.log.add(Message.UNCLEAN_FOR_TOPIC, topic=name)
        yield from partition_state_machine.trigger_online(context, topic=index)


def broker_defaults_changed(context: Context) -> Operation[None]:
    """Broker defaults were written: if they allow unclean elections now, elect leaders of partitions without one."""
    config = yield from ask(ReadConfigs(None))
    before = context.term.unclean_by_default
    context.term.unclean_by_default = config.get(UNCLEAN, str(context.config[UNCLEAN])).lower() == "true"
    if context.term.unclean_by_default and not before:
        context.log.add(Message.UNCLEAN_BY_DEFAULT)
        yield from partition_state_machine.trigger_online(context)


def _refusal(context: Context, change: ConfigChange) -> ErrorCode:
    names = [name for _, name, _ in change.operations]
    if change.topic == "" or len(set(names)) != len(names):
        return ErrorCode.INVALID_REQUEST
    if change.topic is not None and change.topic not in context.cluster.topics:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if _not_a_list(change) is not None:
        return ErrorCode.INVALID_CONFIG
    valueless = any(
        value is None and operation is not ConfigOperation.DELETE for operation, _, value in change.operations
    )
    return ErrorCode.INVALID_REQUEST if valueless else ErrorCode.NONE


def _changed(before: Mapping[str, str], change: ConfigChange) -> dict[str, str]:
    after, lists = dict(before), _lists(change.topic)
    for operation, name, value in change.operations:
        present = [item for item in after.get(name, lists.get(name, "")).split(",") if item]
        values = (value or "").split(",")
        match operation:
            case ConfigOperation.SET:
                after[name] = value or ""
            case ConfigOperation.DELETE:
                after.pop(name, None)
            case ConfigOperation.APPEND:
                after[name] = ",".join(present + [item for item in values if item not in present])
            case ConfigOperation.SUBTRACT:
                after[name] = ",".join(item for item in present if item not in values)
    return after


def _not_a_list(change: ConfigChange) -> str | None:
    """Kafka's error message for a list operation on a setting without a list. None if there is none."""
    for operation, name, _ in change.operations:
        if operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT) and name not in _lists(change.topic):
            return f"Config value {operation.name.lower()} is not allowed for config key: {name}"
    return None


def _validate(context: Context, topic: str | None, config: Mapping[str, str]) -> tuple[ErrorCode, str | None]:
    """Kafka's error and message for refused settings, NONE for valid ones.

    Refused broker settings are an invalid request, topic settings an invalid config (Kafka 3.9
    ``ConfigAdminManager.validateBrokerConfigChange``, ``ZkAdminManager.incrementalAlterConfigs``).
    """
    problem = broker_configs.config_problem(config) if topic is None else settings_problem(context, config)
    if problem is None:
        return ErrorCode.NONE, None
    if topic is None:
        return ErrorCode.INVALID_REQUEST, problem.text
    resource = f"Invalid config value for resource ConfigResource(type=TOPIC, name='{topic}'): "
    return ErrorCode.INVALID_CONFIG, f"{resource if problem.is_config_exception else ''}{problem.text}"


def _lists(topic: str | None) -> Mapping[str, str]:
    return broker_configs.LIST_CONFIGS if topic is None else topic_configs.LIST_CONFIGS
