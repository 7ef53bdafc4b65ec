"""The floors of rows, with small clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.limits import floors


@pytest.mark.extended
def test_every_row_has_a_floor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "record.json"
    sizes = ["--partitions", "1000", "--largest", "2000", "--brokers", "10", "--runs", "1"]
    assert floors.main([*sizes, "--out", str(out)]) == 0
    rows = json.loads(out.read_text())["floors"]
    names = [*(row.name for row in floors.commands(1_000, 10, tmp_path)), *floors.EVENTS, "controller-failover"]
    assert [row["what"].partition(", 1,000")[0].partition(", 2,000")[0] for row in rows] == names
    assert all(row["floor"] > 0 for row in rows)
    printed = capsys.readouterr().out
    assert [name for name in names if name not in printed] == []
