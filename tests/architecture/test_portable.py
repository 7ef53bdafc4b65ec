"""No file in git contains a folder of one machine."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.architecture.source import ROOT, tree_files

#: Folders that typically contain work trees. A longer path, or an address before the path, does not match.
PRIVATE = re.compile(rb"(?<![\w.:/-])/(?:home|Users|root|work)/[\w.-]")


def test_no_file_names_a_folder_of_one_machine() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    files = tree_files()
    assert files
    assert {str(path): matches for path in files if (matches := PRIVATE.findall(path.read_bytes()))} == {}
