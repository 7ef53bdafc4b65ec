"""Controller ids in the documents are valid. No broker with a generated id can have the same id."""

from __future__ import annotations

import re
from typing import Final

import pytest

from kframe.cli.run import RECORDING, NetworkSettings, own_id, risks
from kframe.settings.settings import Setting, Settings
from tests.architecture.source import ROOT

PAGES: Final = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "plugins").glob("*/README.md"))
    if path.name != "CHANGELOG.md"
)
#: The forms of an id in examples: an option, a line of a file, a list of instances.
EXAMPLES: Final = (
    re.compile(r"^\$? ?kframe controller (?:run|resign)\b.*? --id (\S+)", re.MULTILINE),
    re.compile(r"^(?:broker|node)\.id=(\S+)", re.MULTILINE),
    re.compile(r"kframe\.never\.replicas=([\d,]+)"),
)


def ids() -> list[tuple[str, str]]:
    """Return page and id of every example."""
    return [
        (str(path.relative_to(ROOT)), text)
        for path in PAGES
        for pattern in EXAMPLES
        for match in pattern.findall(path.read_text())
        for text in match.split(",")
    ]


def test_examples_exist() -> None:
    pages = {page for page, _ in ids()}
    assert {"docs/howto/live.md", "docs/howto/zookeeper.md"} <= pages


@pytest.mark.parametrize(("page", "text"), sorted(set(ids())))
def test_example_ids_cause_no_warnings(page: str, text: str) -> None:
    settings = Settings({"broker.id": Setting(text, page)})
    assert own_id(settings) == int(text)
    assert [line for line in risks(settings, NetworkSettings(RECORDING, (), None), ()) if line.startswith("id ")] == []
