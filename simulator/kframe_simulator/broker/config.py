"""The settings of a broker model, by Kafka's keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kframe.model.config import whole
from kframe.model.protocol import LATEST, InterBrokerProtocol

TRUNCATION_ON_FETCH_SINCE = InterBrokerProtocol.parse("2.7-IV1")


class BrokerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a broker model. Times are milliseconds. Settings that Kafka does not have are marked."""

    protocol: InterBrokerProtocol = LATEST
    """inter.broker.protocol.version. Before 2.7-IV2 leaders write ISRs to ZooKeeper themselves."""
    log_dirs: tuple[str, ...] = ("data",)
    """log.dirs."""
    min_insync_replicas: int = 1
    """min.insync.replicas, for topics that do not override it."""
    replica_lag_time_max_ms: float = 30_000
    """replica.lag.time.max.ms."""
    replica_fetch_wait_max_ms: float = 500
    """replica.fetch.wait.max.ms. This is the delay before a follower fetches again after a response without records. In
    Kafka the leader delays the response for up to this time instead."""
    replica_fetch_backoff_ms: float = 1_000
    """replica.fetch.backoff.ms. This is the delay before a follower fetches again after an error."""
    fetch_records_max: int = 1_000
    """The most records of one partition in a response. The model has this in place of replica.fetch.max.bytes."""
    checkpoint_interval_ms: float = 5_000
    """replica.high.watermark.checkpoint.interval.ms."""
    controlled_shutdown_max_retries: int = 3
    """controlled.shutdown.max.retries. This is the number of attempts in all."""
    controlled_shutdown_retry_backoff_ms: float = 5_000
    """controlled.shutdown.retry.backoff.ms."""
    high_watermark_waits_for_min_isr: bool = True
    """Whether the high watermark stops under min.insync.replicas, as in Kafka 3.7 and later."""

    @staticmethod
    def of(values: Mapping[str, object], source: str = "config") -> BrokerConfig:
        """Read Kafka's keys. Keys that are not broker settings are ignored. Raises ConfigError naming the key."""
        given: dict[str, Any] = {
            name: read(f"{source} key {key}", values[key]) for key, (name, read) in _KEYS.items() if key in values
        }
        return BrokerConfig(**given)

    @property
    def truncates_on_fetch(self) -> bool:
        """Whether Fetch responses contain the diverging epoch."""
        return self.protocol >= TRUNCATION_ON_FETCH_SINCE


def _protocol(where: str, value: object) -> InterBrokerProtocol:
    return InterBrokerProtocol.parse(str(value).strip(), where)


def _log_dirs(_where: str, value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in str(value).split(",") if part.strip())) or ("data",)


#: By Kafka's key: the field, and the function that parses the value.
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
#: Keys that a controller does not know.
BROKER_ONLY: Final = frozenset(_KEYS) - {"inter.broker.protocol.version", "min.insync.replicas"}
