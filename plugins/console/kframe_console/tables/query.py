"""Queries of tables: sort order, filters and window, from the parameters of a URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kframe.plugin import ParameterError
from kframe.plugin.settings import nearest, parse_whole, short_repr

#: Parameters that are no filters.
SORT: Final = "sort"
FIRST: Final = "first"
COUNT: Final = "count"
RESERVED: Final = (SORT, FIRST, COUNT)
#: Most rows of a window, most sort keys, and the longest text of a filter.
COUNT_MAX: Final = 1_000
SORT_KEYS_MAX: Final = 4
FILTER_CHARACTERS_MAX: Final = 1_000
COUNT_DEFAULT: Final = 100


@dataclass(frozen=True, slots=True)
class TableQuery:
    """Rows that every filter (column, text) selects, sorted by (column, descending), from ``first`` on at most
    ``count``."""

    sort: tuple[tuple[str, bool], ...] = ()
    filters: tuple[tuple[str, str], ...] = ()
    first: int = 0
    count: int = COUNT_DEFAULT


def table_query(parameters: Mapping[str, str], columns: Sequence[str]) -> TableQuery:
    """The query of these parameters: ``sort=-leader_epoch,topic``, ``first``, ``count``; all others are filters.

    Empty filters select all rows. Raises ParameterError, which names the parameter.
    """
    filters = []
    for name, text in parameters.items():
        if name in RESERVED or not text.strip():
            continue
        if name not in columns:
            raise ParameterError(name, "no such column", nearest(name, (*columns, *RESERVED)))
        if len(text) > FILTER_CHARACTERS_MAX:
            raise ParameterError(name, f"{len(text)} characters", f"at most {FILTER_CHARACTERS_MAX}")
        filters.append((name, text))
    return TableQuery(
        _sort_keys(parameters.get(SORT, ""), columns),
        tuple(sorted(filters)),
        _number(FIRST, parameters.get(FIRST), 0, 2**31 - 1),
        _number(COUNT, parameters.get(COUNT), COUNT_DEFAULT, COUNT_MAX),
    )


def _sort_keys(text: str, columns: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    terms = [term.strip() for term in text.split(",") if term.strip()]
    if len(terms) > SORT_KEYS_MAX:
        raise ParameterError(SORT, f"{len(terms)} columns", f"at most {SORT_KEYS_MAX}")
    for term in terms:
        if term.removeprefix("-") not in columns:
            raise ParameterError(SORT, short_repr(term), nearest(term.removeprefix("-"), columns))
    return tuple((term.removeprefix("-"), term.startswith("-")) for term in terms)


def _number(name: str, text: str | None, default: int, maximum: int) -> int:
    if text is None or not text.strip():
        return default
    number = parse_whole(text.strip(), maximum)
    if number is None:
        raise ParameterError(name, short_repr(text), f"a whole number from 0 to {maximum}")
    return number
