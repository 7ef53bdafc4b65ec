"""docs/howto/zookeeper.md has a row for each threat to ZooKeeper, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
#: Number and tests of each row.
ROWS: Final = {
    line.split(" | ")[0].strip("| "): re.findall(r"`(test_\w+)`", line)
    for line in (HERE.parents[2] / "docs" / "howto" / "zookeeper.md").read_text().splitlines()
    if line.startswith("| S")
}
THERE: Final = {
    node.name
    for path in HERE.glob("test_*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.FunctionDef)
}


def test_page_has_a_row_for_every_threat() -> None:
    assert list(ROWS) == ["S1", "S2", "S3", "S4", "S8", "S9", "S10", "S11"]


@pytest.mark.parametrize("row", ROWS)
def test_named_tests_exist(row: str) -> None:
    assert ROWS[row]
    assert [name for name in ROWS[row] if name not in THERE] == []
