"""The built documentation site as tests read it. Each page has links and anchors."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path


@dataclass
class SitePage(HTMLParser):
    """The anchors and the link targets of an HTML page."""

    anchors: set[str] = field(default_factory=set)
    targets: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the ids, and the targets of links and images."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id":
                self.anchors.add(value)
            elif (tag, name) in {("a", "href"), ("img", "src")}:
                self.targets.append(value)


def read_site(folder: Path) -> dict[Path, SitePage]:
    """Parse all HTML pages of a folder."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = page = SitePage()
        page.feed(path.read_text())
    return pages
