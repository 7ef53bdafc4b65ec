"""Which texts are values of a setting, by its type in Kafka (3.9 ``ConfigDef``)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

#: Whether a text is a value of a setting.
Fits = Callable[[str], bool]

_THROTTLED: Final = re.compile(r"\*|\d+:\d+(,\d+:\d+)*|", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)


def between(least: int, most: int) -> Fits:
    """Whole numbers from ``least`` to ``most``."""

    def fits(text: str) -> bool:
        return _WHOLE.fullmatch(text.strip()) is not None and least <= int(text) <= most

    return fits


def int_from(least: int) -> Fits:
    """Java's ``int`` from ``least`` on."""
    return between(least, 2**31 - 1)


def long_from(least: int = -(2**63)) -> Fits:
    """Java's ``long`` from ``least`` on."""
    return between(least, 2**63 - 1)


def one_of(*values: str) -> Fits:
    """One of these texts."""
    return lambda text: text.strip() in values


def some_of(*values: str) -> Fits:
    """A list of some of these texts, which may be empty."""
    return lambda text: all(one.strip() in values for one in text.split(",")) if text else True


def boolean(text: str) -> bool:
    """True or false."""
    return text.strip().lower() in ("true", "false")


def share(text: str) -> bool:
    """A number from 0 to 1."""
    try:
        return math.isfinite(float(text)) and 0 <= float(text) <= 1
    except ValueError:
        return False


def number(text: str) -> bool:
    """A number, whole or not."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def anything(_text: str) -> bool:
    """Every text."""
    return True


def throttled(text: str) -> bool:
    """Replicas of a topic by partition and broker, or all."""
    return _THROTTLED.fullmatch(text.replace(" ", "")) is not None


def release(text: str) -> bool:
    """A release of Kafka."""
    return re.fullmatch(r"\d+(\.\d+){1,2}(-IV\d+)?", text.strip(), re.ASCII) is not None
