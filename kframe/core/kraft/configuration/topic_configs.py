"""The settings of topics with their types and defaults, and the values in effect (Kafka 4.4 ``KafkaConfigSchema``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from kframe.core.kraft.configuration.broker_keys import ConfigType
from kframe.core.kraft.context import KraftContext
from kframe.model.kraft.ids import ResourceType
from kframe.model.whole_numbers import parse_whole

_LONG_MAX: Final = str(2**63 - 1)
_INT32_MAX: Final = 2**31 - 1
_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000


class ConfigSource(IntEnum):
    """Where a value comes from (``DescribeConfigsResponse.ConfigSource``)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class TopicConfigKey(NamedTuple):
    """A setting of topics. Without a default it is internal: only a topic that sets it has it."""

    type: ConfigType
    default: str | None
    synonyms: tuple[tuple[str, int], ...]
    """The settings of brokers with the same meaning, by precedence, each with the factor of its value."""


class EffectiveConfig(NamedTuple):
    """A setting with the value in effect."""

    name: str
    value: str
    source: ConfigSource


def _key(type_: ConfigType, default: str | None, *synonyms: str) -> TopicConfigKey:
    return TopicConfigKey(type_, default, tuple((name, 1) for name in synonyms))


#: Every setting by name, in the order of names (Kafka ``LogConfig``, ``ServerTopicConfigSynonyms``).
TOPIC_CONFIG_KEYS: Final[Mapping[str, TopicConfigKey]] = {
    "cleanup.policy": _key(ConfigType.LIST, "delete", "log.cleanup.policy"),
    "compression.gzip.level": _key(ConfigType.INT, "-1", "compression.gzip.level"),
    "compression.lz4.level": _key(ConfigType.INT, "9", "compression.lz4.level"),
    "compression.type": _key(ConfigType.STRING, "producer", "compression.type"),
    "compression.zstd.level": _key(ConfigType.INT, "3", "compression.zstd.level"),
    "delete.retention.ms": _key(ConfigType.LONG, "86400000", "log.cleaner.delete.retention.ms"),
    "errors.deadletterqueue.group.enable": _key(ConfigType.BOOLEAN, "false"),
    "file.delete.delay.ms": _key(ConfigType.LONG, "60000", "log.segment.delete.delay.ms"),
    "flush.messages": _key(ConfigType.LONG, _LONG_MAX, "log.flush.interval.messages"),
    "flush.ms": _key(ConfigType.LONG, _LONG_MAX, "log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "follower.replication.throttled.replicas": _key(ConfigType.LIST, ""),
    "index.interval.bytes": _key(ConfigType.INT, "4096", "log.index.interval.bytes"),
    "internal.segment.bytes": _key(ConfigType.INT, None),
    "leader.replication.throttled.replicas": _key(ConfigType.LIST, ""),
    "local.retention.bytes": _key(ConfigType.LONG, "-2", "log.local.retention.bytes"),
    "local.retention.ms": _key(ConfigType.LONG, "-2", "log.local.retention.ms"),
    "max.compaction.lag.ms": _key(ConfigType.LONG, _LONG_MAX, "log.cleaner.max.compaction.lag.ms"),
    "max.decompressed.message.bytes": _key(ConfigType.INT, "2147483639", "max.decompressed.message.bytes"),
    "max.message.bytes": _key(ConfigType.INT, "1048588", "message.max.bytes"),
    "message.timestamp.after.max.ms": _key(ConfigType.LONG, "3600000", "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": _key(ConfigType.LONG, _LONG_MAX, "log.message.timestamp.before.max.ms"),
    "message.timestamp.type": _key(ConfigType.STRING, "CreateTime", "log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": _key(ConfigType.DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": _key(ConfigType.LONG, "0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": _key(ConfigType.INT, "1", "min.insync.replicas"),
    "preallocate": _key(ConfigType.BOOLEAN, "false", "log.preallocate"),
    "remote.copy.lag.bytes": _key(ConfigType.LONG, "-1", "log.remote.copy.lag.bytes"),
    "remote.copy.lag.ms": _key(ConfigType.LONG, "0", "log.remote.copy.lag.ms"),
    "remote.log.copy.disable": _key(ConfigType.BOOLEAN, "false"),
    "remote.log.delete.on.disable": _key(ConfigType.BOOLEAN, "false"),
    "remote.storage.enable": _key(ConfigType.BOOLEAN, "false"),
    "retention.bytes": _key(ConfigType.LONG, "-1", "log.retention.bytes"),
    "retention.ms": TopicConfigKey(
        ConfigType.LONG,
        "604800000",
        (("log.retention.ms", 1), ("log.retention.minutes", _MINUTE_MS), ("log.retention.hours", _HOUR_MS)),
    ),
    "segment.bytes": _key(ConfigType.INT, "1073741824", "log.segment.bytes"),
    "segment.index.bytes": _key(ConfigType.INT, "10485760", "log.index.size.max.bytes"),
    "segment.jitter.ms": TopicConfigKey(
        ConfigType.LONG, "0", (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS))
    ),
    "segment.ms": TopicConfigKey(ConfigType.LONG, "604800000", (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS))),
    "unclean.leader.election.enable": _key(ConfigType.BOOLEAN, "false", "unclean.leader.election.enable"),
}


def effective_topic_configs(context: KraftContext, values: Mapping[str, str]) -> list[EffectiveConfig]:
    """The settings of a topic that itself sets ``values``, in the order of names.

    Without a value of the topic those of the active controller's node apply, then those of all brokers, then its
    static ones.
    """
    sources = broker_configs(context)
    effective = []
    for name, key in TOPIC_CONFIG_KEYS.items():
        if name in values:
            effective.append(EffectiveConfig(name, values[name], ConfigSource.TOPIC))
        elif key.default is not None:
            value, source = _broker_value(key, sources) or (key.default, ConfigSource.DEFAULT)
            effective.append(EffectiveConfig(name, value, source))
    return effective


def static_topic_values(static: Mapping[str, str]) -> dict[str, str]:
    """The values of a topic without settings of its own, by the static settings of a node alone."""
    source = [(ConfigSource.STATIC_BROKER, static)]
    return {
        name: (_broker_value(key, source) or (key.default,))[0]
        for name, key in TOPIC_CONFIG_KEYS.items()
        if key.default is not None
    }


def broker_configs(context: KraftContext) -> Sequence[tuple[ConfigSource, Mapping[str, str]]]:
    """The settings of the active controller's node by source, in the order of precedence, without defaults."""
    stored, settings = context.metadata.configs, context.settings
    return (
        (ConfigSource.DYNAMIC_BROKER, stored.get((ResourceType.BROKER, str(settings.node_id)), {})),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, stored.get((ResourceType.BROKER, ""), {})),
        (ConfigSource.STATIC_BROKER, settings.static_configs),
    )


def _broker_value(
    key: TopicConfigKey, sources: Sequence[tuple[ConfigSource, Mapping[str, str]]]
) -> tuple[str, ConfigSource] | None:
    for source, configs in sources:
        for name, factor in key.synonyms:
            if name in configs:
                return (configs[name] if factor == 1 else _converted(configs[name], factor)), source
    return None


def _converted(value: str, factor: int) -> str:
    """A number of hours or minutes in milliseconds. Kafka takes what is no number as 0 (``ConfigSynonym``)."""
    digits = value.strip()
    number = parse_whole(digits.removeprefix("-"), _INT32_MAX) or 0
    return str((-number if digits.startswith("-") else number) * factor)
