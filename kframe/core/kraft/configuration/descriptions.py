"""The settings of a resource with values, sources and synonyms, for administrators (Kafka 4.4 ``ConfigHelper``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import dropwhile
from typing import Final, NamedTuple

from kframe.core.kraft.configuration.broker_keys import BROKER_CONFIG_KEYS, BrokerConfigKey, ConfigType, printed
from kframe.core.kraft.configuration.config_values import BROKER_ID, CLIENT_METRICS, check_topic_name
from kframe.core.kraft.configuration.group_configs import GROUP_CONFIG_KEYS
from kframe.core.kraft.configuration.topic_configs import (
    TOPIC_CONFIG_KEYS,
    ConfigSource,
    broker_configs,
    effective_topic_configs,
)
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import Resource

#: The loggers of a broker, which are a resource without settings here.
BROKER_LOGGER: Final = 8
#: A setting of one listener; the base name follows (Kafka ``DynamicBrokerConfig``).
_OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
_OF_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
#: Settings of brokers of which the first that is set applies.
_ALTERNATIVES: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
_DEFAULTS: Final = (
    ConfigSource.DEFAULT,
    {name: key.default for name, key in BROKER_CONFIG_KEYS.items() if key.default is not None},
)
#: The types whose values are not shown.
_HIDDEN: Final = (ConfigType.PASSWORD, ConfigType.UNKNOWN)


class ConfigSynonym(NamedTuple):
    """A value that a setting could have, or has. The value of a secret is None."""

    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    """A setting. ``synonyms`` begin with the value in effect, and go on by precedence. Secrets have no values."""

    name: str
    value: str | None
    type: ConfigType
    synonyms: tuple[ConfigSynonym, ...] = ()
    is_read_only: bool = False

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is a secret, or of an unknown type."""
        return self.type in _HIDDEN

    @property
    def source(self) -> ConfigSource:
        """Where the value comes from."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT


def describe_configs(context: KraftContext, resource: Resource) -> list[DescribedConfig]:
    """The settings of a topic, a subscription, a group, all brokers (no name) or the active controller's own node.

    Raises RequestRefused for other nodes, unknown topics and malformed names.
    """
    kind, name = resource
    if kind == ResourceType.TOPIC:
        return _topic(context, name)
    if kind in (ResourceType.BROKER, BROKER_LOGGER):
        return _node(context, name, is_logger=kind == BROKER_LOGGER)
    if kind == ResourceType.CLIENT_METRICS:
        return _client_metrics(context, name)
    return _group(context, name)


def _topic(context: KraftContext, name: str) -> list[DescribedConfig]:
    check_topic_name(name)
    if name not in context.metadata.topics.index_by_name:
        raise RequestRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    own = context.metadata.configs.get((ResourceType.TOPIC, name), {})
    described = []
    for config in effective_topic_configs(context, own):
        key = TOPIC_CONFIG_KEYS[config.name]
        value = printed(key.type, config.value)
        synonyms = _synonyms(context, key.synonyms[0][0]) if key.synonyms else ()
        if config.name in own:
            synonyms = (ConfigSynonym(config.name, value, ConfigSource.TOPIC), *synonyms)
        described.append(DescribedConfig(config.name, value, key.type, synonyms))
    return described


def _node(context: KraftContext, name: str, *, is_logger: bool) -> list[DescribedConfig]:
    own_id = context.settings.node_id
    if not name and is_logger:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if not name:
        defaults = context.metadata.configs.get((ResourceType.BROKER, ""), {})
        return [_broker_config(context, key, value, of_node=False) for key, value in defaults.items()]
    if not BROKER_ID.fullmatch(name):
        message = f"Broker id must be an integer, but it is: {name}"
        raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
    if int(name) != own_id:
        expected = f"{own_id}" if is_logger else f"{own_id} or empty string,"
        message = f"Unexpected broker id, expected {expected} but received {name}"
        raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
    return [] if is_logger else [_broker_config(context, *value, of_node=True) for value in _broker_values(context)]


def _broker_values(context: KraftContext) -> Iterator[tuple[str, str | None]]:
    """The settings of the node with the values in effect: known ones that are not internal, and all that are set."""
    effective: dict[str, str] = {}
    for _, configs in reversed(broker_configs(context)):
        effective |= configs
    for name, key in BROKER_CONFIG_KEYS.items():
        if name in effective or not key.is_internal:
            yield name, effective.pop(name, key.default)
    yield from effective.items()


def _broker_config(context: KraftContext, name: str, value: str | None, *, of_node: bool) -> DescribedConfig:
    key = _broker_key(name)
    kind = ConfigType.UNKNOWN if key is None else key.type
    synonyms = _synonyms(context, name)
    if not of_node:
        synonyms = tuple(each for each in synonyms if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
    is_dynamic = name in BROKER_CONFIG_KEYS and BROKER_CONFIG_KEYS[name].is_dynamic
    shown = None if value is None or kind in _HIDDEN else printed(kind, value)
    return DescribedConfig(name, shown, kind, synonyms, not is_dynamic)


def _client_metrics(context: KraftContext, name: str) -> list[DescribedConfig]:
    if not name:
        message = "Client metrics subscription name must not be empty"
        raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
    own = context.metadata.configs.get((ResourceType.CLIENT_METRICS, name), {})
    return [
        DescribedConfig(
            key,
            printed(kind, own.get(key, default)),
            kind,
            (ConfigSynonym(key, printed(kind, own[key]), ConfigSource.CLIENT_METRICS),) if key in own else (),
        )
        for key, (kind, default) in CLIENT_METRICS.items()
    ]


def _group(context: KraftContext, name: str) -> list[DescribedConfig]:
    if not name:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    own = context.metadata.configs.get((ResourceType.GROUP, name), {})
    described = []
    for key, known in GROUP_CONFIG_KEYS.items():
        if known.is_internal and key not in own:
            continue
        synonyms: tuple[ConfigSynonym, ...] = ()
        if known.broker_key is not None:
            synonyms = _synonyms(context, known.broker_key)
        elif known.default is not None:
            synonyms = (ConfigSynonym(key, known.default, ConfigSource.DEFAULT),)
        inherited = synonyms[0].value if synonyms else known.default
        value = own.get(key, inherited)
        shown = None if value is None else printed(known.type, value)
        if key in own:
            synonyms = (ConfigSynonym(key, shown, ConfigSource.GROUP), *synonyms)
        described.append(DescribedConfig(key, shown, known.type, synonyms))
    return described


def _synonyms(context: KraftContext, name: str) -> tuple[ConfigSynonym, ...]:
    """The values of a setting of brokers and of its alternatives, by precedence of the sources.

    As in Kafka the list begins with the setting itself; an alternative that precedes it is not shown.
    """
    key = _broker_key(name)
    is_hidden = key is None or key.type in _HIDDEN
    sources: Iterable[tuple[ConfigSource, Mapping[str, str]]] = (*broker_configs(context), _DEFAULTS)
    synonyms = [
        ConfigSynonym(each, None if is_hidden else configs[each], source)
        for source, configs in sources
        for each in _alternatives(name)
        if each in configs
    ]
    return tuple(dropwhile(lambda synonym: synonym.name != name, synonyms))


def _broker_key(name: str) -> BrokerConfigKey | None:
    """What is known about a setting of brokers, also of one listener."""
    known = (BROKER_CONFIG_KEYS[each] for each in _alternatives(name) if each in BROKER_CONFIG_KEYS)
    return BROKER_CONFIG_KEYS.get(name) or next(known, None)


def _alternatives(name: str) -> tuple[str, ...]:
    """The settings of which the first that is set applies (Kafka ``DynamicBrokerConfig.brokerConfigSynonyms``)."""
    for names in _ALTERNATIVES:
        if name in names:
            return names
    if name == _FLUSH[0]:
        return _FLUSH
    match = _OF_LISTENER.fullmatch(name)
    if match is None:
        return (name,)
    base = match[1]
    return name, next((each for each in _OF_MECHANISM if base.endswith(each)), base)
