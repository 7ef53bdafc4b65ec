"""Sphinx extension of the documentation site: navigation, and links to the source. Generators of reference pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs.generate.links import site_links
from docs.generate.navigation import add_navigation

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("source-read", prepare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def prepare(app: Sphinx, docname: str, content: list[str]) -> None:
    """Prepare the Markdown of a page for the site; the page itself is written for GitHub."""
    folder = Path(app.srcdir)
    content[0] = site_links(add_navigation(content[0], docname, folder), (folder / docname).parent, folder)
