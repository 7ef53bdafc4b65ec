"""The values that configurations of resources accept (Kafka 4.4 ``ControllerConfigurationValidator``).

The settings of brokers are not checked: the broker that forwards a change has checked them (``ConfigAdminManager``).
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Final

from kframe.core.kraft.configuration.broker_keys import ConfigType
from kframe.core.kraft.configuration.group_configs import GROUP_CONFIG_KEYS, group_config_problem
from kframe.core.kraft.configuration.topic_configs import static_topic_values
from kframe.core.kraft.configuration.topic_contradictions import contradiction
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import Resource
from kframe.model.topic_configs import KRAFT_TOPIC_CONFIGS, kraft_value_problem
from kframe.model.topics import topic_name_problem
from kframe.model.value_checks import int_from

_INT32_MAX: Final = 2**31 - 1
#: Settings of a subscription to client metrics, with type and default; milliseconds of ``interval.ms``.
CLIENT_METRICS: Final = {
    "interval.ms": (ConfigType.INT, "300000"),
    "match": (ConfigType.LIST, ""),
    "metrics": (ConfigType.LIST, ""),
}
INTERVAL_MS: Final = range(100, 3_600_001)
#: What a client can be matched by (Kafka ``ClientMetricsConfigs``).
_MATCHED: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
#: The settings of each type of resource. Brokers may have any.
_SUPPORTED: Final[Mapping[int, Container[str]]] = {
    ResourceType.TOPIC: KRAFT_TOPIC_CONFIGS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS,
    ResourceType.GROUP: GROUP_CONFIG_KEYS,
}
_SEPARATOR: Final = re.compile(r"\s*,\s*")
#: The text of a broker id, as Java parses it. It may be too large.
BROKER_ID: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)


def check_values(
    context: KraftContext, resource: Resource, values: Mapping[str, str], stored: Mapping[str, str]
) -> None:
    """Check all ``values`` of a resource together; it had ``stored``. Raises RequestRefused with Kafka's error.

    Settings of earlier releases, which the log may still have, are left out (``DefaultSupportedConfigChecker``).
    """
    kind, name = resource
    values = {
        key: value for key, value in values.items() if stored.get(key) != value or key in _SUPPORTED.get(kind, values)
    }
    if kind == ResourceType.TOPIC:
        check_topic_name(name)
        _check_topic(context, values, stored)
    elif kind == ResourceType.BROKER:
        _check_broker_name(name)
    elif kind == ResourceType.CLIENT_METRICS:
        _check_client_metrics(name, values)
    elif kind == ResourceType.GROUP:
        if not name:
            raise RequestRefused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        problem = group_config_problem(values, context.settings.static_configs)
        if problem is not None:
            raise RequestRefused(ErrorCode.INVALID_CONFIG, problem)
    else:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def check_topic_name(name: str) -> None:
    """Raise RequestRefused for a name that no topic can have."""
    if not name:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    problem = topic_name_problem(name)
    if problem is not None:
        raise RequestRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: expected {problem}.")


def _check_topic(context: KraftContext, values: Mapping[str, str], stored: Mapping[str, str]) -> None:
    problem = kraft_value_problem(values)
    if problem is not None:
        raise RequestRefused(ErrorCode.INVALID_CONFIG, problem.text)
    static = context.settings.static_configs
    tiered_storage = static.get("remote.log.storage.system.enable", "false").strip().lower() == "true"
    text = contradiction({**static_topic_values(static), **values}, stored, tiered_storage=tiered_storage)
    if text is not None:
        raise RequestRefused(ErrorCode.INVALID_CONFIG, text)


def _check_broker_name(name: str) -> None:
    if name and (not BROKER_ID.fullmatch(name) or abs(int(name)) > _INT32_MAX):
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
    if name and int(name) < 0:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def _check_client_metrics(name: str, values: Mapping[str, str]) -> None:
    if not name:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key in values:
        if key not in CLIENT_METRICS:
            raise RequestRefused(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}")
    for key in ("metrics", "match"):
        elements = _elements(values.get(key, ""))
        if len(set(elements)) < len(elements):
            raise RequestRefused(ErrorCode.INVALID_CONFIG, f"Configuration '{key}' values must not be duplicated.")
    interval = values.get("interval.ms")
    if interval is not None:
        problem = int_from(-(2**31))("interval.ms", interval)
        if problem is not None:
            raise RequestRefused(ErrorCode.INVALID_CONFIG, problem)
        if int(interval) not in INTERVAL_MS:
            message = "interval must be between 100 and 3600000 (1 hour)"
            message = f"Invalid value {int(interval)} for interval.ms, {message}"
            raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
    for pattern in _elements(values.get("match", "")):
        _check_pattern(pattern)


def _check_pattern(pattern: str) -> None:
    """A client is matched by NAME=REGULAR_EXPRESSION. Kafka checks the expression by Java's rules."""
    name, *expression = pattern.rstrip("=").split("=")
    if len(expression) != 1 or name.strip() not in _MATCHED:
        raise RequestRefused(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def _elements(text: str) -> list[str]:
    return _SEPARATOR.split(text.strip()) if text.strip() else []
