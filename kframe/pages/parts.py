"""The parts of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class FactsPart(Struct, frozen=True):
    """Names with their values."""

    rows: Sequence[tuple[str, object]]


class TablePart(Struct, frozen=True):
    """Rows of named values. There are ``total`` of them, of which these are listed."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    total: int


class BarsPart(Struct, frozen=True):
    """For each label a value before, and one after."""

    title: str
    rows: Sequence[tuple[str, int, int]]
    total: int


class HeatPart(Struct, frozen=True, eq=False):
    """``values`` (k, k) of each two labels."""

    title: str
    labels: Sequence[str]
    values: NDArray[np.float64]


class Span(Struct, frozen=True):
    """What lasts from ``begin`` to ``end`` of an axis, with a short label beside it, and with a description.

    ``is_marked`` ones stand out. ``name`` tells the spans of a part apart.
    """

    name: str
    begin: float
    end: float
    label: str
    description: str
    is_marked: bool = False


class SpansPart(Struct, frozen=True):
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


class NotesPart(Struct, frozen=True):
    """Sentences."""

    texts: Sequence[str]


class SectionPart(Struct, frozen=True):
    """The title of the parts that follow."""

    title: str


class TextPart(Struct, frozen=True):
    """Text as a terminal shows it."""

    title: str
    text: str


class TimelineValue(Struct, frozen=True):
    """From ``start`` to ``end``, in seconds, something had a value."""

    start: float
    end: float
    value: str
    title: str


class TimelinePart(Struct, frozen=True):
    """For each label its spans, on an axis of seconds with ``marks``. Equal values have equal colours."""

    title: str
    rows: Sequence[tuple[str, Sequence[TimelineValue]]]
    marks: Sequence[tuple[float, str]]

    @property
    def begin(self) -> float:
        """The first second of the axis."""
        return min((span.start for _, spans in self.rows for span in spans), default=0.0)

    @property
    def seconds(self) -> float:
        """The length of the axis."""
        return max((span.end for _, spans in self.rows for span in spans), default=0.0) - self.begin or 1.0

    @property
    def values(self) -> list[str]:
        """The values in the order of their colours."""
        return sorted({span.value for _, spans in self.rows for span in spans})


Part: TypeAlias = (
    FactsPart | TablePart | BarsPart | HeatPart | SpansPart | NotesPart | SectionPart | TextPart | TimelinePart
)


class Heading(Struct, frozen=True):
    """The title of an object, and the facts that a line of text has."""

    title: str
    facts: FactsPart


class PageContent(Struct, frozen=True):
    """All that is shown of an object."""

    heading: Heading
    parts: Sequence[Part]
