"""The record of faults, and the page that is written from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kframe_kafka_wire.testing.fault_report import RECOVERY_S, page

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
RECORD = {
    "network": {
        "machine": "Linux", "commit": "1234567", "command": "command",
        "faults": [
            {
                "name": "flapping", "effect": "2 packets dropped", "controller_epochs": 1, "acknowledged": 20_000,
                "acknowledged_during": 5_000, "recovered_s": RECOVERY_S + 1, "violations": ["lost"],
            },
        ],
    },
}  # fmt: skip


def test_a_page_has_a_row_for_each_fault() -> None:
    row = "| flapping | 2 packets dropped | 1 | 20,000 | 5,000 | **19.0 s** | 1 |"
    assert row in page(RECORD).splitlines()
    assert "## Clocks" not in page(RECORD)


@pytest.mark.skipif(not EVIDENCE.exists(), reason="no clone of kframe")
def test_page_matches_the_record() -> None:
    record = json.loads((EVIDENCE / "faults.json").read_text())
    assert (EVIDENCE / "faults.md").read_text() == page(record)
