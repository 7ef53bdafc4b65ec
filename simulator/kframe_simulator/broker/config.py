"""The settings of a broker model, by Kafka's keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kframe.model.config import whole
from kframe.model.protocol import LATEST, InterBrokerProtocol

ALTER_PARTITION_SINCE = InterBrokerProtocol.parse("2.7-IV2")
TRUNCATION_ON_FETCH_SINCE = InterBrokerProtocol.parse("2.7-IV1")


class BrokerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Times are milliseconds. What is not Kafka's says so."""

    protocol: InterBrokerProtocol = LATEST
    """inter.broker.protocol.version: before 2.7-IV2 leaders write ISRs to storage themselves."""
    log_dirs: tuple[str, ...] = ("data",)
    """log.dirs"""
    min_insync_replicas: int = 1
    """min.insync.replicas, for topics without a setting of their own"""
    replica_lag_time_max_ms: float = 30_000
    """replica.lag.time.max.ms"""
    replica_fetch_wait_max_ms: float = 500
    """replica.fetch.wait.max.ms: how long after an answer without records a follower asks again. In Kafka the leader
    holds the answer back for so long, or until there is something to say."""
    replica_fetch_backoff_ms: float = 1_000
    """replica.fetch.backoff.ms: how long after an error a follower asks again"""
    fetch_records_max: int = 1_000
    """The model's own, for replica.fetch.max.bytes: most records of a partition in an answer"""
    checkpoint_interval_ms: float = 5_000
    """replica.high.watermark.checkpoint.interval.ms"""
    controlled_shutdown_max_retries: int = 3
    """controlled.shutdown.max.retries: how often it asks in all"""
    controlled_shutdown_retry_backoff_ms: float = 5_000
    """controlled.shutdown.retry.backoff.ms"""
    high_watermark_waits_for_min_isr: bool = True
    """Whether the high watermark stands still under min.insync.replicas, as in Kafka 3.7 and later"""

    @staticmethod
    def of(values: Mapping[str, object], source: str = "config") -> BrokerConfig:
        """Read Kafka's keys; those that are not a broker's are passed over. Raises ConfigError naming the key."""
        given: dict[str, Any] = {
            name: read(f"{source} key {key}", values[key]) for key, (name, read) in _KEYS.items() if key in values
        }
        return BrokerConfig(**given)

    @property
    def alters_partitions(self) -> bool:
        """Whether ISRs are proposed to the controller."""
        return self.protocol >= ALTER_PARTITION_SINCE

    @property
    def truncates_on_fetch(self) -> bool:
        """Whether followers learn from Fetch where they diverge."""
        return self.protocol >= TRUNCATION_ON_FETCH_SINCE


def _protocol(where: str, value: object) -> InterBrokerProtocol:
    return InterBrokerProtocol.parse(str(value).strip(), where)


def _log_dirs(_where: str, value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in str(value).split(",") if part.strip())) or ("data",)


#: Kafka's keys: the field of each, and what reads it.
_KEYS: Final[Mapping[str, tuple[str, Callable[[str, object], Any]]]] = {
    "inter.broker.protocol.version": ("protocol", _protocol),
    "log.dirs": ("log_dirs", _log_dirs),
    "min.insync.replicas": ("min_insync_replicas", whole(1)),
    "replica.lag.time.max.ms": ("replica_lag_time_max_ms", whole(1)),
    "replica.fetch.wait.max.ms": ("replica_fetch_wait_max_ms", whole(1)),
    "replica.fetch.backoff.ms": ("replica_fetch_backoff_ms", whole(1)),
    "replica.high.watermark.checkpoint.interval.ms": ("checkpoint_interval_ms", whole(1)),
    "controlled.shutdown.max.retries": ("controlled_shutdown_max_retries", whole(1)),
    "controlled.shutdown.retry.backoff.ms": ("controlled_shutdown_retry_backoff_ms", whole(1)),
}
#: Those of them that a controller does not know.
BROKER_ONLY: Final = frozenset(_KEYS) - {"inter.broker.protocol.version", "min.insync.replicas"}
