"""The navigation of the site, from the lists of pages that readers see on GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_SECTION: Final = re.compile(r"^## (?P<title>.+)\n(?P<body>(?:(?!## ).*\n?)*)", re.MULTILINE)
_PAGE: Final = re.compile(r"\]\((?P<target>[\w/-]+)\.md\)")


def add_navigation(text: str, docname: str, docs: Path) -> str:
    """Return the Markdown of a page with its hidden tables of contents.

    The front page ``index`` gets one for each section of ``docs/README.md``. The ``README`` of a folder gets the pages
    of this folder that it links.
    """
    if docname == "index":
        sections = _sections((docs / "README.md").read_text())
        return text + "".join(_table(pages, title) for title, pages in sections)
    if docname.endswith("/README"):
        return text + _table([page for page in _pages(text) if "/" not in page])
    return text


def _sections(readme: str) -> Iterator[tuple[str, list[str]]]:
    for match in _SECTION.finditer(readme):
        pages = _pages(match["body"])
        if pages:
            yield match["title"], pages


def _pages(text: str) -> list[str]:
    return list(dict.fromkeys(match["target"] for match in _PAGE.finditer(text)))


def _table(pages: list[str], caption: str = "") -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *pages, "```", ""])
