"""The record of the extended tests has the outcome of each test, and its page shows the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tests.extended import file_result, page, with_result

EVIDENCE = ROOT / "docs" / "evidence"
REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.test_x" name="test_a" time="1.5"/>
<testcase classname="tests.test_x" name="test_b" time="2.25"><failure>x</failure><error>y</error></testcase>
<testcase classname="tests.test_x" name="test_c" time="0"><skipped/></testcase>
<testcase classname="tests.test_x" name="test_d" time="0"><error>no server</error></testcase>
</testsuite></testsuites>
"""
NAME = "tests/docs/test_extended.py"
FACTS = {"machine": "Linux", "commit": "1234567", "command": "make test-extended"}
RESULT: dict[str, Any] = {
    "passed": 1, "failed": 2, "skipped": 1, "seconds": 3.8,
    "failures": ["tests.test_x::test_b", "tests.test_x::test_d"],
}  # fmt: skip


def test_outcomes_of_a_report_are_counted(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert file_result(report) == RESULT


def test_a_page_has_a_row_for_each_file_and_lists_failures() -> None:
    lines = page([{**FACTS, "files": {NAME: RESULT}}]).splitlines()
    assert f"| `{NAME}` | 1 | 2 | 1 | 4 s |" in lines
    assert "- `tests.test_x::test_d`" in lines
    assert "- Commit: 1234567. It may have another id since." in lines


def test_a_record_keeps_the_newest_result_of_each_file() -> None:
    better = {**RESULT, "failed": 0, "failures": []}
    runs = [{**FACTS, "files": {NAME: RESULT}}, {**FACTS, "files": {NAME: RESULT, "other": RESULT}}]
    assert with_result([*runs, {**FACTS, "files": {}}], NAME, better) == [
        {**FACTS, "files": {"other": RESULT}}, {**FACTS, "files": {NAME: better}}
    ]  # fmt: skip


@pytest.mark.skipif(not EVIDENCE.exists(), reason="no clone of kframe")
def test_page_matches_the_record() -> None:
    runs = json.loads((EVIDENCE / "extended.json").read_text())["runs"]
    assert (EVIDENCE / "extended.md").read_text() == page(runs)
