"""Sphinx builds the site without a warning, and every link on it resolves. No test connects to another machine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pytest

from docs.generate.links import SOURCE
from tests.architecture.source import ROOT, tracked_files
from tests.docs.site import SitePage, read_site

DOCS: Final = ROOT / "docs"
#: Links to source files, as docs/generate writes them. The theme also links its pages for editing.
REPOSITORY: Final = re.compile(rf"{re.escape(SOURCE)}/(?:blob|tree|edit)/main/(?P<path>[^?#]*)")
HOST: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+|localhost(:\d+)?")


@pytest.fixture(scope="session")
def site(site_folder: Path) -> dict[Path, SitePage]:
    """All pages of the site."""
    return read_site(site_folder)


def problem(page: Path, target: str, site: dict[Path, SitePage]) -> str | None:
    """Return why a link on a page leads nowhere, None if it is valid."""
    url = urlsplit(target)
    if url.scheme or url.netloc:
        source = REPOSITORY.match(target)
        if source is not None:
            return None if (ROOT / unquote(source["path"])).exists() else "not in the repository"
        return None if url.scheme in {"http", "https"} and HOST.fullmatch(url.netloc) else "not a valid URL"
    path = Path(os.path.normpath(page.parent / unquote(url.path))) if url.path else page
    if not path.is_file():
        return "no such file"
    if url.fragment and path in site and unquote(url.fragment) not in site[path].anchors:
        return "no such anchor"
    return None


@pytest.mark.extended
def test_every_page_is_built(site_folder: Path) -> None:
    pages = [path.relative_to(DOCS) for path in tracked_files(".md") if path.is_relative_to(DOCS)]
    missing = [page for page in pages if not (site_folder / page.with_suffix(".html")).is_file()]
    assert missing == [Path("README.md")], "docs/index.md takes its part"
    assert (site_folder / "index.html").is_file()


@pytest.mark.extended
def test_every_link_resolves(site: dict[Path, SitePage]) -> None:
    links = [(page, target) for page in site for target in site[page].targets]
    assert len(links) > 1000
    problems = [(page.name, target, problem(page, target, site)) for page, target in links]
    assert [entry for entry in problems if entry[2]] == []
