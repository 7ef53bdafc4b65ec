"""The settings of a topic in DescribeConfigs: type, default, and the broker settings that override the default.

Kafka 3.9 ``LogConfig`` and ``ServerTopicConfigSynonyms``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import dropwhile
from typing import Final

_INT64_MAX: Final = str(2**63 - 1)


class Type(IntEnum):
    """Types of values (``DescribeConfigsResponse.ConfigType``)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """A topic setting. ``broker_keys`` are the broker settings with the same meaning, by precedence.

    Each has the factor that converts its value (hours to milliseconds).
    """

    type: Type
    default: str
    broker_keys: tuple[tuple[str, int], ...] = ()
    broker_default: tuple[str, str] | None = None
    """The broker key that has a default, and the default. None if that is the first of ``broker_keys``."""


def _setting(type_: Type, default: str, *keys: str) -> TopicSetting:
    return TopicSetting(type_, default, tuple((key, 1) for key in keys))


_HOUR, _MINUTE = 3_600_000, 60_000

TOPIC_SETTINGS: Final[Mapping[str, TopicSetting]] = {
    "cleanup.policy": _setting(Type.LIST, "delete", "log.cleanup.policy"),
    "compression.gzip.level": _setting(Type.INT, "-1", "compression.gzip.level"),
    "compression.lz4.level": _setting(Type.INT, "9", "compression.lz4.level"),
    "compression.type": _setting(Type.STRING, "producer", "compression.type"),
    "compression.zstd.level": _setting(Type.INT, "3", "compression.zstd.level"),
    "delete.retention.ms": _setting(Type.LONG, "86400000", "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": _setting(Type.LONG, "60000", "log.segment.delete.delay.ms"),
    "flush.messages": _setting(Type.LONG, _INT64_MAX, "log.flush.interval.messages"),
    "flush.ms": TopicSetting(
        Type.LONG,
        _INT64_MAX,
        (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
        ("log.flush.scheduler.interval.ms", _INT64_MAX),
    ),
    "follower.replication.throttled.replicas": _setting(Type.LIST, ""),
    "index.interval.bytes": _setting(Type.INT, "4096", "log.index.interval.bytes"),
    "leader.replication.throttled.replicas": _setting(Type.LIST, ""),
    "local.retention.bytes": _setting(Type.LONG, "-2", "log.local.retention.bytes"),
    "local.retention.ms": _setting(Type.LONG, "-2", "log.local.retention.ms"),
    "max.compaction.lag.ms": _setting(Type.LONG, _INT64_MAX, "log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": _setting(Type.INT, "1048588", "message.max.bytes"),
    "message.downconversion.enable": _setting(Type.BOOLEAN, "true", "log.message.downconversion.enable"),
    "message.format.version": _setting(Type.STRING, "3.0-IV1", "log.message.format.version"),
    "message.timestamp.after.max.ms": _setting(Type.LONG, _INT64_MAX, "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": _setting(Type.LONG, _INT64_MAX, "log.message.timestamp.before.max.ms"),
    "message.timestamp.difference.max.ms": _setting(Type.LONG, _INT64_MAX, "log.message.timestamp.difference.max.ms"),
    "message.timestamp.type": _setting(Type.STRING, "CreateTime", "log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": _setting(Type.DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": _setting(Type.LONG, "0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": _setting(Type.INT, "1", "min.insync.replicas"),
    "preallocate": _setting(Type.BOOLEAN, "false", "log.preallocate"),
    "remote.log.copy.disable": _setting(Type.BOOLEAN, "false"),
    "remote.log.delete.on.disable": _setting(Type.BOOLEAN, "false"),
    "remote.storage.enable": _setting(Type.BOOLEAN, "false"),
    "retention.bytes": _setting(Type.LONG, "-1", "log.retention.bytes"),
    "retention.ms": TopicSetting(
        Type.LONG,
        "604800000",
        (("log.retention.ms", 1), ("log.retention.minutes", _MINUTE), ("log.retention.hours", _HOUR)),
        ("log.retention.hours", "168"),
    ),
    "segment.bytes": _setting(Type.INT, "1073741824", "log.segment.bytes"),
    "segment.index.bytes": _setting(Type.INT, "10485760", "log.index.size.max.bytes"),
    "segment.jitter.ms": TopicSetting(
        Type.LONG, "0", (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR)), ("log.roll.jitter.hours", "0")
    ),
    "segment.ms": TopicSetting(
        Type.LONG, "604800000", (("log.roll.ms", 1), ("log.roll.hours", _HOUR)), ("log.roll.hours", "168")
    ),
    "unclean.leader.election.enable": _setting(Type.BOOLEAN, "false", "unclean.leader.election.enable"),
}


#: The broker keys that set defaults for topics.
BROKER_KEYS: Final = tuple(dict.fromkeys(key for setting in TOPIC_SETTINGS.values() for key, _ in setting.broker_keys))


def broker_synonyms(
    setting: TopicSetting, configs: Sequence[tuple[Mapping[str, str], int]], default_source: int
) -> list[tuple[str, str, int]]:
    """The broker keys for a setting with their values and sources, in order of precedence of the sources.

    ``configs`` are settings of brokers, each with its source. As in Kafka the list begins with the first key by name. A
    key that takes precedence over it is not shown (Kafka 3.9 ``ConfigHelper.configSynonyms``).
    """
    if not setting.broker_keys:
        return []
    first = setting.broker_keys[0][0]
    default_key, default = setting.broker_default or (first, setting.default)
    sources = [*configs, ({default_key: default}, default_source)]
    synonyms = [
        (key, config[key].strip(), source)
        for config, source in sources
        for key, _ in setting.broker_keys
        if config.get(key, "").strip()
    ]
    return list(dropwhile(lambda synonym: synonym[0] != first, synonyms))


def broker_value(setting: TopicSetting, config: Mapping[str, str]) -> tuple[str, str] | None:
    """The key and value by which a broker's configuration sets a topic default, else None."""
    for key, factor in setting.broker_keys:
        value = config.get(key, "").strip()
        if value:
            is_scaled = factor != 1 and value.lstrip("-").isdigit()
            return key, str(int(value) * factor) if is_scaled else value
    return None
