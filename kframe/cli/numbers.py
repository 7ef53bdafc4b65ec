"""Numbers on the command line: whole numbers, decimals, sizes with units, and lists of broker ids with ranges.

All have ASCII digits alone. Python's own conversion also takes digits of other scripts, signs, spaces and underscores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.model.whole_numbers import INT32_MAX, INT64_MAX, parse_whole

if TYPE_CHECKING:
    _IntType = click.ParamType[int]
else:
    _IntType = click.ParamType

#: Ids that one option may name, so that a range cannot fill the memory.
IDS_MAX: Final = 100_000
#: The metavariable of lists of broker ids.
IDS: Final = "ID[-ID],..."
_DECIMAL: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")
_SIZE: Final = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,15})?)([A-Za-z]*)(/s)?")
_PREFIXES: Final = "KMGTP"
_UNITS: Final[Mapping[str, int]] = {
    "": 1,
    "B": 1,
    "kB": 1000,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(_PREFIXES, 1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate(_PREFIXES, 1)},
}


class WholeNumber(click.IntRange):
    """A whole number from ``minimum`` to ``maximum``, by default the largest of 32 bits."""

    def __init__(self, minimum: int = 0, maximum: int | None = None) -> None:
        super().__init__(minimum, maximum)

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Fails for any other text."""
        maximum = INT32_MAX if self.max is None else int(self.max)
        number = parse_whole(value, maximum) if isinstance(value, str) else value
        if number is None or not int(self.min or 0) <= number <= maximum:
            self.fail(f"found {value!r}, expected a whole number from {self.min} to {maximum}", param, ctx)
        return number


class DecimalNumber(click.FloatRange):
    """A number such as 2.5, from ``minimum`` to ``maximum``."""

    def __init__(self, minimum: float = 0, maximum: float | None = None) -> None:
        super().__init__(minimum, maximum)

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Fails for any other text."""
        try:
            number = parse_decimal(value) if isinstance(value, str) else value
        except ValueError:
            number = None
        if number is None or number < (self.min or 0) or (self.max is not None and number > self.max):
            range_text = f"from {self.min:g}" + ("" if self.max is None else f" to {self.max:g}")
            self.fail(f"found {value!r}, expected a number such as 2.5, {range_text}", param, ctx)
        return number


class ByteSize(_IntType):
    """A positive number of bytes with or without a unit; ``per_second`` for a rate."""

    def __init__(self, *, per_second: bool = False) -> None:
        self.name = "rate" if per_second else "size"
        self.per_second = per_second

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes. Fails for any other text."""
        try:
            return parse_size(value, per_second=self.per_second) if isinstance(value, str) else value
        except ValueError as problem:
            self.fail(f"found {value!r}, expected {problem}", param, ctx)


def limit_of(default: int, rows: str = "Rows that a table lists") -> Callable[[Any], Any]:
    """``--limit`` of a command whose tables list the ``default`` number of ``rows``."""
    help_text = f"{rows}; data has them all."
    return click.option("--limit", type=WholeNumber(), default=default, show_default=True, help=help_text)


limit_option: Final = click.option(
    "--limit", type=WholeNumber(), help="Rows that a table lists; data has them all.  [default: all]"
)


def parse_decimal(text: str) -> float:
    """The value of a decimal number in ASCII digits. Raises ValueError."""
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError("a number such as 2.5")
    return float(text)


def parse_count(text: str) -> int:
    """The value of a whole number of 32 bits. Raises ValueError."""
    number = parse_whole(text)
    if number is None:
        raise ValueError(f"a whole number from 0 to {INT32_MAX}")
    return number


def parse_size(text: str, *, per_second: bool = False) -> int:
    """The bytes of ``500``, ``50MB`` or ``1.5GiB``, from 1 on; ``/s`` may follow where a rate is expected.

    Raises ValueError, which has what was expected.
    """
    example = "a rate in bytes such as 50MB/s or 20MiB/s" if per_second else "a size in bytes such as 500GB or 20MiB"
    match = _SIZE.fullmatch(text)
    if match is None or match[2] not in _UNITS or (match[3] and not per_second):
        raise ValueError(f"{example} (B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB)")
    whole, _, decimals = match[1].partition(".")
    scale: int = 10 ** len(decimals)
    size, remainder = divmod(int(whole + decimals) * _UNITS[match[2]], scale)
    if remainder or not 1 <= size <= INT64_MAX:
        raise ValueError(f"{example}, of whole bytes from 1 to {INT64_MAX}")
    return size


def parse_ids(text: str) -> list[int]:
    """The broker ids of a list such as ``1-3,7``, in its order. Raises ValueError, which has what was expected."""
    ids: list[int] = []
    for part in text.split(","):
        first_text, dash, last_text = part.partition("-")
        first = parse_whole(first_text)
        last = parse_whole(last_text) if dash else first
        if first is None or last is None:
            raise ValueError("broker ids such as 2,5 or 1-3,7")
        if last < first:
            raise ValueError(f"{last}-{first}, the smaller id first")
        if len(ids) + last - first >= IDS_MAX:
            raise ValueError(f"at most {IDS_MAX} broker ids")
        ids += range(first, last + 1)
    return ids


def broker_ids(_ctx: click.Context, _option: click.Parameter, values: Iterable[str]) -> tuple[int, ...]:
    """Callback of a repeatable option for broker ids: ``2,5`` and ``7-8`` as (2, 5, 7, 8), each id once."""
    ids: dict[int, None] = {}
    for value in values:
        try:
            for broker_id in parse_ids(value):
                if broker_id in ids:
                    raise click.BadParameter(f"found broker {broker_id} twice, expected each broker once")
                ids[broker_id] = None
        except ValueError as problem:
            raise click.BadParameter(f"found {value!r}, expected {problem}") from problem
        if len(ids) > IDS_MAX:
            raise click.BadParameter(f"found {len(ids)} ids, expected at most {IDS_MAX}")
    return tuple(ids)
