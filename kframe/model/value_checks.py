"""Checks of setting values by Kafka's types and validators, with Kafka's error messages.

Source: Kafka 3.9 ``ConfigDef.parseType``, ``ConfigDef.Range``, ``ValidString``, ``ValidList``, ``ConfigException``,
``ThrottledReplicaListValidator``, ``MetadataVersionValidator``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

#: Takes the name of a setting and a text; returns Kafka's message if the text is invalid, else None.
Check = Callable[[str, str], str | None]

_THROTTLED: Final = re.compile(r"(\d+:\d+)?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_RELEASE: Final = re.compile(r"\d+(\.\d+){1,2}(-IV\d+)?", re.ASCII)
#: Java formats doubles outside this range with an exponent.
_PLAIN_MIN, _PLAIN_MAX = 1e-3, 1e7


def invalid(name: str, value: object, message: str) -> str:
    """The text of Kafka's ``ConfigException`` about a value."""
    return f"Invalid value {value} for configuration {name}: {message}"


def int_from(min_value: int, max_value: int | None = None) -> Check:
    """Java's ``int`` from ``min_value`` to ``max_value``."""
    return _whole("INT", 31, min_value, max_value)


def long_from(min_value: int | None = None) -> Check:
    """Java's ``long`` from ``min_value`` on."""
    return _whole("LONG", 63, min_value, None)


def int_or(min_value: int, max_value: int, default: int) -> Check:
    """Java's ``int`` from ``min_value`` to ``max_value``, or ``default``."""
    parse = int_from(-(2**31))

    def check(name: str, text: str) -> str | None:
        problem = parse(name, text)
        if problem is None and not min_value <= int(text) <= max_value and int(text) != default:
            return invalid(name, int(text), f"Value must be between {min_value} and {max_value} or equal to {default}")
        return problem

    return check


def one_of(*values: str) -> Check:
    """Any one of these texts."""

    def check(name: str, text: str) -> str | None:
        value = text.strip()
        return None if value in values else invalid(name, value, f"String must be one of: {', '.join(values)}")

    return check


def some_of(*values: str) -> Check:
    """A list of some of these texts, which may be empty."""
    element = one_of(*values)

    def check(name: str, text: str) -> str | None:
        problems = (element(name, value) for value in _elements(text))
        return next((problem for problem in problems if problem is not None), None)

    return check


def boolean(name: str, text: str) -> str | None:
    """True or false."""
    if text.strip().lower() in ("true", "false"):
        return None
    return invalid(name, text, "Expected value to be either true or false")


def double(min_value: int | None = None, max_value: int | None = None) -> Check:
    """Java's ``double`` from ``min_value`` to ``max_value``."""

    def check(name: str, text: str) -> str | None:
        try:
            value = float(text) if text.isascii() and "_" not in text else math.nan  # Java reads neither.
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            return invalid(name, text, "Not a number of type DOUBLE")
        return _outside(name, value, java_double(value), min_value, max_value)

    return check


def anything(_name: str, _text: str) -> None:
    """Any text."""


def throttled(name: str, text: str) -> str | None:
    """Replicas of a topic by partition and broker, or all."""
    elements = [element.strip() for element in _elements(text)]
    if all(_THROTTLED.fullmatch(element) for element in elements) or "".join(elements) == "*":
        return None
    message = (
        f"{name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
    return invalid(name, f"[{', '.join(_elements(text))}]", message)


def release(name: str, text: str) -> str | None:
    """A release of Kafka."""
    value = text.strip()
    return None if _RELEASE.fullmatch(value) else invalid(name, value, f"Version {value} is not a valid version")


def _whole(kind: str, bits: int, min_value: int | None, max_value: int | None) -> Check:
    def check(name: str, text: str) -> str | None:
        if _WHOLE.fullmatch(text.strip()) is None or not -(2**bits) <= int(text) < 2**bits:
            return invalid(name, text, f"Not a number of type {kind}")
        return _outside(name, int(text), str(int(text)), min_value, max_value)

    return check


def _outside(name: str, value: float, formatted: str, min_value: int | None, max_value: int | None) -> str | None:
    if min_value is not None and value < min_value:
        return invalid(name, formatted, f"Value must be at least {min_value}")
    if max_value is not None and value > max_value:
        return invalid(name, formatted, f"Value must be no more than {max_value}")
    return None


def _elements(text: str) -> list[str]:
    """The elements of Kafka's type LIST. Blanks around commas are ignored."""
    return re.split(r"\s*,\s*", text.strip()) if text.strip() else []


def java_double(value: float) -> str:
    """Format a number as Java's ``Double.toString`` does."""
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_MAX:
        return repr(value)
    exponent = math.floor(math.log10(abs(value)))
    return f"{value / 10.0**exponent!r}E{exponent}"
