"""Parse a page strictly: an error that a browser would repair fails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Final

#: Elements that a page may have, with those that may contain them (HTML 5, for the elements in use).
PARENTS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(parents.split())
    for name, parents in {
        "html": "", "head": "html", "body": "html", "meta": "head", "title": "head g", "style": "head", "h1": "body",
        "section": "body", "h2": "section", "h3": "section", "p": "section", "div": "section", "ul": "section",
        "details": "section", "form": "section", "table": "section details", "figure": "section div",
        "figcaption": "figure", "svg": "figure", "g": "svg", "text": "g", "rect": "g", "summary": "details",
        "thead": "table", "tbody": "table", "tr": "thead tbody", "th": "tr", "td": "tr", "li": "ul", "span": "p",
        "fieldset": "form", "legend": "fieldset", "label": "fieldset", "input": "label", "textarea": "label",
    }.items()
}  # fmt: skip
#: Elements that contain no text of their own.
NO_TEXT: Final = frozenset(
    {
        "html",
        "head",
        "body",
        "section",
        "div",
        "ul",
        "details",
        "form",
        "table",
        "figure",
        "svg",
        "g",
        "thead",
        "tbody",
        "tr",
        "fieldset",
    }
)
VOID: Final = frozenset({"meta", "input"})
_TAG: Final = re.compile(r"<[a-z][a-z0-9]*( [a-zA-Z-]+(=\"[^\"<>]*\")?)*/?>")
_REFERENCES: Final = frozenset({"amp", "lt", "gt", "quot"})


class StrictParser(HTMLParser):
    """Raises AssertionError for the first error. ``ids`` are those of elements."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=False)
        self.ids: set[str] = set()
        self._open: list[str] = []
        self._cells: list[int] = []
        assert page.startswith("<!doctype html>\n")
        self.feed(page)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._begin(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self._open, f"<{tag}/> outside of SVG at {self.getpos()}"
        self._begin(tag, attrs)

    def _begin(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        text, where = self.get_starttag_text() or "", self.getpos()
        parent = self._open[-1] if self._open else ""
        assert _TAG.fullmatch(text), f"{text} at {where}"
        assert tag in PARENTS, f"<{tag}> at {where}"
        assert parent in (PARENTS[tag] or {""}), f"<{tag}> in <{parent}> at {where}"
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: {text} at {where}"
        identity = dict(attrs).get("id")
        assert identity not in self.ids, f"id {identity} twice at {where}"
        self.ids |= {identity} if identity else set()
        if tag == "table":
            self._cells = []
        if tag == "tr":
            self._cells.append(0)
        if tag in ("td", "th"):
            self._cells[-1] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1:] == [tag], f"</{tag}> at {self.getpos()}"
        self._open.pop()
        if tag == "table":
            assert len(set(self._cells)) <= 1, f"rows of {set(self._cells)} cells at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        parent = self._open[-1] if self._open else ""
        assert not data.strip() or (parent and parent not in NO_TEXT), f"text {data[:40]!r} in <{parent}>"
        assert parent == "style" or not re.search("[<>&]", data), f"not escaped: {data[:40]!r} at {self.getpos()}"

    def handle_entityref(self, name: str) -> None:
        assert name in _REFERENCES, f"&{name}; at {self.getpos()}"

    def handle_charref(self, name: str) -> None:
        assert re.fullmatch("x[0-9a-f]+|[0-9]+", name), f"&#{name}; at {self.getpos()}"

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment or a malformed declaration: {data[:40]!r}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data[:40]!r}")
