"""Pages of results: their parts, the templates that show them, and columns as tables of Arrow."""

from __future__ import annotations

from kframe.pages.arrow import ListColumn, NameColumn, arrow_table
from kframe.pages.parts import (
    BarsPart,
    FactsPart,
    Heading,
    HeatPart,
    NotesPart,
    PageContent,
    Part,
    SectionPart,
    Span,
    SpansPart,
    TablePart,
    TextPart,
    TimelinePart,
    TimelineValue,
)
from kframe.pages.render import environment
from kframe.pages.shown import Shown, Tabular
from kframe.pages.text import cell_text

__all__ = [
    "BarsPart",
    "FactsPart",
    "Heading",
    "HeatPart",
    "ListColumn",
    "NameColumn",
    "NotesPart",
    "PageContent",
    "Part",
    "SectionPart",
    "Shown",
    "Span",
    "SpansPart",
    "TablePart",
    "Tabular",
    "TextPart",
    "TimelinePart",
    "TimelineValue",
    "arrow_table",
    "cell_text",
    "environment",
]
