"""docs/explanation/safety.md: its keys have the listed defaults. Its tests, and those of defects.md, exist."""

from __future__ import annotations

import ast
import re
from typing import Final

import pytest

from kframe.model.config import KEYS
from tests.architecture.source import ROOT

#: Number, key, default and test of each row, as written.
ROWS: Final = [
    [cell.strip(" `") for cell in (cells[0], *cells[3:])]
    for line in (ROOT / "docs" / "explanation" / "safety.md").read_text().splitlines()
    if line.startswith("| X")
    for cells in [line.strip("| ").split(" | ")]
]


def test_every_number_has_a_row() -> None:
    assert [row[0] for row in ROWS] == [f"X{number}" for number in range(1, 12)]


@pytest.mark.parametrize("key, default", [row[1:3] for row in ROWS], ids=[row[0] for row in ROWS])
def test_keys_and_defaults(key: str, default: str) -> None:
    assert (KEYS[key].default == default) if key != "–" else default in ("always", "–")


@pytest.mark.extended
def test_named_tests_exist() -> None:
    folders = (ROOT / "tests", ROOT / "plugins", ROOT / "simulator")
    trees = [ast.parse(path.read_text()) for folder in folders for path in folder.rglob("test_*.py")]
    test_names = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {row[3] for row in ROWS} - {"–"} <= test_names
    defects = (ROOT / "docs" / "evidence" / "defects.md").read_text()
    assert set(re.findall(r"::(test_\w+)", defects)) - test_names == set()


def test_all_kframe_keys_are_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "safety.md").read_text()
    assert [key for key in KEYS if key.startswith("kframe.") and f"`{key}`" not in page] == []
