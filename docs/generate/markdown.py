"""Markdown of generated reference pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|])")


def escape(text: str) -> str:
    """Return Markdown that shows ``text`` unchanged, in one line."""
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def code(text: object) -> str:
    """Return ``text`` as code, empty for an empty text; a pipe is valid in a table too."""
    shown = str(text).replace("|", "\\|")
    return f"`{shown}`" if shown else ""


def prose(text: str) -> str:
    """Return the Markdown of a docstring in reStructuredText, in which only literals are marked."""
    parts = re.split(r"``(.+?)``", " ".join(text.split()))
    return "".join(code(part) if number % 2 else _escaped(part) for number, part in enumerate(parts))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
