"""A comparison of two builds, here of this tree with itself, and with answers that differ."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.limits import builds
from benchmarks.records import ROOT

SIZE = ["--partitions", "1000", "--brokers", "10", "--runs", "1"]


def test_commands_and_events_of_both_builds_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "record.json"
    names = ["whatif fail, kraft", "broker-failure", "controller-failover, 10,000"]
    chosen = ["--beside", str(ROOT), "--rows", *names, "--out", str(out)]
    assert builds.main([*SIZE, *chosen]) == 0
    record = json.loads(out.read_text())
    assert [row["row"] for row in record["builds"]] == names
    for row in record["builds"]:
        assert set(row["seconds"]) == {"earlier", "now"}
        assert all(seconds > 0 for seconds in row["seconds"].values())
        assert row["ratios"] == [row["runs"]["now"][0]["seconds"] / row["runs"]["earlier"][0]["seconds"]]
    assert record["failed"] == []
    assert "broker-failure" in capsys.readouterr().out


def test_each_build_runs_its_own_code(tmp_path: Path) -> None:
    package = tmp_path / "kframe"
    (package / "cli").mkdir(parents=True)
    (tmp_path / "plugins").mkdir()
    (package / "__init__.py").touch()
    (package / "cli" / "__init__.py").touch()
    (package / "cli" / "__main__.py").write_text("raise SystemExit('of another build')")
    row = builds.Row("kframe --help", ("-m", "kframe.cli", "--help"))
    with pytest.raises(subprocess.CalledProcessError) as failed:
        builds.measure(row, {"earlier": tmp_path, "now": ROOT}, 1)
    assert "of another build" in failed.value.stderr


def test_builds_whose_events_send_something_else_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter("abcd")
    monkeypatch.setattr(builds, "_run", lambda *_: {"seconds": 1.0, "peak_bytes": 1, "digest": next(answers)})
    with pytest.raises(ValueError, match="digests"):
        builds.measure(builds.Row("an event", (), is_event=True), {"earlier": ROOT, "now": ROOT}, 1)
