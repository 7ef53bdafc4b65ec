"""Read the page about a plan, strictly: what a browser would have to repair fails."""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree

#: Elements that contain no text of their own.
_NO_TEXT: Final = ("table", "thead", "tbody", "tr", "ul", "svg", "g")


class ReviewPage:
    """The texts of a page by the id of the element, and the rows of its tables. Raises an error for malformed HTML."""

    def __init__(self, page: str) -> None:
        assert page.lower().startswith("<!doctype html>")
        elements = re.sub(r"<((?:meta|input)\b[^>]*)>", r"<\1/>", page[len("<!doctype html>") :])
        self.root = ElementTree.fromstring(elements.replace("<details open>", '<details open="">'))
        named = [element for element in self.root.iter() if "id" in element.attrib]
        self.texts = {element.attrib["id"]: "".join(element.itertext()) for element in named}
        assert len(self.texts) == len(named), "an id twice"
        self.rows: dict[str, list[list[str]]] = {}
        for table in self.root.iter("table"):
            rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
            assert len(set(map(len, rows))) <= 1, rows
            self.rows.setdefault(table.get("id", "moves-table"), []).extend(rows)
        for element in self.root.iter():
            if element.tag.rpartition("}")[2] in _NO_TEXT:
                texts = [element.text, *(child.tail for child in element)]
                assert not any(text and text.strip() for text in texts), f"text in <{element.tag}>: {texts}"

    def records(self, name: str) -> list[dict[str, str]]:
        """The rows of a table by the names of its columns."""
        heading, *rows = self.rows[name]
        return [dict(zip(heading, row, strict=True)) for row in rows if row != heading]
