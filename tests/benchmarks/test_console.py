"""The benchmark of the console: its figures, its page, and a small run in Chromium."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.console import page
from benchmarks.console.__main__ import action_figures, main, paint_figures, targets
from tests.tools import ToolMissing


def action(kind: str, ms: float | None) -> dict[str, Any]:
    return {"kind": kind, "what": "", "ms": ms, "input_delay_ms": 1.0, "long_task_ms": 0.0}


def test_actions_that_change_nothing_are_only_counted() -> None:
    figures = action_figures([action("sort", 100.0), action("page", 300.0), action("sort", None)])
    assert figures["unchanged"] == 1
    assert figures["all"] == {"count": 2, "p50": 200.0, "p95": 290.0, "p99": 298.0, "max": 300.0}
    assert figures["sort"]["count"] == 1
    assert figures["input_delay"]["count"] == 3


def test_goals_are_held_against_the_slowest_page() -> None:
    rows = [
        {"path": path, "first_contentful_paint_ms": ms, "all_painted_ms": ms} for path, ms in (("/", 20.0), ("/", 90.0))
    ]
    figures = {"first_paint": paint_figures(rows), "server_memory": {"resident_ratio": 1.2}}
    assert [measured for _, measured, _ in targets(figures)] == [90.0, 1.2]


@pytest.mark.real
def test_small_run_measures_all_parts(tmp_path: Path) -> None:
    out, markdown = tmp_path / "record.json", tmp_path / "page"
    sizes = "--partitions 2000 --brokers 10 --actions 20 --runs 1 --sessions 2 --seconds 5 --refresh 0.5"
    try:
        code = main([*sizes.split(), "--out", str(out), "--page", str(markdown)])
    except ToolMissing as missing:
        pytest.skip(str(missing))
    record = json.loads(out.read_text())
    assert (code, record["failed"]) == (0, [])
    assert {"first_paint", "actions", "server_memory", "sessions", "refreshes"} <= record.keys()
    assert record["actions"]["all"]["count"] > 0
    assert markdown.read_text() == page.markdown(record)
