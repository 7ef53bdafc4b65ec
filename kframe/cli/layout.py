"""The layout of tables and texts for terminals: columns that fit in a line, and lines that are broken to fit."""

from __future__ import annotations

import itertools
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

#: Most characters of a line that is not wide.
LINE_WIDTH: Final = 100
#: The width to which texts of several words may be broken without dropping another column.
_TEXT_WIDTH: Final = 40
#: The least width to which they are broken.
_TEXT_WIDTH_MIN: Final = 20


class TableColumn(NamedTuple):
    """A column of a table: the title, and the texts and kinds of its cells."""

    name: str
    title: str
    texts: Sequence[str]
    is_number: bool
    is_breakable: bool

    @property
    def width(self) -> int:
        """Characters of the longest cell or of the title."""
        return max(len(self.title), *map(len, self.texts), 0)

    @property
    def width_min(self) -> int:
        """Characters that the column needs."""
        return max(len(self.title), min(self.width, _TEXT_WIDTH)) if self.is_breakable else self.width

    @property
    def is_empty(self) -> bool:
        """Whether no cell has a value."""
        return all(text == "-" for text in self.texts)


def help_width() -> int:
    """The width of help texts: that of the terminal, but 50 to 78 characters.

    It is the width that click takes by default. For that, click imports ``shutil``, and with it all compressors of
    Python: a twentieth of the time of ``kframe --help``.
    """
    try:
        columns = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        columns = 0
    if columns <= 0:
        try:
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
        except (AttributeError, ValueError, OSError):  # no terminal
            columns = 0
    return max(min(columns or 80, 80) - 2, 50)


def fitting_columns(columns: Sequence[TableColumn], limit: int | None) -> tuple[list[TableColumn], list[TableColumn]]:
    """The columns that fit in ``limit`` characters, and the others.

    Columns without values are left out first, then the last numbers, then the last others. The first two columns and
    texts that can be broken stay.
    """
    if limit is None:
        return list(columns), []
    candidates = [column for column in columns[2:] if not column.is_breakable or column.is_empty]
    order = sorted(candidates, key=lambda column: (column.is_empty, column.is_number, columns.index(column)))
    retained = list(columns)
    while order and _line_width([column.width_min for column in retained]) > limit:
        retained.remove(order.pop())
    return retained, [column for column in columns if column not in retained]


def column_widths(columns: Sequence[TableColumn], limit: int | None) -> list[int]:
    """The width of each column. The widest texts that can be broken shrink until a line has ``limit`` characters."""
    widths = [column.width for column in columns]
    if limit is None:
        return widths
    least = [max(len(column.title), _TEXT_WIDTH_MIN) for column in columns]
    while (excess := _line_width(widths) - limit) > 0:
        shrinkable = [n for n, column in enumerate(columns) if column.is_breakable and widths[n] > least[n]]
        if not shrinkable:
            break
        widest = max(shrinkable, key=lambda n: widths[n])
        others = [widths[n] for n in shrinkable if n != widest]
        target = max(least[widest], widths[widest] - excess, min(max(others, default=0), widths[widest] - 1))
        widths[widest] = target
    return widths


def table_lines(
    texts: Sequence[str], widths: Sequence[int], columns: Sequence[TableColumn], *, breaks: bool = True
) -> Iterator[str]:
    """The lines of a row: one, unless a text is broken."""
    cells = [
        broken(text, width) if breaks and column.is_breakable else [text]
        for text, width, column in zip(texts, widths, columns, strict=True)
    ]
    for parts in itertools.zip_longest(*cells, fillvalue=""):
        padded = (
            part.rjust(width) if column.is_number else part.ljust(width)
            for part, width, column in zip(parts, widths, columns, strict=True)
        )
        yield "  ".join(padded).rstrip()


def broken(text: str, width: int = LINE_WIDTH) -> list[str]:
    """The lines of a text, broken at spaces, and where a word does not fit, at its commas."""
    if len(text) <= width:
        return [text]
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [part for line in lines for part in (_broken_at_commas(line, width) if len(line) > width else [line])]


def _broken_at_commas(text: str, width: int) -> list[str]:
    lines = [""]
    for part in text.replace(",", ",\n").split("\n"):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return lines


def is_breakable(value: Any, text: str) -> bool:
    """Whether the text of a value has several words, or is a long list."""
    return (
        " " in text if isinstance(value, str) else isinstance(value, Mapping | list | tuple) and len(text) > _TEXT_WIDTH
    )


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def cell(value: Any) -> str:
    """A value in a table: ``-`` for unknown or none, lists with commas, control characters escaped."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ",".join(f"{name}={cell(element)}" for name, element in value.items()) or "-"
        case list() | tuple():
            return ",".join(cell(element) for element in value) or "-"
        case _:
            return printable(str(value))


def csv_cell(value: Any) -> str:
    """A value in CSV: empty for unknown or none, lists with commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={csv_cell(element)}" for name, element in value.items())
    return ",".join(map(csv_cell, value)) if isinstance(value, list | tuple) else str(value)


def printable(text: str) -> str:
    """Text without terminal control characters."""
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
