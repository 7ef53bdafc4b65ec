"""Each threat in docs/explanation/threat-model.md and docs/howto/zookeeper.md has an existing test."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.architecture.references import all_tests
from tests.architecture.source import ROOT

PAGE: Final = (ROOT / "docs" / "explanation" / "threat-model.md").read_text()
#: Rows of the tables, without heads.
ROWS: Final = [
    line
    for table in re.findall(r"^\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    for line in table.splitlines()
]  # fmt: skip


#: Rows of the threats to ZooKeeper.
ZOOKEEPER_ROWS: Final = re.findall(
    r"^\| S[0-9]+ \|.*", (ROOT / "docs" / "howto" / "zookeeper.md").read_text(), re.MULTILINE
)


@pytest.mark.parametrize("row", [*ROWS, *ZOOKEEPER_ROWS])
def test_each_row_names_existing_tests(row: str) -> None:
    names = re.findall(r"`(test_\w+)`", row.rstrip(" |").rpartition("|")[2])
    assert names
    assert set(names) <= all_tests()


def test_every_listener_and_entry_point_has_a_row() -> None:
    assert re.findall(r"^## (.+)", PAGE, re.MULTILINE)[1:4] == ["Assets", "Listeners", "Entry points"]
    for listener in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "`--metrics-listen`", "standbys"):
        assert any(listener in row.split("|")[1] for row in ROWS), listener
