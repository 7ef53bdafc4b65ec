"""The settings that a topic may have, and which values they take: one table (Kafka 3.9 ``LogConfig``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe.model.value_checks import (
    Fits,
    between,
    boolean,
    int_from,
    long_from,
    one_of,
    release,
    share,
    some_of,
    throttled,
)  # fmt: skip

#: Every setting by Kafka's name, with the check of its values.
TOPIC_CONFIGS: Final[Mapping[str, Fits]] = {
    "cleanup.policy": some_of("compact", "delete"),
    "compression.gzip.level": lambda text: between(1, 9)(text) or text.strip() == "-1",
    "compression.lz4.level": between(1, 17),
    "compression.type": one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "compression.zstd.level": between(-131072, 22),
    "delete.retention.ms": long_from(0),
    "file.delete.delay.ms": long_from(0),
    "flush.messages": long_from(1),
    "flush.ms": long_from(0),
    "follower.replication.throttled.replicas": throttled,
    "index.interval.bytes": int_from(0),
    "leader.replication.throttled.replicas": throttled,
    "local.retention.bytes": long_from(-2),
    "local.retention.ms": long_from(-2),
    "max.compaction.lag.ms": long_from(1),
    "max.message.bytes": int_from(0),
    "message.downconversion.enable": boolean,
    "message.format.version": release,
    "message.timestamp.after.max.ms": long_from(0),
    "message.timestamp.before.max.ms": long_from(0),
    "message.timestamp.difference.max.ms": long_from(0),
    "message.timestamp.type": one_of("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": share,
    "min.compaction.lag.ms": long_from(0),
    "min.insync.replicas": int_from(1),
    "preallocate": boolean,
    "remote.log.copy.disable": boolean,
    "remote.log.delete.on.disable": boolean,
    "remote.storage.enable": boolean,
    "retention.bytes": long_from(),
    "retention.ms": long_from(-1),
    "segment.bytes": int_from(14),
    "segment.index.bytes": int_from(4),
    "segment.jitter.ms": long_from(0),
    "segment.ms": long_from(1),
    "unclean.leader.election.enable": boolean,
}


#: Settings that hold a list, and so can be appended to and subtracted from: from their defaults, where they are unset.
LIST_CONFIGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "follower.replication.throttled.replicas": "",
    "leader.replication.throttled.replicas": "",
}


def config_problem(config: Mapping[str, str]) -> str | None:
    """The first setting of ``config`` that Kafka would refuse; None if there is none."""
    for name, value in config.items():
        if name not in TOPIC_CONFIGS or not TOPIC_CONFIGS[name](value):
            return name
    return None
