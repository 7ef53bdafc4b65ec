"""Objects that a line of text, a notebook and libraries for tables show."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from kframe.errors import InputError
from kframe.pages.parts import Heading, PageContent, Part
from kframe.pages.text import cell_text


class Shown:
    """A class whose objects have a page."""

    __slots__ = ()

    @abstractmethod
    def heading(self) -> Heading:
        """The title and the facts of a line of text."""

    @abstractmethod
    def parts(self) -> Sequence[Part]:
        """What a page has besides. A line of text does not need it."""

    def page(self) -> PageContent:
        """All that is shown of the object."""
        return PageContent(self.heading(), self.parts())

    def __repr__(self) -> str:
        heading = self.heading()
        facts = ", ".join(f"{cell_text(value, 60)} {name}" for name, value in heading.facts.rows)
        return f"<{type(self).__name__} {heading.title}: {facts}>"

    def _repr_html_(self) -> str:
        from kframe.pages.render import fragment

        return fragment(self.page())


class Tabular(Shown):
    """A class whose objects have a table of their content (``to_arrow``), too."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> Any:
        """The content as a ``pyarrow.Table``."""

    def to_pandas(self) -> Any:
        """The content as a ``pandas.DataFrame``. Raises InputError where pandas is missing."""
        _require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The content as a ``polars.DataFrame``. Raises InputError where Polars is missing."""
        return _require("polars").from_arrow(self.to_arrow())


def _require(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as problem:
        raise InputError(f"to_{library}", f"no {library}", f"an installed {library}") from problem
