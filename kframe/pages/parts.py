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
class NotesPart:
    """Sentences."""

    texts: Sequence[str]


Part: TypeAlias = FactsPart | TablePart | BarsPart | HeatPart | NotesPart


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
