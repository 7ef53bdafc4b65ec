"""The settings of topics, and the values that they accept: one table (Kafka 3.9 ``LogConfig``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kframe.model.value_checks import (
    Check,
    boolean,
    double,
    int_from,
    int_or,
    invalid,
    long_from,
    one_of,
    release,
    some_of,
    throttled,
)

#: Every setting by Kafka's name, with the check of its values. The order is that of Kafka's checks.
TOPIC_CONFIGS: Final[Mapping[str, Check]] = {
    "segment.bytes": int_from(14),
    "segment.ms": long_from(1),
    "segment.jitter.ms": long_from(0),
    "segment.index.bytes": int_from(4),
    "flush.messages": long_from(1),
    "flush.ms": long_from(0),
    "retention.bytes": long_from(),
    "retention.ms": long_from(-1),
    "max.message.bytes": int_from(0),
    "index.interval.bytes": int_from(0),
    "delete.retention.ms": long_from(0),
    "min.compaction.lag.ms": long_from(0),
    "max.compaction.lag.ms": long_from(1),
    "file.delete.delay.ms": long_from(0),
    "min.cleanable.dirty.ratio": double(0, 1),
    "cleanup.policy": some_of("compact", "delete"),
    "unclean.leader.election.enable": boolean,
    "min.insync.replicas": int_from(1),
    "compression.type": one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "compression.gzip.level": int_or(1, 9, -1),
    "compression.lz4.level": int_from(1, 17),
    "compression.zstd.level": int_from(-131072, 22),
    "preallocate": boolean,
    "message.format.version": release,
    "message.timestamp.type": one_of("CreateTime", "LogAppendTime"),
    "message.timestamp.difference.max.ms": long_from(0),
    "message.timestamp.before.max.ms": long_from(0),
    "message.timestamp.after.max.ms": long_from(0),
    "leader.replication.throttled.replicas": throttled,
    "follower.replication.throttled.replicas": throttled,
    "message.downconversion.enable": boolean,
    "remote.storage.enable": boolean,
    "local.retention.ms": long_from(-2),
    "local.retention.bytes": long_from(-2),
    "remote.log.copy.disable": boolean,
    "remote.log.delete.on.disable": boolean,
}

#: The settings of topics of a KRaft cluster (Kafka 4.4 ``LogConfig``).
KRAFT_TOPIC_CONFIGS: Final[Mapping[str, Check]] = {
    **{
        name: check
        for name, check in TOPIC_CONFIGS.items()
        if name
        not in ("message.format.version", "message.downconversion.enable", "message.timestamp.difference.max.ms")
    },
    "segment.bytes": int_from(2**20),
    "internal.segment.bytes": int_from(-(2**31)),
    "max.decompressed.message.bytes": int_from(1, 2**31 - 9),
    "errors.deadletterqueue.group.enable": boolean,
    "remote.copy.lag.bytes": long_from(-1),
    "remote.copy.lag.ms": long_from(-1),
}

#: Settings that hold a list, so clients can append and subtract. The values are the defaults of unset settings.
LIST_CONFIGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "follower.replication.throttled.replicas": "",
    "leader.replication.throttled.replicas": "",
}

#: Defaults of the settings that are compared with each other.
_COMPARED: Final = {
    "min.compaction.lag.ms": 0,
    "max.compaction.lag.ms": 2**63 - 1,
    "retention.ms": 604_800_000,
    "retention.bytes": -1,
    "local.retention.ms": -2,
    "local.retention.bytes": -2,
}
_NOT_TIERED: Final = (
    "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
)
#: Value of a local retention that equals the total retention, and of a retention without a limit.
_AS_WHOLE, _UNLIMITED = -2, -1


class ConfigProblem(Struct, frozen=True):
    """Why Kafka rejects settings, in Kafka's words."""

    text: str
    is_config_exception: bool = True
    """Whether the error is Kafka's ConfigException. AlterConfigs prefixes it with the name of the resource."""


def config_problem(config: Mapping[str, str], remote_storage: bool = False) -> ConfigProblem | None:
    """The reason why Kafka would reject the settings ``config`` of a topic. None if Kafka accepts them.

    ``remote_storage``: whether the cluster has tiered storage (``remote.log.storage.system.enable``). Source: Kafka 3.9
    ``LogConfig.validate`` as ``AdminZkClient`` calls it.
    """
    problem = _value_problem(config, TOPIC_CONFIGS)
    if problem is not None:
        return problem
    if _is_set(config, "remote.log.delete.on.disable") or _is_set(config, "remote.log.copy.disable"):
        names = "`remote.log.delete.on.disable` or `remote.log.copy.disable`"
        return ConfigProblem(f"It is invalid to set {names} under Zookeeper's mode.", is_config_exception=False)
    return _contradiction(config, remote_storage)


def kraft_value_problem(config: Mapping[str, str]) -> ConfigProblem | None:
    """The reason why Kafka would reject the name or the value of a setting, in a KRaft cluster. None if there is none.

    Source: Kafka 4.4 ``LogConfig.validateNames`` and ``ConfigDef.parse``.
    """
    return _value_problem(config, KRAFT_TOPIC_CONFIGS)


def _value_problem(config: Mapping[str, str], known: Mapping[str, Check]) -> ConfigProblem | None:
    for name in config:
        if name not in known:
            return ConfigProblem(f"Unknown topic config name: {name}", is_config_exception=False)
    for name, check in known.items():
        problem = check(name, config[name]) if name in config else None
        if problem is not None:
            return ConfigProblem(problem)
    return None


def _contradiction(config: Mapping[str, str], remote_storage: bool) -> ConfigProblem | None:
    """The reason why valid values contradict each other."""
    values = {name: int(config.get(name, default)) for name, default in _COMPARED.items()}
    min_lag, max_lag = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if min_lag > max_lag:
        text = f"conflict topic config setting min.compaction.lag.ms ({min_lag}) > max.compaction.lag.ms ({max_lag})"
        return ConfigProblem(text, is_config_exception=False)
    if not _is_set(config, "remote.storage.enable"):
        return None
    if not remote_storage:
        return ConfigProblem(_NOT_TIERED)
    if "compact" in config.get("cleanup.policy", ""):
        return ConfigProblem("Remote log storage is unsupported for the compacted topics")
    for kind in ("bytes", "ms"):
        problem = _local_retention(f"retention.{kind}", values)
        if problem is not None:
            return problem
    return None


def _local_retention(name: str, values: Mapping[str, int]) -> ConfigProblem | None:
    """The reason why the local retention exceeds the total retention."""
    whole, local = values[name], values[f"local.{name}"]
    unlimited = whole <= _UNLIMITED if name == "retention.bytes" else whole == _UNLIMITED
    if unlimited or local == _AS_WHOLE:
        return None
    if local == _UNLIMITED:
        return ConfigProblem(
            invalid(f"local.{name}", local, f"Value must not be -1 as {name} value is set as {whole}.")
        )
    if local > whole:
        message = f"Value must not be more than {name} property value: {whole}"
        return ConfigProblem(invalid(f"local.{name}", local, message))
    return None


def _is_set(config: Mapping[str, str], name: str) -> bool:
    return config.get(name, "").strip().lower() == "true"
