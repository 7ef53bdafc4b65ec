"""The pages of ``tests.all_tests`` are those of their records."""

from __future__ import annotations

import json

import pytest

from tests.all_tests import page
from tests.architecture.source import ROOT

EVIDENCE = ROOT / "docs" / "evidence"


@pytest.mark.parametrize("name", ["tests", "replication-runs"])
def test_page_matches_the_record(name: str) -> None:
    record = EVIDENCE / f"{name}.json"
    if not record.exists():
        pytest.skip("no record of this run")
    assert record.with_suffix(".md").read_text() == page(json.loads(record.read_text()))
