"""Content as tables of Arrow, pandas and Polars, as one line of text, and as HTML."""

from __future__ import annotations

import html
from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from kframe.errors import InputError


class Tabular:
    """A class with a table of its content (``to_arrow``) and a summary of a few numbers."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> Any:
        """The content as a ``pyarrow.Table``."""

    @abstractmethod
    def _summary(self) -> tuple[str, Mapping[str, object]]:
        """A title, and the numbers to show."""

    def to_pandas(self) -> Any:
        """The content as a ``pandas.DataFrame``. Raises InputError where pandas is missing."""
        _require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The content as a ``polars.DataFrame``. Raises InputError where Polars is missing."""
        return _require("polars").from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        title, numbers = self._summary()
        return f"<{type(self).__name__} {title}: {', '.join(f'{value} {name}' for name, value in numbers.items())}>"

    def _repr_html_(self) -> str:
        title, numbers = self._summary()
        texts = [(html.escape(name), html.escape(str(value))) for name, value in numbers.items()]
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in texts)
        return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"


def _require(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as problem:
        raise InputError(f"to_{library}", f"no {library}", f"an installed {library}") from problem
