"""The pages of test runs and of missed mutants are those of their records."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests import all_tests
from tests.architecture.source import ROOT
from verification.mutants import report

EVIDENCE = ROOT / "docs" / "evidence"


@pytest.mark.parametrize(
    "name, page", [("tests", all_tests.page), ("replication-runs", all_tests.page), ("mutants", report.page)]
)
def test_page_matches_the_record(name: str, page: Callable[[Any], str]) -> None:
    record = EVIDENCE / f"{name}.json"
    if not record.exists():
        pytest.skip("no record of this run")
    assert record.with_suffix(".md").read_text() == page(json.loads(record.read_text()))
