"""Objects that a line of text, a notebook and libraries for tables show."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from typing import Any

from kframe.errors import InputError
from kframe.pages.parts import PageContent
from kframe.pages.text import cell_text


class Shown:
    """A class whose objects have a page."""

    __slots__ = ()

    @abstractmethod
    def page(self) -> PageContent:
        """What is shown of the object."""

    def __repr__(self) -> str:
        page = self.page()
        facts = ", ".join(f"{cell_text(value, 60)} {name}" for name, value in page.facts.rows)
        return f"<{type(self).__name__} {page.title}: {facts}>"

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
