"""mandoc reads the manual pages without a complaint."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from docs.generate.man import manual_pages
from tests import tools

PAGES: Final = manual_pages()
#: A page has no date, because a build would change it.
EXPECTED: Final = "missing date"


@pytest.fixture(scope="session")
def mandoc() -> Path:
    """The path of mandoc."""
    try:
        return tools.mandoc()
    except tools.ToolMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_mandoc_accepts_page(path: Path, mandoc: Path, tmp_path: Path) -> None:
    page = tmp_path / path.name
    page.write_text(PAGES[path])
    command = [str(mandoc), "-T", "lint", "-W", "warning", str(page)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert [line for line in completed.stdout.splitlines() if EXPECTED not in line] == []
    rendered = subprocess.run([str(mandoc), "-T", "utf8", str(page)], capture_output=True, text=True, check=True).stdout
    assert "\\" not in rendered
