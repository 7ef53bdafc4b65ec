"""A short soak test of real brokers, and the reports and pages of campaigns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from verification.kafka_wire.campaigns import linearizability, soak_page
from verification.kafka_wire.campaigns.faults import page
from verification.kafka_wire.campaigns.runbook import RUNBOOK, Runbook
from verification.kafka_wire.campaigns.soak import running_soak
from verification.kafka_wire.load import compare_records

EVIDENCE = Path(__file__).parents[4] / "docs" / "evidence"
#: The writer of the page of each record.
PAGES = {"faults": page, "linearizability": linearizability.page, "soak": soak_page.page}


@pytest.mark.skipif(not EVIDENCE.exists(), reason="no clone of kframe")
@pytest.mark.parametrize("name", PAGES)
def test_page_matches_the_record(name: str) -> None:
    record = json.loads((EVIDENCE / f"{name}.json").read_text())
    assert (EVIDENCE / f"{name}.md").read_text() == PAGES[name](record)


#: Number, partition, offset.
SENT: Final = [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)]
#: (failed records, consumed records, expected faults)
CASES: Final[list[tuple[list[int], list[tuple[int, int, int]], dict[str, int]]]] = [
    ([], SENT, {}),
    ([], [SENT[1], SENT[3], SENT[0], SENT[2]], {}),
    ([], SENT[:3], {"lost": 1}),
    ([], [*SENT[:3], (3, 1, 2)], {"misplaced": 1}),
    ([], [*SENT, (3, 1, 2)], {"duplicated": 1}),
    ([], [(2, 0, 0), (1, 1, 0), (0, 0, 1), (3, 1, 1)], {"misplaced": 2, "out_of_order": 1}),
    ([], [*SENT, (4, 0, 2)], {"unexpected": 1}),
    ([4], [*SENT, (4, 0, 2)], {}),
    ([4], SENT, {}),
]


@pytest.mark.parametrize("failed, read, wrong", CASES)
def test_a_load_report_counts_violations(
    failed: list[int], read: list[tuple[int, int, int]], wrong: dict[str, Any]
) -> None:
    report = compare_records(np.array(SENT, np.int64), np.array(read, np.int64), np.array(failed, np.int64))
    counts = {name: getattr(report, name) for name in ("lost", "misplaced", "duplicated", "out_of_order", "unexpected")}
    assert {name: count for name, count in counts.items() if count} == wrong
    assert report.good is (not wrong)
    assert report.acknowledged == 4


AT = "[2026-01-01 00:00:00,000]"


@pytest.mark.extended
@pytest.mark.skipif(not RUNBOOK.exists(), reason="no clone of kframe")
def test_random_changes_leave_no_unexplained_warning(needs_java: None, tmp_path: Path) -> None:
    """Each operation and each fault of a broker occurs. No record is lost, and all topics are deleted."""
    with running_soak(tmp_path, seed=1) as soak:
        report = soak.run(20, fault_pause_s=2)
    assert report.violations == []
    assert {name for name, _, _ in report.operations} == set(soak.admin.names)
    assert set(report.faults) == set(soak.brokers.names)
    assert len(report.samples) >= 2
    assert report.elections == 0


@pytest.mark.parametrize(
    "line, entry",
    [
        (f"{AT} WARN [Controller id=1] broker 2 is late (kframe.x)", "broker … is late"),
        (f"{AT} WARN [Controller id=1] broker 2 is lost (kframe.x)", ""),
        (f"{AT} ERROR [Controller id=1] broker 2 is late (kframe.x)", ""),
        (f"{AT} ERROR [Controller id=1 epoch=2] election t-0: refused (kframe.statechange)", "… …: …"),
        (f"{AT} ERROR [Controller id=1] election t-0: refused (kframe.x)", ""),
        ("Traceback (most recent call last):", ""),
    ],
)
def test_runbook_entry_of_log_line(line: str, entry: str) -> None:
    runbook = Runbook(
        "| WARN | `broker … is late` | a | b |\n| WARN | `… is late` | a | b |\n| ERROR | `… …: …` | a | b |\n"
    )
    ((_, explained, count, example),) = runbook.explained([f"{AT} INFO [Controller id=1] ready (kframe.x)", line])
    assert (explained, count, example) == (entry, 1, line)


@pytest.mark.skipif(not EVIDENCE.exists(), reason="no clone of kframe")
def test_the_runbook_explains_each_warning_of_the_record() -> None:
    entries = {entry for _, entry, _ in Runbook(RUNBOOK.read_text()).entries}
    record = json.loads((EVIDENCE / "soak.json").read_text())
    assert {entry for _, entry, _, _ in record["warnings"]} <= entries
