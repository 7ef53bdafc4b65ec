"""A short soak test of real brokers, the entries of the runbook for its warnings, and the record of a long one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kframe_kafka_wire.testing.runbook import RUNBOOK, Runbook
from kframe_kafka_wire.testing.soak import running_soak

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
AT = "[2026-01-01 00:00:00,000]"


@pytest.mark.skipif(not RUNBOOK.exists(), reason="no clone of kframe")
def test_a_minute_of_changes_leaves_no_unexplained_warning(needs_java: None, tmp_path: Path) -> None:
    """Each operation and each fault of a broker occurs. No record is lost, and all topics are deleted."""
    with running_soak(tmp_path, seed=1) as soak:
        report = soak.run(45)
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


@pytest.mark.skipif(not (EVIDENCE / "soak.json").exists(), reason="no clone of kframe")
def test_the_runbook_explains_each_warning_of_the_record() -> None:
    entries = {entry for _, entry, _ in Runbook(RUNBOOK.read_text()).entries}
    record = json.loads((EVIDENCE / "soak.json").read_text())
    assert {entry for _, entry, _, _ in record["warnings"]} <= entries
