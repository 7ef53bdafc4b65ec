"""Settings of topics and brokers change (Kafka 3.9 ``ZkAdminManager`` and ``ConfigHandler``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kframe.core import partition_machine, topics
from kframe.core.context import Context, Operation, ask
from kframe.errors import ErrorCode
from kframe.model import broker_configs, topic_configs
from kframe.model.admin import ConfigChange, ConfigOperation
from kframe.model.asks import ReadConfigs, WriteConfigs
from kframe.model.config import UNCLEAN
from kframe.model.events import AlterConfigsRequested
from kframe.model.log_entries import Message


@dataclass(frozen=True, slots=True)
class ConfigsResponse:
    """A code for each resource asked about: a topic by name, or None for all brokers."""

    codes: dict[str | None, ErrorCode]


def refused(request: AlterConfigsRequested, error: ErrorCode) -> ConfigsResponse:
    """The answer that changes nothing."""
    return ConfigsResponse({change.topic: error for change in request.changes})


def alter_configs(context: Context, request: AlterConfigsRequested) -> Operation[ConfigsResponse]:
    """Check and store changes of settings; each resource fares by itself."""
    listed = [change.topic for change in request.changes]
    codes: dict[str | None, ErrorCode] = {}
    for change in request.changes:
        error = ErrorCode.INVALID_REQUEST if listed.count(change.topic) > 1 else _refusal(context, change)
        if error is ErrorCode.NONE:
            before = yield from ask(ReadConfigs(change.topic))
            after = _changed({} if request.replace else before, change)
            error = _unfit(change.topic, after)
            if error is ErrorCode.NONE and not request.validate_only:
                yield from ask(WriteConfigs(change.topic, after))
        codes[change.topic] = error
    return ConfigsResponse(codes)


def topic_settings_changed(context: Context, name: str) -> Operation[None]:
    """A topic's settings were written; if it allows unclean elections, try what of it has no leader, whatever it was
    that changed (a log directory may have healed since)."""
    columns = context.cluster.topics
    index = columns.find(name)
    if index is None:
        return
    yield from topics.read_settings(context, (name,))
    if columns.unclean[index] == 1:
        context.log.add(Message.UNCLEAN_FOR_TOPIC, topic=name)
        yield from partition_machine.trigger_online(context, topic=index)


def broker_defaults_changed(context: Context) -> Operation[None]:
    """The settings of all brokers were written; if they allow unclean elections now, try what has no leader."""
    config = yield from ask(ReadConfigs(None))
    before = context.unclean_by_default
    context.unclean_by_default = config.get(UNCLEAN, str(context.config[UNCLEAN])).lower() == "true"
    if context.unclean_by_default and not before:
        context.log.add(Message.UNCLEAN_BY_DEFAULT)
        yield from partition_machine.trigger_online(context)


def _refusal(context: Context, change: ConfigChange) -> ErrorCode:
    names = [name for _, name, _ in change.operations]
    if change.topic == "" or len(set(names)) != len(names):
        return ErrorCode.INVALID_REQUEST
    if change.topic is not None and change.topic not in context.cluster.topics:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    listed_only = (ConfigOperation.APPEND, ConfigOperation.SUBTRACT)
    if any(operation in listed_only and name not in _lists(change.topic) for operation, name, _ in change.operations):
        return ErrorCode.INVALID_CONFIG
    valueless = any(
        value is None and operation is not ConfigOperation.DELETE for operation, _, value in change.operations
    )
    return ErrorCode.INVALID_REQUEST if valueless else ErrorCode.NONE


def _changed(before: Mapping[str, str], change: ConfigChange) -> dict[str, str]:
    after, lists = dict(before), _lists(change.topic)
    for operation, name, value in change.operations:
        had = [one for one in after.get(name, lists.get(name, "")).split(",") if one]
        given = (value or "").split(",")
        match operation:
            case ConfigOperation.SET:
                after[name] = value or ""
            case ConfigOperation.DELETE:
                after.pop(name, None)
            case ConfigOperation.APPEND:
                after[name] = ",".join(had + [one for one in given if one not in had])
            case ConfigOperation.SUBTRACT:
                after[name] = ",".join(one for one in had if one not in given)
    return after


def _unfit(topic: str | None, config: Mapping[str, str]) -> ErrorCode:
    """Whether Kafka would refuse one of the settings."""
    problem = broker_configs.config_problem(config) if topic is None else topic_configs.config_problem(config)
    return ErrorCode.NONE if problem is None else ErrorCode.INVALID_CONFIG


def _lists(topic: str | None) -> Mapping[str, str]:
    return broker_configs.LIST_CONFIGS if topic is None else topic_configs.LIST_CONFIGS
