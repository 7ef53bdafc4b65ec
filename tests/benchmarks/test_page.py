"""docs/explanation/performance.md equals the stored records, and every kind of figure has a plot."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.clusters import MODES
from benchmarks.limits import failure_cost, processes
from benchmarks.records import RESULTS
from benchmarks.report import page, plots, readme
from benchmarks.report.saved_records import KINDS, saved_record

DOCS = plots.DOCS


def test_page_matches_records() -> None:
    text = (DOCS / "explanation" / "performance.md").read_text(encoding="utf-8")
    assert page.filled(text) == text, "run benchmarks.report.plots"
    assert set(re.findall(r"<!-- figures: (\S+) -->", text)) == set(page.TABLES)


def test_readme_has_figures_of_records() -> None:
    text = plots.README.read_text(encoding="utf-8")
    assert page.filled(text, blocks=readme.SENTENCES) == text, "run benchmarks.report.plots"
    assert set(re.findall(r"<!-- figures: (\S+) -->", text)) == set(readme.SENTENCES)


@pytest.mark.parametrize("name", plots.PICTURES)
def test_page_shows_plot_of_each_measurement(name: str) -> None:
    text = (DOCS / "explanation" / "performance.md").read_text(encoding="utf-8")
    assert f"](../plots/{name}.svg)" in text
    if saved_record(plots.PICTURES[name][0]) is not None:
        assert (DOCS / "plots" / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_every_saved_record_names_commit_and_machine() -> None:
    for kind in KINDS:
        stored = saved_record(kind, RESULTS)
        assert stored is None or {"commit", "when", "processor", "cores"} <= set(stored.record)


@pytest.mark.extended
def test_failure_cost_grows_with_replicas_of_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "record.json"
    words = ["--clusters", "700", "1400", "--hosted", "20", "40", "--brokers", "6", "--runs", "1", "--out", str(out)]
    assert failure_cost.main(words) == 0
    by_cluster, by_host, alter = json.loads(out.read_text())["own_work"]
    assert [point["hosted"] for point in by_cluster["points"]] == [20, 20]
    assert [(point["partitions"], point["hosted"]) for point in by_host["points"]] == [(1_400, 20), (1_400, 40)]
    # The bytes of a broker failure grow with the broker's replicas, not with the cluster.
    small, large = (point["made_bytes"] for point in by_cluster["points"])
    assert large == pytest.approx(small, rel=0.2)
    assert by_host["points"][1]["made_bytes"] > 1.3 * large
    assert alter["series"] == "alter-partition"
    assert "by hosted" in capsys.readouterr().out


@pytest.mark.extended
def test_processes_command_measures_every_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "record.json"
    assert processes.main(["--partitions", "1000", "--brokers", "10", "--runs", "1", "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    by_name = {(row["command"], row["partitions"]): row for row in record["processes"]}
    assert {mode for mode in MODES if (f"whatif fail, {mode}", 1_000) in by_name} == set(MODES)
    assert by_name["python -c pass", 0]["peak_bytes"] < by_name["whatif fail, kraft", 1_000]["peak_bytes"]
    assert all(row["processor"] > 0 for row in record["processes"])
    figures = {ratio["name"]: ratio["value"] for ratio in record["ratios"]}
    assert figures["process --help processor"] == by_name["--help", 0]["processor"]
    assert (
        figures["process whatif fail, kraft/1000/10 peak"] == by_name["whatif fail, kraft", 1_000]["peak_bytes"] / 1e6
    )
    assert "whatif fail --help" in capsys.readouterr().out
