"""What Kafka knows about a setting of brokers and controllers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from kframe.model.value_checks import Check, boolean, double, int_from, java_double, long_from


class ConfigType(IntEnum):
    """Types of values (``DescribeConfigsResponse.ConfigType``)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class BrokerConfigKey(NamedTuple):
    """A setting with its default, which may be None."""

    type: ConfigType
    default: str | None
    is_dynamic: bool = False
    """Whether it can be changed while the broker runs."""
    is_internal: bool = False
    """Whether it is described only where it is set."""


_NUMBERS: Final = (ConfigType.INT, ConfigType.SHORT, ConfigType.LONG)
_CHECKS: Final[Mapping[ConfigType, Check]] = {
    ConfigType.BOOLEAN: boolean,
    ConfigType.INT: int_from(-(2**31)),
    ConfigType.SHORT: int_from(-(2**15), 2**15 - 1),
    ConfigType.LONG: long_from(),
    ConfigType.DOUBLE: double(),
}


def type_problem(kind: ConfigType, name: str, text: str) -> str | None:
    """The reason why a text is no value of a type, or None (``ConfigDef.parseType``)."""
    check = _CHECKS.get(kind)
    return None if check is None else check(name, text)


def printed(kind: ConfigType, text: str) -> str:
    """A value as Kafka prints it (``ConfigDef.convertToString``). Invalid values are printed as they are."""
    value = text.strip()
    if type_problem(kind, "", value) is not None:
        return value
    if kind is ConfigType.BOOLEAN:
        return value.lower()
    if kind in _NUMBERS:
        return str(int(value))
    if kind is ConfigType.DOUBLE:
        return java_double(float(value))
    if kind is ConfigType.LIST:
        return re.sub(r"\s*,\s*", ",", value)
    return value
