"""A short soak test of real brokers, the fits and the runbook of the long one, and its record."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from kframe_kafka_wire.testing import soak_page
from kframe_kafka_wire.testing.process_sizes import slope_of
from kframe_kafka_wire.testing.runbook import RUNBOOK, Runbook
from kframe_kafka_wire.testing.soak import running_soak
from kframe_zookeeper.testing.java import missing

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
#: Five-second samples of an hour.
SECONDS = np.arange(0, 3600, 5.0)
NOISE = np.random.default_rng(0).normal(0, 1, len(SECONDS))
AT = "[2026-01-01 00:00:00,000]"


@pytest.mark.skipif(not RUNBOOK.exists(), reason="no clone of kframe")
def test_a_minute_of_changes_leaves_no_unexplained_warning(tmp_path: Path) -> None:
    """Each operation and each fault of a broker occurs. No record is lost, and all topics are deleted."""
    if reason := missing():
        pytest.skip(reason)
    with running_soak(tmp_path, seed=1) as soak:
        report = soak.run(45)
    assert report.violations == []
    assert {name for name, _, _ in report.operations} == set(soak.admin.names)
    assert set(report.faults) == set(soak.brokers.names)
    assert len(report.samples) >= 2
    assert report.elections == 0


@pytest.mark.parametrize(
    "values, limit, outcome",
    [
        (100 + NOISE, 1.0, "flat"),
        (100 + 0.5 * SECONDS / 3600 + NOISE, 1.0, "flat"),
        (100 + 5 * SECONDS / 3600 + NOISE, 1.0, "grows"),
        (100 - 5 * SECONDS / 3600 + NOISE, 1.0, "flat"),
        (100 + 50 * NOISE, 1.0, "undecided"),
        (np.where(SECONDS < 600, 50, 100) + NOISE, 1.0, "flat"),
    ],
    ids=["noise", "below the limit", "leak", "shrinks", "too noisy", "grows in the warm-up only"],
)
def test_outcome_of_a_fit(values: np.ndarray, limit: float, outcome: str) -> None:
    assert slope_of(SECONDS, values, 600).outcome(limit) == outcome


def test_a_short_run_decides_nothing() -> None:
    assert slope_of(SECONDS[:24], NOISE[:24], 10).outcome(1.0) == "undecided"


def test_the_fit_of_a_line_is_the_line() -> None:
    slope = slope_of(SECONDS, 100 + 7 * SECONDS / 3600, 600)
    assert slope.per_hour == pytest.approx(7)
    assert slope.error == pytest.approx(0, abs=1e-9)
    assert slope.blocks == 50


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
def test_entry_of_a_line(line: str, entry: str) -> None:
    runbook = Runbook(
        "| WARN | `broker … is late` | a | b |\n| WARN | `… is late` | a | b |\n| ERROR | `… …: …` | a | b |\n"
    )
    ((_, explained, count, example),) = runbook.explained([f"{AT} INFO [Controller id=1] ready (kframe.x)", line])
    assert (explained, count, example) == (entry, 1, line)


@pytest.mark.skipif(not (EVIDENCE / "soak.json").exists(), reason="no clone of kframe")
def test_the_page_is_that_of_the_record() -> None:
    record = json.loads((EVIDENCE / "soak.json").read_text())
    assert (EVIDENCE / "soak.md").read_text() == soak_page.page(record)


@pytest.mark.skipif(not (EVIDENCE / "soak.json").exists(), reason="no clone of kframe")
def test_the_runbook_explains_each_warning_of_the_record() -> None:
    entries = {entry for _, entry, _ in Runbook(RUNBOOK.read_text()).entries}
    record = json.loads((EVIDENCE / "soak.json").read_text())
    assert {entry for _, entry, _, _ in record["warnings"]} <= entries
