"""``python -m benchmarks.report.compare`` on synthetic records: the limits of a regression."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.records import newest
from benchmarks.report import compare
from benchmarks.report.ratios import Ratio, compare_targets, of_record, to_record
from benchmarks.report.targets import TARGETS


@pytest.mark.parametrize(
    "stored, new, less, remaining, change",
    [
        (100.0, 100.0, False, 1.0, ""),
        (100.0, 80.0, False, 0.8, ""),
        (100.0, 79.0, False, 0.79, "WORSE"),
        (100.0, 126.0, False, 1.26, "better"),
        (1.0, 1.25, True, 0.8, ""),
        (1.0, 1.26, True, 1 / 1.26, "WORSE"),
        (80.0, 81.0, True, 80 / 81, ""),
        (80.0, 40.0, True, 2.0, "better"),
        (0.0, 0.0, True, 1.0, ""),
        (0.0, 0.5, True, 0.0, "WORSE"),
        (0.5, 0.0, True, float("inf"), "better"),
        (None, 5.0, False, None, "new"),
        (5.0, None, False, None, "not measured"),
    ],
)
def test_ratio_within_tolerance_passes(
    stored: float | None, new: float | None, less: bool, remaining: float | None, change: str
) -> None:
    (row,) = compare.compare(
        [] if stored is None else [Ratio("x", stored, less)], [] if new is None else [Ratio("x", new, less)]
    )
    assert row.remaining == (None if remaining is None else pytest.approx(remaining))
    assert row.change == change


def record(path: Path, when: str, *ratios: Ratio, **fields: Any) -> Path:
    """Write a record as benchmarks do."""
    path.write_text(json.dumps({"when": when, "ratios": to_record(ratios), **fields}))
    return path


def test_regression_is_printed_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    removed = Ratio("only stored", 3.0)
    stored = record(
        tmp_path / "stored.json", "2026-01-01", Ratio("speed", 100.0), Ratio("bytes", 80.0, less=True), removed
    )
    good = record(tmp_path / "good.json", "2026-01-02", Ratio("speed", 90.0), Ratio("bytes", 81.0, less=True))
    bad = record(
        tmp_path / "bad.json",
        "2026-01-02",
        Ratio("speed", 50.0),
        Ratio("bytes", 80.0, less=True),
        Ratio("only new", 1.0),
    )
    assert compare.main([str(good), "--against", str(stored)]) == 0
    assert "0 of 2 ratios fell" in capsys.readouterr().out
    assert compare.main([str(bad), "--against", str(stored)]) == 1
    printed = capsys.readouterr().out
    rows = {" ".join(line.split()[:-4]): line.split() for line in printed.splitlines() if "WORSE" in line}
    assert rows == {"speed": ["speed", "100", "50", "0.5", "WORSE"]}
    assert "1 of 2 ratios fell" in printed
    assert [line.split()[-2:] for line in printed.splitlines() if line.strip().startswith("only stored")] == [
        ["not", "measured"]
    ]


def test_ratio_is_compared_with_newest_record_that_has_it(tmp_path: Path) -> None:
    record(tmp_path / "b.json", "2026-01-01", Ratio("speed", 1.0), Ratio("bytes", 7.0))
    record(tmp_path / "a.json", "2026-02-01", Ratio("speed", 2.0))
    (tmp_path / "old.json").write_text(json.dumps({"when": "2025-01-01", "rows": []}))
    assert [record["file"] for record in newest(tmp_path)] == ["old.json", "b.json", "a.json"]
    rows = compare.compare([ratio for record in newest(tmp_path) for ratio in of_record(record)], [])
    assert [(row.name, row.stored) for row in rows] == [("bytes", 7.0), ("speed", 2.0)]


def test_targets_use_current_run_before_records() -> None:
    speed, native = "broker-failure/1000000/100 beside kafka", "choose-native/1000000/100"
    stored = {"old": [Ratio(speed, 99.0), Ratio(native, 1.0, less=True)], "newer": [Ratio(speed, 120.0)]}
    by_name = {
        comparison.target.name: comparison
        for comparison in compare_targets([Ratio(native, 1.6, less=True), Ratio("another", 1.0)], stored)
    }
    assert set(by_name) == set(TARGETS)
    assert (by_name[speed].measured, by_name[speed].where, by_name[speed].reached) == (120.0, "newer", True)
    assert (by_name[native].measured, by_name[native].where, by_name[native].reached) == (1.6, "this run", False)
    assert by_name["memory/1000000/100 beside kraft"].reached is None
