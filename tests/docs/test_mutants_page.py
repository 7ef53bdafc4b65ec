"""The page of missed mutants is that of its record."""

from __future__ import annotations

import json

from tests.architecture.source import ROOT
from verification.mutants.report import page


def test_page_matches_the_record() -> None:
    record = ROOT / "docs" / "evidence" / "mutants.json"
    assert record.with_suffix(".md").read_text() == page(json.loads(record.read_text()))
