"""The parts of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class FactsPart:
    """Names with their values."""

    rows: Sequence[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class TablePart:
    """Rows of named values. There are ``total`` of them, of which these are listed."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    total: int


@dataclass(frozen=True, slots=True)
class BarsPart:
    """For each label a value before, and one after."""

    title: str
    rows: Sequence[tuple[str, int, int]]
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class HeatPart:
    """``values`` (k, k) of each two labels."""

    title: str
    labels: Sequence[str]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Span:
    """What lasts from ``begin`` to ``end`` of an axis, with a short label beside it, and with a description.

    ``is_marked`` ones stand out. ``name`` tells the spans of a part apart.
    """

    name: str
    begin: float
    end: float
    label: str
    description: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class SpansPart:
    """Spans on an axis from ``begin`` to ``end``, one below the other. There are ``total``, of which these are shown.

    ``ticks`` are positions with their labels, ``bands`` parts of the axis in another colour.
    """

    title: str
    begin: float
    end: float
    ticks: Sequence[tuple[float, str]]
    bands: Sequence[tuple[float, float]]
    rows: Sequence[Span]
    total: int


@dataclass(frozen=True, slots=True)
class NotesPart:
    """Sentences."""

    texts: Sequence[str]


Part: TypeAlias = FactsPart | TablePart | BarsPart | HeatPart | SpansPart | NotesPart


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of an object, and the facts that a line of text has."""

    title: str
    facts: FactsPart


@dataclass(frozen=True, slots=True)
class PageContent:
    """All that is shown of an object."""

    heading: Heading
    parts: Sequence[Part]
