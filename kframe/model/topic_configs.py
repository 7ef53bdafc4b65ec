"""The settings that a topic may have, and which values they take: one table (Kafka 3.9 ``LogConfig``)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

#: Whether a text is a value of a setting.
Fits = Callable[[str], bool]

_THROTTLED: Final = re.compile(r"\*|\d+:\d+(,\d+:\d+)*|", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)


def _between(least: int, most: int) -> Fits:
    def fits(text: str) -> bool:
        return _WHOLE.fullmatch(text.strip()) is not None and least <= int(text) <= most

    return fits


def _int(least: int) -> Fits:
    return _between(least, 2**31 - 1)


def _long(least: int = -(2**63)) -> Fits:
    return _between(least, 2**63 - 1)


def _one_of(*values: str) -> Fits:
    return lambda text: text.strip() in values


def _some_of(*values: str) -> Fits:
    return lambda text: all(one.strip() in values for one in text.split(",")) if text else True


def _boolean(text: str) -> bool:
    return text.strip().lower() in ("true", "false")


def _share(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and 0 <= float(text) <= 1
    except ValueError:
        return False


def _throttled(text: str) -> bool:
    return _THROTTLED.fullmatch(text.replace(" ", "")) is not None


def _release(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+){1,2}(-IV\d+)?", text.strip(), re.ASCII) is not None


#: Every setting by Kafka's name, with the check of its values.
TOPIC_CONFIGS: Final[Mapping[str, Fits]] = {
    "cleanup.policy": _some_of("compact", "delete"),
    "compression.gzip.level": lambda text: _between(1, 9)(text) or text.strip() == "-1",
    "compression.lz4.level": _between(1, 17),
    "compression.type": _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "compression.zstd.level": _between(-131072, 22),
    "delete.retention.ms": _long(0),
    "file.delete.delay.ms": _long(0),
    "flush.messages": _long(1),
    "flush.ms": _long(0),
    "follower.replication.throttled.replicas": _throttled,
    "index.interval.bytes": _int(0),
    "leader.replication.throttled.replicas": _throttled,
    "local.retention.bytes": _long(-2),
    "local.retention.ms": _long(-2),
    "max.compaction.lag.ms": _long(1),
    "max.message.bytes": _int(0),
    "message.downconversion.enable": _boolean,
    "message.format.version": _release,
    "message.timestamp.after.max.ms": _long(0),
    "message.timestamp.before.max.ms": _long(0),
    "message.timestamp.difference.max.ms": _long(0),
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": _share,
    "min.compaction.lag.ms": _long(0),
    "min.insync.replicas": _int(1),
    "preallocate": _boolean,
    "remote.log.copy.disable": _boolean,
    "remote.log.delete.on.disable": _boolean,
    "remote.storage.enable": _boolean,
    "retention.bytes": _long(),
    "retention.ms": _long(-1),
    "segment.bytes": _int(14),
    "segment.index.bytes": _int(4),
    "segment.jitter.ms": _long(0),
    "segment.ms": _long(1),
    "unclean.leader.election.enable": _boolean,
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
