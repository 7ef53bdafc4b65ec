"""The kinds of columns of a table: values of cells, sort keys of rows, and filters."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kframe.plugin import ParameterError
from kframe.plugin.columns import Bool, Int32, Ragged, UInt8
from kframe.plugin.settings import INT64_MAX, parse_whole, short_repr
from kframe.plugin.snapshot import topic_pattern

#: Longest list by whose values rows sort; further values are ignored.
SORTED_VALUES: Final = 8
#: Most values that a filter names.
_TERMS_MAX: Final = 100
_COMPARISON: Final = re.compile(r"(?P<operator>[<>]=?)(?P<value>.+)")
_RANGE: Final = re.compile(r"(?P<low>-?\d+)\.\.(?P<high>-?\d+)")


class DataColumn(ABC):
    """A column of a table with ``n`` rows."""

    kind: str
    """How a browser shows the values: number, text, list or flags."""

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    @abstractmethod
    def arrow_column(self, rows: NDArray[Any]) -> Any:
        """The values of ``rows`` as a ``pyarrow.Array``, of the same type for all rows."""

    @abstractmethod
    def values(self, rows: NDArray[Any]) -> list[Any]:
        """The values of ``rows``, as JSON has them; None is unknown. Without Arrow: it imports pandas, 36 MB."""

    @abstractmethod
    def keys(self) -> list[NDArray[Any]]:
        """(n,) integers by which rows sort, the most significant first. Empty: rows do not sort by this column."""

    @abstractmethod
    def mask(self, name: str, text: str) -> Bool:
        """(n,) rows that a filter selects. Raises ParameterError for ``name``."""


@dataclass(frozen=True, eq=False)
class NumericColumn(DataColumn):
    """One number a row. ``texts`` name special values, such as a leader of -1: none."""

    numbers: NDArray[Any]
    texts: Mapping[int, str] = field(default_factory=dict)
    kind: str = "number"

    def values(self, rows: NDArray[Any]) -> list[Any]:
        """See DataColumn."""
        return self.numbers[rows].tolist()  # type: ignore[no-any-return]

    def keys(self) -> list[NDArray[Any]]:
        """See DataColumn."""
        return [self.numbers]

    def mask(self, name: str, text: str) -> Bool:
        """Values in a list such as ``1,4``, in a range ``1..4``, or compared by ``>4``, ``>=4``, ``<4``, ``<=4``."""
        specials = {special: number for number, special in self.texts.items()}
        expected = "a number, several with commas, a range such as 3..7, or >3, >=3, <3, <=3"
        if specials:
            expected += f", or {', '.join(specials)}"
        if match := _RANGE.fullmatch(text.strip()):
            low, high = (_whole(name, text, match[side], expected) for side in ("low", "high"))
            return (self.numbers >= low) & (self.numbers <= high)
        if match := _COMPARISON.fullmatch(text.strip()):
            value = _whole(name, text, match["value"], expected)
            match match["operator"]:
                case "<":
                    return self.numbers < value
                case "<=":
                    return self.numbers <= value
                case ">":
                    return self.numbers > value
                case _:
                    return self.numbers >= value
        numbers = [
            specials[term] if term in specials else _whole(name, text, term, expected) for term in _terms(name, text)
        ]
        return np.isin(self.numbers, numbers)

    def arrow_column(self, rows: NDArray[Any]) -> Any:
        """See DataColumn."""
        return pa.array(self.numbers[rows])


@dataclass(frozen=True, eq=False)
class DecimalColumn(NumericColumn):
    """One number a row, which has at most three decimals; NaN is unknown."""

    arrow_type: ClassVar[Any] = pa.float64()

    def values(self, rows: NDArray[Any]) -> list[Any]:
        """See DataColumn."""
        return [None if math.isnan(number) else round(number, 3) for number in self.numbers[rows].tolist()]

    def keys(self) -> list[NDArray[Any]]:
        """Thousandths; unknown numbers first."""
        return [np.nan_to_num(np.round(self.numbers * 1_000), nan=-1).astype(np.int64)]

    def arrow_column(self, rows: NDArray[Any]) -> Any:
        """See DataColumn."""
        return pa.array(self.values(rows), self.arrow_type)


@dataclass(frozen=True, eq=False)
class CountColumn(DecimalColumn):
    """One whole number a row; NaN is unknown."""

    arrow_type: ClassVar[Any] = pa.int64()

    def values(self, rows: NDArray[Any]) -> list[Any]:
        """See DataColumn."""
        return [None if math.isnan(number) else int(number) for number in self.numbers[rows].tolist()]


@dataclass(frozen=True, eq=False)
class NamedColumn(DataColumn):
    """One name a row: ``index`` (n,) into ``names``; -1 is unknown. Filters evaluate over the names, not the rows."""

    names: Sequence[str]
    index: Int32
    kind: str = "text"

    @staticmethod
    def of(texts: Iterable[str | None]) -> NamedColumn:
        """The column of these texts, for tables of few rows."""
        texts = list(texts)
        names = sorted({text for text in texts if text is not None})
        numbers: dict[str | None, int] = {name: number for number, name in enumerate(names)}
        return NamedColumn(names, np.array([numbers.get(text, -1) for text in texts], np.int32))

    def values(self, rows: NDArray[Any]) -> list[Any]:
        """See DataColumn. For a few rows of many names."""
        return [self.names[number] if number >= 0 else None for number in self.index[rows].tolist()]

    def keys(self) -> list[NDArray[Any]]:
        """Names ascend in this column; otherwise their ranks sort the rows."""
        if all(first <= second for first, second in pairwise(self.names)):
            return [self.index]
        ranks = np.empty(len(self.names) + 1, np.int32)
        ranks[sorted(range(len(self.names)), key=self.names.__getitem__)] = np.arange(len(self.names))
        ranks[-1] = -1
        return [ranks[self.index]]

    def mask(self, name: str, text: str) -> Bool:
        """Names that contain the text in any case, that match a pattern with ``*`` or ``?``, or, after ``=``, equal
        it."""
        selected = np.zeros(len(self.names) + 1, np.bool_)
        if text.startswith("="):
            selected[:-1] = [value == text[1:] for value in self.names]
        elif "*" in text or "?" in text:
            expression = topic_pattern([text])
            selected[:-1] = [expression.match(value) is not None for value in self.names]
        else:
            folded = text.casefold()
            selected[:-1] = [folded in value.casefold() for value in self.names]
        return selected[self.index]

    def arrow_column(self, rows: NDArray[Any]) -> Any:
        """See DataColumn."""
        index = self.index[rows]
        return pa.array(self.names, pa.string()).take(pa.array(index, mask=index < 0))


@dataclass(frozen=True, eq=False)
class ListsColumn(DataColumn):
    """One list a row: of numbers, or, with ``names``, of the names of these numbers."""

    lists: Ragged
    names: Sequence[str] | None = None
    kind: str = "list"

    def values(self, rows: NDArray[Any]) -> list[Any]:
        """See DataColumn."""
        lists, names = self.lists.take(rows), self.names
        values: list[Any] = lists.values.tolist()
        if names is not None:
            values = [names[number] for number in values]
        return [values[first:last] for first, last in pairwise(lists.offsets.tolist())]

    def keys(self) -> list[NDArray[Any]]:
        """The first SORTED_VALUES numbers; a list sorts before longer lists that begin with it."""
        counts, starts = self.lists.counts, self.lists.offsets[:-1]
        keys = []
        for position in range(min(int(counts.max(initial=0)), SORTED_VALUES)):
            key = np.full(len(counts), -1, np.int32)
            has_value = counts > position
            key[has_value] = self.lists.values[starts[has_value] + position]
            keys.append(key)
        return keys

    def mask(self, name: str, text: str) -> Bool:
        """Lists that contain one of the numbers or names; ``none`` selects empty lists, ``some`` all others."""
        if text.strip() in ("none", "some"):
            return np.asarray((self.lists.counts == 0) == (text.strip() == "none"))
        terms = _terms(name, text)
        if self.names is None:
            expected = "broker ids with commas, none, or some"
            numbers = [_whole(name, text, term, expected) for term in terms]
        else:
            numbers = [number for number, value in enumerate(self.names) if value in terms]
        return self.lists.any(np.isin(self.lists.values, numbers))

    def arrow_column(self, rows: NDArray[Any]) -> Any:
        """See DataColumn."""
        lists = self.lists.take(rows)
        values = pa.array(lists.values)
        if self.names is not None:
            values = pa.array(self.names, pa.string()).take(values)
        return pa.ListArray.from_arrays(pa.array(lists.offsets), values)


@dataclass(frozen=True, eq=False)
class FlagsColumn(DataColumn):
    """A set of flags a row: bit ``i`` of ``bits`` (n,) is ``names[i]``. Later names sort as greater."""

    names: Sequence[str]
    bits: UInt8
    kind: str = "flags"

    def values(self, rows: NDArray[Any]) -> list[Any]:
        """See DataColumn."""
        distinct, index = np.unique(self.bits[rows], return_inverse=True)
        lists = [[name for bit, name in enumerate(self.names) if flags >> bit & 1] for flags in distinct.tolist()]
        return [lists[number] for number in index.tolist()]

    def keys(self) -> list[NDArray[Any]]:
        """See DataColumn."""
        return [self.bits]

    def mask(self, name: str, text: str) -> Bool:
        """Rows with one of the names, or for ``none`` without any."""
        bits = 0
        if text.strip() == "none":
            return np.asarray(self.bits == 0)
        for term in _terms(name, text):
            if term not in self.names:
                raise ParameterError(name, short_repr(term), f"none, or some of {', '.join(self.names)}")
            bits |= 1 << self.names.index(term)
        return np.asarray((self.bits & np.uint8(bits)) != 0)

    def arrow_column(self, rows: NDArray[Any]) -> Any:
        """See DataColumn."""
        return pa.array(self.values(rows), pa.list_(pa.string()))


@dataclass(frozen=True, eq=False)
class UnknownColumn(DataColumn):
    """A column that the source lacks: every value is unknown."""

    count: int
    kind: str = "number"

    def values(self, rows: NDArray[Any]) -> list[Any]:
        """See DataColumn."""
        return [None] * len(rows)

    def keys(self) -> list[NDArray[Any]]:
        """See DataColumn."""
        return []

    def mask(self, name: str, text: str) -> Bool:
        """Raises ParameterError: no row has a value."""
        raise ParameterError(name, short_repr(text), "no filter: the source does not have this column")

    def arrow_column(self, rows: NDArray[Any]) -> Any:
        """See DataColumn."""
        return pa.nulls(len(rows))


def numeric(numbers: NDArray[Any] | None, count: int, texts: Mapping[int, str] | None = None) -> DataColumn:
    """A column of numbers; None: all are unknown."""
    return UnknownColumn(count) if numbers is None else NumericColumn(numbers, texts or {})


def lists(ragged: Ragged | None, count: int, names: Sequence[str] | None = None) -> DataColumn:
    """A column of lists; None: all are unknown."""
    return UnknownColumn(count, "list") if ragged is None else ListsColumn(ragged, names)


def _terms(name: str, text: str) -> list[str]:
    terms = [term.strip() for term in text.split(",")]
    if len(terms) > _TERMS_MAX:
        raise ParameterError(name, f"{len(terms)} values", f"at most {_TERMS_MAX}")
    return terms


def _whole(name: str, text: str, term: str, expected: str) -> int:
    sign = -1 if term.startswith("-") else 1
    number = parse_whole(term.removeprefix("-"), INT64_MAX)
    if number is None:
        raise ParameterError(name, short_repr(text), expected)
    return sign * number
