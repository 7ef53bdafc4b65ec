"""The documentation site, built once for all tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Fails with Sphinx's warnings."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "--quiet",
        "--builder",
        "html",
        # A page's contents have its headings only. With each Python name they take a third of the time.
        "-D",
        "toc_object_entries=0",
        "docs",
        str(folder),
    ]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=300)
    assert completed.returncode == 0, completed.stderr
    return folder
