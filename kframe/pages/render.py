"""Pages as HTML."""

from __future__ import annotations

from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from jinja2.loaders import BaseLoader, ChoiceLoader

from kframe import __version__
from kframe.pages.heat import heat_cells, heat_image, heat_range
from kframe.pages.parts import (
    BarsPart,
    FactsPart,
    HeatPart,
    NotesPart,
    PageContent,
    SectionPart,
    SpansPart,
    TablePart,
    TextPart,
    TimelinePart,
)
from kframe.pages.text import cell_text

_KINDS: Final = {
    FactsPart: "facts",
    TablePart: "table",
    BarsPart: "bars",
    HeatPart: "heat",
    SpansPart: "spans",
    NotesPart: "notes",
    SectionPart: "section",
    TextPart: "text",
    TimelinePart: "timeline",
}


def environment(*loaders: BaseLoader) -> Environment:
    """An environment for templates of a package, which may import ``parts.html``."""
    result = Environment(
        loader=ChoiceLoader([*loaders, PackageLoader("kframe.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    result.filters["text"] = cell_text
    result.filters["image"] = heat_image
    result.filters["cells"] = heat_cells
    result.filters["range"] = heat_range
    return result


def fragment(page: PageContent) -> str:
    """A page without document: the cell of a notebook. It has its style, and no script."""
    return _rendered("fragment.html", page)


def document(page: PageContent) -> str:
    """A page as a file of its own, which loads nothing and runs nothing. Equal pages give equal files."""
    return _rendered("document.html", page)


def _rendered(template: str, page: PageContent) -> str:
    parts = [(_KINDS[type(part)], part) for part in page.parts]
    return _template(template).render(page=page, parts=parts, version=__version__)


@cache
def _template(name: str) -> Template:
    return environment().get_template(name)
