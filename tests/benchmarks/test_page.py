"""docs/explanation/performance.md equals the stored records, and every kind of figure has a plot."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.limits import failure_cost, processes
from benchmarks.records import RESULTS
from benchmarks.report import page, plots, readme
from benchmarks.report.saved_records import KINDS, saved_record

DOCS = plots.DOCS
FRAME = {"when": "2026-11-22T01:00:00+00:00", "processor": "P", "cores": 2, "python": "3.11.7", "commit": "c" * 40,
         "modified": False, "command": ["python", "-m", "it"]}  # fmt: skip
KERNEL = {"kernel": "build_replica_index", "rows": "all", "row_count": 100, "bytes": 3_000, "seconds": 4e-6,
          "limit": "scatter", "limit_rate": 3e9, "times": 4.0, "cached_seconds": 2.5e-9,
          "all_cores_seconds": 2.1e-9}  # fmt: skip
POINTS = [{"partitions": size, "hosted": 10, "seconds": 0.001 * size} for size in (1, 10)]
FAILURE = {"bench": "broker-failure", "partitions": 200_000, "brokers": 100, "state_bytes_per_partition": 81.4,
           "answer_known": True,
           "seconds": {"ready": {"median": 0.03}, "decide": {"median": 0.02}, "encode": {"median": 0.01}}}  # fmt: skip
FIGURES: dict[str, Any] = {
    "classes": [{"beside": "kafka", "bench": "broker-failure", "phase": "ready", "partitions": 1_000, "brokers": 100,
                 "kframe": [0.25, 0.125, 0.5], "peer": {"g1": 4.0, "parallel": 2.0}, "collector": "parallel",
                 "ratio": {"least": 4.0, "median": 8.0, "most": 16.0}}],
    "live": [{"event": event, "partitions": 1_000, "brokers": 10, "kframe": [0.5, 1.0],
              "first_lives": [2.5, 2.0], "compiler": [0.75, 0.5, 0.0], "kafka": [30.0, 20.0, 40.0], "raw": 0.5,
              "times_raw": [2.0, 3.0], "ratio": 20.0}
             for event in ("failover", "broker-failure")],
    "cold_server": [{"event": "failover", "partitions": 1_000, "brokers": 10, "kframe": [3.0, 2.0], "raw": [2.0, 2.0],
                     "compiler": [0.5, 0.25], "raw_compiler": [0.75, 0.5], "times_raw": [1.5, 1.0]}],
    "repeated": [{"bench": "broker-failure", "partitions": 1_000, "brokers": 100, "least": [64.0, 57.5]}],
    "fleet_stages": [{"stage": "sweep", "engine": [4.0, 3.0],
                      "masters": [{"master": "local[2]", "start": [2.0, 1.0], "spark": [3.5, 3.0], "times": 0.75}]}],
    "roofline": {"partitions": 100, "brokers": 4, "kernels": [KERNEL, KERNEL | {"rows": "one broker's", "times": 1.0}]},
    "own_work": [failure_cost.series("broker-failure", "partitions", POINTS)],
    "processes": [{"command": "whatif fail, kraft", "partitions": 1_000, "brokers": 100, "runs": 3, "processor": 0.5,
                   "elapsed": 1.25, "peak_bytes": 90_000_000},
                  {"command": "--help", "partitions": 0, "brokers": 100, "runs": 3, "processor": 0.0625,
                   "elapsed": 0.125, "peak_bytes": 20_000_000}],
    "requests": [{"bench": "topic-deletion", "partitions": [10, 20], "seconds": [0.0015, 0.25], "exponent": 1.0}],
    "suite": [{"bench": "batching", "partitions": size, "brokers": 100, "seconds": {"ready": {"median": size / 1e6}}}
              for size in (1_000, 200_000)] + [FAILURE, FAILURE | {"partitions": 10_000_000, "brokers": 1_000}],
    "ratios": [{"name": "memory/1000000/100 beside kafka", "value": 11.25, "less": False, "absolute": False}],
}  # fmt: skip


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "2026-11-22.json").write_text(json.dumps(FRAME | FIGURES))
    older = FRAME | {"when": "2026-01-01T00:00:00+00:00", "requests": [{**FIGURES["requests"][0], "exponent": 7.0}]}
    (tmp_path / "2026-01-01.json").write_text(json.dumps(older))
    return tmp_path


def test_page_matches_records() -> None:
    text = (DOCS / "explanation" / "performance.md").read_text(encoding="utf-8")
    assert page.filled(text) == text, "run benchmarks.report.plots"
    assert set(re.findall(r"<!-- figures: (\S+) -->", text)) == set(page.TABLES)


def test_readme_has_figures_of_records() -> None:
    text = plots.README.read_text(encoding="utf-8")
    assert page.filled(text, blocks=readme.SENTENCES) == text, "run benchmarks.report.plots"
    assert set(re.findall(r"<!-- figures: (\S+) -->", text)) == set(readme.SENTENCES)


@pytest.mark.parametrize(
    "name, phrases",
    [
        ("in-memory", ["kframe decides, applies and encodes 4 to 16 times as fast ([record of 2026-11-22](",
                       "At 10,000,000 partitions it holds 81 bytes of state for each ("]),
        ("cold-server", ["a failover at 1,000 partitions takes 3.00 s, the reads alone take 2.00 s ([record of"]),
        ("live", ["A failover at 1,000 partitions: kframe 1.00 s, Kafka 20.0 s; a broker's failure at 1,000 partitions",
                  "2 cores for all processes, 4 runs each, kframe's slowest but the first 2 and Kafka's best"]),
    ],
)  # fmt: skip
def test_sentence_of_newest_record(name: str, phrases: list[str], results: Path) -> None:
    after = page.filled(f"<!-- figures: {name} -->\nold\n<!-- end -->\n", results, readme.SENTENCES)
    assert "\nold\n" not in after
    for words in phrases:
        assert words in after


def test_size_without_kafka_is_reported(results: Path) -> None:
    alone = [row | {"partitions": 9_000, "kafka": [], "ratio": None} for row in FIGURES["live"]]
    (results / "later.json").write_text(json.dumps(FRAME | {"when": "2026-11-23", "live": FIGURES["live"] + alone}))
    assert "a broker's failure at 1,000 partitions: kframe 1.00 s, Kafka 20.0 s; " in readme.live(results)
    assert "a failover at 9,000 partitions: kframe 1.00 s; " in readme.live(results)


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


@pytest.mark.parametrize(
    "name, cells",
    [
        ("classes", ["ZooKeeper classes", "broker-failure, ready", "1,000", "250 ms", "2,000 ms", "4.0 to 16.0"]),
        ("live", ["failover", "1,000", "1.000 s", "2.500 s, 2.000 s", "0.75 s, 0.50 s, 0.00 s", "20.0 s"]),
        ("live", ["20.0 s", "20.0", "0.500 s", "2.5 (2.0 to 3.0)"]),
        (
            "cold-server",
            [
                "failover",
                "1,000",
                "3.00 s, 2.00 s",
                "0.50 s, 0.25 s",
                "2.00 s, 2.00 s",
                "0.75 s, 0.50 s",
                "1.2 (1.0 to 1.5)",
            ],
        ),
        ("repeated", ["broker-failure", "1,000", "64.0, 57.5"]),
        ("fleet-stages", ["sweep", "3.0 s", "3.0 s (0.75)"]),
        ("fleet-stages", ["session start", "", "1.0 s"]),
        ("roofline", ["`build_replica_index`", "all", "30", "40.0", "2.5", "2.1", "0.8", "scatter, 3.0", "4.0"]),
        ("own-work", ["broker-failure, 10 hosted", "in the cluster", "1.00 ms at 1", "10.0 ms at 10", "1.00"]),
        ("requests", ["topic-deletion", "1.50", "250", "1.00"]),
        ("processes", ["whatif fail, kraft", "1,000", "0.500 s", "1.250 s", "90 MB"]),
        ("processes", ["--help", "", "0.062 s", "0.125 s", "20 MB"]),
        ("suite", ["1,000 / 100", "200,000 / 100", "10,000,000 / 1,000", "deciding, 200,000 / 100"]),
        ("suite", ["batching", "1.00", "200", "", "", ""]),
        ("suite", ["broker-failure", "", "30.0", "30.0", "20.0", "10.0"]),
        ("targets", ["memory a partition, beside Kafka's context", "at least 10 times", "11.2 times", "yes"]),
    ],
)
def test_table_of_newest_record(name: str, cells: list[str], results: Path) -> None:
    before = f"a\n<!-- figures: {name} -->\nold\n<!-- end -->\nb\n"
    after = page.filled(before, results)
    assert f"| {' | '.join(cells)} |" in after
    assert "\nold\n" not in after
    assert page.filled(after, results) == after
    assert after.startswith("a\n")
    assert after.endswith("<!-- end -->\nb\n")


def test_only_kernels_beyond_limit_are_listed_and_explained(results: Path) -> None:
    text = page.TABLES["roofline"](results)
    assert "4 brokers; 1 of 2 measurements are beyond 3 times the limit." in text
    assert "- `build_replica_index`, all: each replica is written down" in text
    assert "one broker's" not in text


def test_unknown_answers_are_counted(results: Path) -> None:
    assert "2 of these 4 were held to a known answer." in page.TABLES["suite"](results)


def test_page_without_records_has_no_figures(tmp_path: Path) -> None:
    blocks = (*page.TABLES.values(), *readme.SENTENCES.values())
    assert {block(tmp_path) for block in blocks} == {page.NONE}
    assert plots.draw(tmp_path, tmp_path) == []


@pytest.mark.extended
def test_command_draws_all_plots(tmp_path: Path, results: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "plots").mkdir()
    (tmp_path / "explanation").mkdir()
    (tmp_path / "explanation" / "performance.md").write_text("<!-- figures: requests -->\n<!-- end -->\n")
    (tmp_path / "README.md").write_text("<!-- figures: in-memory -->\n<!-- end -->\n")
    arguments = ["--docs", str(tmp_path), "--readme", str(tmp_path / "README.md"), "--results", str(results)]
    assert plots.main(arguments) == 0
    plot_texts = {path.stem: path.read_text() for path in (tmp_path / "plots").glob("*.svg")}
    assert set(plot_texts) == set(plots.PICTURES)
    assert plot_texts["live"].count(f"fill: {plots.THEIRS}") == 2
    assert "topic-deletion" in (tmp_path / "explanation" / "performance.md").read_text()
    assert "4 to 16 times" in (tmp_path / "README.md").read_text()


def test_record_without_zookeeper_classes_leaves_plot_empty(tmp_path: Path) -> None:
    """As in a record that ended after the KRaft classes."""
    pytest.importorskip("matplotlib")
    rows = [row | {"beside": "kraft", "phase": "decide"} for row in FIGURES["classes"]]
    (tmp_path / "peers.json").write_text(json.dumps(FRAME | {"classes": rows}))
    (tmp_path / "plots").mkdir()
    assert [path.stem for path in plots.draw(tmp_path, tmp_path)] == ["classes"]
    assert "| KRaft classes | broker-failure, decide | 1,000 |" in page.TABLES["classes"](tmp_path)
    assert readme.in_memory(tmp_path) == page.NONE


@pytest.mark.parametrize(
    "seconds, text", [(20.0, "20 s"), (1.0, "1 s"), (0.125, "125 ms"), (0.0045, "4.5 ms"), (2e-5, "20 µs")]
)
def test_durations(seconds: float, text: str) -> None:
    assert plots.duration(seconds) == text


def test_small_brokers_lead_all_their_replicas() -> None:
    cluster = failure_cost.with_small_brokers(1_000, 8, 20, small=3)
    assert [int((cluster.partitions.leader == broker).sum()) for broker in (8, 9, 10)] == [20, 20, 20]
    assert [int((cluster.partitions.replica == broker).sum()) for broker in (8, 9, 10)] == [20, 20, 20]


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
    assert {mode for mode in processes.MODES if (f"whatif fail, {mode}", 1_000) in by_name} == set(processes.MODES)
    assert by_name["python -c pass", 0]["peak_bytes"] < by_name["whatif fail, kraft", 1_000]["peak_bytes"]
    assert all(row["processor"] > 0 for row in record["processes"])
    figures = {ratio["name"]: ratio["value"] for ratio in record["ratios"]}
    assert figures["process --help processor"] == by_name["--help", 0]["processor"]
    assert (
        figures["process whatif fail, kraft/1000/10 peak"] == by_name["whatif fail, kraft", 1_000]["peak_bytes"] / 1e6
    )
    assert "whatif fail --help" in capsys.readouterr().out


def test_failed_command_is_not_measured() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        processes.run([sys.executable, "-c", "raise SystemExit(3)"])


def test_small_brokers_exceeding_partitions_raise() -> None:
    with pytest.raises(ValueError, match="7 brokers of 200 partitions each do not go into 1000"):
        failure_cost.failure(1_000, 8, 200)
