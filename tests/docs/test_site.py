"""Sphinx builds the site without a warning. ``tests/architecture/test_references.py`` resolves the links of pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.source import ROOT, tracked_files

DOCS: Final = ROOT / "docs"


#: The list of pages, which is also the contents of the site.
LIST: Final = DOCS / "README.md"


def _pages() -> list[Path]:
    return [path.relative_to(DOCS) for path in tracked_files(".md") if path.is_relative_to(DOCS)]


def test_list_has_every_page() -> None:
    listed = set(re.findall(r"\]\(([^)#]+)", LIST.read_text()))
    # The README of a folder gets the pages beside it.
    folders = {page.parent for page in _pages() if page.name == "README.md"}
    others = [page for page in _pages() if page.as_posix() not in listed and page.parent not in folders]
    assert not others


def test_every_page_begins_with_its_title() -> None:
    pages = [path for path in tracked_files(".md") if not path.is_relative_to(ROOT / ".github")]
    assert not [path.name for path in pages if not path.read_text().startswith("# ")]


@pytest.mark.extended
def test_every_page_is_built(tmp_path: Path) -> None:
    # A page's contents have its headings only. With each Python name they take a third of the time.
    options = ["-W", "--keep-going", "--quiet", "--builder", "html", "-D", "toc_object_entries=0"]
    command = [sys.executable, "-m", "sphinx", *options, "docs", str(tmp_path)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=300)
    assert completed.returncode == 0, completed.stderr
    missing = [page for page in _pages() if not (tmp_path / page.with_suffix(".html")).is_file()]
    assert missing == [Path("README.md")], "docs/index.md takes its part"
    assert (tmp_path / "index.html").is_file()
