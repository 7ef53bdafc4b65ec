"""``kframe plan stage``: its files, output formats and exit codes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from kframe.plans.stage.manifest import read_manifest
from tests.cli.running import HEALTHY, kframe, size_lines, size_rows


def generated(folder: Path) -> Path:
    """A plan that empties broker 3."""
    path = folder / "plan.json"
    assert kframe("plan", "generate", HEALTHY, "--remove-brokers", "3", "--out", path).exit_code == 0
    return path


def sizes(folder: Path) -> Path:
    """A gigabyte for each partition."""
    path = folder / "sizes.csv"
    path.write_text(size_lines(size_rows(lambda _: 1_000_000_000)))
    return path


def test_files_are_stages_and_json_is_manifest(tmp_path: Path) -> None:
    plan, out = generated(tmp_path), tmp_path / "stages"
    result = kframe("plan", "stage", HEALTHY, plan, "--max-moves-per-broker", "20", "--out", out, "-o", "json")
    assert result.exit_code == 0, result.output
    manifest = read_manifest(out)
    assert json.loads(result.stdout) == json.loads((out / "manifest.json").read_text())
    assert sorted(path.name for path in out.iterdir()) == ["manifest.json", *(s.file or "" for s in manifest.stages)]
    assert len(manifest.stages) == manifest.bound == 15
    for stage in manifest.stages:
        rows = json.loads((out / (stage.file or "")).read_text())["partitions"]
        assert rows == [
            {"topic": row.topic, "partition": row.partition, "replicas": row.replicas} for row in stage.reassignments
        ]
    checked = kframe("plan", "check", HEALTHY, out / "stage-001.json")
    assert checked.exit_code == 0
    second = kframe("plan", "stage", HEALTHY, plan, "--out", out)
    assert (second.exit_code, "empty folder" in second.output) == (2, True)


def test_tables_and_csv_have_a_row_for_each_stage(tmp_path: Path) -> None:
    plan = generated(tmp_path)
    arguments = ("plan", "stage", HEALTHY, plan, "--max-moves-per-broker", "20")
    table = kframe(*arguments, "--limit", "2").stdout.splitlines()
    assert table[0] == "307 moves in 15 stages; the limits need at least 15"
    assert "and 13 more (--limit N; -o json has them all)" in table
    rows = list(csv.DictReader(io.StringIO(kframe(*arguments, "-o", "csv").stdout)))
    assert sum(int(row["moves"]) for row in rows) == 307
    assert all(max(int(row["max_in"]), int(row["max_out"])) <= 20 for row in rows)


def test_rate_and_window_set_stage_times(tmp_path: Path) -> None:
    plan, weights = generated(tmp_path), sizes(tmp_path)
    arguments = ("plan", "stage", HEALTHY, plan, "--weights", weights, "--rate", "10000000")
    windowed = kframe(*arguments, "--window", "22:00-23:00", "-o", "json")
    assert windowed.exit_code == 0, windowed.output
    stages = json.loads(windowed.stdout)["stages"]
    assert all(stage["seconds"] <= 3600 and stage["window"]["window"] == "22:00-23:00" for stage in stages)
    limited = kframe(*arguments, "--window", "22:00-22:01", "-o", "json")
    assert limited.exit_code == 1
    assert all(stage["alone"] and stage["window"] is None for stage in json.loads(limited.stdout)["stages"])


def test_full_disk_error_names_broker(tmp_path: Path) -> None:
    result = kframe(
        "plan", "stage", HEALTHY, generated(tmp_path), "--weights", sizes(tmp_path), "--disk-capacity", "1=1000"
    )
    assert result.exit_code == 1
    assert "no order exists: after the plan broker 1 needs" in result.stdout
