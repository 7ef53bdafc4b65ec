"""The settings of groups with their defaults, and the values that they accept (Kafka 4.4 ``GroupConfig``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kframe.core.kraft.configuration.broker_keys import BROKER_CONFIG_KEYS, ConfigType
from kframe.model.value_checks import Check, anything, boolean, int_from, invalid, long_from, one_of

_ASSIGNOR: Final = "streams.assignor.name"
_ASSIGNORS: Final = "group.streams.assignors"
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_TAGS: Final = "streams.rack.aware.assignment.tags"
#: Settings that are described only where they are set.
_INTERNAL: Final = (
    "consumer.assignor.offload.enable",
    "share.assignor.offload.enable",
    "streams.acceptable.recovery.lag",
    "streams.assignor.offload.enable",
    "streams.num.warmup.replicas",
    "streams.task.offset.interval.ms",
)
#: A duration in ISO 8601 that is not negative, as Java's ``Duration`` reads it.
_DURATION: Final = re.compile(
    r"by_duration:P(?=\d|T\d)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d{0,9})?S)?)?", re.ASCII | re.IGNORECASE
)


class GroupConfigKey(NamedTuple):
    """A setting of groups. ``broker_key`` is the setting of brokers that has its default, or None."""

    type: ConfigType
    default: str | None
    check: Check
    broker_key: str | None
    is_internal: bool


def _offset_reset(name: str, text: str) -> str | None:
    value = text.strip()
    if value in ("latest", "earliest") or _DURATION.fullmatch(value):
        return None
    return invalid(name, value, "Expected latest, earliest or by_duration:PnDTnHnMn.nS that is not negative")


def _key(name: str, kind: ConfigType, default: str | None, check: Check) -> GroupConfigKey:
    broker_key = _ASSIGNORS if name == _ASSIGNOR else f"group.{name}"
    known = broker_key if broker_key in BROKER_CONFIG_KEYS else None
    return GroupConfigKey(kind, default, check, known, name in _INTERNAL)


_INT, _BOOLEAN, _STRING = ConfigType.INT, ConfigType.BOOLEAN, ConfigType.STRING
#: Every setting by name.
GROUP_CONFIG_KEYS: Final[Mapping[str, GroupConfigKey]] = {
    key[0]: _key(*key)
    for key in (
        ("consumer.assignment.interval.ms", _INT, "1000", int_from(0)),
        ("consumer.assignor.offload.enable", _BOOLEAN, "true", boolean),
        ("consumer.heartbeat.interval.ms", _INT, "5000", int_from(1)),
        ("consumer.session.timeout.ms", _INT, "45000", int_from(1)),
        ("errors.deadletterqueue.copy.record.enable", _BOOLEAN, "false", boolean),
        (_DEAD_LETTERS, _STRING, "", anything),
        ("share.assignment.interval.ms", _INT, "1000", int_from(0)),
        ("share.assignor.offload.enable", _BOOLEAN, "true", boolean),
        ("share.auto.offset.reset", _STRING, "latest", _offset_reset),
        ("share.delivery.count.limit", _INT, "5", int_from(2)),
        ("share.heartbeat.interval.ms", _INT, "5000", int_from(1)),
        ("share.isolation.level", _STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted")),
        ("share.partition.max.record.locks", _INT, "2000", int_from(100)),
        ("share.record.lock.duration.ms", _INT, "30000", int_from(1000)),
        ("share.renew.acknowledge.enable", _BOOLEAN, "true", boolean),
        ("share.session.timeout.ms", _INT, "45000", int_from(1)),
        ("streams.acceptable.recovery.lag", ConfigType.LONG, "10000", long_from(0)),
        ("streams.assignment.interval.ms", _INT, "1000", int_from(0)),
        (_ASSIGNOR, _STRING, None, anything),
        ("streams.assignor.offload.enable", _BOOLEAN, "true", boolean),
        ("streams.heartbeat.interval.ms", _INT, "5000", int_from(1)),
        ("streams.initial.rebalance.delay.ms", _INT, "3000", int_from(0)),
        ("streams.num.standby.replicas", _INT, "0", int_from(0)),
        ("streams.num.warmup.replicas", _INT, "2", int_from(0)),
        (_TAGS, ConfigType.LIST, "", anything),
        ("streams.session.timeout.ms", _INT, "45000", int_from(1)),
        ("streams.task.offset.interval.ms", _INT, "60000", int_from(1)),
    )
}


def group_config_problem(values: Mapping[str, str], static: Mapping[str, str]) -> str | None:
    """The reason why Kafka refuses the settings ``values`` of a group, or None.

    ``static`` has the controller's own settings, which limit some values.
    """
    for name in values:
        if name not in GROUP_CONFIG_KEYS:
            return f"Unknown group config name: {name}"
    tags = [tag.strip() for tag in values.get(_TAGS, "").split(",") if tag.strip()]
    if len(set(tags)) < len(tags):
        return f"{_TAGS} must not contain duplicate tag keys."
    problems = (key.check(name, values[name]) for name, key in GROUP_CONFIG_KEYS.items() if name in values)
    problem = next((problem for problem in problems if problem is not None), None)
    problem = problem or _limit_problem(values, static) or _name_problem(values, static)
    return problem or _timeout_problem(values, static)


def _limit_problem(values: Mapping[str, str], static: Mapping[str, str]) -> str | None:
    """The reason why a number is outside of the limits that brokers set."""
    for name in (name for name in GROUP_CONFIG_KEYS if name in values):
        kind, _, rest = name.partition(".")
        lowest, highest = (
            _number(f"group.{kind}.{limit}.{rest.removeprefix('num.')}", static) for limit in ("min", "max")
        )
        is_low = lowest is not None and int(values[name]) < lowest
        is_high = highest is not None and int(values[name]) > highest
        if lowest is not None and highest is not None and (is_low or is_high):
            return f"{name} must be in the range {lowest} to {highest} inclusive."
        if is_low:
            return f"{name} must be greater than or equal to {lowest}"
        if is_high:
            return f"{name} must be less than or equal to {highest}"
    return None


def _name_problem(values: Mapping[str, str], static: Mapping[str, str]) -> str | None:
    """The reason why an assignor or a topic is invalid.

    Assignors that are classes have names that kframe cannot know.
    """
    text = static.get(_ASSIGNORS, BROKER_CONFIG_KEYS[_ASSIGNORS].default or "")
    assignors = [name.strip() for name in text.split(",")]
    name = values.get(_ASSIGNOR)
    if name is not None and name not in assignors and not any("." in each for each in assignors):
        registered = ", ".join(assignors)
        return f"{_ASSIGNOR} '{name}' is not a registered task assignor. Registered assignors are: [{registered}]."
    if values.get(_DEAD_LETTERS, "").startswith("__"):
        return f"{_DEAD_LETTERS}: DLQ topic name must not start with '__'"
    return None


def _timeout_problem(values: Mapping[str, str], static: Mapping[str, str]) -> str | None:
    """The reason why a session is not longer than the interval of heartbeats."""
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if session in values or heartbeat in values:
            numbers = [int(values.get(name, _number(f"group.{name}", static) or 0)) for name in (session, heartbeat)]
            if numbers[0] <= numbers[1]:
                return f"{session} must be greater than {heartbeat}"
    return None


def _number(key: str, static: Mapping[str, str]) -> int | None:
    """The number that brokers have in a setting, or None if there is no such setting."""
    if key not in BROKER_CONFIG_KEYS:
        return None
    text = static.get(key, BROKER_CONFIG_KEYS[key].default) or ""
    return int(text) if long_from()(key, text) is None else None
