"""The pages of campaigns, which are written from their records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kframe_kafka_wire.testing import linearizability_page, soak_page
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


#: The writer of the page of each record.
PAGES = {"faults": page, "linearizability": linearizability_page.page, "soak": soak_page.page}


@pytest.mark.skipif(not EVIDENCE.exists(), reason="no clone of kframe")
@pytest.mark.parametrize("name", PAGES)
def test_page_matches_the_record(name: str) -> None:
    record = json.loads((EVIDENCE / f"{name}.json").read_text())
    assert (EVIDENCE / f"{name}.md").read_text() == PAGES[name](record)
