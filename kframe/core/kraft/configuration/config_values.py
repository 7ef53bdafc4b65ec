"""The values that configurations of resources accept (Kafka 4.4 ``ControllerConfigurationValidator``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kframe.core.kraft.controller_result import RequestRefused
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import Resource
from kframe.model.topic_configs import kraft_config_problem
from kframe.model.value_checks import Check, boolean, int_from, one_of

_INT32_MAX: Final = 2**31 - 1
#: Settings of a subscription to client metrics; milliseconds of ``interval.ms``.
CLIENT_METRICS: Final = ("metrics", "interval.ms", "match")
INTERVAL_MS: Final = range(100, 3_600_001)
#: Settings of a group (Kafka ``GroupConfig``).
GROUP_CONFIGS: Final[Mapping[str, Check]] = {
    "consumer.session.timeout.ms": int_from(1),
    "consumer.heartbeat.interval.ms": int_from(1),
    "share.session.timeout.ms": int_from(1),
    "share.heartbeat.interval.ms": int_from(1),
    "share.record.lock.duration.ms": int_from(1_000),
    "share.delivery.count.limit": int_from(2),
    "share.partition.max.record.locks": int_from(100),
    "share.auto.offset.reset": lambda name, value: None,
    "share.isolation.level": one_of("read_committed", "read_uncommitted"),
    "share.renew.acknowledge.enable": boolean,
    "streams.session.timeout.ms": int_from(1),
    "streams.heartbeat.interval.ms": int_from(1),
    "streams.num.standby.replicas": int_from(0),
    "streams.initial.rebalance.delay.ms": int_from(0),
}


def check_values(resource: Resource, values: Mapping[str, str]) -> None:
    """Check all values of a resource together. Raises RequestRefused with Kafka's error."""
    kind, name = resource
    check = _CHECKS.get(kind)
    if check is None:
        message = f"Unable to handle a resource of type {kind}."
        raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
    check(name, values)


def _check_topic(name: str, values: Mapping[str, str]) -> None:
    if not name:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    problem = kraft_config_problem(values)
    if problem is not None:
        raise RequestRefused(ErrorCode.INVALID_CONFIG, problem.text)


def _check_broker(name: str, values: Mapping[str, str]) -> None:
    if name and not name.lstrip("-").isdigit():
        message = "Unable to parse broker name as a base 10 number."
        raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
    if name and not 0 <= int(name) <= _INT32_MAX:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def _check_client_metrics(name: str, values: Mapping[str, str]) -> None:
    if not name:
        message = "Default client metrics resources are not allowed."
        raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
    for key in values:
        if key not in CLIENT_METRICS:
            raise RequestRefused(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}")
    interval = values.get("interval.ms")
    if interval is not None and not (interval.isdigit() and int(interval) in INTERVAL_MS):
        message = f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000"
        raise RequestRefused(ErrorCode.INVALID_REQUEST, message)


def _check_group(name: str, values: Mapping[str, str]) -> None:
    if not name:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    for key, value in values.items():
        if key not in GROUP_CONFIGS:
            raise RequestRefused(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {key}")
        problem = GROUP_CONFIGS[key](key, value)
        if problem is not None:
            raise RequestRefused(ErrorCode.INVALID_CONFIG, problem)


_CHECKS: Final[dict[int, Callable[[str, Mapping[str, str]], None]]] = {
    ResourceType.TOPIC: _check_topic,
    ResourceType.BROKER: _check_broker,
    ResourceType.CLIENT_METRICS: _check_client_metrics,
    ResourceType.GROUP: _check_group,
}
