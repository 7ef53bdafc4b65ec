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


def inline_code(text: str) -> str:
    """Return ``text`` as code outside a table, in one line."""
    return f"`{' '.join(text.split())}`"


def paragraphs(text: str) -> str:
    """Return the Markdown of a docstring in reStructuredText: paragraphs, lists, and indented blocks after ``::``."""
    blocks: list[str] = []
    is_literal = False
    for block in re.split(r"\n{2,}", text.strip("\n")):
        is_literal = is_literal and block.startswith(" ")
        if is_literal:
            blocks.append(block)
        elif re.match(r"[-*] ", block):
            blocks.append("\n".join(f"- {prose(item)}" for item in re.split(r"^[-*] ", block, flags=re.M)[1:]))
        else:
            blocks.append(prose(re.sub(r"::$", ":", block)))
            is_literal = block.endswith("::")
    return "\n\n".join(filter(None, blocks))
